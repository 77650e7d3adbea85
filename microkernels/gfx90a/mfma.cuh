// Products of tiles in shared memory by MFMA: 32x32x8 (f16, bf16, i8), 32x32x2 (f32), and 16x16 with twice the depth. gfx90a, waves of 64.
// AMD CDNA2 ISA, "Matrix Arithmetic Instructions"; AMD matrix instruction calculator. Factors of 16 bits that are subnormal count as zero.

#if ACU_NATIVE && defined(ACU_HIP)
typedef float MfmaFloat4 __attribute__((ext_vector_type(4)));
typedef float MfmaFloat16 __attribute__((ext_vector_type(16)));
typedef int MfmaInt4 __attribute__((ext_vector_type(4)));
typedef int MfmaInt16 __attribute__((ext_vector_type(16)));
typedef _Float16 MfmaHalf4 __attribute__((ext_vector_type(4)));
typedef short MfmaShort4 __attribute__((ext_vector_type(4)));
#endif

#if ACU_PLAIN
inline float mfma_value(f16 x) { return (x.bits & 0x7c00) ? widen(x) : 0.f; }
inline float mfma_value(bf16 x) { return (x.bits & 0x7f80) ? widen(x) : 0.f; }
inline float mfma_value(float x) { return x; }
inline int mfma_value(i8 x) { return x; }
/// Lane l has `per` elements of k, from per (l / size) on, of row (of a) or column (of b) l % size. Of d it has column l % size and, in each four registers, four rows.
template <class T, class Sum>
void plain_mfma(Sum* d, const T* a, const T* b, int size, int per, const void* site) {
    struct Lane {
        Sum* d;
        const T *a, *b;
        int size, per;
    } me{d, a, b, size, per};
    emu::warp_meet("mfma", whole_warp(), &me, [](void* const* lanes) {
        static Sum x[32][64], y[64][32];
        const int size = static_cast<Lane*>(lanes[0])->size, per = static_cast<Lane*>(lanes[0])->per, depth = per * (64 / size);
        for (int l = 0; l < 64; ++l)
            for (int e = 0; e < per; ++e) {
                x[l % size][per * (l / size) + e] = (Sum)mfma_value(static_cast<Lane*>(lanes[l])->a[e]);
                y[per * (l / size) + e][l % size] = (Sum)mfma_value(static_cast<Lane*>(lanes[l])->b[e]);
            }
        for (int l = 0; l < 64; ++l)
            for (int r = 0; r < size * size / 64; ++r) {
                const int row = r % 4 + 4 * (l / size) + r / 4 * (4 * (64 / size)), column = l % size;
                Sum sum = static_cast<Lane*>(lanes[l])->d[r];
                for (int k = 0; k < depth; ++k) sum += x[row][k] * y[k][column];
                static_cast<Lane*>(lanes[l])->d[r] = sum;
            }
    }, site);
}
#endif

#if ACU_NATIVE && defined(ACU_HIP)
// Element by element: what is copied as bytes, the compiler keeps in memory, too.
ACU_DEVICE MfmaHalf4 mfma_factor(const f16* a) {
    const MfmaShort4 bits = {(short)a[0].bits, (short)a[1].bits, (short)a[2].bits, (short)a[3].bits};
    return __builtin_bit_cast(MfmaHalf4, bits);
}
ACU_DEVICE MfmaShort4 mfma_factor(const bf16* a) { return MfmaShort4{(short)a[0].bits, (short)a[1].bits, (short)a[2].bits, (short)a[3].bits}; }
ACU_DEVICE float mfma_factor(const float* a) { return a[0]; }
ACU_DEVICE int mfma_factor(const i8* a) { return (a[0] & 255) | (a[1] & 255) << 8 | (a[2] & 255) << 16 | a[3] << 24; }
#define ACU_MFMA(Vector, builtin)                                                       \
    {                                                                                   \
        constexpr int n = sizeof(Vector) / 4;                                           \
        Vector sums;                                                                    \
        _Pragma("unroll") for (int i = 0; i < n; ++i) sums[i] = d[i];                   \
        sums = builtin(mfma_factor(a), mfma_factor(b), sums, 0, 0, 0);                  \
        _Pragma("unroll") for (int i = 0; i < n; ++i) d[i] = sums[i];                   \
    }
#elif ACU_PLAIN
#define ACU_MFMA(size, per)                        \
    {                                              \
        plain_mfma(d, a, b, size, per, EMU_SITE);  \
    }
