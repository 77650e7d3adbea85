#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/value.h"

namespace acu::codegen::jit {

/// A function or a table of this process that compiled code uses by name.
struct Helper {
    std::string name;
    const void* address;
};

/// `acu.FN.f32`, `acu.FN.f64`: the function table of the IR. `acu.widen.f16`, `acu.narrow.f16|f8e4m3|f8e5m2`: conversions. `acu.table.f8e4m3|f8e5m2`:
/// the 256 values of a type. `acu.segment`, `acu.keep_best`, `acu.allocate`, `acu.release`.
const std::vector<Helper>& helpers();

/// What `acu.keep_best` has to know of its block, as one number.
int64_t ranking(ir::Monoid monoid, ir::DType values, ir::DType positions, ir::DType given);

}  // namespace acu::codegen::jit
