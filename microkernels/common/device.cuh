// Element types, conversions and helpers of emitted kernels, for CUDA (nvcc, NVRTC) and HIP (hipcc, hipRTC). Nothing is included from outside in device code.
// Formats: IEEE 754 binary16; bfloat16; OCP 8-bit floating point specification 1.0. PTX ISA, "cvt".
// Three readers: a CUDA or a HIP compiler (ACU_NATIVE 1), and a host compiler for emulation, which has read runtime/emulation/shim.h before (ACU_EMU).
#ifndef ACU_DEVICE_CUH
#define ACU_DEVICE_CUH
#if defined(ACU_EMU)
#define ACU_NATIVE 0
#elif defined(__HIP__) || defined(__HIPCC__)
#ifndef __HIPCC_RTC__
#include <hip/hip_runtime.h>
#endif
#define ACU_NATIVE 1
#define ACU_HIP 1
#pragma clang fp contract(off)
#pragma clang diagnostic ignored "-Wpass-failed"    // an unroll that the compiler judges unwise is no fault
#else
#define ACU_NATIVE 1
#endif

// ACU_WARP lanes run in step. ACU_FN is a device function with one body; ACU_MK one with a native body, a plain body for emulation (under ACU_PLAIN,
// compiled once into acuc) and otherwise only its declaration. Shared memory is one dynamic allocation; named buffers lie at the emitter's offsets in it.
#if ACU_NATIVE
#ifdef ACU_HIP
#define ACU_WARP 64
#else
#define ACU_WARP 32
#endif
#define ACU_FN __device__ __forceinline__
#define ACU_MK __device__ __forceinline__
extern __shared__ __align__(1024) unsigned char acu_smem[];
#define ACU_SHARED(T, name, offset, count) T* const name = reinterpret_cast<T*>(acu_smem + (offset))
#else
#define ACU_FN inline __attribute__((always_inline))
#define ACU_MK EMU_MEETING __attribute__((noinline))
#define ACU_SHARED(T, name, offset, count) T* const name = static_cast<T*>(emu::shared_buffer(#name, offset, sizeof(T) * (unsigned long long)(count)))
#endif

typedef long long i64;
typedef unsigned char u8;
typedef signed char i8;
typedef short i16;
struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
struct f8e4m3 { u8 bits; };
struct f8e5m2 { u8 bits; };

#define ACU_DEVICE __device__ __forceinline__
#define ACU_BOTH __host__ __device__ __forceinline__

ACU_DEVICE unsigned bits_of(float x) { return __float_as_uint(x); }
ACU_DEVICE float float_of(unsigned bits) { return __uint_as_float(bits); }
ACU_DEVICE float infinity() { return float_of(0x7f800000u); }
ACU_DEVICE float not_a_number() { return float_of(0x7fc00000u); }

/// A product that is not merged with a sum that follows: both round.
ACU_DEVICE float product(float a, float b) {
#ifdef ACU_HIP
    return a * b;
#else
    return __fmul_rn(a, b);
#endif
}
ACU_DEVICE double product(double a, double b) {
#ifdef ACU_HIP
    return a * b;
#else
    return __dmul_rn(a, b);
#endif
}

// ---- loads: stored bits to the type of the arithmetic

ACU_DEVICE float widen(f16 x) {
#if defined(ACU_EMU)
    return emu::half_to_float(x.bits);
#elif defined(ACU_HIP)
    union { unsigned short bits; _Float16 value; } u;
    u.bits = x.bits;
    return (float)u.value;
#else
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
#endif
}
ACU_DEVICE float widen(bf16 x) { return float_of((unsigned)x.bits << 16); }
ACU_DEVICE float widen(f8e5m2 x) {
    f16 h;
    h.bits = (unsigned short)(x.bits << 8);
    return widen(h);
}
ACU_DEVICE float widen(f8e4m3 x) {
    const unsigned sign = (unsigned)(x.bits & 0x80) << 24, exponent = (x.bits >> 3) & 15, mantissa = x.bits & 7;
    if ((x.bits & 0x7f) == 0x7f) return not_a_number();
    if (exponent == 0) return float_of(sign | bits_of((float)mantissa * 0.001953125f));
    return float_of(sign | ((exponent + 120) << 23) | (mantissa << 20));
}
ACU_DEVICE float widen(float x) { return x; }
ACU_DEVICE double widen(double x) { return x; }
ACU_DEVICE int widen(i8 x) { return x; }
ACU_DEVICE int widen(u8 x) { return x; }
ACU_DEVICE int widen(i16 x) { return x; }
ACU_DEVICE int widen(int x) { return x; }
ACU_DEVICE i64 widen(i64 x) { return x; }
ACU_DEVICE bool widen(bool x) { return x; }

// ---- stores and casts: round to nearest even; 8-bit floats saturate

