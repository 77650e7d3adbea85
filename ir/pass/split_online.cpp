#include "ir/pass/online_slices.h"

namespace acu::ir::pass {
namespace {

/// m max= t[j] over j!; e[j] = exp(t[j] - m); l += e[j] over j!
/// ->  for j.s in 4 { m.w[j.s] max= t[j]; e[j] = exp(t[j] - m.w[j.s]); l.w[j.s] += e[j] }; m max= m.w[j.j]; m.scale[j.j] = exp(m.w[j.j] - m); l += l.w[j.j]*m.scale[j.j]
struct SplitOnlinePass {
    static constexpr std::string_view name = "split_online", doc = "run maximum, exponentials and their sums in slices, each against its own maximum, and correct them at the join";
    static constexpr std::string_view picture = "m max= t[j] over j!; e[j] = exp(t[j] - m); l += e[j] over j!\n-> for j.s in 4 { m.w[j.s] max= t[j]; e[j] = exp(t[j] - m.w[j.s]); l.w[j.s] += e[j] }; m max= m.w[j.j]; m.scale[j.j] = exp(m.w[j.j] - m); l += l.w[j.j]*m.scale[j.j]";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string axis, exp, kind = "serial";
        int64_t count = 0, align = 1;
        static constexpr auto fields = std::tuple{
            required("axis", &Params::axis, +[] { return a_name(); }, "the axis"), required("exp", &Params::exp, +[] { return a_name(); }, "the statement of the exponential"),
            required("count", &Params::count, +[] { return integers(1, 1 << 20, {2, 4, 8, 16, 32}); }, "how many slices"),
            optional("align", &Params::align, +[] { return integers(1, 1 << 20, {1, 16, 32, 64, 128}); }, "slices start on multiples of it"),
            optional("kind", &Params::kind, +[] { return words({"serial", "grid", "cluster"}); }, "how the slices run")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        OnlineChain c = online_chain(site.program, site.name(), p.exp, p.axis, "split_online");
        return online_in_slices(site.program, std::move(c), {p.count, p.align, kind_named(p.kind)});
    }
};

}  // namespace

Pass split_online_pass() { return make_pass<SplitOnlinePass>(); }

}  // namespace acu::ir::pass
