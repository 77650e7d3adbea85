#pragma once
#include "codegen/emit.h"
#include "codegen/expression.h"

namespace acu::codegen {

/// What a kernel has to do with those before and behind it in a stream.
struct Neighbours {
    bool next_is_early = false;
    bool uses_previous = false;    ///< reads or writes what one before it wrote, or writes what one read
};

/// The kernels of a program whose top-level statements are grid loops, in order; their names are new among `names`.
std::vector<Kernel> kernels_of(const ir::Program& p, const Target& target, Identifiers& names, const EmitOptions& options);

/// C identifiers of parameters, as kernels and launcher both write them.
std::string parameter_name(const KernelArgument& a);

}  // namespace acu::codegen
