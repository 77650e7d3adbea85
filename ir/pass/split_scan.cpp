#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/slices.h"

namespace acu::ir::pass {
namespace {

struct SplitScanParams {
    std::string axis, kind = "serial";
    int64_t count = 0, align = 1;
    static constexpr auto fields = std::tuple{
        required("axis", &SplitScanParams::axis, +[] { return a_name(); }, "the scanned axis"), required("count", &SplitScanParams::count, +[] { return integers(1, 1 << 20, {2, 4, 8, 16, 32, 64, 128}); }, "how many slices"),
        optional("align", &SplitScanParams::align, +[] { return integers(1, 1 << 20, {1, 8, 16, 32, 64, 128}); }, "slices start on multiples of it"),
        optional("kind", &SplitScanParams::kind, +[] { return words({"serial", "grid"}); }, "how the slices run")};
};

Value combined(Monoid m, const Value& a, const Value& b) {
    const MonoidInfo& x = info(m);
    return x.op == Op::Call ? call(std::string(x.name), {a, b}) : binary(x.op, a, b);
}

/// A scan, and what it becomes: `w` scans a slice from the identity into `prefix`, `carry` scans the totals of the slices, `elements` combines the two.
class ScanSplitter {
  public:
    ScanSplitter(const Program& p, const std::string& label, const SplitScanParams& r) : p_(p), at_(find_block(p, label)), b_(block_of(at_)) {
        check(r.axis);
        axis_ = *axis_of(b_, r.axis);
        s_ = slices_of(p, at_, axis_, {r.count, r.align, kind_named(r.kind)}, "split_scan");
        state_ = buffer_at(p, at_, b_.outs[0].tensor)->type;
        w_ = partial_of(p, b_, s_, {state_});
        prefix_ = {unique_name(p, b_.label + ".p"), Scope::Temp, state_, windows_of(b_.axes)};
        carry_ = {unique_name(p, b_.label + ".c"), Scope::Temp, state_, w_.decls[0].dims};
    }

    Rewrite run() const {
        Block slice = w_.block;
        slice.outs.push_back({prefix_.name, names_of(b_.axes)});
        Slices again = s_;
        again.var = unique_name(p_, s_.axis + ".c");
        Loop first{s_.var, constant(s_.count), s_.kind, AxisKind::Par, {}, {}, {}}, second = first;
        second.var = again.var;
        first.body = {make_stmt(at_.stmt->loc, w_.inits[0]), make_stmt(at_.stmt->loc, s_.cut(std::move(slice)))};
        second.body = {with_node(at_.stmt, again.cut(elements(name(again.var))))};
        Program out = replace_stmt(p_, at_.stmt, {make_stmt(at_.stmt->loc, std::move(first)), make_stmt(at_.stmt->loc, carry()), make_stmt(at_.stmt->loc, std::move(second))});
        out = declare_slices(std::move(out), at_.above, {w_.decls[0], prefix_, carry_}, s_);
        const std::string& y = b_.label;
        return {std::move(out), {{y, s_.var, Part::Outer}, {y, again.var, Part::Outer}, {y, w_.block.label, Part::Partial}, {y, w_.inits[0].label, Part::Partial}, {y, carry_.name, Part::Join}}};
    }