ACU_DEVICE f16 to_f16(float x) {
    f16 r;
#if defined(ACU_EMU)
    r.bits = emu::float_to_half(x);
#elif defined(ACU_HIP)
    union { unsigned short bits; _Float16 value; } u;
    u.value = (_Float16)x;
    r.bits = u.bits;
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#endif
    return r;
}
ACU_DEVICE bf16 to_bf16(float x) {
    bf16 r;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
#endif
    const unsigned bits = bits_of(x);
    r.bits = x != x ? (unsigned short)((bits >> 16) | 0x40) : (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    return r;
}
/// Rounds the magnitude of x to `mantissa` bits over exponents with the given bias; the largest finite pattern is `largest`.
ACU_DEVICE u8 narrow_f8(float x, int mantissa, int bias, unsigned largest) {
    const unsigned bits = bits_of(x), sign = bits >> 31 << 7;
    if (x != x) return (u8)(sign | 0x7f);
    const int exponent = (int)((bits >> 23) & 255) - 127;
    unsigned significand = (bits & 0x7fffffu) | (exponent == -127 ? 0u : 0x800000u);
    int shift = 23 - mantissa;
    const bool small = exponent < 1 - bias;
    if (small) shift += 1 - bias - exponent;
    if (shift > 31) return (u8)sign;
    const unsigned half = 1u << (shift - 1), rest = significand & ((1u << shift) - 1);
    significand >>= shift;
    if (rest > half || (rest == half && (significand & 1))) ++significand;
    const unsigned magnitude = small ? significand : significand + ((unsigned)(exponent + bias - 1) << mantissa);
    return (u8)(sign | (magnitude < largest ? magnitude : largest));
}
ACU_DEVICE f8e4m3 to_f8e4m3(float x) {
    f8e4m3 r;
    r.bits = narrow_f8(x, 3, 7, 0x7e);
    return r;
}
ACU_DEVICE f8e5m2 to_f8e5m2(float x) {
    f8e5m2 r;
    r.bits = narrow_f8(x, 2, 15, 0x7b);
    return r;
}
/// PTX ISA, cvt.rna.tf32.f32: nearest, ties away from zero.
ACU_DEVICE float to_tf32(float x) {
    const unsigned bits = bits_of(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x : float_of((bits + 0x1000u) & ~0x1fffu);
}
/// Toward zero, saturating; NaN gives 0.
template <class T>
ACU_DEVICE T saturate(double x, double low, double high, T least, T most) {
    if (x != x) return T(0);
    return x <= low ? least : x >= high ? most : (T)x;
}
ACU_DEVICE int to_i8(double x) { return saturate<int>(x, -128.0, 127.0, -128, 127); }
ACU_DEVICE int to_u8(double x) { return saturate<int>(x, 0.0, 255.0, 0, 255); }
ACU_DEVICE int to_i16(double x) { return saturate<int>(x, -32768.0, 32767.0, -32768, 32767); }
ACU_DEVICE int to_i32(double x) { return saturate<int>(x, -2147483648.0, 2147483647.0, -2147483647 - 1, 2147483647); }
ACU_DEVICE i64 to_i64(double x) {
    return saturate<i64>(x, -9223372036854775808.0, 9223372036854775808.0, -9223372036854775807LL - 1, 9223372036854775807LL);
}
ACU_DEVICE int clamp_i8(i64 x) { return (int)(x < -128 ? -128 : x > 127 ? 127 : x); }
ACU_DEVICE int clamp_u8(i64 x) { return (int)(x < 0 ? 0 : x > 255 ? 255 : x); }
ACU_DEVICE int clamp_i32(i64 x) { return (int)(x < -2147483647LL - 1 ? -2147483647LL - 1 : x > 2147483647LL ? 2147483647LL : x); }
ACU_DEVICE int clamp_i16(i64 x) { return (int)(x < -32768 ? -32768 : x > 32767 ? 32767 : x); }

// ---- arithmetic

/// Rounds toward minus infinity; by zero gives 0.
template <class T>
ACU_BOTH T floor_div(T a, T b) {
    if (b == 0) return 0;
    if (b == (T)-1) return (T)(0 - (unsigned long long)a);    // the least number wraps
    const T q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class T>
ACU_BOTH T floor_mod(T a, T b) {
    if (b == 0 || b == (T)-1) return 0;
    const T r = a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
/// NaN propagates.
template <class T>
ACU_BOTH T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T>
ACU_BOTH T smaller(T a, T b) { return a < b || a != a ? a : b; }
#if ACU_NATIVE && !defined(ACU_HIP)
/// sm_80: one instruction (PTX ISA, "max", .NaN); of zeros of both signs the positive (negative) one.
template <>
ACU_BOTH float larger<float>(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float x;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
#else
    return a > b || a != a ? a : b;
#endif
}
template <>
ACU_BOTH float smaller<float>(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float x;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
#else
    return a < b || a != a ? a : b;
#endif
}
#endif
template <class T>
ACU_DEVICE T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
template <class T>
ACU_DEVICE T magnitude(T x) { return x < T(0) ? -x : x; }
ACU_DEVICE float magnitude(float x) { return fabsf(x); }
ACU_DEVICE double magnitude(double x) { return fabs(x); }

// ---- approximations of f32 (ir/function.cpp): one instruction each; subnormal numbers become zero

/// PTX ISA, "ex2", "lg2", "sqrt", "rsqrt", "rcp", "tanh" with .approx.ftz; CDNA2 ISA, v_exp_f32, v_log_f32, v_sqrt_f32, v_rsq_f32, v_rcp_f32.
#if defined(ACU_EMU)
ACU_DEVICE float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x; }
#define ACU_APPROXIMATION(name, plain, hip, ptx) \
    ACU_DEVICE float name(float x) { return flushed((float)(plain((double)flushed(x)))); }
#else
#ifdef ACU_HIP
#define ACU_ONE_INSTRUCTION(hip, ptx) asm(hip " %0, %1" : "=v"(r) : "v"(x))
#else
#define ACU_ONE_INSTRUCTION(hip, ptx) asm(ptx " %0, %1;" : "=f"(r) : "f"(x))
#endif
#define ACU_APPROXIMATION(name, plain, hip, ptx) \
    ACU_DEVICE float name(float x) {             \
        float r;                                 \
        ACU_ONE_INSTRUCTION(hip, ptx);           \
        return r;                                \
    }
#endif
ACU_APPROXIMATION(fast_exp2, exp2, "v_exp_f32", "ex2.approx.ftz.f32")
ACU_APPROXIMATION(fast_log2, log2, "v_log_f32", "lg2.approx.ftz.f32")
ACU_APPROXIMATION(fast_sqrt, sqrt, "v_sqrt_f32", "sqrt.approx.ftz.f32")
ACU_APPROXIMATION(fast_rsqrt, 1.0 / sqrt, "v_rsq_f32", "rsqrt.approx.ftz.f32")
ACU_APPROXIMATION(fast_reciprocal, 1.0 /, "v_rcp_f32", "rcp.approx.ftz.f32")
ACU_DEVICE double reciprocal(double x) { return 1.0 / x; }
#if !defined(ACU_EMU) && !defined(ACU_HIP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
ACU_APPROXIMATION(fast_tanh, tanh, "", "tanh.approx.f32")
#else
ACU_DEVICE float fast_tanh(float x) { return (float)tanh((double)x); }
#endif
ACU_DEVICE float fast_exp(float x) { return fast_exp2(product(x, 1.44269504f)); }
ACU_DEVICE float fast_log(float x) { return product(fast_log2(x), 0.693147181f); }
/// sign(x)*(1 - 2^p(|x|)), where p is fitted on 0 .. 3.9.
ACU_DEVICE float fast_erf(float x) {
    const float t = fabsf(x) < 3.9f ? fabsf(x) : 3.9f;
    float p = fmaf(-0.002935107054f, t, 0.02954880162f);
    p = fmaf(p, t, -0.1485999503f);
    p = fmaf(p, t, -0.9185533688f);
    p = fmaf(p, t, -1.627877394f);
    p = fmaf(p, t, -8.362995647e-07f);
    return x != x ? x : copysignf(1.0f - fast_exp2(p), x);
}

/// Is (a, ia) kept instead of (b, ib)? Ties go to the lower position, NaN wins, position -1 is an empty place.
template <bool Smallest, class T>
ACU_DEVICE bool better(T a, i64 ia, T b, i64 ib) {
    const bool na = a != a, nb = b != b, wins = Smallest ? a < b : a > b, level = (na & nb) | (a == b);
    return (ib < 0) | (na & !nb) | wins | (level & (ia < ib));    // no branch, so that loads go on past it
}
template <bool Smallest, class T>
ACU_DEVICE void keep_best(T& value, i64& position, T candidate, i64 at) {
    if (better<Smallest>(candidate, at, value, position)) value = candidate, position = at;
}
/// Keeps the K best, best first.
template <int K, class T>
ACU_DEVICE void keep_top(T* values, i64* positions, T candidate, i64 at) {
    if (!better<false>(candidate, at, values[K - 1], positions[K - 1])) return;
#pragma unroll
    for (int j = 0; j < K; ++j) {    // by constant indices, so that they stay in registers: what a place loses is the next one's candidate
        const bool in = better<false>(candidate, at, values[j], positions[j]);
        const T value = values[j];
        const i64 position = positions[j];
        values[j] = in ? candidate : value, positions[j] = in ? at : position;
        candidate = in ? value : candidate, at = in ? position : at;
    }
}

/// The e with offsets[e] <= t < offsets[e + 1], among `count` offsets; the last segment for what lies behind.
template <class T>
ACU_DEVICE i64 find_segment(const T* offsets, i64 count, i64 t) {
    i64 low = 0, high = count - 2;
    while (low < high) {
        const i64 middle = low + (high - low + 1) / 2;
        if ((i64)offsets[middle] <= t) low = middle;
        else high = middle - 1;
    }
    return low;
}

ACU_DEVICE void atomic_add(float* at, float x) { atomicAdd(at, x); }
ACU_DEVICE void atomic_add(double* at, double x) { atomicAdd(at, x); }
ACU_DEVICE void atomic_add(int* at, int x) { atomicAdd(at, x); }
ACU_DEVICE void atomic_add(i64* at, i64 x) { atomicAdd((unsigned long long*)at, (unsigned long long)x); }
#endif
