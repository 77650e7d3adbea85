#pragma once
#include <memory>

#include "runtime/device.h"
#include "runtime/emulation/options.h"

namespace acu::runtime::emulation {

/// A device that runs emitted text on this machine's processor and checks every access. `target` is the name of a GPU target ("sm_90a").
/// Codes `device.unknown`, `toolkit.missing`, `device.memory`.
Result<std::unique_ptr<Device>> open_emulated(const std::string& target, const EmulationOptions& options);

}  // namespace acu::runtime::emulation
