#include "ir/pass/bind_check.h"

namespace acu::ir::pass {
namespace {

/// x.t = x over k vec(4)
/// ->  x.t = x over k vec(4) via common.copy_async
struct BindCopy {
    static constexpr std::string_view name = "bind_copy", doc = "let a microkernel make copies";
    static constexpr std::string_view picture = "x.t = x  over k vec(4)\n-> x.t = x  over k vec(4)  via common.copy_async";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 32}; }

    struct Params {
        std::string via;
        static constexpr auto fields = std::tuple{required("via", &Params::via, +[] { return a_name(); }, "the microkernel, of kind copy")};
    };

    static Rewrite apply(const Site& site, const Params& params, const Context& context) {
        const Microkernel& m = microkernel_for(context, params.via, MicrokernelKind::Copy);
        return bind_statements(site.program, site.names, m, [&](const Place& at) { check_copy(site.program, m, at); });
    }
};

}  // namespace

Pass bind_copy_pass() { return make_pass<BindCopy>(); }

}  // namespace acu::ir::pass
