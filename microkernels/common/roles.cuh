// What roles of a block say to each other: the barriers of a ring, one a slot, and arrivals by warps. sm_80. PTX ISA, "mbarrier", "cp.async.mbarrier.arrive".

/// By one thread, before a block barrier: barriers whose phases end after `arrivals`.
ACU_DEVICE void rings_begin(RingBarrier* bars, int slots, int arrivals) {
    for (int i = 0; i < slots; ++i) ring_init(bars[i], arrivals);
}

/// By one thread, when nobody uses it any more: the memory may become another barrier.
ACU_MK void ring_end(RingBarrier& bar)
#if ACU_NATIVE
{
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
}
#elif ACU_PLAIN
{
    emu::mbar_end(emu::to_shared(&bar), EMU_SITE);
}
#else
;
#endif
ACU_DEVICE void rings_end(RingBarrier* bars, int slots) {
    for (int i = 0; i < slots; ++i) ring_end(bars[i]);
}

/// One arrival a warp, after what all its lanes did.
ACU_DEVICE void warp_arrive(RingBarrier& bar) {
    warp_barrier();
    if (lane_id() == 0) ring_arrive(bar);
}

/// One arrival of this thread, when all asynchronous copies that it has started have landed; nothing waits here.
ACU_MK void ring_arrive_copies(RingBarrier& bar)
#if ACU_NATIVE
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
}
#elif ACU_PLAIN
{
    emu::async_arrive(emu::to_shared(&bar), EMU_SITE);
}
#else
;
#endif
