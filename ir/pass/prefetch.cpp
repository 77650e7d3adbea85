#include "ir/pass/skew_loop.h"

#include <fmt/format.h>

namespace acu::ir::pass {
namespace {

/// for u in T { …; b = bias[u]; y = … + b }
/// ->  if 0 < T { b(0) }; for u^ in T { if u + 1 < T { b(u + 1) }; …; y = … + b(u) }
struct Prefetch {
    static constexpr std::string_view name = "prefetch", doc = "fetch what an iteration reads one iteration earlier";
    static constexpr std::string_view picture = "for u in T { …; b = bias[u]; y = … + b }\n-> if 0 < T { b(0) }; for u^ in T { if u + 1 < T { b(u + 1) }; …; y = … + b(u) }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 16}; }

    struct Params {
        std::string at;
        static constexpr auto fields = std::tuple{required("at", &Params::at, +[] { return a_name(); }, "the loop by whose iterations they go ahead")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        for (const std::string& s : site.names) {
            const Place at = find_block(site.program, s);
            need(is_copy(block_of(at)), "prefetch.copy", fmt::format("`{}` is no copy", block_of(at).label), "see skew, which moves any statement", at.stmt->loc);
        }
        return skew_loop(site.program, {p.at, site.names}, "prefetch");
    }
};

}  // namespace

Pass prefetch_pass() { return make_pass<Prefetch>(); }

}  // namespace acu::ir::pass
