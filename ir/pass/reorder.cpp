#include <fmt/format.h>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// for m in M { for n in N { S } }  ->  for n in N { for m in M { S } }
struct Reorder {
    static constexpr std::string_view name = "reorder", doc = "exchange two loops around one statement: `reorder(m.o, n.o)`";
    static constexpr std::string_view picture = "for m in M { for n in N { S } }\n-> for n in N { for m in M { S } }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Loop}, 2, 2}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) {
        const Place outer = find_loop(site.program, site.names[0]);
        const Loop& o = loop_of(outer);
        const Loop* i = o.body.size() == 1 ? as_loop(o.body[0]) : nullptr;
        const std::string wanted = site.names[1].substr(site.names[1].rfind('/') + 1);
        need(i && i->var == wanted, "reorder.nest", fmt::format("`{}` is not all that stands in `{}`", wanted, o.var), "name the outer loop first", outer.stmt->loc);
        need(i->body.size() == 1 && as_block(i->body[0]), "reorder.body", fmt::format("`{}` holds more than one statement", i->var), "give each its loops with `tile`", outer.stmt->loc);
        check(o, *i, outer.stmt->loc);
        Loop inner = o, now = *i;
        inner.body = i->body;
        if (o.kind == LoopKind::Grid && i->kind == LoopKind::Grid) std::swap(inner.threads, now.threads), std::swap(inner.early, now.early);
        const Stmt below = with_node(outer.stmt, std::move(inner)), above = o.body[0];
        now.body = {below};
        Program out = replace_stmt(site.program, outer.stmt, {with_node(above, std::move(now))});
        race(out, o, *i, outer.stmt->loc);
        return {std::move(out), {}};
    }

    static void check(const Loop& o, const Loop& i, Loc loc) {
        need(o.order != AxisKind::Scan && i.order != AxisKind::Scan, "reorder.scan", fmt::format("the order of `{}` and `{}` is part of the meaning", o.var, i.var), "", loc);
        need(o.allocs.empty() && i.allocs.empty(), "reorder.buffers", fmt::format("`{}` owns the buffer `{}`", o.allocs.empty() ? i.var : o.var, (o.allocs.empty() ? i.allocs : o.allocs).empty() ? "" : (o.allocs.empty() ? i.allocs : o.allocs)[0].name),
             "exchange the loops before buffers are made in them", loc);
        std::set<std::string> derived{o.var}, used = names_in(i.extent);
        for (const Let& x : o.lets) derived.insert(x.name);
        for (const Let& x : i.lets) used.merge(names_in(x.value));
        need(!meet(derived, used), "reorder.extent", fmt::format("the range of `{}`, {}, depends on `{}`", i.var, print(i.extent), o.var), "", loc);
        need(!is_parallel(o.kind) || !is_parallel(i.kind) || o.kind == i.kind, "reorder.kind", fmt::format("`{}` is {} and `{}` is {}", o.var, name_of(o.kind), i.var, name_of(i.kind)), "the order is grid, cluster, warpgroup from outside", loc);
    }

    /// A parallel loop that moves out holds more: its iterations must not meet there, either.
    static void race(const Program& now, const Loop& o, const Loop& i, Loc loc) {
        if (!is_parallel(i.kind) || is_parallel(o.kind)) return;
        need(!is_scatter(*as_block(i.body[0])), "reorder.race", fmt::format("`{}` adds to cells that the data choose, in the order of `{}`", as_block(i.body[0])->label, o.var), "", loc);
        const std::string buffer = shared_by_iterations(now, find_loop(now, i.var));
        need(buffer.empty(), "reorder.race", fmt::format("two iterations of `{}` meet in `{}` at different values of `{}`", i.var, buffer, o.var), fmt::format("bind `{}` to serial first", i.var), loc);
    }
};

}  // namespace

Pass reorder_pass() { return make_pass<Reorder>(); }

}  // namespace acu::ir::pass
