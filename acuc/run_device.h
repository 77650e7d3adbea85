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

/// Compiles a subject for the device, runs it on guarded, poisoned buffers, and fetches the outputs. Codes of runtime/device.h, and
/// `run.input-changed` (exit 4).
Result<DeviceRun> run_on_device(const Subject& s, const RunInputs& inputs, const runtime::DeviceId& id, const runtime::ToolkitOptions& toolkits,
                                const runtime::EmulationOptions& emulation = {});

}  // namespace acu
