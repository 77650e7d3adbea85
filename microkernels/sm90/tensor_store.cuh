// Boxes from shared memory to tensors by the copy engine, through a map that the launcher makes. sm_90a.
// PTX ISA, "cp.async.bulk.tensor" with .bulk_group, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group".

// One body a number of dimensions; coordinates innermost first.
#if ACU_NATIVE
#define ACU_TENSOR_STORE(rank, at, ...)                                                                                                                                                              \
    {                                                                                                                                                                                                \
        asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.tile.bulk_group [%1, {" at "}], [%0];" ::"r"(shared_address(from)), "l"(reinterpret_cast<unsigned long long>(&map)), __VA_ARGS__ \
                     : "memory");                                                                                                                                                                    \
    }
#endif
/// By one thread, behind a barrier behind the fences of those who wrote the box: what of it lies inside of the tensor.
ACU_MK void tensor_store(const void* from, const TensorMap& map, int c0)
#if ACU_NATIVE
ACU_TENSOR_STORE(1, "%2", "r"(c0))
#elif ACU_PLAIN
{
    const int at[5] = {c0};
    emu::tensor_store_nd(&map, at, emu::to_shared(from), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_store(const void* from, const TensorMap& map, int c0, int c1)
#if ACU_NATIVE
ACU_TENSOR_STORE(2, "%2, %3", "r"(c0), "r"(c1))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1};
    emu::tensor_store_nd(&map, at, emu::to_shared(from), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_store(const void* from, const TensorMap& map, int c0, int c1, int c2)
#if ACU_NATIVE
ACU_TENSOR_STORE(3, "%2, %3, %4", "r"(c0), "r"(c1), "r"(c2))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2};
    emu::tensor_store_nd(&map, at, emu::to_shared(from), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_store(const void* from, const TensorMap& map, int c0, int c1, int c2, int c3)
#if ACU_NATIVE
ACU_TENSOR_STORE(4, "%2, %3, %4, %5", "r"(c0), "r"(c1), "r"(c2), "r"(c3))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3};
    emu::tensor_store_nd(&map, at, emu::to_shared(from), EMU_SITE);
}
#else
;
#endif
ACU_MK void tensor_store(const void* from, const TensorMap& map, int c0, int c1, int c2, int c3, int c4)
#if ACU_NATIVE
ACU_TENSOR_STORE(5, "%2, %3, %4, %5, %6", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4))
#elif ACU_PLAIN
{
    const int at[5] = {c0, c1, c2, c3, c4};
    emu::tensor_store_nd(&map, at, emu::to_shared(from), EMU_SITE);
}
#else
;
#endif
/// Behind the stores of this thread that belong together.
ACU_DEVICE void tensor_stores_commit() {
#if ACU_NATIVE
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
/// Until all that this thread stored has been read from shared memory, which may be written again then.
ACU_MK void tensor_stores_read()
#if ACU_NATIVE
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::tensor_stores_read();
}
#else
;
#endif
