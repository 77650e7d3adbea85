// Reductions over rows of a matrix in registers, parts of which lie in several lanes.

/// Over the lanes whose numbers differ in bits of `Mask` alone; each of them receives the same bits. All lanes of the warp take part.
template <class Op, int Mask, class T>
ACU_DEVICE T rows_reduce(T x) {
    const int lane = lane_id();
#pragma unroll
    for (int bit = 1; bit <= Mask; bit *= 2)
        if (Mask & bit) x = combine_across<Op>(x, lane, bit);
    return x;
}
