#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/roles.h"

namespace acu::ir::pass {
namespace {

/// role consumer { for t in T { S; for k { wait …; release … }; E } }
/// ->  pass turn.0; role consumer.0 { for t in ceil(T, 2) { S(2*t); take turn.0; for k …; pass turn.1; E } } role consumer.1 { … 2*t + 1 …; take turn.1 … pass turn.0 }
struct PingPong {
    static constexpr std::string_view name = "ping_pong", doc = "several roles take the iterations of a loop in turn: one runs its main loop while another finishes";
    static constexpr std::string_view picture =
        "role consumer { for t in T { S; for k { wait …; release … }; E } }\n-> pass turn.0; role consumer.0 { for t in ceil(T, 2) { S(2*t); take turn.0; for k …; pass turn.1; E } } role consumer.1 { … 2*t + 1 …; take turn.1 … pass turn.0 }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Role, SiteKind::Loop}, 2, 2}; }

    struct Params {
        int64_t count = 2;
        static constexpr auto fields = std::tuple{optional("count", &Params::count, +[] { return integers(2, 4, {2}); }, "the number of roles")};
    };

    static bool syncs(const Stmt& s) {
        return any_inside({s}, [](const Stmt& x) { return std::holds_alternative<Sync>(x->node); });
    }
    static void check(bool holds, const char* code, const std::string& message, const std::string& help = {}) { need(holds, ("ping_pong." + std::string(code)).c_str(), message, help); }

    static const Loop& loop_in(const RolePlace& at, const std::string& site) {
        const std::string var = site.substr(site.rfind('/') + 1);
        const Body& body = at.role().body;
        check(body.size() == 1 && as_loop(body[0]) && as_loop(body[0])->var == var, "alone", fmt::format("`{}` is not all of the role `{}`", var, at.role().name), "each role would run what stands beside it");
        return *as_loop(body[0]);
    }

    static void iterations(const Program& p, const RolePlace& at, const Loop& l, const RoleCopies& copies) {
        check(l.kind == LoopKind::Serial && l.order == AxisKind::Par, "order", fmt::format("the order of the iterations of `{}` is part of the meaning", l.var), "ping-pong the loop over tiles of the output");
        for (const std::string& t : written(l.body)) check(!copies.own().contains(t), "carried", fmt::format("`{}` outlives an iteration of `{}`", t, l.var), "keep it at that loop");
        for (const std::string& r : rings_waited(l.body)) {
            const Decl* d = buffer_at(p, {at.stmt, at.above, ""}, r);
            check(d && std::ranges::find(d->ring.keys, l.var) != d->ring.keys.end(), "key", fmt::format("each role would read every version of `{}`, whose keys do not name `{}`", r, l.var));
        }
        for (const Stmt& s : loops_of(at.above)) check(is_parallel(as_loop(s)->kind), "repeat", fmt::format("the turns would start anew in each iteration of the serial loop `{}`", as_loop(s)->var));
        check(std::ranges::any_of(l.body, waits), "waits", fmt::format("`{}` waits for nothing: there is no main loop to take turns in", l.var));
    }

    static std::string token(const Program& p) {
        std::set<std::string> used;
        any_inside(p.body, [&](const Stmt& s) {
            if (const auto* y = std::get_if<Sync>(&s->node)) used.insert(y->name);
            return false;
        });
        std::string stem = "turn";
        for (int i = 2; used.contains(stem + ".0"); ++i) stem = "turn" + std::to_string(i);
        return stem;
    }

    static bool waits(const Stmt& s) { return has_sync({s}, SyncOp::Wait); }

    /// The turn is held from before the first wait to after the last: a barrier tells two phases apart, not more. What is given back behind them hinders nobody.
    static Body with_turns(const Body& body, const std::string& mine, const std::string& next) {
        const auto first = std::ranges::find_if(body, syncs);
        const auto last = std::ranges::find_if(body.rbegin(), body.rend(), waits).base();
        Body out(body.begin(), first);
        out.push_back(make_stmt((*first)->loc, Sync{SyncOp::Take, mine}));
        out.insert(out.end(), first, last);
        out.push_back(make_stmt((*first)->loc, Sync{SyncOp::Pass, next}));
        out.insert(out.end(), last, body.end());
        return out;
    }

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const RolePlace at = find_role(site.program, site.names[0]);
        const RoleCopies copies(site.program, at, p.count, "ping_pong");
        const Loop& l = loop_in(at, site.names[1]);
        iterations(site.program, at, l, copies);
        const std::string turn = token(site.program);
        const auto make = [&](int64_t w) -> Body {
            const Stmt& s = at.role().body[0];
            Loop n = *as_loop(ir::pass::substitute(s, {{l.var, constant(p.count) * name_of_loop(l) + constant(w)}}));
            n.extent = normal(ceil_div(l.extent - constant(w), constant(p.count)));
            n.body = with_turns(n.body, fmt::format("{}.{}", turn, w), fmt::format("{}.{}", turn, (w + 1) % p.count));
            return {with_node(s, std::move(n))};
        };
        return copies.build(make, [](int64_t, const Decl& d) { return d; }, {make_stmt(at.stmt->loc, Sync{SyncOp::Pass, turn + ".0"})});
    }
    static Index name_of_loop(const Loop& l) { return ir::name(l.var); }
};

}  // namespace

Pass ping_pong_pass() { return make_pass<PingPong>(); }

}  // namespace acu::ir::pass
