#include "synth/plan/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/pass/edit.h"

namespace acu::synth::plan {

using namespace ir;

std::optional<Draft> kernel_for(const Draft& draft, const Group& g) {
    if (g.kind == GroupKind::Rows) return rows_kernel(draft, g);
    if (g.kind == GroupKind::Chain) return chain_kernel(draft, g);
    if (g.kind == GroupKind::Products) return product_kernel(draft, g);
    auto out = g.kind == GroupKind::Points ? points_kernel(draft, g) : g.kind == GroupKind::Columns ? columns_kernel(draft, g) : whole_kernel(draft, g);
    return out && out->lowers() ? out : std::nullopt;
}

int64_t vector_width(const Draft& d, const std::vector<std::string>& labels, std::optional<int64_t> size) {
    std::pair<size_t, int64_t> main{0, 8};    // dimensions, bytes of an element
    for (const std::string& label : labels)
        for (const analysis::Touch& t : analysis::touches(*block_named(d.program(), label)))
            if (const Decl* x = d.program().find(t.tensor); x && x->scope != Scope::Param && x->scope != Scope::Temp && !x->dims.empty()) {
                const std::pair<size_t, int64_t> mine{x->dims.size(), static_cast<int64_t>(info(x->type).bytes)};
                main = mine.first > main.first ? mine : std::max(main, mine);
            }
    int64_t width = 16 / main.second;
    while (size && width > 1 && *size % width != 0) width /= 2;
    return width;
}

pass::Sizes tiles_of_rows(const Group& g, const std::string& axis, int64_t size) {
    pass::Sizes sizes;
    for (const std::string& r : g.rows) sizes.emplace_back(r, r == axis ? size : 1);
    return sizes;
}

std::string loop_around(const Program& p, const std::string& label) {
    const auto at = pass::try_block(p, label);
    if (!at) return {};
    const auto loops = pass::loops_of(at->above);
    return loops.empty() ? std::string() : pass::as_loop(loops.back())->var;
}

std::vector<std::string> results_of(const Program& p, const std::vector<std::string>& labels) {
    std::vector<std::string> out;
    for (const std::string& label : labels)
        for (const Access& o : block_named(p, label)->outs)
            if (std::ranges::find(out, o.tensor) == out.end() && p.find(o.tensor)) out.push_back(o.tensor);
    return out;
}

std::vector<std::string> labels_inside(const Program& p, const std::string& loop) {
    std::vector<std::string> out;
    pass::for_each_place(p, [&](const pass::Place& x) {
        const auto above = pass::loops_of(x.above);
        if (pass::as_block(x.stmt) && std::ranges::any_of(above, [&](const Stmt& s) { return pass::as_loop(s)->var == loop; })) out.push_back(pass::as_block(x.stmt)->label);
    });
    return out;
}

void vectorize_copy(Draft& d, const std::string& copy) {
    const Block& b = *block_named(d.program(), copy);
    const std::string n = neighbours(b.outs[0].subscripts, b);
    bool done = false;
    for (int64_t w = 16 / static_cast<int64_t>(info(pass::find_buffer(d.program(), copy).type).bytes); !done && w > 1; w /= 2) done = d.step("vectorize", {copy, n}, {{"width", w}}, "16 bytes at once");
}

namespace {

/// The axis along which a block runs through neighbours: of what it stores, else of what it loads.
std::string vector_axis(const Block& b) {
    for (const bool write : {true, false})
        for (const analysis::Touch& t : analysis::touches(b))
            if (const std::string n = neighbours(t.subscripts, b); t.write == write && !n.empty()) return n;
    return {};
}

}  // namespace

bool vectorize_inside(Draft& d, const std::string& loop, int64_t width, int64_t threads, const std::string& why) {
    bool first = true;
    for (const std::string& label : labels_inside(d.program(), loop)) {
        const Block& b = *block_named(d.program(), label);
        const std::string axis = vector_axis(b);
        if (axis.empty()) continue;
        if (analysis::axis_of(b, axis)->vector > 1) continue;
        Arguments args{{"width", width}};
        if (first) args.emplace("threads", threads);
        bool done = d.step("vectorize", {label, axis}, args, why);
        for (int64_t w = width / 2; !done && w >= 1 && (first || w > 1); w /= 2) {
            args.insert_or_assign("width", w);
            done = d.step("vectorize", {label, axis}, args, why);
        }
        if (done) first = false;
    }
    return !first;
}

void bind_reductions(Draft& d, const std::string& loop, int64_t threads, bool cluster) {
    const bool warp = threads == d.target().warp, lanes = threads < d.target().warp;
    for (const std::string& label : labels_inside(d.program(), loop)) {
        const Block& b = *block_named(d.program(), label);
        if (b.monoid == Monoid::None || !b.via.empty()) continue;
        if (std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; })) {
            d.step("bind_scan", {label}, {{"via", "common.block_scan"}}, "each thread scans a chunk, the block the sums of the chunks");
            continue;
        }
        const std::string via = fmt::format("common.{}_reduce{}", lanes ? "lanes" : warp ? "warp" : cluster ? "cluster" : "block", b.monoid == Monoid::TopK ? "_top" : is_pair(b.monoid) ? "_pair" : "");
        d.step("bind_reduce", {label}, {{"via", via}}, warp || lanes ? "lanes join by shuffles" : cluster ? "the blocks of a cluster join through each other's shared memory" : "the warps of the block join with one exchange in shared memory");
    }
}

namespace {

/// All elements in memory that the statements write, or all floats that they read, have at most 16 bits.
bool is_narrow(const Program& p, const std::vector<std::string>& labels, bool writes) {
    bool any = false;
    for (const std::string& label : labels) {
        const Block* b = block_named(p, label);
        if (!b) continue;
        for (const analysis::Touch& t : analysis::touches(*b)) {
            const Decl* x = p.find(t.tensor);
            if (!x || t.write != writes || (!writes && !is_float(x->type)) || x->scope == Scope::Param) continue;
            if (x->scope == Scope::Temp || info(x->type).bytes > 2) return false;
            any = true;
        }
    }
    return any;
}

}  // namespace

void approximate_calls(Draft& d, const std::string& loop) {
    const std::vector<std::string> labels = labels_inside(d.program(), loop);
    const bool result = is_narrow(d.program(), labels, true);
    if (!result && !is_narrow(d.program(), labels, false)) return;
    const std::string why = fmt::format("its relative error stays far below the rounding of {}", result ? "the result" : "what it is computed from");
    for (const std::string& label : labels) {    // relative errors, which no cancellation makes larger than they are
        const Block* b = block_named(d.program(), label);
        if (!b || std::ranges::none_of(b->axes, [](const Axis& a) { return a.vector > 1; })) continue;    // a few cells: nothing is gained
        d.step("approximate", {label}, {{"function", "exp"}, {"with", "hardware"}}, why);
        if (result) d.step("approximate", {label}, {{"function", "erf"}, {"with", "polynomial"}}, "its absolute error is that of 1 + erf in f32");
        if (result || is_narrow(d.program(), {label}, true)) d.step("approximate", {label}, {{"function", "div"}, {"with", "hardware"}}, "its error stays far below the rounding of the result");
    }
}

}  // namespace acu::synth::plan
