#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// for k in T { S }  ->  for k.u in T/4 { for k.i in 4 unroll, k = 4*k.u + k.i { S } }; for k.r in T%4, k = 4*(T/4) + k.r { S.rest }
struct Unroll {
    static constexpr std::string_view name = "unroll", doc = "repeat the body of a loop in the text: whole, or by a factor";
    static constexpr std::string_view picture = "for k in T { S }\n-> for k.u in ceil(T, 4) { for k.i in min(4, T - 4*k.u) unroll, k = 4*k.u + k.i { S } }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        int64_t factor = 0;
        std::string peel = "none";
        static constexpr auto fields = std::tuple{
            optional("factor", &Params::factor, +[] { return integers(0, 64, {0, 2, 4, 8}); }, "repetitions; 0: the whole loop, whose length is a small constant"),
            optional("peel", &Params::peel, +[] { return words({"none", "first", "last"}); }, "where the trips that do not fill a repetition go: into a short last one, or into a loop before or after (their statements are named `.rest`)")};
    };

    static constexpr int64_t most = 256;

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_loop(site.program, site.name());
        const Loop& l = loop_of(at);
        need(l.kind == LoopKind::Serial, "unroll.kind", fmt::format("`{}` is {}: only a serial loop can be unrolled", l.var, name_of(l.kind)), "", at.stmt->loc);
        if (p.factor == 0) return whole(site.program, at);
        if (p.factor == 1) return {site.program, {}};
        return split(site.program, at, p);
    }

    static std::optional<int64_t> length(const Program& p, const Index& extent) {
        const auto fixed = facts_at(p, {}).value(extent);
        if (fixed) return fixed;
        if (extent->op != IndexOp::Min) return {};
        const auto a = length(p, extent->args[0]), b = length(p, extent->args[1]);
        return a ? a : b;
    }

    static Rewrite whole(const Program& p, const Place& at) {
        Loop l = loop_of(at);
        const auto n = length(p, l.extent);
        need(n.has_value(), "unroll.extent", fmt::format("the length of `{}`, {}, is not known at compile time", l.var, print(l.extent)), "give a factor, as in `unroll(k.o, factor = 4)`", at.stmt->loc);
        need(*n <= most, "unroll.size", fmt::format("`{}` has {} trips, more than the {} that may be repeated", l.var, *n, most), "give a factor", at.stmt->loc);
        l.kind = LoopKind::Unroll;
        return {replace_stmt(p, at.stmt, {with_node(at.stmt, std::move(l))}), {}};
    }

    static Loop inner_loop(const Loop& l, const std::string& var, Index extent, Index first, LoopKind kind) {
        Loop n = l;
        n.var = var, n.extent = std::move(extent), n.kind = kind;
        n.lets.insert(n.lets.begin(), {l.var, std::move(first)});
        return n;
    }

    static Rewrite split(const Program& p, const Place& at, const Params& params) {
        const Loop& l = loop_of(at);
        const Index f = constant(params.factor), T = count_of(l.extent, facts_at(p, at.above));
        const bool exact = divides(p, T, params.factor), peel = !exact && params.peel != "none", before = params.peel == "first";
        Loop outer;
        outer.var = unique_name(p, l.var + ".u"), outer.order = l.order;
        const std::string var = unique_name(p, l.var + ".i");
        Rewrite out{p, {{l.var, outer.var, Part::Outer}, {l.var, var, Part::Inner}}};
        const Index u = ir::name(outer.var), i = ir::name(var), rest = mod(T, f);
        outer.extent = normal(exact || peel ? div(T, f) : ceil_div(T, f));
        const Index start = peel && before ? rest : constant(0);
        outer.body = {with_node(at.stmt, inner_loop(l, var, exact || peel ? f : binary(IndexOp::Min, f, T - f * u), start + f * u + i, LoopKind::Unroll))};
        Body now{with_node(at.stmt, std::move(outer))};
        if (peel) {
            const std::string r = unique_name(p, l.var + ".r");
            const Index first = before ? ir::name(r) : f * div(T, f) + ir::name(r);
            now.insert(before ? now.begin() : now.end(), with_node(at.stmt, inner_loop(copied(at.stmt, p, out.lineage), r, rest, first, LoopKind::Serial)));
        }
        out.program = replace_stmt(p, at.stmt, std::move(now));
        return out;
    }

    /// A second copy of the statements, whose labels, buffers and derived name are its own.
    static Loop copied(const Stmt& s, const Program& p, std::vector<Lineage>& lineage) {
        const Loop& l = *as_loop(s);
        need(!holds_sync(s), "unroll.sync", fmt::format("`{}` holds roles or signals between them, which cannot be copied", l.var), "unroll it with peel = none", s->loc);
        need(names_made_in(l.body).empty(), "unroll.nest", fmt::format("`{}` holds other loops: the trips that are left over would need copies of them", l.var), "unroll it with peel = none", s->loc);
        return *as_loop(copy_apart(p, s, ".rest", lineage));
    }
};

}  // namespace

Pass unroll_pass() { return make_pass<Unroll>(); }

}  // namespace acu::ir::pass
