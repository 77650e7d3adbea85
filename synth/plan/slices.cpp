#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"
#include "synth/plan/row.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Of a slice, 32 a thread, so that its two joins cost little: a block reads it once and is gone.
constexpr int64_t slice_threads = 256, slice_points = 32 * slice_threads, join_threads = 64;

int64_t slices_for(int64_t points) { return (points + slice_points - 1) / slice_points; }

bool share_among_threads(Draft& d, const std::string& loop, int64_t width) {
    return vectorize_inside(d, loop, width, slice_threads, fmt::format("{} threads, vectors of {} elements", slice_threads, width));
}

/// This statement, and with it all of its kernel.
bool one_thread_a_row(Draft& d, const std::string& label, const Group& g) {
    return d.step("vectorize", {label, g.rows.back()}, {{"width", int64_t{1}}, {"threads", join_threads}}, fmt::format("{} rows a block", join_threads));
}

/// A kernel of rows in which these tensors are kept; answers its loop, empty: refused.
std::string kernel_of(Draft& d, const std::vector<std::string>& labels, const pass::Sizes& over, const std::vector<std::string>& kept, const std::string& why) {
    if (!d.step("fuse", labels, {{"over", over}, {"kind", "grid"}}, why)) return {};
    const std::string loop = loop_around(d.program(), labels[0]);
    for (const std::string& t : kept)
        if (!d.step("keep", {t}, {{"at", loop}, {"in", "register"}}, "it belongs to the block") && d.program().find(t)->scope == Scope::Temp) return {};
    return loop;
}

/// A block a slice, for one statement whose results `kept` are.
bool slice_kernel(Draft& d, const std::string& label, const Group& g, const std::vector<std::string>& kept, int64_t width) {
    const std::string loop = kernel_of(d, {label}, tiles_of_rows(g), kept, "one block a slice of a row");
    if (loop.empty() || !share_among_threads(d, loop, width)) return false;
    bind_reductions(d, loop, slice_threads);
    return true;
}

/// The statements that join slices, `join` among them, in one kernel in which these tensors are kept.
bool join_kernel(Draft& d, const std::vector<std::string>& labels, const std::string& join, const Group& g, const std::vector<std::string>& kept, const std::string& why) {
    return !kernel_of(d, labels, tiles_of_rows(g, g.rows.back(), join_threads), kept, why).empty() && one_thread_a_row(d, join, g);
}

bool reads(const Value& v, const std::string& tensor) {
    bool found = false;
    analysis::for_each_load(v, [&](const Value& x) { found |= x->name == tensor; });
    return found;
}

/// A maximum, and a sum of exponentials of what it is the maximum of.
struct Running {
    std::string top, sum;
};
std::optional<Running> running_of(const Program& p, const Group& g) {
    for (const std::string& top : g.labels)
        for (const std::string& sum : g.labels) {
            const Block &m = *block_named(p, top), &s = *block_named(p, sum);
            bool exponential = false;
            for (const Value& v : s.vals)
                visit(v, [&](const ValueNode& n) { exponential |= n.op == Op::Call && n.name == "exp" && reads(n.args[0], m.outs[0].tensor); });
            if (m.monoid == Monoid::Max && s.monoid == Monoid::Sum && exponential) return Running{top, sum};
        }
    return {};
}

/// for n.s, b { top.w, sum.w of a slice };  for b { top, sum of the slices };  what follows, point by point
class SlicedRows {
  public:
    SlicedRows(Draft d, Group g, int64_t points, int64_t width) : d_(std::move(d)), g_(std::move(g)), points_(points), width_(width) {}

    std::optional<Draft> run() {
        for (const std::string& t : wide_temporaries(d_.program(), g_))
            if (d_.step("inline", {t}, {}, "computed again where it is used, so that no row has to be stored")) std::erase(g_.labels, t);
        const auto running = running_of(d_.program(), g_);
        if (!running) return {};
        x_ = *running;
        e_ = x_.sum + ".e";
        if (!split() || !slices() || !join()) return {};
        return points();
    }

  private:
    bool split() {
        const int64_t count = slices_for(points_);
        const std::string axis = axes_of_kind(*block_named(d_.program(), x_.top), false)[0].name;
        if (!d_.step("outline", {x_.sum}, {{"call", "exp"}, {"into", e_}}, "so that it can follow the maximum of a slice")) return false;
        return d_.step("split_online", {x_.top}, {{"axis", axis}, {"exp", e_}, {"count", count}, {"align", width_}, {"kind", "grid"}},
                       fmt::format("a row of {} points is more than a block should hold: {} slices, each with its own maximum", points_, count));
    }

