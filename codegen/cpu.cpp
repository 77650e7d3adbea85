#include "codegen/cpu.h"

#ifdef ACU_HAVE_LLVM
#include "codegen/jit.h"
#endif

namespace acu::codegen {

#ifdef ACU_HAVE_LLVM

Status run_cpu(const ir::Program& loops, const ir::Arguments& args, ir::Arrays& arrays) {
    const auto kernel = CpuKernel::compile(loops);
    if (kernel) return (*kernel)->run(args, arrays);
    // Programs that the JIT does not take (rings, roles) run in the interpreter, which takes all.
    return kernel.why().code == "codegen.unsupported" ? ir::interpret(loops, args, arrays) : Status(kernel.why());
}
std::string cpu_executor() { return "LLVM " + llvm_version(); }
Result<std::string> llvm_text(const ir::Program& loops) {
    const auto kernel = CpuKernel::compile(loops);
    if (!kernel) return kernel.why();
    return (*kernel)->llvm_ir();
}

#else

Status run_cpu(const ir::Program& loops, const ir::Arguments& args, ir::Arrays& arrays) { return ir::interpret(loops, args, arrays); }
std::string cpu_executor() { return "the interpreter"; }
Result<std::string> llvm_text(const ir::Program&) {
    return Diagnostic{"llvm.missing", {}, "this acuc is built without LLVM", {}, "build it with llvm-19-dev installed and `-Dllvm=enabled`", Exit::Lacking};
}

#endif

}  // namespace acu::codegen
