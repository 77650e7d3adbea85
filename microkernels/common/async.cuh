// Copies from global to shared memory that do not pass through registers (sm_80), and by the copy engine (sm_90a).
// PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.bulk", "fence.proxy".

struct RingBarrier;

// Template parameters of what follows are arguments of the plain bodies.
#if ACU_NATIVE
template <int Bytes>
ACU_DEVICE void copy_async(void* shared_dst, const void* global_src, int valid_bytes) {
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    const unsigned dst = shared_address(shared_dst);
    if (Bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(global_src), "r"(valid_bytes) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(global_src), "n"(Bytes), "r"(valid_bytes) : "memory");
}
template <int Bytes>
ACU_DEVICE void copy_async(void* shared_dst, const void* global_src) {
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    const unsigned dst = shared_address(shared_dst);
    if (Bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(global_src) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(global_src), "n"(Bytes) : "memory");
}
template <int Pending>
ACU_DEVICE void copy_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }
#else
ACU_MK void copy_async_bytes(void* shared_dst, const void* global_src, int bytes, int valid_bytes)
#if ACU_PLAIN
{
    emu::async_copy(emu::to_shared(shared_dst), global_src, (unsigned)bytes, (unsigned)valid_bytes, EMU_SITE);
}
#else
;
#endif
ACU_MK void copy_async_wait_for(int pending)
#if ACU_PLAIN
{
    emu::async_wait(pending);
}
#else
;
#endif
/// Bytes (4, 8 or 16, both addresses multiples of that), of which the first `valid_bytes` are read and the rest become zeros. `global_src` is a valid
/// address even where nothing is read. Lands when this thread waits for its group; a barrier then shows it to others.
template <int Bytes>
ACU_DEVICE void copy_async(void* shared_dst, const void* global_src, int valid_bytes) { copy_async_bytes(shared_dst, global_src, Bytes, valid_bytes); }
template <int Bytes>
ACU_DEVICE void copy_async(void* shared_dst, const void* global_src) { copy_async_bytes(shared_dst, global_src, Bytes, Bytes); }
/// Until at most the `Pending` newest groups of this thread are on their way.
template <int Pending>
ACU_DEVICE void copy_async_wait() { copy_async_wait_for(Pending); }
#endif

/// Closes a group: the copies of this thread since the last one.
ACU_MK void copy_async_commit()
#if ACU_NATIVE
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::async_commit();
}
#else
;
#endif

// ---- sm_90a

/// Makes what this thread wrote to shared memory visible to the copy engine and the tensor cores; a barrier follows.
ACU_MK void async_fence()
#if ACU_NATIVE
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::proxy_fence();
}
#else
;
#endif

/// By one thread: `bytes` (a multiple of 16, like both addresses) to the shared memory of this block; they count on `barrier`, which expects them.
ACU_MK void bulk_copy(void* shared_dst, const void* global_src, int bytes, RingBarrier* barrier)
#if ACU_NATIVE
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(shared_dst)),
                 "l"(global_src), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}
#elif ACU_PLAIN
{
    emu::bulk_load(emu::to_shared(shared_dst), global_src, (unsigned)bytes, emu::to_shared(barrier), EMU_SITE);
}
#else
;
#endif
