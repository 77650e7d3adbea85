#pragma once
#include "codegen/contract.h"
#include "codegen/dialect.h"
#include "codegen/emit.h"

namespace acu::codegen {

/// The C header of an operator: the tensor descriptor, error codes, and its documented function.
std::string launcher_header(const ir::Program& p, const Origin& origin);

/// The host half of a source: checks what a caller gave against the definition `p`, then launches the kernels of the first variant whose condition holds.
std::string launcher_source(const ir::Program& p, const Contract& contract, const std::vector<Variant>& variants, const Dialect& dialect);

}  // namespace acu::codegen
