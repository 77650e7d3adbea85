#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// S: … over a in A, b in B  ->  S[a := u/B, b := u%B] over u in A*B
struct FuseAxes {
    static constexpr std::string_view name = "fuse_axes", doc = "one axis of several, the last one fastest: `fuse_axes(a, axes = [b, p, q], into = m)` makes a convolution a product";
    static constexpr std::string_view picture = "S: y[a, b] = x[a, b] over a in A, b in B\n-> S: y[u/B, u%B] = x[u/B, u%B] over u in A*B";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::vector<std::string> axes;
        std::string into;
        static constexpr auto fields = std::tuple{
            required("axes", &Params::axes, +[] { return names(); }, "the axes, which all the statements have; the fastest last"),
            required("into", &Params::into, +[] { return a_name(); }, "the name of the new axis")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        need(p.axes.size() >= 2, "fuse_axes.axes", "one axis alone is nothing to fuse", "name two or more");
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) {
            const Place at = find_block(out.program, label);
            check(site.program, at, p);
            Block now = fused(block_of(at), p, facts_at(site.program, at.above));
            out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, std::move(now))});
        }
        return out;
    }

    static void check(const Program& p, const Place& at, const Params& params) {
        const Block& b = block_of(at);
        std::set<std::string> seen;
        const Axis* first = axis_of(b, params.axes[0]);
        for (const std::string& name : params.axes) {
            const Axis* a = axis_of(b, name);
            need(a, "fuse_axes.axis", fmt::format("`{}` has no axis `{}`", b.label, name), "", at.stmt->loc);
            need(seen.insert(name).second, "fuse_axes.axes", fmt::format("`{}` is named twice", name), "", at.stmt->loc);
            need(a->kind != AxisKind::Scan, "fuse_axes.scan", fmt::format("`{}` is scanned by `{}`, point after point", name, b.label), "", at.stmt->loc);
            need(a->kind == first->kind, "fuse_axes.kind", fmt::format("`{}` of `{}` is {}, but `{}` is {}", name, b.label, a->kind == AxisKind::Par ? "parallel" : "reduced", first->name, first->kind == AxisKind::Par ? "parallel" : "reduced"),
                 "fuse parallel axes with each other, and reduced ones", at.stmt->loc);
            need(a->vector == 1 && b.via.empty(), "fuse_axes.bound", fmt::format("`{}` of `{}` is bound to hardware already", name, b.label), "fuse before `vectorize` and `bind_mma`", at.stmt->loc);
        }
        std::set<std::string> taken = names_made_in(p.body);    // copies of the statement may stand in other loops
        for (const Dim& d : p.dims) taken.insert(d.name);
        for (const Axis& a : b.axes)
            if (!seen.contains(a.name)) taken.insert(a.name);
        for (const Stmt& s : loops_of(at.above)) {
            taken.insert(as_loop(s)->var);
            for (const Let& x : as_loop(s)->lets) taken.insert(x.name);
        }
        need(!taken.contains(params.into), "fuse_axes.name", fmt::format("`{}` means something already around `{}`", params.into, b.label), "choose another name", at.stmt->loc);
    }

    static Block fused(const Block& b, const Params& p, const Facts& facts) {
        const Index u = ir::name(p.into);
        IndexMap now;
        Index inner = constant(1);
        for (size_t i = p.axes.size(); i-- > 0;) {
            const Axis& a = *axis_of(b, p.axes[i]);
            const Index count = count_of(a.size, facts);
            Index at = div(u, inner);
            if (i > 0) at = mod(at, count);
            now.emplace(a.name, normal(a.base + at));
            inner = normal(count * inner);
        }
        Block n = map_block(b, [&](const Value& v) { return ir::substitute(v, now); }, [&](const Index& e) { return ir::substitute(e, now); });
        std::erase_if(n.axes, [&](const Axis& a) { return std::find(p.axes.begin() + 1, p.axes.end(), a.name) != p.axes.end(); });
        const auto place = std::ranges::find(n.axes, p.axes[0], &Axis::name);
        *place = {p.into, place->kind, constant(0), inner};
        return n;
    }
};

}  // namespace

Pass fuse_axes_pass() { return make_pass<FuseAxes>(); }

}  // namespace acu::ir::pass
