// Reductions over a warp, a block, a cluster. The tree is fixed and every thread receives the same bits, so a result is the same in every run.

// ---- monoids. `identity` changes nothing that it is combined with; `commutes`: a and b give the same bits as b and a.

template <class T>
struct Extremes;
template <>
struct Extremes<float> {
    ACU_DEVICE static float least() { return -infinity(); }
    ACU_DEVICE static float most() { return infinity(); }
    static constexpr bool whole = false;
};
template <>
struct Extremes<double> {
    ACU_DEVICE static double least() { return -(double)infinity(); }
    ACU_DEVICE static double most() { return (double)infinity(); }
    static constexpr bool whole = false;
};
template <>
struct Extremes<int> {
    ACU_DEVICE static int least() { return -2147483647 - 1; }
    ACU_DEVICE static int most() { return 2147483647; }
    static constexpr bool whole = true;
};
template <>
struct Extremes<i64> {
    ACU_DEVICE static i64 least() { return -9223372036854775807LL - 1; }
    ACU_DEVICE static i64 most() { return 9223372036854775807LL; }
    static constexpr bool whole = true;
};

/// Integers wrap.
ACU_DEVICE float wrapping_sum(float a, float b) { return a + b; }
ACU_DEVICE double wrapping_sum(double a, double b) { return a + b; }
ACU_DEVICE int wrapping_sum(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
ACU_DEVICE i64 wrapping_sum(i64 a, i64 b) { return (i64)((unsigned long long)a + (unsigned long long)b); }
ACU_DEVICE float wrapping_product(float a, float b) { return product(a, b); }
ACU_DEVICE double wrapping_product(double a, double b) { return product(a, b); }
ACU_DEVICE int wrapping_product(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
ACU_DEVICE i64 wrapping_product(i64 a, i64 b) { return (i64)((unsigned long long)a * (unsigned long long)b); }

struct Sum {
    template <class T>
    ACU_DEVICE static T identity() { return (T)-0.0; }  // not +0, to which -0 would become +0
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return wrapping_sum(a, b); }
    template <class T>
    static constexpr bool commutes = true;
};
struct Prod {
    template <class T>
    ACU_DEVICE static T identity() { return T(1); }
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return wrapping_product(a, b); }
    template <class T>
    static constexpr bool commutes = true;
};
/// NaN propagates.
struct Max {
    template <class T>
    ACU_DEVICE static T identity() { return Extremes<T>::least(); }
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return larger(a, b); }
    template <class T>
    static constexpr bool commutes = Extremes<T>::whole;  // not with zeros of both signs
};
struct Min {
    template <class T>
    ACU_DEVICE static T identity() { return Extremes<T>::most(); }
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return smaller(a, b); }
    template <class T>
    static constexpr bool commutes = Extremes<T>::whole;
};
/// Whether any (all) are not zero, as 0 or 1.
struct Any {
    template <class T>
    ACU_DEVICE static T identity() { return T(0); }
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return T(a != T(0) || b != T(0)); }
    template <class T>
    static constexpr bool commutes = true;
    ACU_DEVICE static bool vote(bool x) { return warp_any(x); }
};
struct All {
    template <class T>
    ACU_DEVICE static T identity() { return T(1); }
    template <class T>
    ACU_DEVICE static T combine(T a, T b) { return T(a != T(0) && b != T(0)); }
    template <class T>
    static constexpr bool commutes = true;
    ACU_DEVICE static bool vote(bool x) { return warp_all(x); }
};

/// Combines with what lane `lane ^ mask` has, the lower lane first: both receive the same bits.
template <class Op, class T>
ACU_DEVICE T combine_across(T x, int lane, int mask) {
    const T other = warp_shuffle_xor(x, mask);
    if (Op::template commutes<T>) return Op::combine(x, other);
    const bool upper = (lane & mask) != 0;
    return Op::combine(upper ? other : x, upper ? x : other);
}

/// Over all lanes of the warp; every lane receives the result. No barrier, no memory.
template <class Op, class T>
ACU_DEVICE T warp_reduce(T x) {
    const int lane = lane_id();
#pragma unroll
    for (int mask = 1; mask < ACU_WARP; mask *= 2) x = combine_across<Op>(x, lane, mask);
    return x;
}
/// Any and All of conditions: one vote.
template <class Op>
ACU_DEVICE bool warp_reduce(bool x) { return Op::vote(x); }

