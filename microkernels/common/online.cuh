// States that merge: maximum and sum of exponentials (softmax), count, mean and sum of squares (Welford). Two parts of a row, each with its own state,
// give the state of the whole. Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.

/// The exponential of a state: base e or 2. A kernel may bring its own (an approximation) with the same two functions.
struct NaturalExp {
    ACU_DEVICE static float of(float x) { return expf(x); }
    ACU_DEVICE static double of(double x) { return exp(x); }
};
struct BinaryExp {
    ACU_DEVICE static float of(float x) { return exp2f(x); }
    ACU_DEVICE static double of(double x) { return exp2(x); }
};

/// What sums of exponentials relative to the maximum `from` are multiplied by to become relative to `to`, which is not less: 0 from an empty state.
template <class Exp = NaturalExp, class T>
ACU_DEVICE T online_scale(T from, T to) { return Exp::of(from - (to == Extremes<T>::least() ? T(0) : to)); }

/// (m, l): the maximum of some x and the sum of exp(x - m); (-inf, 0) for none, and where all are -inf. NaN and +inf make l NaN, as in the definition.
template <class Exp = NaturalExp, class T>
ACU_DEVICE void online_merge(T& m, T& l, T m2, T l2) {
    const T now = larger(m, m2);
    l = product(l, online_scale<Exp>(m, now)) + product(l2, online_scale<Exp>(m2, now));
    m = now;
}

/// (n, mean, m2): how many, their mean, the sum of squares of what differs from it; (0, 0, 0) for none.
template <class T>
ACU_DEVICE void welford_merge(T& n, T& mean, T& m2, T n_b, T mean_b, T m2_b) {
    if (n_b == T(0)) return;
    if (n == T(0)) {
        n = n_b, mean = mean_b, m2 = m2_b;
        return;
    }
    const T whole = n + n_b, step = mean_b - mean, part = n_b / whole;
    mean = mean + product(step, part);
    m2 = (m2 + m2_b) + product(product(step, step), product(n, part));
    n = whole;
}
template <class T>
ACU_DEVICE void welford_push(T& n, T& mean, T& m2, T x) {
    n = n + T(1);
    const T step = x - mean;
    mean = mean + step / n;
    m2 = m2 + product(step, x - mean);
}

// ---- over a warp or a block: `Merge` says how many numbers a state has, what an empty one is, and how `a` takes in `b`

template <class Exp = NaturalExp>
struct OnlineMerge {
    static constexpr int size = 2;
    template <class T>
    ACU_DEVICE static T empty(int i) { return i == 0 ? Extremes<T>::least() : T(0); }
    template <class T>
    ACU_DEVICE static void merge(T (&a)[2], const T (&b)[2]) { online_merge<Exp>(a[0], a[1], b[0], b[1]); }
};
struct WelfordMerge {
    static constexpr int size = 3;
    template <class T>
    ACU_DEVICE static T empty(int) { return T(0); }
    template <class T>
    ACU_DEVICE static void merge(T (&a)[3], const T (&b)[3]) { welford_merge(a[0], a[1], a[2], b[0], b[1], b[2]); }
};

/// Merges with the state of lane `lane ^ mask`, the lower lane first: both receive the same bits.
template <class Merge, class T>
ACU_DEVICE void merge_across(T (&state)[Merge::size], int lane, int mask) {
    T low[Merge::size], high[Merge::size];
#pragma unroll
    for (int i = 0; i < Merge::size; ++i) {
        const T other = warp_shuffle_xor(state[i], mask);
        low[i] = lane & mask ? other : state[i];
        high[i] = lane & mask ? state[i] : other;
    }
    Merge::merge(low, high);
#pragma unroll
    for (int i = 0; i < Merge::size; ++i) state[i] = low[i];
}
template <class Merge, class T>
ACU_DEVICE void warp_merge(T (&state)[Merge::size]) {
    const int lane = lane_id();
#pragma unroll
    for (int mask = 1; mask < ACU_WARP; mask *= 2) merge_across<Merge>(state, lane, mask);
}
/// As `block_reduce`, barriers included. `scratch`: Merge::size of T a warp.
template <class Merge, class T>
ACU_DEVICE void block_merge(T (&state)[Merge::size], T* scratch, int thread, int threads) {
    warp_merge<Merge>(state);
    if (threads <= ACU_WARP) return;
    const int lane = thread % ACU_WARP, warp = thread / ACU_WARP, warps = threads / ACU_WARP, n = partials(threads);
#pragma unroll
    for (int i = 0; i < Merge::size; ++i)
        if (lane == 0) scratch[i * warps + warp] = state[i];
    block_barrier();
    const int mine = lane & (n - 1);
#pragma unroll
    for (int i = 0; i < Merge::size; ++i) state[i] = mine < warps ? scratch[i * warps + mine] : Merge::template empty<T>(i);
    for (int mask = 1; mask < n; mask *= 2) merge_across<Merge>(state, lane, mask);
    block_barrier();
}
