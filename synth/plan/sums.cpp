#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

const Axis* outermost_reduced(const Block& b) {
    const auto it = std::ranges::find(b.axes, AxisKind::Red, &Axis::kind);
    return it == b.axes.end() ? nullptr : &*it;
}

/// Cuts a reduction into slices; answers the label of the partial sums, empty where it was not cut.
std::string cut(Draft& d, const std::string& label, const std::string& axis, int64_t count, int64_t align, const std::string& why) {
    if (count < 2) return {};
    const std::string part = label + ".w";
    const bool done = d.step("split_reduction", {label}, {{"axis", axis}, {"count", count}, {"align", align}, {"kind", "grid"}}, why);
    return done && block_named(d.program(), part) ? part : "";
}

}  // namespace

// ---- sums across neighbours

std::optional<Draft> columns_kernel(Draft d, const Group& g) {
    const std::string label = g.labels[0];
    const Axis* m = outermost_reduced(*block_named(d.program(), label));
    if (!m || is_pair(block_named(d.program(), label)->monoid)) return {};
    const int64_t warp = d.target().warp;
    const auto columns = size_of(d.program(), analysis::axis_of(*block_named(d.program(), label), g.inner)->size), terms = size_of(d.program(), m->size);
    const int64_t width = vector_width(d, {label}, columns), tile = warp * width;
    int64_t others = 1;
    for (const std::string& r : g.rows)
        if (r != g.inner) others *= size_of(d.program(), analysis::axis_of(*block_named(d.program(), label), r)->size).value_or(1);
    const int64_t blocks = others * ((columns.value_or(tile) + tile - 1) / tile);
    int64_t slices = terms ? std::clamp<int64_t>(std::min(16 * d.target().multiprocessors / std::max<int64_t>(1, blocks), *terms / 32), 1, 256) : 16;
    for (int64_t n = slices; terms && 4 * n > 3 * slices; --n)    // of the same number of rows, where nearly as many are
        if (*terms % n == 0) {
            slices = n;
            break;
        }
    std::vector<std::string> last = g.labels;
    const std::string part = cut(d, label, m->name, slices, 1, fmt::format("{} blocks of columns are too few: the rows are cut into {} slices, which are added in order", blocks, slices));
    const std::string first = part.empty() ? label : part;
    const auto kernel = [&](const std::vector<std::string>& labels, int64_t inner, int64_t w, int64_t threads) {
        if (!d.step("fuse", labels, {{"over", tiles_of_rows(g, g.inner, inner)}, {"kind", "grid"}}, fmt::format("{} columns a block, neighbours beside each other", inner))) return false;
        const std::string loop = loop_around(d.program(), labels[0]);
        for (const std::string& t : results_of(d.program(), labels)) d.step("keep", {t}, {{"at", loop}}, "the sums stay in registers");
        return vectorize_inside(d, loop, w, threads, fmt::format("each thread adds {} columns", w));
    };
    if (!kernel(part.empty() ? last : std::vector{first}, tile, width, warp)) return {};
    if (!part.empty() && !kernel(last, 2 * warp, 1, 2 * warp)) return {};
    return d;
}

// ---- sums to one cell

namespace {

/// The statements as one block, whose threads share the sum.
bool one_block(Draft& d, const std::vector<std::string>& labels, int64_t threads) {
    if (!d.step("enclose", labels, {}, "one block adds up")) return false;
    const std::string loop = loop_around(d.program(), labels[0]);
    for (const std::string& t : results_of(d.program(), labels)) d.step("keep", {t}, {{"at", loop}}, "the sum stays in registers");
    if (!vectorize_inside(d, loop, 4, threads, fmt::format("{} threads", threads))) return false;
    bind_reductions(d, loop, threads);
    return true;
}

}  // namespace

std::optional<Draft> whole_kernel(Draft d, const Group& g) {
    const std::string label = g.labels[0];
    const Axis* outer = outermost_reduced(*block_named(d.program(), label));
    if (!outer || is_pair(block_named(d.program(), label)->monoid)) return {};
    const auto terms = size_of(d.program(), outer->size);
    const bool one_axis = axes_of_kind(*block_named(d.program(), label), false).size() == 1;
    const int64_t width = vector_width(d, {label}, std::nullopt), threads = 512;
    const int64_t align = one_axis ? threads * width : 1;
    const bool few = terms && one_axis && *terms <= 64 * 1024;
    const int64_t slices = few ? 1 : terms ? std::min(4 * d.target().multiprocessors, (*terms + align - 1) / align) : 4 * d.target().multiprocessors;
    const std::string part = cut(d, label, outer->name, slices, align, fmt::format("four blocks a multiprocessor add {} slices apart", slices));
    if (!part.empty()) {
        const std::string loop = loop_around(d.program(), part);
        if (!d.step("keep", {part}, {{"at", loop}}, "the sum of a slice stays in registers")) return {};
        if (!vectorize_inside(d, loop, width, threads, fmt::format("{} threads, vectors of {} elements", threads, width))) return {};
        bind_reductions(d, loop, threads);
    }
    if (!one_block(d, g.labels, part.empty() ? 1024 : threads)) return {};
    return d;
}

}  // namespace acu::synth::plan
