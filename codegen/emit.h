#pragma once
#include <map>
#include <string_view>

#include "codegen/alignment.h"
#include "target/target.h"

namespace acu::codegen {

/// Threads of a block where each thread takes an iteration.
inline constexpr int block_threads = 256;
/// More blocks than this are never needed: the kernels loop.
inline constexpr int64_t most_blocks = 1 << 20;

/// Boxes of a tensor that the copy engine moves: sizes in elements, innermost dimension first; `swizzle`: bytes of the pattern, 0: none.
struct TensorBox {
    std::vector<int64_t> sizes;
    int64_t swizzle = 0;
    bool operator==(const TensorBox&) const = default;
};

/// One argument of a kernel.
struct KernelArgument {
    enum Kind { Buffer, Dim, Scalar, Stride, Map } kind;
    std::string name;    ///< of the buffer, dimension or scalar; of the tensor of a stride or map
    size_t axis = 0;     ///< of a stride; number of a map
    TensorBox box = {};  ///< of a map
};

/// A kernel of an emitted source. It loops over the grid, so any grid is correct: `cells` are its iterations, one a block of `threads` threads, or one a thread where
/// `threads` is 0. `shared`: bytes of dynamic shared memory. `headers`: the texts of microkernels/ that it needs. `alignment`: what a launch must bring; where it
/// does not, `unaligned()` is launched instead. `packed`: iterations that share a block, each with threads of its own.
struct Kernel {
    std::string name;
    ir::Index cells;
    std::vector<KernelArgument> arguments;
    std::string text;
    int64_t threads = 0;
    int64_t shared = 0;
    std::vector<std::string> headers = {};
    Alignment alignment = {};
    int64_t packed = 1;
    bool early = false;    ///< starts while the kernel before ends
    int64_t cluster = 1;   ///< blocks that share an iteration
    std::map<std::string, int64_t> needs = {};    ///< bytes of which the addresses of tensors must be multiples: the kernel cannot run without

    std::string unaligned() const { return name + "_unaligned"; }
    int64_t block() const { return threads ? threads * packed / cluster : block_threads; }
    /// Blocks of a launch with so many iterations.
    int64_t grid(int64_t iterations) const;
};

/// `provenance`: each statement of a kernel says where it came from, `// @file:line:column d3 d7`. `file_name` names a source file.
struct EmitOptions {
    bool provenance = false;
    std::function<std::string(int)> file_name = {};
};

/// Kernels for the sizes that `when` admits: comparisons of dimensions, all of which must hold.
struct Variant {
    ir::Program program;    ///< that is emitted: its temporaries are the workspace
    std::vector<ir::Value> when = {};
    std::vector<std::string> plan = {};       ///< its decisions in words; none: the fallback
    std::vector<Kernel> kernels = {};
};

/// An operator as source. `device` compiles alone (for a run-time compiler); `source` adds the host launcher, which `header` declares.
struct Emitted {
    std::string device;
    std::string source;
    std::string header;
    std::vector<Variant> variants;

    /// The first whose condition holds; null: these sizes are refused.
    /// `behind`: the first after this one.
    const Variant* variant_for(const ir::Env& dims, const Variant* behind = nullptr) const;
};

/// What the header comment says of where a program came from.
struct Origin {
    std::string spec;        ///< the operator and its bindings in words
    std::string doc;
    ir::Program tensor;      ///< the definition, printed into the comment
    std::map<std::string, double> scalars;    ///< known values
};

/// The text of kernels with the headers that they need: compiles alone.
std::string device_text(const std::vector<Kernel>& kernels);

/// Emits CUDA or HIP for loop-level programs of one operator whose top-level statements are grid loops (see ir/lower/lower.h, fallback_plan). The launcher takes the first variant
/// whose condition holds, and refuses sizes for which none is. Codes `emit.unsolved` (a dimension that no tensor determines), `emit.name` (a name that C keeps for itself).
Result<Emitted> emit(std::vector<Variant> variants, const Target& target, const Origin& origin, const EmitOptions& options = {});

}  // namespace acu::codegen
