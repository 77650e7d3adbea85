#pragma once
#include <string>
#include <vector>

#include "acuc/microkernel_trials.h"
#include "runtime/device.h"

namespace acu {

/// How the trials of one microkernel on one device went.
struct Validation {
    std::string id, target, device, toolchain;
    int64_t trials = 0;
    double seconds = 0;
    std::vector<std::string> faults;    ///< the first few; none: it passed
};

/// A device and, for emulation, the same with its threads in random order and its shared buffers apart, for a part of the trials.
struct ValidationDevice {
    const Target* target = nullptr;
    std::unique_ptr<runtime::Device> device, shuffled;
};

/// Codes of `open_device`, and `microkernels.target` for a device that is no target.
Result<ValidationDevice> open_for_validation(const std::string& name, const runtime::ToolkitOptions& toolkits);

/// Compiles the kernels of `set`, trials of `m`, and compares each launch with the scalar reference.
Validation validate(const ValidationDevice& on, const ir::Microkernel& m, const TrialSet& set);

}  // namespace acu
