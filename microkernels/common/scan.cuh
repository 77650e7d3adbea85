// Prefix sums and other scans over a warp or a block, by thread number. The tree is fixed: the same bits in every run.

/// Lane l receives the combination of lanes 0 to l.
template <class Op, class T>
ACU_DEVICE T warp_scan(T x) {
    const int lane = lane_id();
#pragma unroll
    for (int distance = 1; distance < ACU_WARP; distance *= 2) {
        const T before = warp_shuffle_up(x, distance);
        if (lane >= distance) x = Op::combine(before, x);
    }
    return x;
}
/// Of lanes 0 to l - 1; lane 0 receives the identity.
template <class Op, class T>
ACU_DEVICE T warp_scan_exclusive(T x) {
    const T before = warp_shuffle_up(warp_scan<Op>(x), 1);
    return lane_id() == 0 ? Op::template identity<T>() : before;
}

/// What the warps before this one have in all (the identity for the first one), from each warp's total; `total`: of the whole block.
template <class Op, class T>
ACU_DEVICE T scan_of_warps(T of_warp, T* scratch, int thread, int threads, T& total) {
    total = of_warp;
    if (threads <= ACU_WARP) return Op::template identity<T>();
    const int lane = thread % ACU_WARP, warp = thread / ACU_WARP, warps = threads / ACU_WARP;
    if (lane == ACU_WARP - 1) scratch[warp] = of_warp;
    block_barrier();
    const T up_to = warp_scan<Op>(lane < warps ? scratch[lane] : Op::template identity<T>());
    block_barrier();
    total = warp_shuffle(up_to, warps - 1);
    const T before = warp_shuffle(up_to, warp > 0 ? warp - 1 : 0);
    return warp > 0 ? before : Op::template identity<T>();
}

/// Thread t of `threads` (whole warps, 1024 at most) receives the combination of threads 0 to t; `total`: of all of them.
/// `scratch`: one T a warp. Contains two block barriers, before and after the scratch is read, so it may be used again at once (an earlier use must have
/// ended with a barrier, too); none where the block is one warp.
template <class Op, class T>
ACU_DEVICE T block_scan(T x, T* scratch, int thread, int threads, T& total) {
    x = warp_scan<Op>(x);
    const T before = scan_of_warps<Op>(warp_shuffle(x, ACU_WARP - 1), scratch, thread, threads, total);
    return thread < ACU_WARP ? x : Op::combine(before, x);
}
/// Of threads 0 to t - 1; thread 0 receives the identity.
template <class Op, class T>
ACU_DEVICE T block_scan_exclusive(T x, T* scratch, int thread, int threads, T& total) {
    const T up_to = warp_scan<Op>(x);
    const T before = scan_of_warps<Op>(warp_shuffle(up_to, ACU_WARP - 1), scratch, thread, threads, total);
    const T left = warp_shuffle_up(up_to, 1);
    if (thread % ACU_WARP == 0) return before;
    return thread < ACU_WARP ? left : Op::combine(before, left);
}
