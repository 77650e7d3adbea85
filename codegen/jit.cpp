#include "codegen/jit.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <mutex>

#include "codegen/jit_emit.h"
#include "codegen/jit_helpers.h"

namespace acu::codegen {
namespace {

namespace orc = llvm::orc;


/// Thrown inside this file only.
struct Failure {
    Diagnostic why;
};

[[noreturn]] void fail(llvm::Error e) { throw Failure{{"codegen.llvm", {}, "LLVM: " + llvm::toString(std::move(e)), {}, {}, Exit::Lacking}}; }
template <class T>
T need(llvm::Expected<T> x) {
    if (!x) fail(x.takeError());
    return std::move(*x);
}
void need(llvm::Error e) {
    if (e) fail(std::move(e));
}

/// The compiler of this process. `machine` is used by one compilation at a time.
struct Compiler {
    std::unique_ptr<llvm::TargetMachine> machine;
    std::unique_ptr<orc::LLJIT> jit;
    jit::Host host;
    std::mutex one_at_a_time;

    Compiler() {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        orc::JITTargetMachineBuilder builder = need(orc::JITTargetMachineBuilder::detectHost());
        builder.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
        builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
        const auto features = llvm::sys::getHostCPUFeatures();
        host = {features.lookup("f16c"), features.lookup("fma")};
        machine = need(builder.createTargetMachine());
        jit = need(orc::LLJITBuilder().setJITTargetMachineBuilder(builder).setPlatformSetUp(orc::setUpInactivePlatform).create());
        define_helpers();
    }

    void define_helpers() {
        orc::JITDylib& library = jit->getMainJITDylib();
        orc::SymbolMap symbols;
        for (const jit::Helper& h : jit::helpers())
            symbols[jit->mangleAndIntern(h.name)] = {orc::ExecutorAddr::fromPtr(h.address), llvm::JITSymbolFlags::Exported};
        need(library.define(orc::absoluteSymbols(std::move(symbols))));
        library.addGenerator(need(orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit->getDataLayout().getGlobalPrefix())));
    }

    std::unique_ptr<llvm::Module> module(const ir::Program& p, const std::string& entry, llvm::LLVMContext& context) {
        auto m = std::make_unique<llvm::Module>(p.name, context);
        m->setDataLayout(jit->getDataLayout());
        m->setTargetTriple(machine->getTargetTriple().str());
        jit::Emitter(p, *m, host).emit(entry);
        for (llvm::Function& f : *m) {
            f.addFnAttr("target-cpu", machine->getTargetCPU());
            f.addFnAttr("target-features", machine->getTargetFeatureString());
        }
        std::string broken;
        llvm::raw_string_ostream text(broken);
        if (llvm::verifyModule(*m, &text)) throw Failure{{"codegen.llvm", {}, "the emitted module is broken: " + broken}};
        optimise(*m);
        return m;
    }

    void optimise(llvm::Module& m) {
        llvm::LoopAnalysisManager loops;
        llvm::FunctionAnalysisManager functions;
        llvm::CGSCCAnalysisManager components;
        llvm::ModuleAnalysisManager modules;
        llvm::PassBuilder passes(machine.get());
        passes.registerModuleAnalyses(modules);
        passes.registerCGSCCAnalyses(components);
        passes.registerFunctionAnalyses(functions);
        passes.registerLoopAnalyses(loops);
        passes.crossRegisterProxies(loops, functions, components, modules);
        passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, modules);
    }
};

/// Never destroyed: kernels may outlive the end of main.
Compiler& compiler() {
    static Compiler* const one = new Compiler;
    return *one;
}

std::string next_entry() {
    static std::atomic<int> count{0};
    return fmt::format("acu.kernel.{}", count++);
}

/// Turns what is thrown in codegen/jit*.cpp into a diagnostic.
template <class T, class F>
Result<T> guarded(F f) {
    try {
        return f();
    } catch (const jit::Unsupported& u) {
        return u.why;
    } catch (const Failure& u) {
        return u.why;
    }
}

}  // namespace

