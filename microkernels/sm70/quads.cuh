// Products of tiles in shared memory by mma.sync m8n8k4 (f16): four products of 8x8, one a quad pair, as one of 16x16. sm_70.
// PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".

/// d += a b for 16 rows, 16 columns and 4 of k. Lane l has of a row l % 4 + 4 (l / 4 % 2) + 8 (l / 16), of b column l % 4 + 4 (l / 8 % 2) + 8 (l / 16), four of k each. Its register r of d is
/// row l % 2 + (r & 2) + 4 (l / 4 % 2) + 8 (l / 16), column r % 2 + (l & 2) + 4 (l / 8 % 2) + 2 (r & 4).
ACU_MK void mma_quads(float* d, const unsigned* a, const unsigned* b)
#if ACU_NATIVE
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
#elif ACU_PLAIN
{
    struct Lane {
        float* d;
        const unsigned *a, *b;
    } me{d, a, b};
    emu::warp_meet("mma.m8n8k4", whole_warp(), &me, [](void* const* lanes) {
        static float x[16][4], y[4][16];
        for (int l = 0; l < 32; ++l)
            for (int k = 0; k < 4; ++k) {
                const Lane& lane = *static_cast<Lane*>(lanes[l]);
                x[l % 4 + 4 * (l / 4 % 2) + 8 * (l / 16)][k] = widen(f16{(unsigned short)(lane.a[k / 2] >> 16 * (k % 2))});
                y[k][l % 4 + 4 * (l / 8 % 2) + 8 * (l / 16)] = widen(f16{(unsigned short)(lane.b[k / 2] >> 16 * (k % 2))});
            }
        for (int l = 0; l < 32; ++l)
            for (int r = 0; r < 8; ++r) {
                const int row = l % 2 + (r & 2) + 4 * (l / 4 % 2) + 8 * (l / 16), column = r % 2 + (l & 2) + 4 * (l / 8 % 2) + 2 * (r & 4);
                float sum = 0;
                for (int k = 0; k < 4; ++k) sum += x[row][k] * y[k][column];
                static_cast<Lane*>(lanes[l])->d[r] += sum;
            }
    }, EMU_SITE);
}
#else
;
#endif

/// A lane's row of a or column of b, four of k: two registers.
template <class O, bool Rows>
ACU_DEVICE void load_quad(unsigned (&words)[2], const typename O::Element* tile, int along, int k) {
    const int lane = lane_id(), at = along + lane % 4 + 4 * (Rows ? lane / 4 % 2 : lane / 8 % 2) + 8 * (lane / 16);
    if constexpr (O::deep) {
        Pack8 pack;
        load_pack(pack, tile + O::offset(at, k));
        memcpy(words, &pack, 8);
    } else {
        f16 element[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) element[e] = tile[O::offset(at, k + e)];
        memcpy(words, element, 8);
    }
}

/// d += a b: warp w has 16 MI rows from 16 MI (w / Columns) on, and 16 NI columns from 16 NI (w % Columns) on. Registers of d: those of a 16x16 fragment, then the NI, then the MI.
template <class A, class B, int MI, int NI, int K, int Columns>
ACU_DEVICE void quad_tile(float (&d)[MI * NI * 8], const f16* a, const f16* b, int thread) {
    static_assert(K % 4 == 0, "k of a tile is a multiple of that of the instruction");
    const int warp = thread / 32, row = warp / Columns * (16 * MI), column = warp % Columns * (16 * NI);
#pragma unroll
    for (int k = 0; k < K; k += 4) {
        unsigned x[MI][2], y[NI][2];
#pragma unroll
        for (int i = 0; i < MI; ++i) load_quad<A, true>(x[i], a, row + 16 * i, k);
#pragma unroll
        for (int j = 0; j < NI; ++j) load_quad<B, false>(y[j], b, column + 16 * j, k);
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < NI; ++j) mma_quads(&d[(i * NI + j) * 8], x[i], y[j]);
    }
}
