#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// for m in M grid { … }  ->  for m in M grid early { … }: its blocks start while those of the kernel before end
struct Pdl {
    static constexpr std::string_view name = "pdl", doc = "programmatic dependent launch: the blocks of a kernel start while those of the kernel before it end, and wait where they need what it made";
    static constexpr std::string_view picture = "for m in M grid { S }  for n in N grid { T }\n-> for m in M grid { S }  for n in N grid early { T }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context& context) {
        const Place at = find_loop(site.program, site.name());
        const Loop& l = loop_of(at);
        need(!context.target || context.target->early_launch, "pdl.target", fmt::format("{} starts a kernel when the one before has ended", context.target ? context.target->name : ""), "", at.stmt->loc);
        need(at.above.empty() && l.kind == LoopKind::Grid, "pdl.kernel", fmt::format("`{}` is not the outermost grid loop of a kernel", l.var), "", at.stmt->loc);
        need(site.program.body.front() != at.stmt, "pdl.first", fmt::format("nothing runs before the kernel of `{}`", l.var), "", at.stmt->loc);
        Loop n = l;
        n.early = true;
        return {replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(n))}), {}};
    }
};

}  // namespace

Pass pdl_pass() { return make_pass<Pdl>(); }

}  // namespace acu::ir::pass
