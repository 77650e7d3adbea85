// Products of rows in registers and tiles in shared memory by mma.sync m16n8k16 (f16, bf16). sm_80.
// PTX ISA, "Matrix Fragments for mma.m16n8k16": what a thread has of 16 columns of sums is, in this order, what it has of a factor with 16 terms.

/// d += a b: warp w has 16 MI rows and all 8 NI columns; words: its rows, K terms of each, two in a word, as sums of K columns lie. Registers of d: those of an m16n8 fragment, then
/// the NI, then the MI.
template <class B, int MI, int NI, int K, int Columns>
ACU_DEVICE void mma_rows(float (&d)[MI * NI * 4], const unsigned (&words)[MI * K / 4], const typename B::Element* b, int) {
    typedef typename B::Element T;
    static_assert(K % 16 == 0 && Columns == 1, "a tile is made of whole instructions");
#pragma unroll
    for (int k = 0; k < K; k += 16) {
        unsigned y[(NI + 1) / 2][4];
#pragma unroll
        for (int j = 0; j < NI; j += 2) j + 1 < NI ? load_fragment<B, false>(y[j / 2], b, 8 * j, k) : load_fragment<B, false, false>(y[j / 2], b, 8 * j, k);
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < NI; ++j) MmaOf<T>::run(&d[(i * NI + j) * 4], &words[i * (K / 4) + k / 4], &y[j / 2][j % 2 * 2]);
    }
}
/// The same with floats, which are rounded to the type of b.
template <class B, int MI, int NI, int K, int Columns>
ACU_DEVICE void mma_rows(float (&d)[MI * NI * 4], const float (&a)[MI * K / 2], const typename B::Element* b, int thread) {
    unsigned words[MI * K / 4];
#pragma unroll
    for (int i = 0; i < MI * K / 4; ++i) words[i] = Pair<typename B::Element>::of(a[2 * i], a[2 * i + 1]);
    mma_rows<B, MI, NI, K, Columns>(d, words, b, thread);
}
