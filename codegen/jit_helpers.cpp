#include "codegen/jit_helpers.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "ir/function.h"
#include "ir/scalar.h"

namespace acu::codegen::jit {

using ir::DType;
using ir::Monoid;

static uint32_t narrow_f16(float x) { return ir::f32_to_f16(x); }
static float widen_f16(uint32_t bits) { return ir::f16_to_f32(static_cast<uint16_t>(bits)); }
template <DType type>
static uint32_t narrow_f8(float x) { return ir::f32_to_f8(x, type); }

template <DType type>
static const float* table_f8() {
    static const auto table = [] {
        std::array<float, 256> t{};
        for (size_t i = 0; i < t.size(); ++i) t[i] = ir::f8_to_f32(static_cast<uint8_t>(i), type);
        return t;
    }();
    return table.data();
}

/// The interpreter's numbers pass through conversions that quiet a NaN, and the C library's `pow` looks at that bit.
static float quiet(float x) { return std::isnan(x) ? std::bit_cast<float>(std::bit_cast<uint32_t>(x) | 0x400000u) : x; }
static double quiet(double x) { return std::isnan(x) ? std::bit_cast<double>(std::bit_cast<uint64_t>(x) | (1ull << 51)) : x; }
static float pow_f32(float a, float b, float c) { return ir::body_of("pow").f32(quiet(a), quiet(b), c); }
static double pow_f64(double a, double b, double c) { return ir::body_of("pow").f64(quiet(a), quiet(b), c); }

static int64_t find_segment(const void* offsets, int64_t count, int64_t type, int64_t t) {
    int64_t e = 0;
    while (e + 2 < count && ir::load_int(offsets, e + 1, static_cast<DType>(type)) <= t) ++e;
    return e;
}

namespace {

struct Ranking {
    Monoid monoid;
    DType values, positions, given;
};

Ranking unpack(int64_t r) {
    const auto byte = [&](int i) { return static_cast<int>((r >> (8 * i)) & 255); };
    return {static_cast<Monoid>(byte(0)), static_cast<DType>(byte(1)), static_cast<DType>(byte(2)), static_cast<DType>(byte(3))};
}

}  // namespace

int64_t ranking(Monoid monoid, DType values, DType positions, DType given) {
    const auto at = [](auto x, int i) { return static_cast<int64_t>(x) << (8 * i); };
    return at(monoid, 0) | at(values, 1) | at(positions, 2) | at(given, 3);
}

static double number_at(const void* data, int64_t i, DType type) {
    return is_float(type) ? ir::load_float(data, i, type) : static_cast<double>(ir::load_int(data, i, type));
}

static void copy_element(void* data, int64_t to, int64_t from, DType type) {
    if (is_float(type)) ir::store_float(data, to, type, ir::load_float(data, from, type));
    else ir::store_int(data, to, type, ir::load_int(data, from, type));
}

/// Puts (x, position) among the k best pairs. `real` is x where it is a float, else `whole` is.
static void keep_best(void* values, void* positions, int64_t k, int64_t packed, double real, int64_t whole, int64_t position) {
    const Ranking r = unpack(packed);
    const bool floats = is_float(r.given);
    const double key = floats ? real : static_cast<double>(whole);
    int64_t place = k;
    while (place > 0 && ir::better(r.monoid, key, position, number_at(values, place - 1, r.values),
                                   static_cast<int64_t>(number_at(positions, place - 1, r.positions))))
        --place;
    if (place == k) return;
    for (int64_t j = k - 1; j > place; --j) {
        copy_element(values, j, j - 1, r.values);
        copy_element(positions, j, j - 1, r.positions);
    }
    if (is_float(r.values)) ir::store_float(values, place, r.values, key);
    else ir::store_int(values, place, r.values, floats ? ir::saturate(real, r.values) : whole);
    ir::store_int(positions, place, r.positions, position);
}

static void* allocate(int64_t bytes) { return std::calloc(static_cast<size_t>(bytes) + 1, 1); }
static void release(void* p) { std::free(p); }

template <class F>
static const void* address(F* f) { return reinterpret_cast<const void*>(f); }

static std::vector<Helper> make_helpers() {
    std::vector<Helper> out{
        {"acu.widen.f16", address(widen_f16)},
        {"acu.narrow.f16", address(narrow_f16)},
        {"acu.narrow.f8e4m3", address(narrow_f8<DType::F8E4M3>)},
        {"acu.narrow.f8e5m2", address(narrow_f8<DType::F8E5M2>)},
        {"acu.table.f8e4m3", table_f8<DType::F8E4M3>()},
        {"acu.table.f8e5m2", table_f8<DType::F8E5M2>()},
        {"acu.segment", address(find_segment)},
        {"acu.keep_best", address(keep_best)},
        {"acu.allocate", address(allocate)},
        {"acu.release", address(release)},
    };
    for (const ir::Function& f : ir::functions()) {
        const ir::FunctionBody& body = ir::body_of(f.name);
        const bool pow = f.name == "pow";
        out.push_back({"acu." + std::string(f.name) + ".f32", address(pow ? pow_f32 : body.f32)});
        out.push_back({"acu." + std::string(f.name) + ".f64", address(pow ? pow_f64 : body.f64)});
    }
    return out;
}

const std::vector<Helper>& helpers() {
    static const std::vector<Helper> table = make_helpers();
    return table;
}

}  // namespace acu::codegen::jit
