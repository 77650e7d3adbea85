#include <fmt/format.h>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// S; T  ->  for one in 1 grid { S; T }
struct Enclose {
    static constexpr std::string_view name = "enclose", doc = "run statements in a loop of one iteration, so that one block does them: `enclose(y)`";
    static constexpr std::string_view picture = "y[] = 0; y[] += y.w[s] over s! in S\n-> for one in 1 grid { y[] = 0; y[] += y.w[s] over s! in S }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::string kind = "grid", into = "one";
        static constexpr auto fields = std::tuple{optional("kind", &Params::kind, +[] { return words({"serial", "grid"}); }, "how the iteration runs"),
                                                  optional("into", &Params::into, +[] { return a_name(); }, "the name of the loop")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const std::vector<std::string> labels = with_fills(site.program, site.names);
        const std::set<std::string> all(labels.begin(), labels.end());
        const bool grid = p.kind == "grid";
        for (const std::string& label : labels)
            need(!grid || loops_of(find_block(site.program, label).above).empty(), "enclose.inside", fmt::format("`{}` stands in a loop already", label), "bind that loop, or enclose with kind = serial");
        const std::string var = unique_name(site.program, p.into);
        Rewrite out{edit_run(site.program, all, "enclose", [&](Body before, const Body& run, const Body& after) {
                        const Gathered g = gather(run, all, "enclose");
                        Loop l;
                        l.var = var;
                        l.extent = constant(1);
                        l.kind = grid ? LoopKind::Grid : LoopKind::Serial;
                        l.body = g.mine;
                        before.insert(before.end(), g.others.begin(), g.others.end());
                        before.push_back(make_stmt(g.mine.front()->loc, std::move(l)));
                        before.insert(before.end(), after.begin(), after.end());
                        return before;
                    }), {}};
        for (const std::string& label : labels) out.lineage.push_back({label, var, Part::Outer});
        return out;
    }
};

}  // namespace

Pass enclose_pass() { return make_pass<Enclose>(); }

}  // namespace acu::ir::pass
