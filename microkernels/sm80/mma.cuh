// Products of tiles in shared memory by mma.sync: m16n8k16 (f16, bf16), m16n8k8 (tf32), m16n8k32 (s8). sm_80.
// PTX ISA, "Matrix Fragments for mma.m16n8k16", "… m16n8k8", "… m16n8k32", "ldmatrix".

// ---- fragments from shared memory

/// Four 8x8 matrices of 16-bit elements: lane l gives the address of line l % 8 of matrix l / 8 (16 bytes, aligned) and receives word l % 4 of line l / 4 of each.
ACU_MK void load_matrices(unsigned* words, const void* line)
#if ACU_NATIVE
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(shared_address(line)) : "memory");
}
#elif ACU_PLAIN
{
    struct Lane {
        unsigned* words;
        const unsigned char* line;
    } me{words, static_cast<const unsigned char*>(line)};
    emu::access(line, 16, false, EMU_SITE);
    emu::warp_meet("ldmatrix", whole_warp(), &me, [](void* const* lanes) {
        for (int l = 0; l < 32; ++l)
            for (int j = 0; j < 4; ++j) memcpy(&static_cast<Lane*>(lanes[l])->words[j], static_cast<Lane*>(lanes[8 * j + l / 4])->line + 4 * (l % 4), 4);
    }, EMU_SITE);
}
#else
;
#endif

/// The same, transposed: lane l receives of each matrix the elements l / 4 of the lines 2 (l % 4) and 2 (l % 4) + 1.
ACU_MK void load_matrices_across(unsigned* words, const void* line)
#if ACU_NATIVE
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(shared_address(line)) : "memory");
}
#elif ACU_PLAIN
{
    struct Lane {
        unsigned* words;
        const unsigned char* line;
    } me{words, static_cast<const unsigned char*>(line)};
    emu::access(line, 16, false, EMU_SITE);
    emu::warp_meet("ldmatrix.trans", whole_warp(), &me, [](void* const* lanes) {
        for (int l = 0; l < 32; ++l)
            for (int j = 0; j < 4; ++j)
                for (int h = 0; h < 2; ++h) memcpy(reinterpret_cast<unsigned char*>(&static_cast<Lane*>(lanes[l])->words[j]) + 2 * h, static_cast<Lane*>(lanes[8 * j + 2 * (l % 4) + h])->line + 2 * (l / 4), 2);
    }, EMU_SITE);
}
#else
;
#endif

// ---- one instruction: d += a b, of a warp

#if ACU_PLAIN
/// What element `e` of a register holds, by its type.
template <class T>
struct MmaElements;
template <>
struct MmaElements<f16> {
    static constexpr int depth = 16;
    typedef float Sum;
    static float of(const unsigned* words, int e) { return widen(f16{(unsigned short)(words[e / 2] >> 16 * (e % 2))}); }
};
template <>
struct MmaElements<bf16> {
    static constexpr int depth = 16;
    typedef float Sum;
    static float of(const unsigned* words, int e) { return widen(bf16{(unsigned short)(words[e / 2] >> 16 * (e % 2))}); }
};
template <>
struct MmaElements<float> {  // the low 13 bits are not looked at
    static constexpr int depth = 8;
    typedef float Sum;
    static float of(const unsigned* words, int e) { return float_of(words[e] & 0xffffe000u); }
};
template <>
struct MmaElements<i8> {
    static constexpr int depth = 32;
    typedef int Sum;
    static int of(const unsigned* words, int e) { return (i8)(words[e / 4] >> 8 * (e % 4)); }
};
/// Elements of one register: 1, 2 or 4. Those of a: row l / 4 + 8 (register % 2), from k = per (l % 4) + half (register / 2) on; of b: column l / 4, k alike by register.
template <class T>
void plain_mma(void* d, const unsigned* a, const unsigned* b, const void* site) {
    typedef MmaElements<T> E;
    typedef typename E::Sum Sum;
    constexpr int depth = E::depth, per = 4 / (int)sizeof(T), half = depth / 2;
    struct Lane {
        Sum* d;
        const unsigned *a, *b;
    } me{static_cast<Sum*>(d), a, b};
    emu::warp_meet("mma", whole_warp(), &me, [](void* const* lanes) {
        static Sum x[16][32], y[32][8];
        for (int l = 0; l < 32; ++l) {
            const Lane& lane = *static_cast<Lane*>(lanes[l]);
            for (int r = 0; r < 4; ++r)
                for (int e = 0; e < per; ++e) x[l / 4 + 8 * (r % 2)][per * (l % 4) + e + half * (r / 2)] = E::of(lane.a, r * per + e);
            for (int r = 0; r < 2; ++r)
                for (int e = 0; e < per; ++e) y[per * (l % 4) + e + half * r][l / 4] = E::of(lane.b, r * per + e);
        }
        for (int l = 0; l < 32; ++l)
            for (int i = 0; i < 4; ++i) {
                Sum sum = 0;
                for (int k = 0; k < depth; ++k) sum += x[l / 4 + 8 * (i / 2)][k] * y[k][2 * (l % 4) + i % 2];
                static_cast<Lane*>(lanes[l])->d[i] += sum;
            }
    }, site);
}
#endif

#if ACU_NATIVE
#define ACU_MMA(instruction, constraint)                                                                                                                                         \
    {                                                                                                                                                                            \
        asm volatile("mma.sync.aligned." instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                                   \
                     : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));               \
    }
