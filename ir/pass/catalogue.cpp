#include "ir/pass/catalogue.h"

#include <algorithm>

namespace acu::ir::pass {

constexpr int any = 64;

const std::vector<Signature>& signatures() {
    static const std::vector<Signature> table{
        {"approximate", 1, 1, {"with", "error"}, "compute a function by a cheaper approximation of a stated error"},
        {"bind", 1, 1, {"to"}, "run a parallel loop as grid, cluster or warpgroup"},
        {"bind_copy", 1, any, {"via"}, "do a copy by a microkernel"},
        {"bind_mma", 1, 1, {"via"}, "do a product by a matrix instruction"},
        {"bind_reduce", 1, 1, {"via"}, "do a reduction by a microkernel"},
        {"bind_scan", 1, 1, {"via"}, "do a prefix computation by a microkernel"},
        {"cluster", 1, 1, {"size", "multicast"}, "form clusters of blocks along a grid loop"},
        {"compute_at", 1, 1, {"at"}, "recompute a producer where it is read"},
        {"cooperate", 2, 3, {"count"}, "divide the work of a role"},
        {"decide", 1, 1, {}, "turn a mask that is the same on a whole tile into a branch"},
        {"flatten", 1, any, {"into"}, "make one loop of several"},
        {"fuse", 1, any, {"over", "tile", "kind", "into"}, "run statements in one loop"},
        {"fuse_axes", 1, any, {"axes", "into"}, "make one axis of several"},
        {"hoist", 1, 1, {}, "take constant factors out of a sum"},
        {"inline", 1, any, {}, "substitute a definition where it is read"},
        {"keep", 1, 1, {"at", "in"}, "hold a buffer in registers, shared memory or a cluster"},
        {"online", 1, any, {"over", "tile", "rescale"}, "fuse a chain that waits for a whole reduction"},
        {"outline", 1, 1, {"into"}, "name a common value"},
        {"overlap", 1, 1, {"ahead", "behind"}, "run parts of neighbouring iterations together"},
        {"pad", 1, 1, {}, "fill a tile's edge instead of guarding it"},
        {"pdl", 0, 1, {}, "start a kernel before the one in front has ended"},
        {"persist", 1, 1, {"ctas", "order"}, "let each block take several tiles"},
        {"ping_pong", 2, 2, {"count"}, "let roles take turns"},
        {"pipeline", 1, 1, {"stages", "lag"}, "copy tiles ahead of their use"},
        {"prefetch", 1, any, {"at"}, "load operands of an epilogue ahead"},
        {"rasterize", 1, 1, {"group"}, "order tiles for reuse in the cache"},
        {"relax", 1, 1, {}, "drop a guard that padding made needless"},
        {"reorder", 2, 2, {}, "exchange two loops"},
        {"reuse", 1, any, {}, "let buffers share memory"},
        {"segment", 1, 1, {"by"}, "give a loop the range of its segment"},
        {"skew", 1, 1, {"ahead", "behind", "by"}, "run statements of later iterations early"},
        {"specialize", 1, 1, {"when"}, "make a variant for a condition on sizes"},
        {"split_axis", 2, 2, {"sizes"}, "make several axes of one"},
        {"split_online", 1, any, {"over", "count"}, "do an online chain in slices that are joined"},
        {"split_reduction", 2, 2, {"count", "align", "kind", "join"}, "reduce in slices that are joined"},
        {"stage", 1, any, {"at", "in", "by", "via", "reuse"}, "copy a tile of a tensor nearer"},
        {"swizzle", 1, 1, {"pattern"}, "permute shared memory against bank conflicts"},
        {"tile", 1, 1, {}, "cut axes of a statement into tiles: `tile(acc, k = 64)`"},
        {"trim", 1, 2, {}, "leave out tiles that are masked as a whole"},
        {"unroll", 1, 1, {"factor", "peel"}, "repeat the body of a loop"},
        {"vectorize", 1, 2, {"width", "threads"}, "access several elements at once"},
        {"warp_specialize", 1, 1, {"copies", "stages"}, "give copies and arithmetic to different warps"},
    };
    return table;
}

const Signature* signature(std::string_view name) {
    const auto it = std::ranges::find(signatures(), name, &Signature::name);
    return it == signatures().end() ? nullptr : &*it;
}

}  // namespace acu::ir::pass
