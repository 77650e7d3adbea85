// A barrier object in shared memory that counts arrivals, and bytes on their way, phase by phase: what rings of buffers are made of.
// sm_80; expected bytes and neighbours of a cluster: sm_90a. PTX ISA, "mbarrier".

/// Phases are numbered 0, 1, …; a wait on parity p returns when the current phase does not have parity p: at once for p = 1 on a fresh barrier.
struct alignas(8) RingBarrier {
    unsigned long long state;
};

/// By one thread, before a block (or cluster) barrier. A phase ends after `count` arrivals and when no expected bytes are missing.
ACU_MK void ring_init(RingBarrier& bar, int count)
#if ACU_NATIVE
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(count) : "memory");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
#elif ACU_PLAIN
{
    emu::mbar_init(emu::to_shared(&bar), (unsigned)count);
}
#else
;
#endif

/// What this thread did before is visible to who waits for the phase.
ACU_MK void ring_arrive(RingBarrier& bar)
#if ACU_NATIVE
{
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_arrive(emu::to_shared(&bar), 0, EMU_SITE);
}
#else
;
#endif

/// sm_90a: an arrival that also announces `bytes` of bulk copies.
ACU_MK void ring_arrive_expect(RingBarrier& bar, int bytes)
#if ACU_NATIVE
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&bar)), "r"(bytes) : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_arrive(emu::to_shared(&bar), (unsigned)bytes, EMU_SITE);
}
#else
;
#endif

/// sm_90a: arrives at the same barrier of block `rank` of the cluster.
ACU_MK void ring_arrive_at(RingBarrier& bar, int rank)
#if ACU_NATIVE
{
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
                     shared_address(&bar)), "r"(rank)
                 : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_arrive(emu::cluster_address(emu::to_shared(&bar), (unsigned)rank), 0, EMU_SITE);
}
#else
;
#endif

/// Until the phase of this parity is over. A waiter must not fall two phases behind.
ACU_MK void ring_wait(RingBarrier& bar, int parity)
#if ACU_NATIVE
{
    const unsigned address = shared_address(&bar);
    int over;
    do {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile("{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\nselp.b32 %0, 1, 0, over;\n}"
#else
        asm volatile("{\n.reg .pred over;\nmbarrier.test_wait.parity.shared.b64 over, [%1], %2;\nselp.b32 %0, 1, 0, over;\n}"
#endif
                     : "=r"(over)
                     : "r"(address), "r"(parity)
                     : "memory");
    } while (!over);
}
#elif ACU_PLAIN
{
    emu::mbar_wait(emu::to_shared(&bar), (unsigned)parity, EMU_SITE);
}
#else
;
#endif
