#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/slices.h"

namespace acu::ir::pass {
namespace {

struct SplitParams {
    std::string axis, kind = "serial", join = "kernel";
    int64_t count = 0, align = 1;
    static constexpr auto fields = std::tuple{
        required("axis", &SplitParams::axis, +[] { return a_name(); }, "the reduced axis"), required("count", &SplitParams::count, +[] { return integers(1, 1 << 20, {2, 3, 4, 8, 16, 32}); }, "how many slices"),
        optional("align", &SplitParams::align, +[] { return integers(1, 1 << 20, {1, 8, 16, 32, 64, 128}); }, "slices start on multiples of it"),
        optional("kind", &SplitParams::kind, +[] { return words({"serial", "grid", "cluster"}); }, "how the slices run"),
        optional("join", &SplitParams::join, +[] { return words({"kernel", "cluster", "last_block", "atomic"}); }, "who adds the slices up")};
};

bool any_order(const Block& b, const Decl& d) { return !is_float(d.type) || b.monoid == Monoid::Max || b.monoid == Monoid::Min; }

void check_join(const Block& b, const Decl& d, const SplitParams& p) {
    if (p.join == "atomic") {
        need(any_order(b, d), "split_reduction.order", fmt::format("atomic additions of {} to `{}` come in any order, and their result depends on it", name_of(d.type), d.name), "join = kernel, cluster or last_block adds in a fixed order");
        refuse("split_reduction.atomic", fmt::format("`{}` cannot be combined by atomic operations yet", d.name), "join = kernel, cluster or last_block");
    }
    need(p.join != "cluster" || p.kind == "cluster", "split_reduction.join", fmt::format("the blocks of a cluster join slices of kind cluster, not {}", p.kind), "kind = cluster");
    need(p.join != "last_block" || p.kind == "grid", "split_reduction.join", fmt::format("the last block joins slices of kind grid, not {}", p.kind), "kind = grid");
}

/// y[n] += v over n, m!  ->  for m.s in 3 { y.w[m.s, n] = 0; y.w[m.s, n] += v over n, m! in c*m.s +: c }; y[n] += y.w[m.j, n] over n, m.j! in 3
struct SplitReduction {
    static constexpr std::string_view name = "split_reduction", doc = "cut a reduction into slices that accumulate apart, and a join that combines them in order";
    static constexpr std::string_view picture = "y[n] += v over n, m! in M\n-> for m.s in 3 { y.w[m.s, n] = 0; y.w[m.s, n] += v over n, m! in ceil(M, 3)*m.s +: ceil(M, 3) where m < M }; y[n] += y.w[m.j, n] over n, m.j! in 3";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }


    using Params = SplitParams;

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_block(site.program, site.name());
        const Block& b = block_of(at);
        const bool best = b.monoid == Monoid::ArgMax || b.monoid == Monoid::ArgMin;
        need((b.outs.size() == 1 || best) && b.monoid != Monoid::None, "split_reduction.shape", fmt::format("`{}` is not a reduction into one buffer, or a value and its position", b.label), {}, at.stmt->loc);
        need(!is_scatter(b), "split_reduction.shape", fmt::format("`{}` scatters", b.label), {}, at.stmt->loc);
        const Axis* a = axis_of(b, p.axis);
        need(a && a->kind == AxisKind::Red, "split_reduction.axis", fmt::format("`{}` does not reduce `{}`", b.label, p.axis), {}, at.stmt->loc);
        std::vector<DType> types;
        for (const Access& o : b.outs) types.push_back(buffer_at(site.program, at, o.tensor)->type);
        const Decl& target = *buffer_at(site.program, at, b.outs[0].tensor);
        need(target.ring.versions == 0, "split_reduction.shape", fmt::format("`{}` is a ring", target.name), "split before the loop is pipelined", at.stmt->loc);
        check_join(b, target, p);
        const Slices s = slices_of(site.program, at, *a, {p.count, p.align, kind_named(p.kind)}, "split_reduction");
        return split(site.program, at, s, types);
    }

    static Rewrite split(const Program& program, const Place& at, const Slices& s, const std::vector<DType>& types) {
        const Block& b = block_of(at);
        const Partial w = partial_of(program, b, s, types);
        Loop l{s.var, constant(s.count), s.kind, AxisKind::Par, {}, {}, {}};
        for (const Block& init : w.inits) l.body.push_back(make_stmt(at.stmt->loc, init));
        l.body.push_back(make_stmt(at.stmt->loc, s.cut(w.block)));
        Program out = replace_stmt(program, at.stmt, {make_stmt(at.stmt->loc, std::move(l)), with_node(at.stmt, joined(b, s, w.values_at(ir::name(s.join))))});
        out = declare_slices(std::move(out), at.above, w.decls, s);
        Rewrite done{std::move(out), {{b.label, s.var, Part::Outer}, {b.label, w.block.label, Part::Partial}}};
        for (const Block& init : w.inits) done.lineage.push_back({b.label, init.label, Part::Partial});
        return done;
    }
};

}  // namespace

Pass split_reduction_pass() { return make_pass<SplitReduction>(); }

}  // namespace acu::ir::pass
