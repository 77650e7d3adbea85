#include <fmt/format.h>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// for i in N { … }  ->  for i.f in N, i = N - 1 - i.f { … }
struct Flip {
    static constexpr std::string_view name = "flip", doc = "take the iterations of a loop from the last to the first: blocks that have the most to do, for example, start first";
    static constexpr std::string_view picture = "for i in N { … }\n-> for i.f in N, i = N - 1 - i.f { … }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) {
        const Place at = find_loop(site.program, site.name());
        const Loop& l = loop_of(at);
        need(l.order != AxisKind::Scan, "flip.order", fmt::format("`{}` takes its iterations in order", l.var), "flip it before it is pipelined or skewed", at.stmt->loc);
        need(!any_inside(l.body, [](const Stmt& s) { return std::holds_alternative<Sync>(s->node); }) || is_parallel(l.kind), "flip.ring", fmt::format("roles count the iterations of `{}`", l.var), "flip it before warp_specialize", at.stmt->loc);
        Loop n = l;
        n.var = unique_name(site.program, l.var + ".f");
        n.lets.insert(n.lets.begin(), {l.var, normal(l.extent - constant(1) - ir::name(n.var))});
        return {replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(n))}), {{l.var, n.var, Part::Derived}}};
    }
};

}  // namespace

Pass flip_pass() { return make_pass<Flip>(); }

}  // namespace acu::ir::pass
