// Boxes of tensors between global and shared memory by the copy engine, through a map that the launcher makes. sm_90a.
// PTX ISA, "cp.async.bulk.tensor"; CUDA driver API, "cuTensorMapEncodeTiled".

#if ACU_NATIVE
/// What cuTensorMapEncodeTiled fills: sizes, strides and box of a tensor, innermost dimension first. A parameter of a kernel is `const __grid_constant__ TensorMap`.
struct __align__(64) TensorMap {
    unsigned long long word[16];
};
#define ACU_MAP const __grid_constant__ TensorMap
#else
using acu::TensorMap;
#define ACU_MAP const TensorMap
#endif

/// By one thread, before the copies that bring them and before its arrival: so many bytes belong to this phase.
ACU_MK void ring_expect(RingBarrier& bar, int bytes)
#if ACU_NATIVE
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(bytes) : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_expect(emu::to_shared(&bar), (unsigned)bytes, EMU_SITE);
}
#else
;
#endif

// One body a number of dimensions; coordinates innermost first.
#if ACU_NATIVE
#define ACU_TENSOR_COPY(rank, at, ...)                                                                                                                                                         \
    {                                                                                                                                                                                          \
        asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" at "}], [%2];" ::"r"(shared_address(to)),                          \
                     "l"(reinterpret_cast<unsigned long long>(&map)), "r"(shared_address(&bar)), __VA_ARGS__ : "memory");                                                                        \
    }
#endif
/// By one thread: the box at these coordinates, zeros where it lies outside of the tensor; all its bytes count on `bar`, which expects them.
ACU_MK void tensor_copy(void* to, const TensorMap& map, RingBarrier& bar, int c0)
#if ACU_NATIVE
ACU_TENSOR_COPY(1, "%3", "r"(c0))
#elif ACU_PLAIN
{
    const int at[5] = {c0};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), 1u << emu::cluster_rank(), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_copy(void* to, const TensorMap& map, RingBarrier& bar, int c0, int c1)
#if ACU_NATIVE
ACU_TENSOR_COPY(2, "%3, %4", "r"(c0), "r"(c1))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), 1u << emu::cluster_rank(), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_copy(void* to, const TensorMap& map, RingBarrier& bar, int c0, int c1, int c2)
#if ACU_NATIVE
ACU_TENSOR_COPY(3, "%3, %4, %5", "r"(c0), "r"(c1), "r"(c2))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), 1u << emu::cluster_rank(), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_copy(void* to, const TensorMap& map, RingBarrier& bar, int c0, int c1, int c2, int c3)
#if ACU_NATIVE
ACU_TENSOR_COPY(4, "%3, %4, %5, %6", "r"(c0), "r"(c1), "r"(c2), "r"(c3))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), 1u << emu::cluster_rank(), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_copy(void* to, const TensorMap& map, RingBarrier& bar, int c0, int c1, int c2, int c3, int c4)
#if ACU_NATIVE
ACU_TENSOR_COPY(5, "%3, %4, %5, %6, %7", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3, c4};
    emu::tensor_load_nd(emu::to_shared(to), &map, at, emu::to_shared(&bar), 1u << emu::cluster_rank(), EMU_SITE);
}
#else
;
#endif
