#include "ir/pass/fuse.h"

#include <algorithm>

namespace acu::ir::pass {
namespace {

/// S: … over m in M;  T: … over m in M
/// ->  for m.o in ceil(M, 4) { S: … over m in 4*m.o +: 4 where m < M;  T: … }
struct Fuse {
    static constexpr std::string_view name = "fuse", doc = "run statements in one loop";
    static constexpr std::string_view picture = "S: … over m in M; T: … over m in M\n-> for m.o in ceil(M, 4) { S: … over m in 4*m.o +: 4 where m < M; T: … }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        Sizes over;
        std::string kind = "serial", into;
        static constexpr auto fields = std::tuple{
            required("over", &Params::over, +[] { return sizes(1, 1 << 20, {1, 4, 8, 16, 32, 64, 128, 256}); }, "the axes that they share, outermost loop first, with the size of a tile (1: the axis itself becomes the loop)"),
            optional("kind", &Params::kind, +[] { return words({"serial", "grid", "cluster", "warpgroup"}); }, "how the iterations run"),
            optional("into", &Params::into, +[] { return a_name(); }, "the name of the loop, where one axis is given")};
    };

    /// Fills of reductions go along, but stay in front of a loop over what is reduced.
    static std::vector<std::string> fused(const Site& site, const Sizes& over) {
        std::vector<std::string> labels = with_fills(site.program, site.names);
        std::erase_if(labels, [&](const std::string& l) {
            const auto named = std::ranges::find(site.names, l) != site.names.end();
            return !named && std::ranges::any_of(over, [&](const auto& x) { return !axis_of(block_of(find_block(site.program, l)), x.first); });
        });
        return labels;
    }

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        need(p.into.empty() || p.over.size() == 1, "fuse.into", "`into` names one loop, but several axes are given");
        const std::vector<std::string> labels = fused(site, p.over);
        Rewrite out{site.program, {}};
        for (const auto& [axis, tile] : p.over) {
            Rewrite step = fuse_over(out.program, {labels, axis, tile, kind_named(p.kind), p.into}, "fuse");
            out.program = std::move(step.program);
            out.lineage.insert(out.lineage.end(), step.lineage.begin(), step.lineage.end());
        }
        return out;
    }
};

}  // namespace

Pass fuse_pass() { return make_pass<Fuse>(); }

}  // namespace acu::ir::pass
