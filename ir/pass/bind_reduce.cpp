#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/pass/bind_check.h"

namespace acu::ir::pass {
namespace {

/// Of the best of several: what the lists of the lanes hold.
constexpr int64_t most_kept = 16;

/// s += x over n!
/// ->  s += x over n! via common.block_reduce
struct BindReduce {
    static constexpr std::string_view name = "bind_reduce", doc = "let a microkernel join what the threads found in a reduction";
    static constexpr std::string_view picture = "s += x  over n!\n-> s += x  over n!  via common.block_reduce";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string via;
        static constexpr auto fields = std::tuple{required("via", &Params::via, +[] { return a_name(); }, "the microkernel, of kind reduce")};
    };

    static void check(const Program& p, const Microkernel& m, const Context& context, const Place& at) {
        const Block& b = block_of(at);
        const Loc loc = at.stmt->loc;
        need(std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Red; }), "bind.kind", fmt::format("`{}` reduces no axis", b.label), "", loc);
        need(!is_scatter(b), "bind.kind", fmt::format("`{}` writes where the data say", b.label), "", loc);
        check_monoid(m, b, loc);
        need(b.monoid != Monoid::TopK || (std::has_single_bit(static_cast<uint64_t>(b.k)) && b.k > 1 && b.k <= most_kept), "bind.shape", fmt::format("`{}` keeps {}, but `{}` 2, 4, 8 or 16", b.label, b.k, m.id), "", loc);
        for (size_t i = 0; i < b.outs.size(); ++i) {
            const Decl* d = buffer_at(p, at, b.outs[i].tensor);
            if (!d) continue;
            check_scope(m, m.operands[std::min(i, m.operands.size() - 1)], b, *d, loc);
            if (i == 0) check_type(m, b, *d, loc);    // of a pair the second is the position
        }
        check_group(m, at, context);
    }

    static Rewrite apply(const Site& site, const Params& params, const Context& context) {
        const Microkernel& m = microkernel_for(context, params.via, MicrokernelKind::Reduce);
        return bind_statements(site.program, site.names, m, [&](const Place& at) { check(site.program, m, context, at); });
    }
};

}  // namespace

Pass bind_reduce_pass() { return make_pass<BindReduce>(); }

}  // namespace acu::ir::pass
