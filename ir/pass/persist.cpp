#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// for u in T grid { S }  ->  for u.c in C grid { for u.t in ceil(T - u.c, C), u = C*u.t + u.c { S } }
struct Persist {
    static constexpr std::string_view name = "persist", doc = "a fixed number of blocks that take the iterations of a grid in turn: `persist(u, ctas = 132)`";
    static constexpr std::string_view picture = "for u in T grid { S }\n-> for u.c in C grid { for u.t in ceil(T - u.c, C), u = C*u.t + u.c { S } }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        int64_t ctas = 1;
        std::string order = "static";
        static constexpr auto fields = std::tuple{
            required("ctas", &Params::ctas, +[] { return integers(1, 1 << 20, {108, 132, 216, 264}); }, "the number of blocks"),
            optional("order", &Params::order, +[] { return words({"static", "dynamic", "longest_first"}); }, "block c takes c, c + ctas, …; `dynamic` and `longest_first` cannot be had yet")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_loop(site.program, site.name());
        check(at, p.order);
        const Loop& l = loop_of(at);
        Loop inner = l, outer;
        outer.var = unique_name(site.program, l.var + ".c"), inner.var = unique_name(site.program, l.var + ".t");
        const Index c = ir::name(outer.var), count = constant(p.ctas);
        inner.kind = LoopKind::Serial, inner.threads = 0, inner.early = false;
        inner.extent = ceil_div(l.extent - c, count);
        inner.lets.insert(inner.lets.begin(), {l.var, count * ir::name(inner.var) + c});
        outer.extent = count, outer.kind = LoopKind::Grid, outer.threads = l.threads, outer.early = l.early;
        const Loop* cluster = l.body.size() == 1 ? as_loop(l.body[0]) : nullptr;
        const bool of_cluster = cluster && cluster->kind == LoopKind::Cluster && is_const(normal(cluster->extent)) && l.allocs.empty();
        Rewrite out{site.program, {{l.var, outer.var, Part::Outer}, {l.var, inner.var, Part::Inner}}};
        if (of_cluster) {    // the blocks of a cluster go round together
            Loop blocks = *cluster;
            inner.body = blocks.body, inner.allocs = std::move(blocks.allocs), blocks.allocs.clear();
            inner.lets.insert(inner.lets.end(), blocks.lets.begin(), blocks.lets.end()), blocks.lets.clear();
            blocks.body = {with_node(at.stmt, std::move(inner))};
            outer.body = {with_node(l.body[0], std::move(blocks))};
        } else outer.body = {with_node(at.stmt, std::move(inner))};
        out.program = replace_stmt(out.program, at.stmt, {with_node(at.stmt, std::move(outer))});
        return out;
    }

    static void check(const Place& at, const std::string& order) {
        const Loop& l = loop_of(at);
        need(order != "dynamic", "persist.order", fmt::format("`{}` cannot be dealt out while it runs: blocks would share a counter in memory, which a loop cannot say", l.var), "use order = static");
        need(order != "longest_first", "persist.order", fmt::format("nothing says which iterations of `{}` take longest", l.var), "use order = static, after `rasterize` or `flatten` put the loops in the order wanted");
        need(l.kind == LoopKind::Grid, "persist.grid", fmt::format("`{}` is {}, not grid", l.var, name_of(l.kind)), "bind it to grid first", at.stmt->loc);
        for (const Stmt& s : loops_of(at.above))
            need(!is_parallel(as_loop(s)->kind), "persist.nest", fmt::format("`{}` stands in `{}`, which is {}: the blocks would multiply", l.var, as_loop(s)->var, name_of(as_loop(s)->kind)), "flatten them into one loop first", at.stmt->loc);
        inside(l, l.body);
        for (const Stmt& s : block_stmts(l.body))
            need(!is_scatter(*as_block(s)), "persist.scatter", fmt::format("`{}` adds to cells that the data choose, in the order of `{}`", as_block(s)->label, l.var), "", s->loc);
        need(!holds_sync(at.stmt), "persist.sync", fmt::format("`{}` holds roles or signals between them, whose rings would have to go on from one iteration to the next", l.var), "persist before warp_specialize", at.stmt->loc);
    }

    static void inside(const Loop& l, const Body& body) {
        for (const Stmt& s : body) {
            const Loop* x = as_loop(s);
            need(!x || x->kind != LoopKind::Grid, "persist.nest", fmt::format("`{}` inside `{}` is a grid, too: its blocks would multiply", x ? x->var : "", l.var), "flatten them into one loop first", s->loc);
            for (const Body* inner : bodies_of(s)) inside(l, *inner);
        }
    }
};

}  // namespace

Pass persist_pass() { return make_pass<Persist>(); }

}  // namespace acu::ir::pass
