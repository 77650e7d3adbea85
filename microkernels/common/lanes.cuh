// Reductions over parts of a warp, which have a row each.

/// Over each group of `Lanes` neighbouring lanes, a power of two; every lane receives the result of its group. All lanes of the warp take part.
template <class Op, int Lanes, class T>
ACU_DEVICE T lanes_reduce(T x) {
    const int lane = lane_id();
#pragma unroll
    for (int mask = 1; mask < Lanes; mask *= 2) x = combine_across<Op>(x, lane, mask);
    return x;
}
