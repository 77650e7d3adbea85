#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// S: … over n_ in N  ->  S[n_ := n] over n in N
struct Rename {
    static constexpr std::string_view name = "rename", doc = "another name for an axis, so that statements share it: passes know axes by their names";
    static constexpr std::string_view picture = "l[m] += e[m, n_] over m, n_! in N; y[m, n] = e[m, n]/l[m] over m, n\n-> l[m] += e[m, n] over m, n! in N; y[m, n] = e[m, n]/l[m] over m, n";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::string axis, to;
        static constexpr auto fields = std::tuple{required("axis", &Params::axis, +[] { return a_name(); }, "the axis, which all the statements have"),
                                                  required("to", &Params::to, +[] { return a_name(); }, "its new name")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) {
            const Place at = find_block(out.program, label);
            check(out.program, at, p);
            const IndexMap now{{p.axis, ir::name(p.to)}};
            Block b = map_block(block_of(at), [&](const Value& v) { return ir::substitute(v, now); }, [&](const Index& e) { return ir::substitute(e, now); });
            std::ranges::find(b.axes, p.axis, &Axis::name)->name = p.to;
            out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, std::move(b))});
        }
        return out;
    }

    static void check(const Program& p, const Place& at, const Params& params) {
        const Block& b = block_of(at);
        need(axis_of(b, params.axis), "rename.axis", fmt::format("`{}` has no axis `{}`", b.label, params.axis), "", at.stmt->loc);
        need(!names_around(p, at).contains(params.to), "rename.name", fmt::format("`{}` means something already in `{}`", params.to, b.label), "choose another name", at.stmt->loc);
    }
};

}  // namespace

Pass rename_pass() { return make_pass<Rename>(); }

}  // namespace acu::ir::pass
