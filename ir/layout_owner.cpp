#include <fmt/format.h>

#include <algorithm>

#include "ir/layout_bits.h"
#include "ir/layout_use.h"

namespace acu::ir {

Layout row_tile(int64_t threads, int64_t warp, int64_t vec, int64_t repeats) {
    const int64_t lanes = std::min(threads, warp), warps = threads / lanes;
    return Layout(1).times("reg", vec, {1}).times("lane", lanes, {vec}).times("warp", warps, {vec * lanes}).times("reg", repeats, {vec * threads}).folded();
}

namespace {

int64_t smallest_divisor(int64_t n, int64_t least) {
    int64_t d = std::min(n, std::max<int64_t>(least, 1));
    while (n % d != 0) ++d;
    return d;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What is left to spread, and where the tile has grown to.
struct Spread {
    Layout layout;
    Coord covered;
    int64_t lanes, warps;

    void grow(const std::string& input, size_t axis, int64_t count) {
        Coord step(covered.size(), 0);
        step[axis] = covered[axis];
        layout = layout.times(input, count, step);
        covered[axis] *= count;
    }
    void axis(size_t axis, int64_t size) {
        const int64_t lane = smallest_divisor(lanes, ceil_div(size, covered[axis]));
        grow("lane", axis, lane);
        const int64_t warp = smallest_divisor(warps, ceil_div(size, covered[axis]));
        grow("warp", axis, warp);
        grow("reg", axis, ceil_div(size, covered[axis]));
        lanes /= lane, warps /= warp;
    }
};

std::string fault_of(const Coord& shape, int64_t threads, int64_t warp, int vector_axis, int64_t vec) {
    if (threads < 1 || warp < 1 || (threads > warp && threads % warp != 0)) return fmt::format("{} threads are no whole number of warps of {}", threads, warp);
    if (vector_axis < 0 || static_cast<size_t>(vector_axis) >= shape.size()) return fmt::format("there is no axis {}", vector_axis);
    if (vec < 1) return fmt::format("vectors of {} elements", vec);
    const auto empty = std::ranges::find_if(shape, [](int64_t s) { return s < 1 || s > int64_t{1} << 32; });
    return empty == shape.end() ? "" : fmt::format("a tile cannot have {} elements along an axis", *empty);
}

}  // namespace

Result<Distribution> distribute(const Coord& shape, int64_t threads, int64_t warp, int vector_axis, int64_t vec) {
    if (const std::string fault = fault_of(shape, threads, warp, vector_axis, vec); !fault.empty()) return refusal("layout.distribute", fault);
    const int64_t lanes = std::min(threads, warp);
    Spread s{Layout(static_cast<int>(shape.size())), Coord(shape.size(), 1), lanes, threads / lanes};
    s.grow("reg", vector_axis, vec);
    s.axis(vector_axis, shape[vector_axis]);
    size_t outermost = vector_axis;
    for (size_t axis = shape.size(); axis-- > 0;) {
        if (axis == static_cast<size_t>(vector_axis)) continue;
        s.axis(axis, shape[axis]);
        if (shape[axis] > 1) outermost = axis;
    }
    // Threads that nothing is left for stand beyond the tile, where the guard holds them back: along a dimension that users name, not one of a single cell.
    s.grow("lane", outermost, s.lanes);
    s.grow("warp", outermost, s.warps);
    return Distribution{s.layout.folded(), s.covered, s.covered == shape};
}

}  // namespace acu::ir
