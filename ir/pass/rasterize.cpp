#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// The lets of two flattened loops, a = u/B and b = u%B.
struct Flat {
    size_t a, b;
    Index columns, rows;
};

/// for u in A*B grid, a = u/B, b = u%B { S }  ->  the same cells in bands of `group` rows, column after column; the last band may be narrower.
struct Rasterize {
    static constexpr std::string_view name = "rasterize", doc = "walk a flattened grid in bands of rows, so that neighbours in time share columns: `rasterize(u, group = 8)`";
    static constexpr std::string_view picture = "for u in A*B grid, a = u/B, b = u%B { S }\n-> for u in A*B grid, a = G*(u/(G*B)) + u%(G*B)%min(G, A - G*(u/(G*B))), b = u%(G*B)/min(G, A - G*(u/(G*B))) { S }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        int64_t group = 8;
        static constexpr auto fields = std::tuple{required("group", &Params::group, +[] { return integers(1, 1024, {2, 4, 8, 16}); }, "rows of a band")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_loop(site.program, site.name());
        const Loop& l = loop_of(at);
        need(l.order == AxisKind::Par, "rasterize.order", fmt::format("the order of `{}` is part of the meaning", l.var), "", at.stmt->loc);
        need(!holds_sync(at.stmt), "rasterize.sync", fmt::format("`{}` holds roles or signals between them", l.var), "rasterize before warp_specialize", at.stmt->loc);
        for (const Stmt& s : block_stmts(l.body))
            need(!is_scatter(*as_block(s)), "rasterize.scatter", fmt::format("`{}` adds to cells that the data choose, in the order of `{}`", as_block(s)->label, l.var), "", s->loc);
        const auto flat = flat_of(l);
        need(flat.has_value(), "rasterize.flat", fmt::format("`{}` is not two flattened loops in row order", l.var), "`flatten` two loops first", at.stmt->loc);
        Loop n = l;
        const Index u = ir::name(l.var), g = constant(p.group), band_cells = g * flat->columns, band = div(u, band_cells);
        const Index rows = binary(IndexOp::Min, g, flat->rows - g * band), inside = mod(u, band_cells);
        n.lets[flat->a].value = g * band + mod(inside, rows);
        n.lets[flat->b].value = div(inside, rows);
        return {replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(n))}), {}};
    }

    static std::optional<Flat> flat_of(const Loop& l) {
        const Index u = ir::name(l.var);
        std::vector<size_t> direct;
        for (size_t i = 0; i < l.lets.size(); ++i)
            if (mentions(l.lets[i].value, l.var)) direct.push_back(i);
        if (direct.size() != 2) return {};
        const Index &a = l.lets[direct[0]].value, &b = l.lets[direct[1]].value;
        if (b->op != IndexOp::Mod || !is_name(b->args[0], l.var) || mentions(b->args[1], l.var)) return {};
        if (!equal(a, div(u, b->args[1]))) return {};
        const Index& columns = b->args[1];
        const bool product = l.extent->op == IndexOp::Mul && equal(l.extent->args[1], columns);
        if (!product && !divides_exactly(l.extent, columns)) return {};
        return Flat{direct[0], direct[1], columns, product ? l.extent->args[0] : div(l.extent, columns)};
    }
    static bool divides_exactly(const Index& extent, const Index& columns) { return is_const(extent) && is_const(columns) && columns->value > 0 && extent->value % columns->value == 0; }
};

}  // namespace

Pass rasterize_pass() { return make_pass<Rasterize>(); }

}  // namespace acu::ir::pass
