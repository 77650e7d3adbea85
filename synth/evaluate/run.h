#pragma once
#include "codegen/emit.h"
#include "ir/interpret.h"
#include "runtime/device.h"

namespace acu::synth::evaluate {

/// How a run on a GPU, or on its emulation, went.
struct Run {
    std::string device, toolchain;
    double seconds = 0;
    ir::Arrays outputs;
};

/// What kernels for a device are emitted for.
const Target& target_of(const runtime::Device& device);

/// Compiles an emitted operator for the device, runs the variant for the sizes on guarded, poisoned buffers, and fetches the outputs. Codes of runtime/device.h,
/// `plan.shape` (no variant is for the sizes), and `run.input-changed` (exit 4).
Result<Run> run_emitted(runtime::Device& device, const codegen::Emitted& e, const ir::Arguments& arguments, const ir::Arrays& inputs);
/// The same with kernels that stand in a module already.
Result<Run> run_loaded(runtime::Device& device, runtime::Module& module, const codegen::Emitted& e, const ir::Arguments& arguments, const ir::Arrays& inputs);
/// Compiles and loads.
Result<std::unique_ptr<runtime::Module>> load(runtime::Device& device, const codegen::Emitted& e);

}  // namespace acu::synth::evaluate
