#include "ir/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace acu::ir {

float f16_to_f32(uint16_t bits) {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -tiny : tiny;
}

/// Rounds a float to `mantissa` bits and a smallest normal exponent, as bits of the narrow format without saturation.
static uint32_t narrow(float x, int mantissa, int bias, uint32_t& sign) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    sign = bits >> 31;
    const int exponent = static_cast<int>((bits >> 23) & 255) - 127;
    uint32_t significand = (bits & 0x7fffffu) | (exponent == -127 ? 0u : 0x800000u);
    int shift = 23 - mantissa;
    if (exponent < 1 - bias) shift += 1 - bias - exponent;
    if (shift > 31) return 0;
    const uint32_t half = 1u << (shift - 1), rest = significand & ((1u << shift) - 1);
    significand >>= shift;
    if (rest > half || (rest == half && (significand & 1))) ++significand;
    if (exponent < 1 - bias) return significand;
    return significand + (static_cast<uint32_t>(exponent + bias - 1) << mantissa);
}

uint16_t f32_to_f16(float x) {
    uint32_t sign = 0;
    if (std::isnan(x)) return static_cast<uint16_t>((std::bit_cast<uint32_t>(x) >> 31 << 15) | 0x7e00);
    const uint32_t bits = std::isinf(x) ? 0x7c00 : std::min(narrow(x, 10, 15, sign), 0x7c00u);
    return static_cast<uint16_t>(bits | (std::bit_cast<uint32_t>(x) >> 31 << 15));
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float x) {
    uint32_t bits = std::bit_cast<uint32_t>(x);
    if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x40);
    bits += 0x7fff + ((bits >> 16) & 1);
    return static_cast<uint16_t>(bits >> 16);
}

float f8_to_f32(uint8_t bits, DType type) {
    if (type == DType::F8E5M2) return f16_to_f32(static_cast<uint16_t>(bits << 8));
    const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
    float x = exponent ? std::ldexp(static_cast<float>(8 + mantissa), exponent - 10) : std::ldexp(static_cast<float>(mantissa), -9);
    if (exponent == 15 && mantissa == 7) x = std::numeric_limits<float>::quiet_NaN();
    return bits & 0x80 ? -x : x;
}

uint8_t f32_to_f8(float x, DType type) {
    const bool e4m3 = type == DType::F8E4M3;
    const uint32_t top = std::bit_cast<uint32_t>(x) >> 31 << 7;
    if (std::isnan(x)) return static_cast<uint8_t>(top | 0x7f);
    const uint32_t largest = e4m3 ? 0x7e : 0x7b;
    uint32_t sign = 0;
    const uint32_t bits = std::isinf(x) ? largest : std::min(e4m3 ? narrow(x, 3, 7, sign) : narrow(x, 2, 15, sign), largest);
    return static_cast<uint8_t>(bits | top);
}

float round_tf32(float x) {
    if (!std::isfinite(x)) return x;
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu);
}

template <class T>
static T at(const void* base, int64_t index) { return static_cast<const T*>(base)[index]; }
template <class T, class V>
static void put(void* base, int64_t index, V v) { static_cast<T*>(base)[index] = static_cast<T>(v); }

double load_float(const void* base, int64_t index, DType type) {
    switch (type) {
        case DType::F8E4M3:
        case DType::F8E5M2: return f8_to_f32(at<uint8_t>(base, index), type);
        case DType::F16: return f16_to_f32(at<uint16_t>(base, index));
        case DType::BF16: return bf16_to_f32(at<uint16_t>(base, index));
        case DType::Tf32:
        case DType::F32: return at<float>(base, index);
        case DType::F64: return at<double>(base, index);
        default: return static_cast<double>(load_int(base, index, type));
    }
}

int64_t load_int(const void* base, int64_t index, DType type) {
    switch (type) {
        case DType::Bool: return at<uint8_t>(base, index) != 0;
        case DType::U8: return at<uint8_t>(base, index);
        case DType::I8: return at<int8_t>(base, index);
        case DType::I16: return at<int16_t>(base, index);
        case DType::I32: return at<int32_t>(base, index);
        default: return at<int64_t>(base, index);
    }
}

void store_float(void* base, int64_t index, DType type, double x) {
    const float narrow = static_cast<float>(x);
    switch (type) {
        case DType::F8E4M3:
        case DType::F8E5M2: return put<uint8_t>(base, index, f32_to_f8(narrow, type));
        case DType::F16: return put<uint16_t>(base, index, f32_to_f16(narrow));
        case DType::BF16: return put<uint16_t>(base, index, f32_to_bf16(narrow));
        case DType::F64: return put<double>(base, index, x);
        default: return put<float>(base, index, narrow);
    }
}

void store_int(void* base, int64_t index, DType type, int64_t x) {
    switch (info(type).bytes) {
        case 1: return put<uint8_t>(base, index, type == DType::Bool ? x != 0 : x);
        case 2: return put<int16_t>(base, index, x);
        case 4: return put<int32_t>(base, index, x);
        default: return put<int64_t>(base, index, x);
    }
}

struct Limits {
    int64_t low, high;
};
static Limits limits(DType type) {
    switch (type) {
        case DType::Bool: return {0, 1};
        case DType::I8: return {-128, 127};
        case DType::U8: return {0, 255};
        case DType::I16: return {-32768, 32767};
        case DType::I32: return {INT32_MIN, INT32_MAX};
        default: return {INT64_MIN, INT64_MAX};
    }
}

int64_t saturate(double x, DType type) {
    const auto [low, high] = limits(type);
    if (std::isnan(x)) return 0;
    if (x <= static_cast<double>(low)) return low;
    if (x >= static_cast<double>(high)) return high;
    return static_cast<int64_t>(x);
}

int64_t saturate(int64_t x, DType type) {
    const auto [low, high] = limits(type);
    return std::clamp(x, low, high);
}

int64_t wrap(int64_t x, DType type) {
    switch (type) {
        case DType::Bool: return x != 0;
        case DType::I8: return static_cast<int8_t>(x);
        case DType::U8: return static_cast<uint8_t>(x);
        case DType::I16: return static_cast<int16_t>(x);
        case DType::I32: return static_cast<int32_t>(x);
        default: return x;
    }
}

int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    const int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t floor_mod(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace acu::ir
