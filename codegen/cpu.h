#pragma once
#include "ir/interpret.h"

namespace acu::codegen {

/// Runs a loop-level program on this machine: through LLVM where it is built in, else through the interpreter.
Status run_cpu(const ir::Program& loops, const ir::Arguments& args, ir::Arrays& arrays);
/// What `run_cpu` uses: "LLVM 19.1" or "the interpreter".
std::string cpu_executor();
/// The LLVM IR of a program. Code `llvm.missing`, exit 3.
Result<std::string> llvm_text(const ir::Program& loops);

}  // namespace acu::codegen