#endif
ACU_MK void mma_f16(float* d, const unsigned* a, const unsigned* b)
#if ACU_NATIVE
ACU_MMA("m16n8k16.row.col.f32.f16.f16.f32", "+f")
#elif ACU_PLAIN
{
    plain_mma<f16>(d, a, b, EMU_SITE);
}
#else
;
#endif
ACU_MK void mma_bf16(float* d, const unsigned* a, const unsigned* b)
#if ACU_NATIVE
ACU_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", "+f")
#elif ACU_PLAIN
{
    plain_mma<bf16>(d, a, b, EMU_SITE);
}
#else
;
#endif
ACU_MK void mma_tf32(float* d, const unsigned* a, const unsigned* b)
#if ACU_NATIVE
ACU_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", "+f")
#elif ACU_PLAIN
{
    plain_mma<float>(d, a, b, EMU_SITE);
}
#else
;
#endif
ACU_MK void mma_s8(int* d, const unsigned* a, const unsigned* b)
#if ACU_NATIVE
ACU_MMA("m16n8k32.row.col.s32.s8.s8.s32", "+r")
#elif ACU_PLAIN
{
    plain_mma<i8>(d, a, b, EMU_SITE);
}
#else
;
#endif

/// The bits of a float rounded to 10 bits of mantissa, ties away from zero: cvt.rna.tf32.f32.
ACU_DEVICE unsigned rounded_tf32(unsigned bits) { return (bits & 0x7fffffffu) < 0x7f800000u ? (bits + 0x1000u) & 0xffffe000u : bits; }

/// By the type of the operands: elements of k, and the instruction.
template <class T>
struct MmaOf;
template <>
struct MmaOf<f16> {
    static constexpr int depth = 16;
    ACU_DEVICE static void run(float* d, const unsigned* a, const unsigned* b) { mma_f16(d, a, b); }
};
template <>
struct MmaOf<bf16> {
    static constexpr int depth = 16;
    ACU_DEVICE static void run(float* d, const unsigned* a, const unsigned* b) { mma_bf16(d, a, b); }
};
template <>
struct MmaOf<float> {
    static constexpr int depth = 8;
    ACU_DEVICE static void run(float* d, const unsigned* a, const unsigned* b) { mma_tf32(d, a, b); }
};
template <>
struct MmaOf<i8> {
    static constexpr int depth = 32;
    ACU_DEVICE static void run(int* d, const unsigned* a, const unsigned* b) { mma_s8(d, a, b); }
};

/// 16 rows (of a) or columns (of b) from `along` and one depth of k: four registers. Of a, registers 1 and 3 are of the upper 8 rows, 2 and 3 of the upper half of k; of b, 0 and 1 are the halves of k
/// of the lower 8 columns, 2 and 3 of the upper ones, where there are any.
template <class O, bool RowsFirst, bool Upper = true>
ACU_DEVICE void load_fragment(unsigned (&words)[4], const typename O::Element* tile, int along, int k) {
    typedef typename O::Element T;
    constexpr int depth = MmaOf<T>::depth, chunk = 16 / (int)sizeof(T);
    const int lane = lane_id(), matrix = lane / 8, upper = !Upper ? 0 : RowsFirst ? matrix % 2 : matrix / 2, half = RowsFirst ? matrix / 2 : matrix % 2;
    if constexpr (O::deep) load_matrices(words, tile + O::offset(along + 8 * upper + lane % 8, k + half * chunk));
    else if constexpr (sizeof(T) == 2) load_matrices_across(words, tile + O::offset(along + 8 * upper, k + 8 * half + lane % 8));
    else {  // no instruction turns elements of other sizes
        constexpr int per = 4 / (int)sizeof(T);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int up = !Upper ? 0 : RowsFirst ? r % 2 : r / 2, later = RowsFirst ? r / 2 : r % 2;
            T element[per];
#pragma unroll
            for (int e = 0; e < per; ++e) element[e] = tile[O::offset(along + 8 * up + lane / 4, k + per * (lane % 4) + e + later * (depth / 2))];
            memcpy(&words[r], element, 4);
        }
    }
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int r = 0; r < 4; ++r) words[r] = rounded_tf32(words[r]);
    }
}

/// d += a b: warp w of the group has 16 MI rows from 16 MI (w / Columns) on, and 8 NI columns from 8 NI (w % Columns) on. Registers of d: those of an m16n8 fragment, then the NI, then the MI.
template <class A, class B, int MI, int NI, int K, int Columns, class Sum>
ACU_DEVICE void mma_tile(Sum (&d)[MI * NI * 4], const typename A::Element* a, const typename B::Element* b, int thread) {
    typedef MmaOf<typename A::Element> Mma;
    static_assert(K % Mma::depth == 0, "k of a tile is a multiple of that of the instruction");
    const int warp = thread / 32, row = warp / Columns * (16 * MI), column = warp % Columns * (8 * NI);
#pragma unroll
    for (int k = 0; k < K; k += Mma::depth) {
        unsigned x[MI][4], y[(NI + 1) / 2][4];
#pragma unroll
        for (int i = 0; i < MI; ++i) load_fragment<A, true>(x[i], a, row + 16 * i, k);
#pragma unroll
        for (int j = 0; j < NI; j += 2) j + 1 < NI ? load_fragment<B, false>(y[j / 2], b, column + 8 * j, k) : load_fragment<B, false, false>(y[j / 2], b, column + 8 * j, k);
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < NI; ++j) Mma::run(&d[(i * NI + j) * 4], x[i], &y[j / 2][j % 2 * 2]);
    }
}
