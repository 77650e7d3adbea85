#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/slices.h"

namespace acu::ir::pass {
namespace {

/// S: s += v over n!;  Q: q += (v - m)*(v - m) over n!
struct Moments {
    Place sum, squares;
    Value center;    ///< m
};

/// v - m, twice.
std::optional<std::pair<Value, Value>> squared_difference(const Value& v) {
    const bool square = v->op == Op::Mul && equal(v->args[0], v->args[1]) && v->args[0]->op == Op::Sub;
    return square ? std::optional(std::pair{v->args[0]->args[0], v->args[0]->args[1]}) : std::nullopt;
}

const Block& plain_sum(const Place& at) {
    const Block& b = block_of(at);
    need(b.monoid == Monoid::Sum && b.outs.size() == 1 && b.guards.empty() && !is_scatter(b) && b.via.empty(), "split_moments.shape", fmt::format("`{}` is no plain sum into one buffer", b.label), {}, at.stmt->loc);
    return b;
}

bool same_axes(const Block& a, const Block& b) {
    return std::ranges::equal(a.axes, b.axes, [](const Axis& x, const Axis& y) { return x.name == y.name && x.kind == y.kind && same(x.base, y.base) && same(x.size, y.size); });
}

Moments moments_of(const Program& p, const Site& site) {
    Moments m{find_block(p, site.names[0]), find_block(p, site.names[1]), nullptr};
    const Block &s = plain_sum(m.sum), &q = plain_sum(m.squares);
    need(same_axes(s, q), "split_moments.axes", fmt::format("`{}` and `{}` go over different axes", s.label, q.label), "rename those of one", m.squares.stmt->loc);
    const auto d = squared_difference(q.vals[0]);
    need(d && equal(d->first, s.vals[0]), "split_moments.value", fmt::format("`{}` does not add squares of the difference of what `{}` adds and something else", q.label, s.label), {}, m.squares.stmt->loc);
    need(!meet(names_in(d->second), reduced_names(q)), "split_moments.value", fmt::format("what `{}` subtracts differs from term to term", q.label), {}, m.squares.stmt->loc);
    const bool beside = m.sum.above.size() == m.squares.above.size() && std::ranges::equal(m.sum.above, m.squares.above);
    need(beside, "split_moments.place", fmt::format("`{}` and `{}` do not stand in the same loops", s.label, q.label), "split before the loops are made", m.squares.stmt->loc);
    std::set<std::string> loaded;
    for_each_load(s.vals[0], [&](const Value& v) { loaded.insert(v->name); });
    for (const Stmt& x : block_stmts(p.body)) need(!meet(written(x), loaded), "split_moments.value", fmt::format("`{}` writes what `{}` adds", as_block(x)->label, s.label), {}, x->loc);
    m.center = d->second;
    return m;
}

/// Slices with a mean of their own: the squares of a slice are taken from that, and the join moves them. Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing
/// sample variances, 1979: sum (v - m)^2 = sum (v - c)^2 + n*(c - m)^2 where c is the mean of the n terms.
struct SplitMoments {
    static constexpr std::string_view name = "split_moments", doc = "cut a sum and the sum of squared differences from something that follows it into slices, each of which is gone through once: `split_moments(s, q, axis = n, count = 8)`";
    static constexpr std::string_view picture = "s += x[n] over n!; m = s/N; q += (x[n] - m)*(x[n] - m) over n!\n-> for n.s { s.w += x[n]; c = s.w/count; q.w += (x[n] - c)*(x[n] - c) }; s += s.w[n.j]; m = s/N; q += q.w[n.j] + count*(c[n.j] - m)*(c[n.j] - m)";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 2, 2}; }

