// Clusters of blocks and the shared memory of their neighbours (sm_90a).
// PTX ISA, "%cluster_ctarank", "mapa", "barrier.cluster".
#define ACU_CLUSTER 1

ACU_MK int cluster_rank()
#if ACU_NATIVE
{
    int r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
#elif ACU_PLAIN
{
    return (int)emu::cluster_rank();
}
#else
;
#endif

ACU_MK int cluster_size()
#if ACU_NATIVE
{
    int r;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
#elif ACU_PLAIN
{
    return (int)emu::cluster_size();
}
#else
;
#endif

/// All threads of all blocks of the cluster; orders their shared and global memory. A block must not end while a neighbour may still reach into it.
ACU_MK void cluster_barrier()
#if ACU_NATIVE
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::cluster_barrier(EMU_SITE);
}
#else
;
#endif

/// The two halves of a barrier: what a thread did before it arrives, all see who have waited. Emulation meets at the wait, so what stands between the two is ordered there, too.
ACU_MK void cluster_arrive()
#if ACU_NATIVE
{
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
#elif ACU_PLAIN
{
}
#else
;
#endif

ACU_MK void cluster_wait()
#if ACU_NATIVE
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::cluster_barrier(EMU_SITE);
}
#else
;
#endif

ACU_MK void* cluster_address(const void* shared, int rank)
#if ACU_NATIVE
{
    unsigned long long r;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(shared), "r"(rank));
    return reinterpret_cast<void*>(r);
}
#elif ACU_PLAIN
{
    return emu::from_shared(emu::cluster_address(emu::to_shared(shared), (unsigned)rank));
}
#else
;
#endif

/// The same variable in the shared memory of block `rank` of the cluster, to read and write.
template <class T>
ACU_DEVICE T* cluster_pointer(T* shared, int rank) { return static_cast<T*>(cluster_address(shared, rank)); }
