#include "ir/pass/pass.h"

namespace acu::ir::pass {

Pass approximate_pass();
Pass bind_pass();
Pass bind_copy_pass();
Pass bind_mma_pass();
Pass bind_reduce_pass();
Pass bind_scan_pass();
Pass cap_pass();
Pass compute_at_pass();
Pass cooperate_pass();
Pass decide_pass();
Pass distribute_pass();
Pass enclose_pass();
Pass flatten_pass();
Pass flip_pass();
Pass fuse_pass();
Pass fuse_axes_pass();
Pass hoist_pass();
Pass inline_pass();
Pass keep_pass();
Pass narrow_pass();
Pass online_pass();
Pass outline_pass();
Pass overlap_pass();
Pass pad_pass();
Pass pdl_pass();
Pass peel_pass();
Pass persist_pass();
Pass ping_pong_pass();
Pass pipeline_pass();
Pass prefetch_pass();
Pass rasterize_pass();
Pass relax_pass();
Pass rename_pass();
Pass reorder_pass();
Pass repack_pass();
Pass segment_tiles_pass();
Pass skew_pass();
Pass specialize_pass();
Pass split_axis_pass();
Pass split_moments_pass();
Pass split_online_pass();
Pass split_reduction_pass();
Pass split_scan_pass();
Pass stage_pass();
Pass swizzle_pass();
Pass tile_pass();
Pass trim_pass();
Pass unroll_pass();
Pass vectorize_pass();
Pass warp_specialize_pass();

const std::vector<Pass>& all_passes() {
    static const std::vector<Pass> all{
        approximate_pass(),
        bind_pass(),
        bind_copy_pass(),
        bind_mma_pass(),
        bind_reduce_pass(),
        bind_scan_pass(),
        cap_pass(),
        compute_at_pass(),
        cooperate_pass(),
        decide_pass(),
        distribute_pass(),
        enclose_pass(),
        flatten_pass(),
        flip_pass(),
        fuse_pass(),
        fuse_axes_pass(),
        hoist_pass(),
        inline_pass(),
        keep_pass(),
        narrow_pass(),
        online_pass(),
        outline_pass(),
        overlap_pass(),
        pad_pass(),
        pdl_pass(),
        peel_pass(),
        persist_pass(),
        ping_pong_pass(),
        pipeline_pass(),
        prefetch_pass(),
        rasterize_pass(),
        relax_pass(),
        rename_pass(),
        reorder_pass(),
        repack_pass(),
        segment_tiles_pass(),
        skew_pass(),
        specialize_pass(),
        split_axis_pass(),
        split_moments_pass(),
        split_online_pass(),
        split_reduction_pass(),
        split_scan_pass(),
        stage_pass(),
        swizzle_pass(),
        tile_pass(),
        trim_pass(),
        unroll_pass(),
        vectorize_pass(),
        warp_specialize_pass(),
    };
    return all;
}

}  // namespace acu::ir::pass
