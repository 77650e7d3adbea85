#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// for m in M { S }  ->  for m in M grid { S }
struct Bind {
    static constexpr std::string_view name = "bind", doc = "run the iterations of a loop together, or one after another: `bind(m.o, to = grid)`";
    static constexpr std::string_view picture = "for m in M { S }\n-> for m in M grid { S }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        std::string to;
        static constexpr auto fields = std::tuple{
            required("to", &Params::to, +[] { return words({"grid", "cluster", "warpgroup", "serial"}); }, "blocks of the grid, blocks of a cluster, warpgroups of a block, or one after another")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_loop(site.program, site.name());
        const LoopKind to = kind_named(p.to);
        const Loop& l = loop_of(at);
        if (l.kind == to) return {site.program, {}};
        need(l.kind != LoopKind::Thread, "bind.thread", fmt::format("`{}` runs one iteration a thread, which lowering decided", l.var));
        if (to == LoopKind::Serial) return serial(site.program, at);
        parallel(site.program, at, to);
        return {bound(site.program, at, to), {}};
    }

    static Rewrite serial(const Program& p, const Place& at) {
        Loop l = loop_of(at);
        need(l.threads == 0, "bind.threads", fmt::format("`{}` says how many threads a block has", l.var), "make it serial before `vectorize` gives it threads", at.stmt->loc);
        l.kind = LoopKind::Serial;
        return {replace_stmt(p, at.stmt, {with_node(at.stmt, std::move(l))}), {}};
    }

    static void parallel(const Program& p, const Place& at, LoopKind to) {
        const Loop& l = loop_of(at);
        need(l.order == AxisKind::Par, "bind.order", fmt::format("the iterations of `{}` run one at a time: its axis is {}", l.var, l.order == AxisKind::Red ? "reduced" : "scanned"),
             l.order == AxisKind::Red ? "see split_reduction" : "", at.stmt->loc);
        need(!holds_sync(at.stmt), "bind.sync", fmt::format("`{}` holds roles or signals between them, which count its iterations in order", l.var), "bind it before warp_specialize", at.stmt->loc);
        need(at.role.empty() || to == LoopKind::Warpgroup, "bind.role", fmt::format("`{}` stands in the role `{}` of a block: its iterations cannot be blocks", l.var, at.role), "bind it to warpgroup", at.stmt->loc);
        nesting(at, to);
        reachable(p, at, to);
        for (const Stmt& s : block_stmts(l.body))
            need(!is_scatter(*as_block(s)), "bind.scatter", fmt::format("`{}` adds to cells that the data choose, in the order of `{}`", as_block(s)->label, l.var), "let `fuse` make a grid of its axis: that may change the order", s->loc);
        const std::string race = shared_by_iterations(p, at);
        need(race.empty(), "bind.race", fmt::format("two iterations of `{}` may meet in `{}`, one writing", l.var, race), fmt::format("keep `{}` inside `{}`, or bind before what folds its subscripts", race, l.var), at.stmt->loc);
    }

    /// grid around cluster around warpgroup.
    static void nesting(const Place& at, LoopKind to) {
        const auto check = [&](const Loop& outer, LoopKind o, const Loop& inner, LoopKind i) {
            need(!is_parallel(o) || !is_parallel(i) || o <= i, "bind.nest", fmt::format("`{}` would be {} inside `{}`, which is {}", inner.var, name_of(i), outer.var, name_of(o)), "the order is grid, cluster, warpgroup from outside");
        };
        for (const Stmt& s : loops_of(at.above)) check(*as_loop(s), as_loop(s)->kind, loop_of(at), to);
        for (const Stmt& s : loops_in(loop_of(at).body)) check(loop_of(at), to, *as_loop(s), as_loop(s)->kind);
    }

    static std::vector<Stmt> loops_in(const Body& body) {
        std::vector<Stmt> out;
        for (const Stmt& s : body) {
            if (as_loop(s)) out.push_back(s);
            for (const Body* inner : bodies_of(s)) std::ranges::copy(loops_in(*inner), std::back_inserter(out));
        }
        return out;
    }

    /// Blocks share no registers and no shared memory, unless they form a cluster.
    static void reachable(const Program&, const Place& at, LoopKind to) {
        const std::set<std::string> used = touched(loop_of(at).body);
        for (const Stmt& s : loops_of(at.above))
            for (const Decl& d : as_loop(s)->allocs) {
                const bool far = to == LoopKind::Grid || (to == LoopKind::Cluster && d.scope != Scope::Cluster);
                need(!far || !used.contains(d.name), "bind.scope", fmt::format("`{}` lies in the {} memory of one iteration of `{}`, which other blocks cannot reach", d.name, name_of(d.scope), as_loop(s)->var),
                     to == LoopKind::Grid ? fmt::format("bind `{}` instead, or before `{}` is kept", as_loop(s)->var, d.name) : "keep it in cluster memory", d.loc);
            }
    }

    /// The number of threads stays with the outermost grid loop.
    static Program bound(const Program& p, const Place& at, LoopKind to) {
        const bool outermost = to == LoopKind::Grid && std::ranges::none_of(loops_of(at.above), [](const Stmt& s) { return as_loop(s)->kind == LoopKind::Grid; });
        int64_t threads = loop_of(at).threads;
        for (const Stmt& s : loops_in(loop_of(at).body)) threads = std::max(threads, as_loop(s)->threads);
        Loop l = loop_of(at);
        l.kind = to;
        if (outermost && threads) {
            l.threads = threads;
            l.body = edit(l.body, without_threads);
        }
        return replace_stmt(p, at.stmt, {with_node(at.stmt, std::move(l))});
    }

    static std::optional<Body> without_threads(const Stmt& s) {
        if (!as_loop(s) || !as_loop(s)->threads) return {};
        Loop n = *as_loop(s);
        n.threads = 0, n.early = false;
        return Body{with_node(s, std::move(n))};
    }
};

}  // namespace

Pass bind_pass() { return make_pass<Bind>(); }

}  // namespace acu::ir::pass
