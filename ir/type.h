#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acu::ir {

/// Element types of tensors and types of value expressions. `Tf32` is never stored: a cast to it rounds and gives an `F32`.
enum class DType { Bool, I8, U8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, Tf32, F32, F64 };

/// One row a type. `widened` is the type that a load has in an expression; `unit` is the unit roundoff (0 for integers).
struct TypeInfo {
    DType type;
    std::string_view name;
    size_t bytes;
    bool floating;
    DType widened;
    double unit;
    std::string_view numpy;    ///< the descriptor of a .npy file that holds it ("<u2" for bf16: its bits)
};

const TypeInfo& info(DType type);
const std::vector<TypeInfo>& all_types();
std::optional<DType> type_named(std::string_view name);

inline bool is_float(DType t) { return info(t).floating; }
inline bool is_int(DType t) { return !is_float(t) && t != DType::Bool; }
inline std::string_view name_of(DType t) { return info(t).name; }
inline DType widened(DType t) { return info(t).widened; }

/// Is every value of `from` one of `to`, a type of floats or the same type?
bool keeps_values(DType from, DType to);

/// The type in which two operands meet (docs/language.md, "Types and promotion"). Both are widened types.
DType promote(DType a, DType b);

/// The type in which a sum of `t` accumulates.
DType accumulator(DType t);

}  // namespace acu::ir