#endif
#if ACU_NATIVE && defined(ACU_HIP)
#define ACU_MFMA_OF(Vector, builtin, size, per) ACU_MFMA(Vector, builtin)
#elif ACU_PLAIN
#define ACU_MFMA_OF(Vector, builtin, size, per) ACU_MFMA(size, per)
#else
#define ACU_MFMA_OF(Vector, builtin, size, per) ;
#endif
ACU_MK void mfma32(float* d, const f16* a, const f16* b) ACU_MFMA_OF(MfmaFloat16, __builtin_amdgcn_mfma_f32_32x32x8f16, 32, 4)
ACU_MK void mfma32(float* d, const bf16* a, const bf16* b) ACU_MFMA_OF(MfmaFloat16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k, 32, 4)
ACU_MK void mfma32(float* d, const float* a, const float* b) ACU_MFMA_OF(MfmaFloat16, __builtin_amdgcn_mfma_f32_32x32x2f32, 32, 1)
ACU_MK void mfma32(int* d, const i8* a, const i8* b) ACU_MFMA_OF(MfmaInt16, __builtin_amdgcn_mfma_i32_32x32x8i8, 32, 4)
ACU_MK void mfma16(float* d, const f16* a, const f16* b) ACU_MFMA_OF(MfmaFloat4, __builtin_amdgcn_mfma_f32_16x16x16f16, 16, 4)
ACU_MK void mfma16(float* d, const bf16* a, const bf16* b) ACU_MFMA_OF(MfmaFloat4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k, 16, 4)
ACU_MK void mfma16(float* d, const float* a, const float* b) ACU_MFMA_OF(MfmaFloat4, __builtin_amdgcn_mfma_f32_16x16x4f32, 16, 1)
ACU_MK void mfma16(int* d, const i8* a, const i8* b) ACU_MFMA_OF(MfmaInt4, __builtin_amdgcn_mfma_i32_16x16x16i8, 16, 4)
#undef ACU_MFMA
#undef ACU_MFMA_OF

/// Elements of k that a lane has of one instruction.
template <class T>
struct MfmaOf {
    static constexpr int per = sizeof(T) == 4 ? 1 : 4;
};

/// A lane's part of `Size` rows or columns from `along` on.
template <class O, int Size>
ACU_DEVICE void load_part(typename O::Element* part, const typename O::Element* tile, int along, int k) {
    typedef typename O::Element T;
    constexpr int per = MfmaOf<T>::per;
    const int lane = lane_id(), row = along + lane % Size, first = k + per * (lane / Size);
    if constexpr (O::deep && per > 1) {
        typename PackOf<per * (int)sizeof(T)>::Type pack;
        load_pack(pack, tile + O::offset(row, first));
        memcpy(part, &pack, sizeof(pack));
    } else {
#pragma unroll
        for (int e = 0; e < per; ++e) part[e] = tile[O::offset(row, first + e)];
    }
}

template <class A, class B, int Size, int MI, int NI, int K, int Columns, class Sum>
ACU_DEVICE void mfma_product(Sum* d, const typename A::Element* a, const typename B::Element* b, int thread) {
    typedef typename A::Element T;
    constexpr int per = MfmaOf<T>::per, depth = per * (64 / Size), registers = Size * Size / 64;
    static_assert(K % depth == 0, "k of a tile is a multiple of that of the instruction");
    const int wave = thread / 64, row = wave / Columns * (Size * MI), column = wave % Columns * (Size * NI);
#pragma unroll
    for (int k = 0; k < K; k += depth) {
        T x[MI][per], y[NI][per];
#pragma unroll
        for (int i = 0; i < MI; ++i) load_part<A, Size>(x[i], a, row + Size * i, k);
#pragma unroll
        for (int j = 0; j < NI; ++j) load_part<B, Size>(y[j], b, column + Size * j, k);
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < NI; ++j) {
                Sum* const sums = d + (i * NI + j) * registers;
                if constexpr (Size == 32) mfma32(sums, x[i], y[j]);
                else mfma16(sums, x[i], y[j]);
            }
    }
}

/// d += a b: wave w has 32 MI rows from 32 MI (w / Columns) on, and 32 NI columns from 32 NI (w % Columns) on. Registers of d: those of a 32x32 fragment, then the NI, then the MI.
template <class A, class B, int MI, int NI, int K, int Columns, class Sum>
ACU_DEVICE void mfma32_tile(Sum (&d)[MI * NI * 16], const typename A::Element* a, const typename B::Element* b, int thread) { mfma_product<A, B, 32, MI, NI, K, Columns>(d, a, b, thread); }
/// The same with 16 rows and columns.
template <class A, class B, int MI, int NI, int K, int Columns, class Sum>
ACU_DEVICE void mfma16_tile(Sum (&d)[MI * NI * 4], const typename A::Element* a, const typename B::Element* b, int thread) { mfma_product<A, B, 16, MI, NI, K, Columns>(d, a, b, thread); }
