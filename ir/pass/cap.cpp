#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// S: … over n in N  ->  S: … over n in 4096 where n < N, as the facts say that N <= 4096
struct Cap {
    static constexpr std::string_view name = "cap", doc = "an axis whose size the facts bound gets the bound as its size: `cap(S, axis = n, at = 4096)`";
    static constexpr std::string_view picture = "program p(N) where N <= 4096 { S: y[n] = x[n] over n in N }\n-> S: y[n] = x[n] over n in 4096 where n < N";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::string axis;
        int64_t at = 1;
        static constexpr auto fields = std::tuple{required("axis", &Params::axis, +[] { return a_name(); }, "the axis, which all the statements have"),
                                                  required("at", &Params::at, +[] { return integers(1, 1 << 24, {64, 512, 1024, 2048, 4096, 8192}); }, "the bound, a number of points")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) {
            const Place at = find_block(out.program, label);
            Block now = capped(out.program, at, p);
            out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, std::move(now))});
        }
        return out;
    }

    static Block capped(const Program& p, const Place& at, const Params& params) {
        Block b = block_of(at);
        const auto a = std::ranges::find(b.axes, params.axis, &Axis::name);
        need(a != b.axes.end(), "cap.axis", fmt::format("`{}` has no axis `{}`", b.label, params.axis), "", at.stmt->loc);
        need(a->kind != AxisKind::Scan, "cap.scan", fmt::format("`{}` is scanned by `{}`, point after point", a->name, b.label), "", at.stmt->loc);
        need(a->vector == 1 && b.via.empty(), "cap.bound", fmt::format("`{}` of `{}` is bound to hardware already", a->name, b.label), "cap before `vectorize` and `bind_mma`", at.stmt->loc);
        const Facts facts = facts_at(p, at.above);
        need(facts.nonnegative(constant(params.at) - a->size), "cap.more", fmt::format("nothing says that `{}` has at most {} points: it has {}", a->name, params.at, print(a->size)),
             "assume it with `specialize`, or in the condition of the schedule", at.stmt->loc);
        constexpr int64_t small = 64;
        need(params.at <= small || !facts.nonnegative(constant(params.at) - constant(2) * a->size), "cap.far", fmt::format("`{}` has at most half of {} points: most of them would do nothing", a->name, params.at), "take the bound", at.stmt->loc);
        if (is_const(a->size, params.at)) return b;
        const Value inside = below(ir::name(a->name), normal(a->base + a->size));
        a->size = constant(params.at);
        add_guard(b, inside);
        return b;
    }
};

}  // namespace

Pass cap_pass() { return make_pass<Cap>(); }

}  // namespace acu::ir::pass
