// Products of tiles in shared memory without matrix instructions: each lane multiplies and adds in f32, with factors of any type.

/// Four neighbours in memory, widened.
template <class T>
ACU_DEVICE void load_four(float (&x)[4], const T* src) {
    T raw[4];
    load_vector<4>(raw, src);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = (float)widen(raw[i]);
}

/// Lines of 128 bytes that are permuted alike.
template <class O>
struct Alike;
template <class T, bool Deep, int Lines, int Pitch, int Swizzle, int Rows, bool Panels>
struct Alike<Operand<T, Deep, Lines, Pitch, Swizzle, Rows, Panels>> {
    static constexpr int lines = Rows;
};

/// x[j][k]: four rows (or columns) of an operand from `along` on, four terms from `k` on.
template <class O>
ACU_DEVICE void load_sixteen(float (&x)[4][4], const typename O::Element* tile, int along, int k) {
    constexpr int size = (int)sizeof(typename O::Element);
    constexpr bool alike = !O::swizzle || Alike<O>::lines * 128 % (4 * O::pitch * size) == 0;    // the four lines are permuted alike
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (O::deep) {
            load_four(x[i], tile + (alike && !O::panels ? O::offset(along, k) + i * O::pitch : O::offset(along + i, k)));
        } else {
            float line[4];
            load_four(line, tile + O::offset(along, k + i));
#pragma unroll
            for (int j = 0; j < 4; ++j) x[j][i] = line[j];
        }
    }
}

/// d += a b: warp w has 16 MI rows from 16 MI (w / Columns) on, and 32 NI columns from 32 NI (w % Columns) on; of each 16x32 a lane has 4x4, rows from 4 (lane / 8) on, columns from 4 (lane % 8) on.
/// Registers of d: the rows of a 4x4, its columns innermost, then the NI, then the MI.
template <class A, class B, int MI, int NI, int K, int Columns>
ACU_DEVICE void fma_tile(float (&d)[MI * NI * 16], const typename A::Element* a, const typename B::Element* b, int thread) {
    const int warp = thread / 32, row = warp / Columns * (16 * MI) + lane_id() / 8 * 4, column = warp % Columns * (32 * NI) + lane_id() % 8 * 4;
#pragma unroll 2
    for (int k = 0; k < K; k += 4) {
        float y[NI][4][4];
#pragma unroll
        for (int j = 0; j < NI; ++j) load_sixteen<B>(y[j], b, column + 32 * j, k);
#pragma unroll
        for (int i = 0; i < MI; ++i) {
            float x[4][4];
            load_sixteen<A>(x, a, row + 16 * i, k);
#pragma unroll
            for (int t = 0; t < 4; ++t)
#pragma unroll
                for (int j = 0; j < NI; ++j)
#pragma unroll
                    for (int r = 0; r < 16; ++r) d[(i * NI + j) * 16 + r] += x[r / 4][t] * y[j][r % 4][t];
        }
    }
}