    bool keep(const std::vector<std::string>& tensors, const std::string& loop) {
        return std::ranges::all_of(tensors, [&](const std::string& t) { return d_.step("keep", {t}, {{"at", loop}, {"in", "register"}}, "it belongs to the block"); });
    }

    bool slices() {
        const Group mine{GroupKind::Rows, {x_.top + ".w", e_, x_.sum + ".w"}, g_.rows, g_.inner};
        if (!d_.step("fuse", mine.labels, {{"over", tiles_of_rows(g_)}, {"kind", "grid"}}, "one block a slice of a row")) return false;
        const std::string loop = loop_around(d_.program(), mine.labels[0]);
        if (!keep(mine.labels, loop) || !d_.step("inline", {e_}, {}, "where it is added")) return false;
        const Group now{GroupKind::Rows, {mine.labels[0], mine.labels[2]}, g_.rows, g_.inner};
        for (const std::string& t : inputs_of(d_.program(), now))
            if (readers_of(d_.program(), now, t) > 1 && is_of_rows(d_.program(), now, t) && !d_.step("stage", {t}, {{"at", loop}, {"in", "register"}}, "a slice is read once for the maximum and the sum")) return false;
        if (!share_among_threads(d_, loop, width_)) return false;
        approximate_calls(d_, loop);
        bind_reductions(d_, loop, slice_threads);
        return true;
    }

    /// And what else has one cell a row.
    bool join() {
        d_.step("inline", {x_.top + ".scale"}, {}, "where it is used");
        std::vector<std::string> labels{x_.top, x_.sum}, rest;
        if (block_named(d_.program(), x_.sum + ".fix")) labels.push_back(x_.sum + ".fix");
        for (const std::string& l : g_.labels)
            if (l != x_.top && l != x_.sum) (rest.empty() && axes_of_kind(*block_named(d_.program(), l), true).size() == g_.rows.size() ? labels : rest).push_back(l);
        g_.labels = rest;
        if (!d_.step("fuse", labels, {{"over", tiles_of_rows(g_, g_.rows.back(), join_threads)}, {"kind", "grid"}}, "the slices of a row are joined by one thread")) return false;
        const std::string loop = loop_around(d_.program(), labels[0]);
        if (!keep({x_.top, x_.sum}, loop)) return false;
        return one_thread_a_row(d_, labels[0], g_);
    }

    std::optional<Draft> points() {
        for (const std::string& l : g_.labels) {
            std::vector<std::string> axes;
            for (const Axis& a : block_named(d_.program(), l)->axes) axes.push_back(a.name);
            if (block_named(d_.program(), l)->monoid != Monoid::None || axes.empty()) return {};
            const std::string inner = axes.back();
            auto next = points_kernel(d_, {GroupKind::Points, {l}, std::move(axes), inner});
            if (!next) return {};
            d_ = std::move(*next);
        }
        return d_;
    }

    Draft d_;
    Group g_;
    int64_t points_, width_;
    Running x_;
    std::string e_;    ///< the exponential
};

/// The one reduction of a group whose other statements have a cell a row; empty: it is another group.
std::string sole_reduction(const Program& p, const Group& g) {
    std::string found;
    for (const std::string& l : g.labels) {
        const Block& b = *block_named(p, l);
        if (b.monoid != Monoid::None ? !found.empty() || axes_of_kind(b, false).size() != 1 : b.axes.size() != g.rows.size()) return {};
        if (b.monoid != Monoid::None) found = l;
    }
    return found;
}

/// Slices of a sum and of squared differences: along the outermost reduced axis, of whole ones of the inner axes, small enough for shared memory.
int64_t slices_of_moments(const Draft& d, const Block& sum, int64_t bytes) {
    constexpr int64_t most_bytes = 48 * 1024;
    const auto outer = size_of(d.program(), axes_of_kind(sum, false)[0].size);
    if (!outer || bytes == 0) return 0;
    int64_t count = (bytes + most_bytes - 1) / most_bytes;
    while (count <= *outer && *outer % count != 0) ++count;
    return count <= *outer ? count : 0;
}

}  // namespace

std::optional<Draft> sliced_rows(Draft draft, Group g, int64_t points, int64_t width) { return SlicedRows(std::move(draft), std::move(g), points, width).run(); }

