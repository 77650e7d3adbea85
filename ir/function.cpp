#include "ir/function.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace acu::ir {

template <class T>
struct Math {
    static T exp(T a, T, T) { return std::exp(a); }
    static T exp2(T a, T, T) { return std::exp2(a); }
    static T expm1(T a, T, T) { return std::expm1(a); }
    static T log(T a, T, T) { return std::log(a); }
    static T log2(T a, T, T) { return std::log2(a); }
    static T log1p(T a, T, T) { return std::log1p(a); }
    static T sqrt(T a, T, T) { return std::sqrt(a); }
    static T rsqrt(T a, T, T) { return T(1) / std::sqrt(a); }
    static T sin(T a, T, T) { return std::sin(a); }
    static T cos(T a, T, T) { return std::cos(a); }
    static T tan(T a, T, T) { return std::tan(a); }
    static T tanh(T a, T, T) { return std::tanh(a); }
    static T erf(T a, T, T) { return std::erf(a); }
    static T floor(T a, T, T) { return std::floor(a); }
    static T ceil(T a, T, T) { return std::ceil(a); }
    static T round(T a, T, T) { return std::nearbyint(a); }
    static T trunc(T a, T, T) { return std::trunc(a); }
    static T pow(T a, T b, T) { return std::pow(a, b); }
    static T fma(T a, T b, T c) { return std::fma(a, b, c); }
    static T abs(T a, T, T) { return std::fabs(a); }
    static T sign(T a, T, T) { return a > 0 ? T(1) : a < 0 ? T(-1) : a; }
    static T max(T a, T b, T) { return a > b || a != a ? a : b; }
    static T min(T a, T b, T) { return a < b || a != a ? a : b; }
    static T isnan(T a, T, T) { return T(std::isnan(a)); }
    static T isinf(T a, T, T) { return T(std::isinf(a)); }
};

/// Approximations of f32: what the instruction would give without its error, which the table of ir/pass/approximate.cpp bounds. Subnormal numbers become zero.
/// In f64 they are the function itself.
struct Approximate {
    static float flush(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
    static float narrow(double x) { return flush(static_cast<float>(x)); }
    static float exp2(float a, float, float) { return narrow(std::exp2(static_cast<double>(flush(a)))); }
    static float exp(float a, float, float) { return exp2(a * 1.44269504f, 0, 0); }
    static float log2(float a, float, float) { return narrow(std::log2(static_cast<double>(flush(a)))); }
    static float log(float a, float, float) { return flush(log2(a, 0, 0) * 0.693147181f); }
    static float sqrt(float a, float, float) { return narrow(std::sqrt(static_cast<double>(flush(a)))); }
    static float rsqrt(float a, float, float) { return narrow(1 / std::sqrt(static_cast<double>(flush(a)))); }
    static float reciprocal(float a, float, float) { return narrow(1 / static_cast<double>(flush(a))); }
    static double reciprocal(double a, double, double) { return 1 / a; }
    static float tanh(float a, float, float) { return static_cast<float>(std::tanh(static_cast<double>(a))); }
    /// sign(a)*(1 - 2^p(|a|)), where p is fitted on 0 .. 3.9.
    static float erf(float a, float, float) {
        if (a != a) return a;
        const float t = std::fmin(std::fabs(a), 3.9f);
        float p = -0.002935107054f;
        for (const float c : {0.02954880162f, -0.1485999503f, -0.9185533688f, -1.627877394f, -8.362995647e-07f}) p = std::fma(p, t, c);
        return std::copysign(1.0f - exp2(p, 0, 0), a);
    }
};

const FunctionBody& body_of(std::string_view name) {
    using F = Math<float>;
    using D = Math<double>;
    using A = Approximate;
    static const std::vector<FunctionBody> table{
        {"exp", F::exp, D::exp},       {"exp2", F::exp2, D::exp2},    {"expm1", F::expm1, D::expm1}, {"log", F::log, D::log},
        {"log2", F::log2, D::log2},    {"log1p", F::log1p, D::log1p}, {"sqrt", F::sqrt, D::sqrt},    {"rsqrt", F::rsqrt, D::rsqrt},
        {"sin", F::sin, D::sin},       {"cos", F::cos, D::cos},       {"tan", F::tan, D::tan},       {"tanh", F::tanh, D::tanh},
        {"erf", F::erf, D::erf},       {"floor", F::floor, D::floor}, {"ceil", F::ceil, D::ceil},    {"round", F::round, D::round},
        {"trunc", F::trunc, D::trunc}, {"pow", F::pow, D::pow},       {"fma", F::fma, D::fma},       {"abs", F::abs, D::abs},
        {"sign", F::sign, D::sign},    {"max", F::max, D::max},       {"min", F::min, D::min},       {"isnan", F::isnan, D::isnan},
        {"isinf", F::isinf, D::isinf}, {"exp.approx", A::exp, D::exp},    {"exp2.approx", A::exp2, D::exp2},    {"log.approx", A::log, D::log},
        {"log2.approx", A::log2, D::log2}, {"sqrt.approx", A::sqrt, D::sqrt}, {"rsqrt.approx", A::rsqrt, D::rsqrt}, {"tanh.approx", A::tanh, D::tanh},
        {"erf.approx", A::erf, D::erf}, {"reciprocal.approx", A::reciprocal, A::reciprocal},
    };
    return *std::ranges::find(table, name, &FunctionBody::name);
}

int64_t integer_function(std::string_view name, int64_t a, int64_t b) {
    if (name == "abs") return a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
    if (name == "sign") return (a > 0) - (a < 0);
    return name == "max" ? std::max(a, b) : std::min(a, b);
}

bool better(Monoid m, double a, int64_t ia, double b, int64_t ib) {
    if (ib < 0) return true;
    const bool na = std::isnan(a), nb = std::isnan(b);
    if (na || nb) return na && nb ? ia < ib : na;
    if (a == b) return ia < ib;
    return m == Monoid::ArgMin ? a < b : a > b;
}

}  // namespace acu::ir
