#pragma once
#include "ir/program.h"

namespace acu::codegen::jit {

/// Moves the axis of the last subscript of an accumulation inwards, where it becomes vectors. Points of one cell have one value of that axis, so
/// they keep their order and the result keeps its bits.
///   c[m, n] += … over m, n, k!   ->   c[m, n] += … over m, k!, n
ir::Block ordered(const ir::Block& block);

}  // namespace acu::codegen::jit
