// Runs of neighbouring elements between memory and registers, or from global to shared memory, of any alignment: the widest accesses where the address allows
// them, single elements where it does not. What emitted kernels use for the chunks of a vectorised axis.

template <int Bytes>
ACU_DEVICE bool is_aligned(const void* p) { return (reinterpret_cast<unsigned long long>(p) & (Bytes - 1)) == 0; }

/// The same elements, of which the compiler knows nothing any more: what it made of them before, such as the same in f32, is made again rather than kept in twice the registers.
template <int N, class T>
ACU_DEVICE void forget_wider(T (&x)[N]) {
#if ACU_NATIVE
    static_assert(sizeof(T) == 2 && N % 2 == 0, "pairs of 16-bit elements");
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        unsigned pair;
        memcpy(&pair, &x[i], 4);
#if defined(ACU_HIP)
        asm volatile("" : "+v"(pair));
#else
        asm volatile("" : "+r"(pair));
#endif
        memcpy(&x[i], &pair, 4);
    }
#else
    (void)x;
#endif
}

/// f(i, count) for pieces of two elements that start at a multiple of their bytes, and the single ones before and behind them.
template <int N, class T, class F>
ACU_DEVICE void in_pairs(const T* at, F f) {
    if (N < 2 || is_aligned<2 * (int)sizeof(T)>(at)) {
#pragma unroll
        for (int i = 0; i + 1 < N; i += 2) f(i, true);
        if (N % 2) f(N - 1, false);
    } else {
        f(0, false);
#pragma unroll
        for (int i = 1; i + 1 < N; i += 2) f(i, true);
        if (N % 2 == 0) f(N - 1, false);
    }
}

/// N elements from `src`. `Aligned`: the address is known to be a multiple of the bytes of an access, and is not asked.
template <int N, bool Aligned = false, class T>
ACU_DEVICE void load_elements(T (&dst)[N], const T* src) {
    constexpr int most = 16 / (int)sizeof(T), width = N < most ? N : most;
    if (Aligned || is_aligned<width * (int)sizeof(T)>(src)) {
#pragma unroll
        for (int i = 0; i < N; i += width) {
            T part[width];
            load_vector<width>(part, src + i);
#pragma unroll
            for (int j = 0; j < width; ++j) dst[i + j] = part[j];
        }
    } else if (sizeof(T) == 2 || sizeof(T) == 4) {
        in_pairs<N>(src, [&](int i, bool pair) {
            if (pair) {
                T part[2];
                load_vector<2>(part, src + i);
                dst[i] = part[0], dst[i + 1] = part[1];
            } else dst[i] = src[i];
        });
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) dst[i] = src[i];
    }
}

/// N elements to `dst`.
template <int N, bool Aligned = false, class T>
ACU_DEVICE void store_elements(T* dst, const T (&src)[N]) {
    constexpr int most = 16 / (int)sizeof(T), width = N < most ? N : most;
    if (Aligned || is_aligned<width * (int)sizeof(T)>(dst)) {
#pragma unroll
        for (int i = 0; i < N; i += width) {
            T part[width];
#pragma unroll
            for (int j = 0; j < width; ++j) part[j] = src[i + j];
            store_vector<width>(dst + i, part);
        }
    } else if (sizeof(T) == 2 || sizeof(T) == 4) {
        in_pairs<N>(dst, [&](int i, bool pair) {
            if (pair) {
                const T part[2] = {src[i], src[i + 1]};
                store_vector<2>(dst + i, part);
            } else dst[i] = src[i];
        });
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) dst[i] = src[i];
    }
}

/// Four words of each of four neighbouring lanes: lane i receives the words number i of the four, in their order. All lanes of the warp take part.
ACU_DEVICE void exchange_quads(unsigned (&words)[4]) {
    const int lane = lane_id();
#if ACU_NATIVE && !defined(ACU_HIP)
    asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));  // what was stored is made before it is chosen among: ptxas takes a choice among sums of wgmma for a use in its midst
#endif
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {  // what has another bit than the lane changes places with the lane of that bit
        const bool upper = (lane & bit) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & bit) continue;
            const unsigned give = upper ? words[i] : words[i + bit], take = warp_shuffle_xor(give, bit);
            if (upper) words[i] = take;
            else words[i + bit] = take;
        }
    }
}
/// N elements of those words, or of one of them.
template <int N, bool Aligned = false, class T>
ACU_DEVICE void store_words(T* dst, const unsigned (&words)[4]) {
    T element[N];
    memcpy(element, words, sizeof(element));
    store_elements<N, Aligned>(dst, element);
}
template <int N, class T>
ACU_DEVICE void store_words_of(T* dst, unsigned word) {
    T element[N];
    memcpy(element, &word, sizeof(element));
    store_elements<N>(dst, element);
}

#ifdef ACU_ASYNC
/// N elements to shared memory, of which the first `valid` come from `src` and the rest are 0 (all bits); asynchronous where size and addresses allow it.
template <int N, class T>
ACU_DEVICE void copy_elements_async(T* dst, const T* src, int valid) {
    constexpr int most = 16 / (int)sizeof(T), width = N < most ? N : most, bytes = width * (int)sizeof(T);
    constexpr bool possible = bytes == 4 || bytes == 8 || bytes == 16;
    constexpr int piece = possible ? bytes : 16;
    if (possible && is_aligned<piece>(src) && is_aligned<piece>(dst)) {
#pragma unroll
        for (int i = 0; i < N; i += width) {
            const int left = valid - i;
            copy_async<piece>(dst + i, left > 0 ? src + i : src, (left <= 0 ? 0 : left < width ? left : width) * (int)sizeof(T));
        }
    } else {
        const T zero = {};
#pragma unroll
        for (int i = 0; i < N; ++i) dst[i] = i < valid ? src[i] : zero;
    }
}
#endif
