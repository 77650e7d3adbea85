// Boxes of tensors that the copy engine brings to all blocks of a cluster at once. sm_90a.
// PTX ISA, "cp.async.bulk.tensor" with .multicast::cluster; "mapa"; "mbarrier.arrive" on .shared::cluster.

/// One arrival of each block of the cluster, after what all lanes of the warp did: lane r arrives at the barrier of block r. What they read went past the registers, so nothing of theirs needs to be
/// made visible. `blocks`: at most 32.
ACU_MK void ring_arrive_member(RingBarrier& bar, int rank)
#if ACU_NATIVE
{
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&bar)), "r"(rank) : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_arrive(emu::cluster_address(emu::to_shared(&bar), (unsigned)rank), 0, EMU_SITE);
}
#else
;
#endif
ACU_DEVICE void warp_arrive_at_all(RingBarrier& bar, int blocks) {
    warp_barrier();
    if (lane_id() < blocks) ring_arrive_member(bar, lane_id());
}

// One body a number of dimensions; coordinates innermost first; `blocks`: a bit for each block that receives the box, at the same place, and whose barrier counts it.
#if ACU_NATIVE
#define ACU_TENSOR_MULTICAST(rank, at, ...)                                                                                                                                                                  \
    {                                                                                                                                                                                                        \
        asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" at "}], [%2], %3;" ::"r"(shared_address(to)),                   \
                     "l"(reinterpret_cast<unsigned long long>(&map)), "r"(shared_address(&bar)), "h"((unsigned short)blocks), __VA_ARGS__ : "memory");                                                         \
    }
#endif
ACU_MK void tensor_multicast(void* to, const TensorMap& map, RingBarrier& bar, int blocks, int c0)
#if ACU_NATIVE
ACU_TENSOR_MULTICAST(1, "%4", "r"(c0))
#elif ACU_PLAIN
{
    const int at[5] = {c0};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), (unsigned)blocks, EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_multicast(void* to, const TensorMap& map, RingBarrier& bar, int blocks, int c0, int c1)
#if ACU_NATIVE
ACU_TENSOR_MULTICAST(2, "%4, %5", "r"(c0), "r"(c1))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), (unsigned)blocks, EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_multicast(void* to, const TensorMap& map, RingBarrier& bar, int blocks, int c0, int c1, int c2)
#if ACU_NATIVE
ACU_TENSOR_MULTICAST(3, "%4, %5, %6", "r"(c0), "r"(c1), "r"(c2))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), (unsigned)blocks, EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_multicast(void* to, const TensorMap& map, RingBarrier& bar, int blocks, int c0, int c1, int c2, int c3)
#if ACU_NATIVE
ACU_TENSOR_MULTICAST(4, "%4, %5, %6, %7", "r"(c0), "r"(c1), "r"(c2), "r"(c3))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), (unsigned)blocks, EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_multicast(void* to, const TensorMap& map, RingBarrier& bar, int blocks, int c0, int c1, int c2, int c3, int c4)
#if ACU_NATIVE
ACU_TENSOR_MULTICAST(5, "%4, %5, %6, %7, %8", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3, c4};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), (unsigned)blocks, EMU_SITE);
}
#else
;
#endif
