#pragma once
#include <cstdint>

#include "ir/type.h"

namespace acu::ir {

/// Conversions between stored bits and the numbers they stand for, with round to nearest even. Layouts: IEEE 754 binary16;
/// bfloat16 (upper half of binary32); OCP 8-bit floating point specification 1.0 (e4m3: no infinity, 0x7f is NaN; e5m2: as IEEE).
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float x);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float x);
float f8_to_f32(uint8_t bits, DType type);
uint8_t f32_to_f8(float x, DType type);    ///< saturates to the largest finite value; NaN stays NaN

/// PTX ISA, `cvt.rna.tf32.f32`: nearest with ties away from zero, 10 mantissa bits.
float round_tf32(float x);

/// Reads or writes element `index` of an array of `type`. Floats pass through `double`, integers and booleans through `int64_t`.
/// A double is first rounded to f32 when the type is narrower than that, as a compiled kernel does.
double load_float(const void* base, int64_t index, DType type);
int64_t load_int(const void* base, int64_t index, DType type);
void store_float(void* base, int64_t index, DType type, double x);
void store_int(void* base, int64_t index, DType type, int64_t x);

/// A cast of a float to an integer type: toward zero, saturating, NaN gives 0. A cast of an integer: saturating.
int64_t saturate(double x, DType type);
int64_t saturate(int64_t x, DType type);

/// What the wrap-around at the width of `type` leaves of x.
int64_t wrap(int64_t x, DType type);

/// Integer division and remainder that round toward minus infinity; by zero gives 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

}  // namespace acu::ir
