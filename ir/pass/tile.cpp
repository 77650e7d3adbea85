#include "ir/pass/fuse.h"

namespace acu::ir::pass {
namespace {

/// acc[m] += … over m, k! in K
/// ->  for k.o! in ceil(K, 64) { acc[m] += … over m, k! in 64*k.o +: 64 where k < K }
struct Tile {
    static constexpr std::string_view name = "tile", doc = "cut axes of a statement into tiles: `tile(acc, k = 64)`";
    static constexpr std::string_view picture = "acc[m] += … over m, k! in K\n-> for k.o! in ceil(K, 64) { acc[m] += … over m, k! in 64*k.o +: 64 where k < K }";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        Sizes axes;
        static constexpr auto fields = std::tuple{
            required("axes", &Params::axes, +[] { return sizes(1, 1 << 20, {1, 4, 8, 16, 32, 64, 128, 256}); }, "the axes, outermost loop first, with the size of a tile (1: the axis itself becomes the loop)")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        Rewrite out{site.program, {}};
        for (const auto& [axis, tile] : p.axes) {
            Rewrite step = fuse_over(out.program, {site.names, axis, tile}, "tile");
            out.program = std::move(step.program);
            out.lineage.insert(out.lineage.end(), step.lineage.begin(), step.lineage.end());
        }
        return out;
    }
};

}  // namespace

Pass tile_pass() { return make_pass<Tile>(); }

}  // namespace acu::ir::pass
