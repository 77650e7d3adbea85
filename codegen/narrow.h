#pragma once
#include "ir/program.h"

namespace acu::codegen {

/// Does 32-bit arithmetic suffice for every index expression, extent and buffer size of a kernel? Only where every dimension is fixed.
bool fits_32_bits(const ir::Program& p, const ir::Loop& kernel);

}  // namespace acu::codegen