  private:
    void check(const std::string& axis) const {
        const auto fine = [&](bool holds, const char* code, const std::string& message, const std::string& help = {}) { need(holds, code, message, help, at_.stmt->loc); };
        const Axis* a = axis_of(b_, axis);
        fine(a && a->kind == AxisKind::Scan, "split_scan.axis", fmt::format("`{}` does not scan `{}`", b_.label, axis), a && a->kind == AxisKind::Red ? "see split_reduction" : "name the axis of its running value");
        fine(axes_of_kind(b_, false).size() == 1 && b_.outs.size() == 2 && !is_pair(b_.monoid), "split_scan.shape", fmt::format("`{}` does more than one running value along one axis", b_.label), "split the scan into statements first");
        fine(!is_scatter(b_) && b_.outs[0].version.empty() && b_.outs[1].version.empty(), "split_scan.shape", fmt::format("`{}` scatters, or writes a ring", b_.label), "split before the loop is pipelined");
        fine(b_.via.empty() && std::ranges::all_of(b_.axes, [](const Axis& x) { return x.vector == 1; }), "split_scan.bound", fmt::format("`{}` is bound to hardware already", b_.label), "split before `vectorize` and `bind_scan`");
        const std::set<std::string> reads = tensors_read(b_);
        for (const Access& o : b_.outs) fine(!reads.contains(o.tensor), "split_scan.reads", fmt::format("`{}` reads `{}`, which it writes: its points depend on each other in more than the running value", b_.label, o.tensor));
        fine(std::ranges::any_of(b_.outs[1].subscripts, [&](const Index& e) { return own_place(e, axis); }), "split_scan.element", fmt::format("not every `{}` has an element of `{}` of its own", axis, b_.outs[1].tensor), "split before axes are fused");
    }

    static bool own_place(const Index& e, const std::string& axis) {
        const auto x = affine(e, axis);
        const auto slope = x ? constant_value(x->coefficient) : std::nullopt;
        return slope && *slope != 0;
    }

    /// The state, from what it was filled with, goes through the totals; each slice learns what came before it.
    Block carry() const {
        Block c = b_;
        c.label = carry_.name, c.exclusive = true;
        c.axes = axes_of_kind(b_, true);
        c.axes.push_back({s_.join, AxisKind::Scan, constant(0), constant(s_.count)});
        c.vals = {w_.load_at(name(s_.join))};
        c.outs[1] = {carry_.name, of_slice(name(s_.join))};
        c.guards = without(b_.guards, {axis_.name});
        return c;
    }

    Block elements(const Index& slice) const {
        Block e{b_.label, b_.axes, {b_.outs[1]}, Monoid::None, {}, b_.guards};
        for (Axis& a : e.axes) a.kind = AxisKind::Par;
        const DType stored = buffer_at(p_, at_, b_.outs[1].tensor)->type;
        e.vals = {cast(widened(stored), combined(b_.monoid, load(carry_.name, state_, of_slice(slice)), load(prefix_.name, state_, names_of(b_.axes))))};
        return e;
    }

    std::vector<Index> of_slice(const Index& slice) const {
        std::vector<Index> at = names_of(axes_of_kind(b_, true));
        at.insert(at.begin(), slice);
        return at;
    }

    const Program& p_;
    const Place at_;
    const Block& b_;
    Axis axis_;
    Slices s_;
    DType state_ = DType::F32;
    Partial w_{};
    Decl prefix_, carry_;
};

/// r, y[n] += x[n] over n^  ->  for n.s in 3 { y.w[n.s] = 0; y.w[n.s], y.p[n] += x[n] over n^ in c*n.s +: c }; r, y.c[n.j] exclusive += y.w[n.j] over n.j^;
/// for n.c in 3 { y[n] = y.c[n.c] + y.p[n] over n in c*n.c +: c }
struct SplitScan {
    static constexpr std::string_view name = "split_scan", doc = "cut a scan into slices that are scanned apart, a scan over their totals, and a last step that combines each element with what came before its slice";
    static constexpr std::string_view picture = "r, y[n] += x[n] over n^ in N\n-> for n.s in 3 { y.w[n.s] = 0; y.w[n.s], y.p[n] += x[n] over n^ in c*n.s +: c where n < N }; r, y.c[n.j] exclusive += y.w[n.j] over n.j^ in 3; for n.c in 3 { y[n] = y.c[n.c] + y.p[n] over n in c*n.c +: c where n < N }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    using Params = SplitScanParams;

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return ScanSplitter(site.program, site.name(), p).run(); }
};

}  // namespace

Pass split_scan_pass() { return make_pass<SplitScan>(); }

}  // namespace acu::ir::pass
