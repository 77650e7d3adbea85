#include "ir/pass/skew_loop.h"

namespace acu::ir::pass {
namespace {

/// for j in T { s = q k; …; o += p v }
/// ->  if 0 < T { s(0) …(0) }; for j^ in T { if j + 1 < T { s(j + 1) }; o += p v(j); if j + 1 < T { …(j + 1) } }
struct Overlap {
    static constexpr std::string_view name = "overlap", doc = "start the next iteration's first product before this iteration's last one, and run what lies between while both are in flight";
    static constexpr std::string_view picture = "for j in T { s = …; e = f(s); o += e*v }\n-> if 0 < T { s(0); e(0) }; for j^ in T { if j + 1 < T { s(j + 1) }; o += e(j)*v(j); if j + 1 < T { e(j + 1) } }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        std::vector<std::string> ahead, behind;
        static constexpr auto fields = std::tuple{
            required("ahead", &Params::ahead, +[] { return names(); }, "the first product"),
            required("behind", &Params::behind, +[] { return names(); }, "the last product")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        need(!p.behind.empty(), "overlap.behind", "`behind` names no statement", "name the product that ends an iteration");
        Rewrite out = skew_loop(site.program, {site.name(), p.ahead, p.behind}, "overlap");
        for (const std::vector<std::string>* some : {&p.ahead, &p.behind})
            for (const std::string& label : *some) out.program = in_flight(std::move(out.program), label);
        return out;
    }

    /// A product that runs by itself goes on until its sums are needed.
    static Program in_flight(Program p, const std::string& label) {
        return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
            const Block* b = as_block(s);
            if (!b || b->label != label || !runs_by_itself(*b)) return {};
            Block n = *b;
            n.pending = until_needed;
            return Body{with_node(s, std::move(n))};
        });
    }
};

}  // namespace

Pass overlap_pass() { return make_pass<Overlap>(); }

}  // namespace acu::ir::pass
