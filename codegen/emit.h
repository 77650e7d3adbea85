#pragma once
#include <map>
#include <string_view>

#include "ir/program.h"
#include "target/target.h"

namespace acu::codegen {

/// One argument of a kernel.
struct KernelArgument {
    enum Kind { Buffer, Dim, Scalar, Stride } kind;
    std::string name;    ///< of the buffer, dimension or scalar; of the tensor of a stride
    size_t axis = 0;     ///< of a stride
};

/// A kernel of an emitted source: one thread a cell, in a loop over the grid, so any grid is correct.
struct Kernel {
    std::string name;
    ir::Index cells;
    std::vector<KernelArgument> arguments;
    std::string text;
};

/// An operator as source. `device` compiles alone (for a run-time compiler); `source` adds the host launcher, which `header` declares.
struct Emitted {
    std::string device;
    std::string source;
    std::string header;
    std::string plan;    ///< JSON
    std::vector<Kernel> kernels;
};

/// What the header comment and the plan say of where a program came from.
struct Origin {
    std::string spec;        ///< the operator and its bindings in words
    std::string doc;
    ir::Program tensor;      ///< the definition, printed into the comment
    std::map<std::string, double> scalars;    ///< known values
};

inline constexpr int block_threads = 256;
/// More blocks than this are never needed: the kernels loop.
inline constexpr int64_t most_blocks = 1 << 20;

/// Emits CUDA or HIP for a loop-level program whose top-level statements are grid loops (see ir/lower/lower.h, fallback_plan).
/// Codes `emit.unsolved` (a dimension that no tensor determines), `emit.name` (a name that C keeps for itself).
Result<Emitted> emit(const ir::Program& p, const Target& target, const Origin& origin);

/// Device headers by file stem (generated at build time from microkernels/).
const std::map<std::string, std::string_view>& device_headers();

}  // namespace acu::codegen
