#pragma once
#include <array>

#include "ir/value.h"

namespace acu::ir {

/// What a function of the table means, in f32 and in f64 (both with the C library's functions). `round` is half to even; `max`, `min` propagate NaN.
struct FunctionBody {
    std::string_view name;
    float (*f32)(float, float, float);
    double (*f64)(double, double, double);
};
const FunctionBody& body_of(std::string_view name);

/// Integer versions of abs, sign, max and min.
int64_t integer_function(std::string_view name, int64_t a, int64_t b);

/// Is (a, ia) to be kept instead of (b, ib)? NaN is largest for ArgMax and TopK, smallest for ArgMin; ties go to the lower position; position -1 is an empty place.
bool better(Monoid m, double a, int64_t ia, double b, int64_t ib);

}  // namespace acu::ir
