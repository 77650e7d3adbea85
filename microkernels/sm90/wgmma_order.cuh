// Waiting for products of warpgroups that other ones were started behind. sm_90a. PTX ISA, "wgmma.wait_group".

/// Until at most the `Behind` newest groups are on their way: `d` are the sums of older ones, and no read of them moves above this.
template <int Behind, class Sum, int R>
ACU_DEVICE void warpgroup_landed(Sum (&d)[R]) {
    warpgroup_wait_groups<Behind>();
#if ACU_NATIVE
#pragma unroll
    for (int i = 0; i < R; ++i) {
        if constexpr ((Sum)0.5f != 0) asm volatile("" : "+f"(d[i])::"memory");
        else asm volatile("" : "+r"(d[i])::"memory");
    }
#else
    (void)d;
#endif
}
