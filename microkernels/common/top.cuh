// The K best of a warp and their positions, in registers.

/// Does (a, ia) stand before (b, ib)? An empty place stands before none.
template <class T>
ACU_DEVICE bool stands_before(T a, i64 ia, T b, i64 ib) { return (ia >= 0) & better<false>(a, ia, b, ib); }

/// Of the lists of two lanes, best first, the K best, best first: the better of each entry and its mirror image are these, in bitonic order, which K/2, …, 1 apart are then sorted.
/// K. E. Batcher, Sorting networks and their applications, 1968.
template <int K, class T>
ACU_DEVICE void merge_top_across(T (&values)[K], i64 (&positions)[K], int mask) {
    static_assert((K & (K - 1)) == 0, "a power of two");
    T other[K];
    i64 place[K];
#pragma unroll
    for (int j = 0; j < K; ++j) other[j] = warp_shuffle_xor(values[K - 1 - j], mask), place[j] = warp_shuffle_xor(positions[K - 1 - j], mask);
#pragma unroll
    for (int j = 0; j < K; ++j) {
        const bool in = stands_before(other[j], place[j], values[j], positions[j]);
        values[j] = in ? other[j] : values[j], positions[j] = in ? place[j] : positions[j];
    }
#pragma unroll
    for (int apart = K / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int j = 0; j < K; ++j) {
            if (j & apart) continue;
            const int k = j + apart;
            const bool swap = stands_before(values[k], positions[k], values[j], positions[j]);
            const T value = values[j];
            const i64 position = positions[j];
            values[j] = swap ? values[k] : value, positions[j] = swap ? positions[k] : position;
            values[k] = swap ? value : values[k], positions[k] = swap ? position : positions[k];
        }
}

/// Over all lanes of the warp, of which each has a list, best first, empty places (-1) behind; positions differ from lane to lane. Every lane receives the K best.
template <int K, class T>
ACU_DEVICE void warp_reduce_top(T (&values)[K], i64 (&positions)[K]) {
#pragma unroll
    for (int mask = 1; mask < ACU_WARP; mask *= 2) merge_top_across<K>(values, positions, mask);
}