/// The least power of two that is not less than the warps of `threads` threads.
ACU_DEVICE int partials(int threads) {
    int n = 1;
    while (n * ACU_WARP < threads) n *= 2;
    return n;
}

/// Over the `threads` threads of the block (whole warps, 1024 at most), of which this is number `thread`; all of them call it and all receive the result.
/// `scratch`: one T a warp. Contains two block barriers, before and after the scratch is read, so it may be used again at once (an earlier use must have
/// ended with a barrier, too); none where the block is one warp.
template <class Op, class T>
ACU_DEVICE T block_reduce(T x, T* scratch, int thread, int threads) {
    x = warp_reduce<Op>(x);
    if (threads <= ACU_WARP) return x;
    const int lane = thread % ACU_WARP, warps = threads / ACU_WARP, n = partials(threads);
    if (lane == 0) scratch[thread / ACU_WARP] = x;
    block_barrier();
    const int mine = lane & (n - 1);
    x = mine < warps ? scratch[mine] : Op::template identity<T>();
    for (int mask = 1; mask < n; mask *= 2) x = combine_across<Op>(x, lane, mask);
    block_barrier();
    return x;
}

// ---- the best value and its position: the lower position on ties, NaN wins, position -1 is an empty place (keep_best)

struct ArgMax {
    static constexpr bool smallest = false;
};
struct ArgMin {
    static constexpr bool smallest = true;
};

template <class Op, class T>
ACU_DEVICE void keep_best_across(T& value, i64& position, int mask) {
    const T other = warp_shuffle_xor(value, mask);
    const i64 at = warp_shuffle_xor(position, mask);
    if (at >= 0) keep_best<Op::smallest>(value, position, other, at);  // an empty place is no candidate
}
template <class Op, class T>
ACU_DEVICE void warp_reduce_pair(T& value, i64& position) {
#pragma unroll
    for (int mask = 1; mask < ACU_WARP; mask *= 2) keep_best_across<Op>(value, position, mask);
}
/// As `block_reduce`, barriers included; scratch is one T and one i64 a warp. Positions differ from thread to thread, but for -1: where all are empty, the
/// value means nothing.
template <class Op, class T>
ACU_DEVICE void block_reduce_pair(T& value, i64& position, T* values, i64* positions, int thread, int threads) {
    warp_reduce_pair<Op>(value, position);
    if (threads <= ACU_WARP) return;
    const int lane = thread % ACU_WARP, warps = threads / ACU_WARP, n = partials(threads);
    if (lane == 0) values[thread / ACU_WARP] = value, positions[thread / ACU_WARP] = position;
    block_barrier();
    const int mine = lane & (n - 1);
    value = values[mine < warps ? mine : 0];
    position = mine < warps ? positions[mine] : -1;
    for (int mask = 1; mask < n; mask *= 2) keep_best_across<Op>(value, position, mask);
    block_barrier();
}

#ifdef ACU_CLUSTER
/// Over the blocks of a cluster of so many: `x` is the block's own result, the same in all its threads; all threads of the cluster receive the same bits. `slot`: one T of shared memory, at
/// the same place in every block. Between `cluster_open` and `cluster_close`, which each thread calls once: that the others have read the slot is waited for when it is written again, or when
/// the block could end.
template <class Op, int Blocks, class T>
ACU_DEVICE T cluster_reduce(T x, T* slot, int thread) {
    cluster_wait();
    if (thread == 0) *slot = x;
    cluster_arrive();
    cluster_wait();
    const int lane = lane_id();
    x = *cluster_pointer(slot, lane % Blocks);  // each lane has one, neighbours have all
#pragma unroll
    for (int mask = 1; mask < Blocks; mask *= 2) x = combine_across<Op>(x, lane, mask);
    cluster_arrive();
    return x;
}
ACU_DEVICE void cluster_open() { cluster_arrive(); }
ACU_DEVICE void cluster_close() { cluster_wait(); }
#endif
