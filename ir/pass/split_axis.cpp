#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// S: … over n in N  ->  S[n := 8*n.s + v] over n.s in ceil(N, 8), v in 8 where 8*n.s + v < N
struct SplitAxis {
    static constexpr std::string_view name = "split_axis", doc = "two or more axes of one, by constant inner sizes: `split_axis(S, axis = n, sizes = [lane: 32, v: 4])`";
    static constexpr std::string_view picture = "S: y[n] = x[n] over n in N\n-> S: y[8*n.s + v] = x[8*n.s + v] over n.s in ceil(N, 8), v in 8 where 8*n.s + v < N";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::string axis, outer;
        Sizes sizes;
        static constexpr auto fields = std::tuple{
            required("axis", &Params::axis, +[] { return a_name(); }, "the axis, which all the statements have"),
            required("sizes", &Params::sizes, +[] { return pass::sizes(1, 1 << 20, {2, 4, 8, 16, 32, 64, 128}); }, "the inner axes with their sizes, the fastest last"),
            optional("outer", &Params::outer, +[] { return a_name(); }, "the name of the outermost axis; `n.s` for an axis `n`")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const std::string outer = p.outer.empty() ? unique_name(site.program, p.axis + ".s") : p.outer;
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) {
            const Place at = find_block(out.program, label);
            Block now = split(site.program, at, p, outer);
            out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, std::move(now))});
        }
        return out;
    }

    static void check(const Program& p, const Place& at, const Params& params, const std::string& outer) {
        const Block& b = block_of(at);
        const Axis* a = axis_of(b, params.axis);
        need(a, "split_axis.axis", fmt::format("`{}` has no axis `{}`", b.label, params.axis), "", at.stmt->loc);
        need(a->kind != AxisKind::Scan, "split_axis.scan", fmt::format("`{}` is scanned by `{}`, point after point", a->name, b.label), "", at.stmt->loc);
        need(a->vector == 1 && b.via.empty(), "split_axis.bound", fmt::format("`{}` of `{}` is bound to hardware already", a->name, b.label), "split before `vectorize` and `bind_mma`", at.stmt->loc);
        std::vector<std::string> made{outer};
        for (const auto& [name, size] : params.sizes) made.push_back(name);
        std::set<std::string> seen = names_around(p, at);
        seen.erase(params.axis);
        for (const std::string& name : made)
            need(seen.insert(name).second, "split_axis.name", fmt::format("`{}` means something already around `{}`", name, b.label), "choose other names for the axes", at.stmt->loc);
    }

    static Block split(const Program& p, const Place& at, const Params& params, const std::string& outer) {
        check(p, at, params, outer);
        const Block& b = block_of(at);
        const Axis a = *axis_of(b, params.axis);
        int64_t inner = 1;
        std::vector<Axis> axes;
        Index word = constant(0);
        for (size_t i = params.sizes.size(); i-- > 0;) {
            const auto& [name, size] = params.sizes[i];
            axes.insert(axes.begin(), {name, a.kind, constant(0), constant(size)});
            word = constant(inner) * ir::name(name) + word;
            inner *= size;
            need(inner <= int64_t{1} << 40, "split_axis.sizes", fmt::format("the inner sizes of `{}` multiply to more than 2^40", a.name));
        }
        axes.insert(axes.begin(), {outer, a.kind, constant(0), normal(ceil_div(a.size, constant(inner)))});
        const Index now = normal(a.base + constant(inner) * ir::name(outer) + word);
        Block n = map_block(b, [&](const Value& v) { return ir::substitute(v, {{a.name, now}}); }, [&](const Index& e) { return ir::substitute(e, {{a.name, now}}); });
        const auto place = std::ranges::find(n.axes, a.name, &Axis::name);
        n.axes.insert(n.axes.erase(place), axes.begin(), axes.end());
        if (!divides(p, a.size, inner)) add_guard(n, below(now, normal(a.base + a.size)));
        return n;
    }
};

}  // namespace

Pass split_axis_pass() { return make_pass<SplitAxis>(); }

}  // namespace acu::ir::pass