    struct Params {
        std::string axis, kind = "grid";
        int64_t count = 0, align = 1;
        static constexpr auto fields = std::tuple{
            required("axis", &Params::axis, +[] { return a_name(); }, "the reduced axis"), required("count", &Params::count, +[] { return integers(1, 1 << 20, {2, 4, 8, 16, 32}); }, "how many slices"),
            optional("align", &Params::align, +[] { return integers(1, 1 << 20, {1, 8, 16, 32}); }, "slices start on multiples of it"),
            optional("kind", &Params::kind, +[] { return words({"serial", "grid"}); }, "how the slices run")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Moments m = moments_of(site.program, site);
        const Block &sum = block_of(m.sum), &squares = block_of(m.squares);
        const Axis* a = axis_of(sum, p.axis);
        need(a && a->kind == AxisKind::Red, "split_moments.axis", fmt::format("`{}` does not reduce `{}`", sum.label, p.axis), {}, m.sum.stmt->loc);
        const Slices s = slices_of(site.program, m.sum, *a, {p.count, p.align, kind_named(p.kind)}, "split_moments");
        const DType type = buffer_at(site.program, m.squares, squares.outs[0].tensor)->type;
        const Partial first = partial_of(site.program, sum, s, {buffer_at(site.program, m.sum, sum.outs[0].tensor)->type});
        Partial second = partial_of(site.program, squares, s, {type});
        const Block center = center_of(site.program, first, sum, s, type);
        const auto center_at = [&](const Index& slice) { return at_slice(center.outs[0], type, slice); };
        const Value here = binary(Op::Sub, sum.vals[0], center_at(ir::name(s.var)));
        second.block.vals = {binary(Op::Mul, here, here)};
        Loop l{s.var, constant(s.count), s.kind, AxisKind::Par, {}, {}, {}};
        for (const Block& b : {first.inits[0], s.cut(first.block), center, second.inits[0], s.cut(second.block)}) l.body.push_back(make_stmt(m.sum.stmt->loc, b));
        const Index j = ir::name(s.join);
        const Value moved = binary(Op::Sub, center_at(j), m.center);
        const Value more = binary(Op::Mul, cast(moved->type, of_index(terms(sum, s, j))), binary(Op::Mul, moved, moved));
        Program out = replace_stmt(site.program, m.sum.stmt, {make_stmt(m.sum.stmt->loc, std::move(l)), with_node(m.sum.stmt, joined(sum, s, {first.load_at(j)}))});
        out = replace_stmt(std::move(out), m.squares.stmt, {with_node(m.squares.stmt, joined(squares, s, {binary(Op::Add, second.load_at(j), more)}))});
        Decl mean = first.decls[0];
        mean.name = center.label, mean.type = type;
        out = declare_slices(std::move(out), m.sum.above, {first.decls[0], mean, second.decls[0]}, s);
        return {std::move(out), {{sum.label, s.var, Part::Outer}, {sum.label, first.block.label, Part::Partial}, {sum.label, first.inits[0].label, Part::Partial}, {sum.label, center.label, Part::Partial},
                                 {squares.label, second.block.label, Part::Partial}, {squares.label, second.inits[0].label, Part::Partial}}};
    }

    /// How many terms a slice has.
    static Index terms(const Block& b, const Slices& s, const Index& slice) {
        Index count = constant(1);
        for (const Axis& a : b.axes)
            if (a.kind == AxisKind::Red && a.name != s.axis) count = count * a.size;
        const Index mine = s.even ? s.length : binary(IndexOp::Max, constant(0), binary(IndexOp::Min, s.length, s.size - s.length * slice));
        return normal(count * mine);
    }

    /// c[n.s] = s.w[n.s]/max(1, terms)
    static Block center_of(const Program& p, const Partial& first, const Block& sum, const Slices& s, DType type) {
        Block c = first.inits[0];
        c.label = unique_name(p, first.block.label + ".mean");
        c.outs[0].tensor = c.label;
        const Value total = first.load_at(ir::name(s.var));
        const DType wide = widened(type);
        c.vals = {binary(Op::Div, total->type == wide ? total : cast(wide, total), cast(wide, of_index(binary(IndexOp::Max, constant(1), terms(sum, s, ir::name(s.var))))))};
        return c;
    }

    static Value at_slice(const Access& o, DType type, const Index& slice) {
        std::vector<Index> at = o.subscripts;
        at[0] = slice;
        return load(o.tensor, type, std::move(at));
    }
};

}  // namespace

Pass split_moments_pass() { return make_pass<SplitMoments>(); }

}  // namespace acu::ir::pass
