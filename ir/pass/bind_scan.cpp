#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/bind_check.h"

namespace acu::ir::pass {
namespace {

/// r, y += x over n^
/// ->  r, y += x over n^ via common.block_scan
struct BindScan {
    static constexpr std::string_view name = "bind_scan", doc = "let a microkernel join the running values of the threads of a scan";
    static constexpr std::string_view picture = "r, y += x  over n^\n-> r, y += x  over n^  via common.block_scan";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string via;
        static constexpr auto fields = std::tuple{required("via", &Params::via, +[] { return a_name(); }, "the microkernel, of kind scan")};
    };

    static void check(const Program& p, const Microkernel& m, const Context& context, const Place& at) {
        const Block& b = block_of(at);
        need(std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; }), "bind.kind", fmt::format("`{}` scans no axis", b.label), "", at.stmt->loc);
        check_monoid(m, b, at.stmt->loc);
        if (const Decl* running = buffer_at(p, at, b.outs[0].tensor)) {
            check_scope(m, m.operands[0], b, *running, at.stmt->loc);
            check_type(m, b, *running, at.stmt->loc);
        }
        check_group(m, at, context);
    }

    static Rewrite apply(const Site& site, const Params& params, const Context& context) {
        const Microkernel& m = microkernel_for(context, params.via, MicrokernelKind::Scan);
        return bind_statements(site.program, site.names, m, [&](const Place& at) { check(site.program, m, context, at); });
    }
};

}  // namespace

Pass bind_scan_pass() { return make_pass<BindScan>(); }

}  // namespace acu::ir::pass