std::optional<Draft> sliced_moments(Draft d, const Group& g, int64_t bytes, int64_t width) {
    std::vector<std::string> sums;
    for (const std::string& l : g.labels)
        if (block_named(d.program(), l)->monoid != Monoid::None) sums.push_back(l);
        else if (block_named(d.program(), l)->axes.size() != g.rows.size()) return {};
    if (sums.size() != 2) return {};
    const Block sum = *block_named(d.program(), sums[0]);
    const int64_t count = slices_of_moments(d, sum, bytes);
    const std::string axis = axes_of_kind(sum, false)[0].name;
    if (count < 2 || !d.step("split_moments", sums, {{"axis", axis}, {"count", count}, {"kind", "grid"}}, fmt::format("{} slices with means of their own: each is read once", count))) return {};
    const std::vector<std::string> slice{sums[0] + ".w", sums[0] + ".w.mean", sums[1] + ".w"};
    const std::string loop = kernel_of(d, slice, tiles_of_rows(g), results_of(d.program(), slice), "one block a slice of a row");
    if (loop.empty()) return {};
    const Group now{GroupKind::Rows, slice, g.rows, g.inner};
    for (const std::string& t : inputs_of(d.program(), now))
        if (readers_of(d.program(), now, t) > 1 && is_of_rows(d.program(), now, t) && !d.step("stage", {t}, {{"at", loop}, {"in", "shared"}}, "a slice is read once for both sums")) return {};
    if (!share_among_threads(d, loop, width)) return {};
    bind_reductions(d, loop, slice_threads);
    if (!join_kernel(d, g.labels, sums[0], g, results_of(d.program(), g.labels), "the slices of a row are joined by one thread")) return {};
    return d;
}

std::optional<Draft> sliced_scans(Draft d, const Group& g, std::optional<int64_t> points, int64_t width) {
    constexpr int64_t usual = 64;    // slices of rows of unknown length
    std::string scan;
    std::vector<std::string> before;    // the fill of the running value
    for (const std::string& l : g.labels) {
        const Block& b = *block_named(d.program(), l);
        const std::vector<Axis> own = axes_of_kind(b, false);
        if (own.empty() && scan.empty() && b.axes.size() == g.rows.size()) before.push_back(l);
        else if (own.size() == 1 && own[0].kind == AxisKind::Scan && scan.empty()) scan = l;
        else return {};
    }
    if (scan.empty()) return {};
    const std::vector<Axis> rest = axes_of_kind(*block_named(d.program(), scan), false);
    const auto most = most_of(d.program(), rest[0].size);
    const int64_t count = points ? slices_for(*points) : most ? slices_for(*most) : usual;
    const std::string axis = rest[0].name, slice = scan + ".w", carry = scan + ".c";
    if (count < 2 || !d.step("split_scan", {scan}, {{"axis", axis}, {"count", count}, {"align", width}, {"kind", "grid"}}, fmt::format("the rows are few: {} blocks share each of them", count))) return {};
    if (!slice_kernel(d, slice, g, {slice}, width)) return {};
    before.push_back(carry);
    if (!join_kernel(d, before, carry, g, {block_named(d.program(), carry)->outs[0].tensor}, "what stands before each slice, by one thread a row")) return {};
    pass::Sizes tile = tiles_of_rows(g);
    tile.emplace_back(axis, 4 * slice_threads * width);
    if (!d.step("fuse", {scan}, {{"over", tile}, {"kind", "grid"}}, "each element gets what stands before its slice")) return {};
    if (!share_among_threads(d, loop_around(d.program(), scan), width)) return {};
    return d;
}

std::optional<Draft> sliced_sums(Draft d, Group g, int64_t points, int64_t width) {
    for (const std::string& t : wide_temporaries(d.program(), g))
        if (d.step("inline", {t}, {}, "where it is used, so that no row has to be stored")) std::erase(g.labels, t);
    const std::string sum = sole_reduction(d.program(), g);
    if (sum.empty()) return {};
    const int64_t count = slices_for(points);
    const std::string axis = axes_of_kind(*block_named(d.program(), sum), false)[0].name, part = sum + ".w";
    if (!d.step("split_reduction", {sum}, {{"axis", axis}, {"count", count}, {"align", width}, {"kind", "grid"}}, fmt::format("the rows are few: {} blocks share each of them", count))) return {};
    if (!slice_kernel(d, part, g, results_of(d.program(), {part}), width)) return {};
    if (!join_kernel(d, g.labels, sum, g, results_of(d.program(), g.labels), "the slices of a row are joined by one thread")) return {};
    return d;
}

}  // namespace acu::synth::plan