struct CpuKernel::Code {
    orc::ResourceTrackerSP tracker;
    void (*entry)(void* const* buffers, const int64_t* dims) = nullptr;
    ~Code() {
        if (tracker) llvm::consumeError(tracker->remove());
    }
};

CpuKernel::CpuKernel(ir::Program program, std::unique_ptr<Code> code) : program_(std::move(program)), code_(std::move(code)) {}
CpuKernel::~CpuKernel() = default;

Result<std::unique_ptr<CpuKernel>> CpuKernel::compile(const ir::Program& loops) {
    return guarded<std::unique_ptr<CpuKernel>>([&] {
        Compiler& c = compiler();
        const std::lock_guard lock(c.one_at_a_time);
        const std::string name = next_entry();
        auto context = std::make_unique<llvm::LLVMContext>();
        auto module = c.module(loops, name, *context);
        auto code = std::make_unique<Code>();
        code->tracker = c.jit->getMainJITDylib().createResourceTracker();
        need(c.jit->addIRModule(code->tracker, orc::ThreadSafeModule(std::move(module), std::move(context))));
        code->entry = need(c.jit->lookup(name)).toPtr<void(void* const*, const int64_t*)>();
        return std::unique_ptr<CpuKernel>(new CpuKernel(loops, std::move(code)));
    });
}

std::string CpuKernel::llvm_ir() const {
    const auto text = guarded<std::string>([&] {
        Compiler& c = compiler();
        const std::lock_guard lock(c.one_at_a_time);
        llvm::LLVMContext context;
        std::string out;
        llvm::raw_string_ostream stream(out);
        c.module(program_, program_.name, context)->print(stream, nullptr);
        return out;
    });
    return text ? *text : text.why().message;
}

// ---- running

namespace {

Diagnostic wrong_input(std::string what) { return {"run.input", {}, std::move(what)}; }

/// The memory of one run: where each declaration lies, and the temporaries and scalars.
struct Memory {
    std::vector<void*> buffers;
    std::vector<ir::Array> own;

    Status open(const ir::Decl& d, const ir::Arguments& args, const ir::Env& dims, ir::Arrays& arrays) {
        const std::vector<int64_t> sizes = ir::sizes_of(d, dims);
        if (d.scope == ir::Scope::In) {
            const auto it = arrays.find(d.name);
            if (it == arrays.end() || it->second.type != d.type || it->second.sizes != sizes)
                return wrong_input(fmt::format("the input `{}` is missing, or has another type or shape than {}[{}]", d.name, ir::name_of(d.type), fmt::join(sizes, ", ")));
            buffers.push_back(it->second.bytes.data());
        } else if (d.scope == ir::Scope::Out) {
            buffers.push_back((arrays[d.name] = ir::Array::zeros(d.type, sizes)).bytes.data());
        } else {
            buffers.push_back(own.emplace_back(ir::Array::zeros(d.type, sizes)).bytes.data());
        }
        return d.scope == ir::Scope::Param ? scalar(d, args) : ok();
    }

    Status scalar(const ir::Decl& d, const ir::Arguments& args) {
        const auto it = args.scalars.find(d.name);
        if (it == args.scalars.end()) return wrong_input(fmt::format("the scalar `{}` has no value", d.name));
        own.back().set(0, it->second);
        return ok();
    }
};

}  // namespace

Status CpuKernel::run(const ir::Arguments& args, ir::Arrays& arrays) const {
    ir::Env env = args.dims;
    for (const auto& [name, value] : ir::known_dims(program_)) env[name] = value;
    std::vector<int64_t> dims;
    for (const ir::Dim& d : program_.dims) {
        const auto it = env.find(d.name);
        if (it == env.end()) return Diagnostic{"run.D3", {}, fmt::format("the name `{}` has no value", d.name)};
        dims.push_back(it->second);
    }
    Memory memory;
    for (const ir::Decl& d : program_.decls)
        if (Status s = memory.open(d, args, env, arrays); !s) return s;
    code_->entry(memory.buffers.data(), dims.data());
    return ok();
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace acu::codegen
