#pragma once
#include "codegen/contract.h"
#include "codegen/dialect.h"
#include "codegen/emit.h"

namespace acu::codegen {

/// The C header of an operator: the tensor descriptor, error codes, and its documented function.
std::string launcher_header(const ir::Program& p, const Origin& origin);

/// The host half of a source: checks what a caller gave, then launches the kernels.
std::string launcher_source(const ir::Program& p, const Contract& contract, const std::vector<Kernel>& kernels, const Dialect& dialect);

}  // namespace acu::codegen
