// What emitted text needs to be compiled by a host compiler: keywords, vector types, and the services of emulation, which are functions of acuc itself
// (services_*.cpp). Embedded into acuc, as is words.h, and included before the text when it is compiled for emulation (-DACU_EMU, -DACU_WARP=32 or 64).
#ifndef ACU_EMULATION_SHIM
#define ACU_EMULATION_SHIM
#ifndef ACU_WARP
#define ACU_WARP 32
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// Memory of a block has a name, a place and a size: that is how accesses to it are checked.
#define __shared__ emulated_text_names_shared_memory_with_ACU_SHARED
#define EMU_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define EMU_MEETING __attribute__((convergent, nomerge))  // calls in two branches stay two
#else
#define EMU_MEETING
#endif

struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct uint2 { uint32_t x, y; } __align__(8);
struct uint4 { uint32_t x, y, z, w; } __align__(16);
struct int2 { int x, y; } __align__(8);
struct int4 { int x, y, z, w; } __align__(16);
struct float2 { float x, y; } __align__(8);
struct float4 { float x, y, z, w; } __align__(16);
struct double2 { double x, y; } __align__(16);
EMU_INLINE float2 make_float2(float x, float y) { return float2{x, y}; }
EMU_INLINE float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
EMU_INLINE uint2 make_uint2(uint32_t x, uint32_t y) { return uint2{x, y}; }
EMU_INLINE uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return uint4{x, y, z, w}; }

namespace emu {

struct View { dim3 thread, block; };  // what a thread sees of itself
extern View* self;
extern dim3 block_dim, grid_dim;

// ---- services; each call is a place where a thread may stop and another run
unsigned char* dynamic_shared();
void* shared_buffer(const char* name, uint32_t offset, uint64_t bytes);
uint32_t to_shared(const void* p);  // generic pointer to address in the block's (top byte 0) or the cluster's (rank + 1) shared window
void* from_shared(uint32_t address);
EMU_MEETING void block_barrier();
EMU_MEETING void warp_sync(uint64_t mask);
enum Shuffle { shfl_idx, shfl_up, shfl_down, shfl_xor };
EMU_MEETING uint64_t shuffle(Shuffle kind, uint64_t mask, uint64_t bits, int parameter, int width);
EMU_MEETING uint64_t ballot(uint64_t mask, bool predicate);
uint64_t atomic(void* p, uint32_t size, uint64_t (*f)(uint64_t old, uint64_t arg), uint64_t arg);
uint64_t compare_and_swap(void* p, uint32_t size, uint64_t expected, uint64_t desired);
void thread_fence();
void access(const void* p, uint32_t size, bool write, const void* site);  // natural alignment required
[[noreturn]] void trap(const char* what);

// The builtins and not <immintrin.h>: that header alone costs more than a kernel.
typedef short v8hi __attribute__((vector_size(16)));
typedef float v4sf __attribute__((vector_size(16)));
EMU_INLINE float half_to_float(uint16_t h) {
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps(v8hi{(short)h})[0];
#else
    const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023u;
    if (exponent == 0) return (float)mantissa * (sign ? -5.9604644775390625e-8f : 5.9604644775390625e-8f);
    const uint32_t bits = exponent == 31 ? sign | 0x7f800000u | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
    float f;
    memcpy(&f, &bits, 4);
    return f;
#endif
}
EMU_INLINE uint16_t float_to_half(float f) {
#if defined(__F16C__)
    return (uint16_t)__builtin_ia32_vcvtps2ph(v4sf{f}, 0)[0];
#else
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return sign | 0x7e00u;
    if (bits >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
    if (bits < 0x38800000u) {
        float magnitude;
        memcpy(&magnitude, &bits, 4);
        return (uint16_t)(sign | (uint16_t)nearbyintf(magnitude * 16777216.f));  // subnormal: a multiple of 2^-24
    }
    return (uint16_t)(sign | (uint16_t)((bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13));
#endif
}
template <class T>
EMU_INLINE uint64_t bits(T v) {
    static_assert(sizeof(T) <= 8, "a shuffle or an atomic moves at most 8 bytes");
    uint64_t b = 0;
    memcpy(&b, &v, sizeof v);
    return b;
}
template <class T>
EMU_INLINE T value(uint64_t b) {
    T v;
    memcpy(&v, &b, sizeof v);
    return v;
}
template <class T>
EMU_INLINE T atomic_add(T* p, T v) {
    return value<T>(atomic(p, sizeof(T), [](uint64_t o, uint64_t a) { return bits((T)(value<T>(o) + value<T>(a))); }, bits(v)));
}
template <class T>
EMU_INLINE T atomic_max(T* p, T v) {
    return value<T>(atomic(p, sizeof(T), [](uint64_t o, uint64_t a) { return value<T>(o) < value<T>(a) ? a : o; }, bits(v)));
}
template <class T>
EMU_INLINE T atomic_min(T* p, T v) {
    return value<T>(atomic(p, sizeof(T), [](uint64_t o, uint64_t a) { return value<T>(a) < value<T>(o) ? a : o; }, bits(v)));
}
template <class T>
EMU_INLINE T atomic_exchange(T* p, T v) { return value<T>(atomic(p, sizeof(T), [](uint64_t, uint64_t a) { return a; }, bits(v))); }
}  // namespace emu

namespace acu {
/// Stands where CUtensorMap stands: same size and alignment. Dimension 0 is contiguous; filled by acu::runtime::emulation::encode_tensor_map.
struct __align__(64) TensorMap {
    const void* base;
    uint64_t dims[5];
    uint64_t strides[4];  // in bytes, of dimensions 1 to 4
    uint32_t box[5];
    uint16_t element, rank;  // bytes of an element
    uint32_t swizzle;        // 0, 32, 64 or 128 bytes
    uint32_t padding[3];
};
static_assert(sizeof(TensorMap) == 128, "as large as CUtensorMap");
}  // namespace acu
#include "words.h"
#endif
