#include "ir/type.h"

#include <algorithm>
#include <cmath>

namespace acu::ir {

const std::vector<TypeInfo>& all_types() {
    static const std::vector<TypeInfo> table{
        {DType::Bool, "bool", 1, false, DType::Bool, 0, "|b1"},
        {DType::I8, "i8", 1, false, DType::I32, 0, "|i1"},
        {DType::U8, "u8", 1, false, DType::I32, 0, "|u1"},
        {DType::I16, "i16", 2, false, DType::I32, 0, "<i2"},
        {DType::I32, "i32", 4, false, DType::I32, 0, "<i4"},
        {DType::I64, "i64", 8, false, DType::I64, 0, "<i8"},
        {DType::F8E4M3, "f8e4m3", 1, true, DType::F32, std::ldexp(1.0, -4), "|u1"},
        {DType::F8E5M2, "f8e5m2", 1, true, DType::F32, std::ldexp(1.0, -3), "|u1"},
        {DType::F16, "f16", 2, true, DType::F32, std::ldexp(1.0, -11), "<f2"},
        {DType::BF16, "bf16", 2, true, DType::F32, std::ldexp(1.0, -8), "<u2"},
        {DType::Tf32, "tf32", 4, true, DType::F32, std::ldexp(1.0, -11), "<f4"},
        {DType::F32, "f32", 4, true, DType::F32, std::ldexp(1.0, -24), "<f4"},
        {DType::F64, "f64", 8, true, DType::F64, std::ldexp(1.0, -53), "<f8"},
    };
    return table;
}

const TypeInfo& info(DType type) { return all_types()[static_cast<size_t>(type)]; }

std::optional<DType> type_named(std::string_view name) {
    for (const TypeInfo& t : all_types())
        if (t.name == name) return t.type;
    return {};
}

DType promote(DType a, DType b) {
    if (is_float(a) || is_float(b)) return a == DType::F64 || b == DType::F64 ? DType::F64 : DType::F32;
    if (a == DType::I64 || b == DType::I64) return DType::I64;
    return a == DType::Bool && b == DType::Bool ? DType::Bool : DType::I32;
}

bool keeps_values(DType from, DType to) {
    if (from == to) return true;
    if (!is_float(to) || from == DType::Bool || info(to).bytes == 1 || to == DType::Tf32) return false;
    if (info(from).bytes == 1) return true;    // at most 8 significant bits, and a smaller range
    const bool wider = info(to).bytes > info(from).bytes;
    return is_float(from) ? wider : wider && from != DType::I64;
}

DType accumulator(DType t) { return t == DType::Bool ? DType::I32 : widened(t); }

}  // namespace acu::ir
