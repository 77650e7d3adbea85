#include <fmt/format.h>

#include "ir/pass/online_tiles.h"

namespace acu::ir::pass {
namespace {

/// m max= t[j] over j!; e[j] = exp(t[j] - m); l += e[j] over j!
/// ->  for j.o! { mo = m; m max= t[j] over j! in a tile; a = exp(mo - m); e[j] = exp(t[j] - m); l *= a; l += e[j] over j! in the tile }
struct OnlinePass {
    static constexpr std::string_view name = "online", doc = "run maximum, exponentials and their sums in one loop over tiles: what was summed is corrected whenever the maximum grows";
    static constexpr std::string_view picture = "m max= t[j] over j!; e[j] = exp(t[j] - m); l += e[j] over j!\n-> for j.o! { m.old = m; m max= t[j]; m.scale = exp(m.old - m); e[j] = exp(t[j] - m); l *= m.scale; l += e[j] }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        Sizes over;
        std::string exp, rescale = "textbook";
        int64_t threshold = 8;
        static constexpr auto fields = std::tuple{
            required("over", &Params::over, +[] { return sizes(1, 1 << 20, {16, 32, 64, 128, 256}); }, "the axis, with the size of a tile"), required("exp", &Params::exp, +[] { return a_name(); }, "the statement of the exponential"),
            optional("rescale", &Params::rescale, +[] { return words({"textbook", "lazy", "speculative"}); }, "correct with every new maximum, or only where it has grown by more than the threshold"),
            optional("threshold", &Params::threshold, +[] { return integers(1, 64, {4, 8, 16, 24}); }, "of lazy: how far a term may exceed the reference")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        need(p.over.size() == 1, "online.over", fmt::format("{} axes are given, but one is tiled", p.over.size()));
        need(p.rescale != "speculative", "online.speculative", "a speculative rescale repeats a tile where a vote fails, which the loop IR cannot express yet", "rescale = lazy");
        OnlineChain c = online_chain(site.program, site.name(), p.exp, p.over[0].first, "online");
        return online_in_tiles(site.program, std::move(c), p.over[0].second, p.rescale == "lazy" ? p.threshold : 0);
    }
};

}  // namespace

Pass online_pass() { return make_pass<OnlinePass>(); }

}  // namespace acu::ir::pass
