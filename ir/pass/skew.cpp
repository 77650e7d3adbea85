#include "ir/pass/skew_loop.h"

namespace acu::ir::pass {
namespace {

/// for t in T { A; B; C }
/// ->  if 0 < T { A(0); B(0) }; for t^ in T { if t + 1 < T { A(t + 1) }; C(t); if t + 1 < T { B(t + 1) } }
struct Skew {
    static constexpr std::string_view name = "skew", doc = "run statements of later iterations ahead: the buffers of the loop become rings";
    static constexpr std::string_view picture = "for t in T { A; B; C }\n-> if 0 < T { A(0); B(0) }; for t^ in T { if t + 1 < T { A(t + 1) }; C(t); if t + 1 < T { B(t + 1) } }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        std::vector<std::string> ahead, behind;
        int64_t by = 1;
        static constexpr auto fields = std::tuple{
            required("ahead", &Params::ahead, +[] { return names(); }, "the statements that run ahead"),
            optional("behind", &Params::behind, +[] { return names(); }, "the statements from which on the iteration stays behind (none: all others)"),
            optional("by", &Params::by, +[] { return integers(1, 16, {1, 2, 3}); }, "by how many iterations")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return skew_loop(site.program, {site.name(), p.ahead, p.behind, p.by}, "skew"); }
};

}  // namespace

Pass skew_pass() { return make_pass<Skew>(); }

}  // namespace acu::ir::pass
