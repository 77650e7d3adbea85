#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Small blocks, one for each tile, keep most bytes on their way: 2 to 4 KB of each tensor.
constexpr int64_t block_threads = 128;

/// The tile of each axis: the last ones whole, until the threads have work. A row takes a power of two of vectors, as lanes are shared out.
pass::Sizes tile_of(const Draft& d, const Group& g, int64_t points, int64_t width) {
    const Block& b = *block_named(d.program(), g.labels[0]);
    pass::Sizes tile;
    for (size_t i = g.rows.size(); i-- > 0;) {
        const Axis& a = *analysis::axis_of(b, g.rows[i]);
        const auto size = size_of(d.program(), a.size);
        const int64_t mine = size ? std::clamp<int64_t>(*size, 1, points) : points;
        tile.emplace(tile.begin(), g.rows[i], mine);
        points = std::max<int64_t>(1, points / (width * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>((mine + width - 1) / width)))));
        width = 1;
    }
    return tile;
}

/// A tensor that is read across the direction in which the result is written, and the axis along which it is read.
std::optional<std::pair<std::string, std::string>> crossed(const Program& p, const Group& g) {
    const Block& b = *block_named(p, g.labels[0]);
    if (g.labels.size() != 1 || b.monoid != Monoid::None) return {};
    for (const analysis::Touch& t : analysis::touches(b)) {
        const std::string along = t.write ? "" : neighbours(t.subscripts, b);
        const bool both = std::ranges::any_of(t.subscripts, [&](const Index& i) { return analysis::mentions(i, g.inner); });
        const auto is_single = [&](const std::string& axis) { return is_const(analysis::axis_of(b, axis)->size, 1); };    // nothing lies across
        if (!along.empty() && (is_single(along) || is_single(g.inner))) continue;
        if (both && !along.empty() && along != g.inner && std::ranges::find(g.rows, along) != g.rows.end()) return std::pair{t.tensor, along};
    }
    return {};
}

/// Reads every second element or fewer along the axis: neighbouring threads, not the elements of one, lie next to each other then.
bool has_strided_window(const Block& b, const std::string& axis) {
    return std::ranges::any_of(analysis::touches(b), [&](const analysis::Touch& t) {
        if (t.write || t.subscripts.empty()) return false;
        const auto e = analysis::affine(t.subscripts.back(), axis);
        return e && is_const(e->coefficient) && e->coefficient->value > 1;
    });
}

/// Are most bytes that a point loads of tensors that lack an axis of the tile, so that several points of a thread share them?
bool shares_most_loads(const Program& p, const Block& b) {
    int64_t shared = 0, own = 0;
    for (const analysis::Touch& t : analysis::touches(b)) {
        const Decl* x = p.find(t.tensor);
        if (t.write || !x || x->dims.empty() || !is_float(x->type)) continue;    // positions are few
        const bool all = std::ranges::all_of(b.axes, [&](const Axis& a) { return std::ranges::any_of(t.subscripts, [&](const Index& i) { return analysis::mentions(i, a.name); }); });
        (all ? own : shared) += static_cast<int64_t>(info(x->type).bytes);
    }
    return shared > own;
}

/// Does a point take functions of many instructions?
bool is_long(const Program& p, const Group& g) {
    bool found = false;
    for (const std::string& l : g.labels)
        for (const Value& v : block_named(p, l)->vals)
            visit(v, [&](const ValueNode& n) { found |= n.op == Op::Call && (n.name == "erf" || n.name == "tanh" || n.name == "pow" || n.name == "sin" || n.name == "cos"); });
    return found;
}

/// for n.o, m.o { x.t: shared = x[…] along its rows;  y = x.t[…] along those of y }
std::optional<Draft> transposed(Draft d, const Group& g, const std::string& tensor, const std::string& along) {
    const Block& b = *block_named(d.program(), g.labels[0]);
    const auto bytes = static_cast<int64_t>(info(d.program().find(tensor)->type).bytes);
    const int64_t side = bytes >= 4 ? 32 : 64;
    pass::Sizes tile;
    const auto short_side = [&](const std::string& r) -> std::optional<int64_t> {    // else a whole side, if with a margin: its rows can be swizzled
        const auto size = size_of(d.program(), analysis::axis_of(b, r)->size);
        return size && 2 * *size <= side ? std::optional(std::max<int64_t>(1, *size)) : std::nullopt;
    };
    const int64_t shortest = std::min(short_side(g.inner).value_or(side), short_side(along).value_or(side)), longest = std::min(side * side / shortest, 8 * side);
    for (const std::string& r : g.rows) tile.emplace_back(r, r == g.inner || r == along ? short_side(r).value_or(longest) : 1);
    if (!d.step("fuse", g.labels, {{"over", tile}, {"kind", "grid"}}, fmt::format("tiles with runs on both sides: `{}` is read along `{}` and written along `{}`", tensor, along, g.inner))) return {};
    const std::string loop = loop_around(d.program(), g.labels[0]);
    if (!d.step("stage", {tensor}, {{"at", loop}, {"in", "shared"}, {"by", "box"}}, "through shared memory, so that both sides move neighbours together")) return {};
    d.step("swizzle", {tensor + ".t"}, {{"pattern", std::string(side * bytes >= 128 ? "128" : "64")}, {"rows", 16 / bytes}}, "threads beside each other, who take 16 bytes down a column each, find them in different banks");
    if (!vectorize_inside(d, loop, 16 / bytes, 256, "16 bytes a thread")) return {};
    return d;
}

}  // namespace

bool is_crossed(const Program& p, const Group& g) { return crossed(p, g).has_value(); }

std::optional<Draft> points_kernel(Draft d, const Group& g) {
    if (g.rows.empty()) return {};
    if (const auto x = crossed(d.program(), g))
        if (auto done = transposed(d, g, x->first, x->second)) return done;
    const Block& b = *block_named(d.program(), g.labels[0]);
    const auto inner = size_of(d.program(), analysis::axis_of(b, g.inner)->size);
    const int64_t width = is_scatter(b) ? 1 : has_strided_window(b, g.inner) ? (inner && *inner % 2 ? 1 : 2) : vector_width(d, g.labels, inner);
    const int64_t each = is_scatter(b) || shares_most_loads(d.program(), b) ? 4 * width : is_long(d.program(), g) || has_strided_window(b, g.inner) ? 2 * width : width;
    const pass::Sizes tile = tile_of(d, g, block_threads * each, width);
    const char* why = is_scatter(b) ? "neighbouring threads add to neighbouring cells" : each > 2 * width ? "the points of a thread share most of what they load" : each > width ? "a thread loads the next points while it computes these" : "many small blocks keep the memory busy";
    if (!d.step("fuse", g.labels, {{"over", tile}, {"kind", "grid"}}, fmt::format("{} points a block, {} a thread: {}", block_threads * each, each, why))) return {};
    const std::string loop = loop_around(d.program(), g.labels[0]);
    for (const std::string& t : results_of(d.program(), g.labels))
        if (d.program().find(t)->scope == Scope::Temp || block_named(d.program(), t + ".init")) d.step("keep", {t}, {{"at", loop}}, "between the statements it stays in registers");
    vectorize_inside(d, loop, width, block_threads, fmt::format("neighbours move together, {} elements", width));
    approximate_calls(d, loop);
    return d;
}

}  // namespace acu::synth::plan
