// The CUDA and HIP words that emitted text may use, in terms of the services of shim.h, which includes this.
#ifndef ACU_EMULATION_WORDS
#define ACU_EMULATION_WORDS

#define threadIdx (emu::self->thread)
#define blockIdx (emu::self->block)
#define blockDim (emu::block_dim)
#define gridDim (emu::grid_dim)
#define warpSize ACU_WARP

#define __syncthreads() emu::block_barrier()  // a macro: the place of the call is the barrier's identity
EMU_INLINE void __syncwarp(uint64_t mask = ~0ull) { emu::warp_sync(mask); }
EMU_INLINE void __threadfence() { emu::thread_fence(); }
EMU_INLINE void __threadfence_block() {}
EMU_INLINE void __trap() { emu::trap("__trap"); }
template <class T> EMU_INLINE T __shfl_sync(uint64_t m, T v, int src, int width = ACU_WARP) { return emu::value<T>(emu::shuffle(emu::shfl_idx, m, emu::bits(v), src, width)); }
template <class T> EMU_INLINE T __shfl_xor_sync(uint64_t m, T v, int x, int width = ACU_WARP) { return emu::value<T>(emu::shuffle(emu::shfl_xor, m, emu::bits(v), x, width)); }
template <class T> EMU_INLINE T __shfl_down_sync(uint64_t m, T v, int d, int width = ACU_WARP) { return emu::value<T>(emu::shuffle(emu::shfl_down, m, emu::bits(v), d, width)); }
template <class T> EMU_INLINE T __shfl_up_sync(uint64_t m, T v, int d, int width = ACU_WARP) { return emu::value<T>(emu::shuffle(emu::shfl_up, m, emu::bits(v), d, width)); }
// HIP's words for all lanes of a wave
template <class T> EMU_INLINE T __shfl(T v, int src, int width = ACU_WARP) { return __shfl_sync(~0ull, v, src, width); }
template <class T> EMU_INLINE T __shfl_xor(T v, int x, int width = ACU_WARP) { return __shfl_xor_sync(~0ull, v, x, width); }
template <class T> EMU_INLINE T __shfl_down(T v, int d, int width = ACU_WARP) { return __shfl_down_sync(~0ull, v, d, width); }
template <class T> EMU_INLINE T __shfl_up(T v, int d, int width = ACU_WARP) { return __shfl_up_sync(~0ull, v, d, width); }
EMU_INLINE unsigned __ballot_sync(uint64_t m, int p) { return (unsigned)emu::ballot(m, p != 0); }
EMU_INLINE int __any_sync(uint64_t m, int p) { return emu::ballot(m, p != 0) != 0; }
EMU_INLINE int __all_sync(uint64_t m, int p) { return emu::ballot(m, p == 0) == 0; }
EMU_INLINE uint64_t __ballot(int p) { return emu::ballot(~0ull, p != 0); }
EMU_INLINE int __any(int p) { return emu::ballot(~0ull, p != 0) != 0; }
EMU_INLINE int __all(int p) { return emu::ballot(~0ull, p == 0) == 0; }

EMU_INLINE float atomicAdd(float* p, float v) { return emu::atomic_add(p, v); }
EMU_INLINE double atomicAdd(double* p, double v) { return emu::atomic_add(p, v); }
EMU_INLINE int atomicAdd(int* p, int v) { return (int)emu::atomic_add((unsigned*)p, (unsigned)v); }
EMU_INLINE unsigned atomicAdd(unsigned* p, unsigned v) { return emu::atomic_add(p, v); }
EMU_INLINE unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) { return emu::atomic_add(p, v); }
template <class T> EMU_INLINE T atomicMax(T* p, T v) { return emu::atomic_max(p, v); }
template <class T> EMU_INLINE T atomicMin(T* p, T v) { return emu::atomic_min(p, v); }
template <class T> EMU_INLINE T atomicExch(T* p, T v) { return emu::atomic_exchange(p, v); }
template <class T> EMU_INLINE T atomicCAS(T* p, T expected, T v) { return emu::value<T>(emu::compare_and_swap(p, sizeof(T), emu::bits(expected), emu::bits(v))); }

EMU_INLINE unsigned __float_as_uint(float f) { return (unsigned)emu::bits(f); }
EMU_INLINE float __uint_as_float(unsigned u) { return emu::value<float>(u); }
EMU_INLINE int __float_as_int(float f) { return (int)emu::bits(f); }
EMU_INLINE float __int_as_float(int i) { return emu::value<float>((uint32_t)i); }
EMU_INLINE float __fmul_rn(float a, float b) { return a * b; }
EMU_INLINE float __fadd_rn(float a, float b) { return a + b; }
EMU_INLINE double __dmul_rn(double a, double b) { return a * b; }
EMU_INLINE double __dadd_rn(double a, double b) { return a + b; }
EMU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
EMU_INLINE float __fdividef(float a, float b) { return a / b; }
EMU_INLINE float __frcp_rn(float a) { return 1.f / a; }
EMU_INLINE float __fsqrt_rn(float a) { return sqrtf(a); }
EMU_INLINE float rsqrtf(float a) { return 1.f / sqrtf(a); }
EMU_INLINE double rsqrt(double a) { return 1. / sqrt(a); }
EMU_INLINE float __expf(float a) { return expf(a); }
EMU_INLINE float __logf(float a) { return logf(a); }
EMU_INLINE float __log2f(float a) { return log2f(a); }
EMU_INLINE int __popc(unsigned a) { return __builtin_popcount(a); }
EMU_INLINE int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
EMU_INLINE int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
EMU_INLINE int __ffs(int a) { return __builtin_ffs(a); }
template <class T> EMU_INLINE T __ldg(const T* p) { return *p; }
EMU_INLINE size_t __cvta_generic_to_shared(const void* p) { return emu::to_shared(p); }
EMU_INLINE int min(int a, int b) { return a < b ? a : b; }
EMU_INLINE int max(int a, int b) { return a > b ? a : b; }
EMU_INLINE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
EMU_INLINE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
EMU_INLINE long long min(long long a, long long b) { return a < b ? a : b; }
EMU_INLINE long long max(long long a, long long b) { return a > b ? a : b; }
#endif
