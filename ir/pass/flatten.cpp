#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// for a in A { for b in B { S } }  ->  for u in A*B, a = u/B, b = u%B { S }
struct Flatten {
    static constexpr std::string_view name = "flatten", doc = "one loop of a nest, the last one fastest: `flatten(m.o, n.o, into = u)`";
    static constexpr std::string_view picture = "for a in A { for b in B { S } }\n-> for u in A*B, a = u/B, b = u%B { S }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 2, 8}; }

    struct Params {
        std::string into;
        static constexpr auto fields = std::tuple{required("into", &Params::into, +[] { return a_name(); }, "the name of the loop")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_loop(site.program, site.name());
        const std::vector<Stmt> nest = nest_of(at, site.names);
        need(unique_name(site.program, p.into) == p.into, "flatten.name", fmt::format("`{}` means something already", p.into));
        for (size_t i = 0; i + 1 < nest.size(); ++i) check(*as_loop(nest[i]), *as_loop(nest[i + 1]), nest[i]->loc);
        std::set<std::string> made;
        for (const Stmt& s : nest) {
            const Loop& l = *as_loop(s);
            need(!meet(names_in(l.extent), made), "flatten.extent", fmt::format("the range of `{}`, {}, depends on a loop that it would become one with", l.var, print(l.extent)), "", s->loc);
            made.insert(l.var);
            for (const Let& x : l.lets) made.insert(x.name);
        }
        Rewrite out{replace_stmt(site.program, at.stmt, {with_node(at.stmt, joined(nest, p.into, facts_at(site.program, at.above)))}), {}};
        for (const Stmt& s : nest) out.lineage.push_back({as_loop(s)->var, p.into, Part::Outer});
        return out;
    }

    static std::vector<Stmt> nest_of(const Place& at, const std::vector<std::string>& names) {
        std::vector<Stmt> nest{at.stmt};
        for (size_t i = 1; i < names.size(); ++i) {
            const Loop& outer = *as_loop(nest.back());
            const std::string wanted = names[i].substr(names[i].rfind('/') + 1);
            const Loop* inner = outer.body.size() == 1 ? as_loop(outer.body[0]) : nullptr;
            need(inner && inner->var == wanted, "flatten.nest", fmt::format("`{}` is not all that stands in `{}`", wanted, outer.var), "name the loops from outside to inside", nest.back()->loc);
            nest.push_back(outer.body[0]);
        }
        return nest;
    }

    static void check(const Loop& outer, const Loop& inner, Loc loc) {
        need(outer.allocs.empty(), "flatten.buffers", fmt::format("`{}` owns the buffer `{}`, which lives through all of `{}`", outer.var, outer.allocs.empty() ? "" : outer.allocs[0].name, inner.var), "", loc);
        need(outer.kind == inner.kind, "flatten.kind", fmt::format("`{}` is {}, but `{}` is {}", outer.var, name_of(outer.kind), inner.var, name_of(inner.kind)), "bind them alike first", loc);
    }

    static Loop joined(const std::vector<Stmt>& nest, const std::string& into, const Facts& facts) {
        const Loop& first = *as_loop(nest.front());
        const Loop& last = *as_loop(nest.back());
        Loop l;
        l.var = into, l.kind = first.kind, l.threads = first.threads, l.early = first.early, l.allocs = last.allocs, l.body = last.body;
        Index inner = constant(1);
        for (size_t i = nest.size(); i-- > 0;) {
            const Loop& x = *as_loop(nest[i]);
            const Index count = count_of(x.extent, facts);
            Index at = div(ir::name(into), inner);
            if (i > 0) at = mod(at, count);
            std::vector<Let> lets{{x.var, at}};
            lets.insert(lets.end(), x.lets.begin(), x.lets.end());
            l.lets.insert(l.lets.begin(), lets.begin(), lets.end());
            inner = count * inner;
            l.order = std::max(l.order, x.order);
        }
        l.extent = inner;
        return l;
    }
};

}  // namespace

Pass flatten_pass() { return make_pass<Flatten>(); }

}  // namespace acu::ir::pass
