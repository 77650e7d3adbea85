#pragma once
#include <memory>
#include <string>

#include "ir/interpret.h"

namespace acu::codegen {

/// A loop-level program compiled for this machine's CPU through LLVM ORC. It computes what `ir::interpret` defines, bit for bit; only the sign
/// and the payload of a NaN are open. The dynamic rules are not checked: a read at a place that depends on data and lies outside its buffer gives
/// the default or 0, such a write is dropped; other places are trusted to lie inside.
class CpuKernel {
  public:
    /// Codes `codegen.unsupported` (a reduction inside a value, a name without a value), `codegen.llvm`.
    static Result<std::unique_ptr<CpuKernel>> compile(const ir::Program& loops);
    ~CpuKernel();
    CpuKernel(const CpuKernel&) = delete;
    CpuKernel& operator=(const CpuKernel&) = delete;

    /// `arrays` holds the inputs and receives the outputs. Codes `run.input`, `run.D3`. May be called from several threads.
    Status run(const ir::Arguments& args, ir::Arrays& arrays) const;

    /// The optimised module as text.
    std::string llvm_ir() const;

  private:
    struct Code;
    CpuKernel(ir::Program program, std::unique_ptr<Code> code);
    ir::Program program_;
    std::unique_ptr<Code> code_;
};

std::string llvm_version();

}  // namespace acu::codegen
