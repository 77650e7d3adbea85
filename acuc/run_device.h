#pragma once
#include "acuc/inputs.h"
#include "runtime/device.h"

namespace acu {

/// How a run on a GPU, or on its emulation, went.
struct DeviceRun {
    std::string device, toolchain;
    double seconds = 0;
    ir::Arrays outputs;
};

/// What kernels for a device are emitted for.
const Target& target_of(const runtime::Device& device);

/// Compiles an emitted operator for the device, runs it on guarded, poisoned buffers, and fetches the outputs. Codes of runtime/device.h, and
/// `run.input-changed` (exit 4).
Result<DeviceRun> run_emitted(runtime::Device& device, const codegen::Emitted& e, const RunInputs& inputs);
/// The same with kernels that stand in a module already.
Result<DeviceRun> run_loaded(runtime::Device& device, runtime::Module& module, const codegen::Emitted& e, const RunInputs& inputs);

}  // namespace acu
