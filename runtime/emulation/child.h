#pragma once
#include "runtime/emulation/launch.h"
#include "support/result.h"

namespace acu::runtime::emulation {

/// Runs the job in a forked child with limits on processor time and memory, so that a crash or a hang costs the launch only. `text` is the emitted
/// source, of which a diagnostic quotes the line. Codes `emu.…` (exit 4), and `device.memory` when there is no child.
Status run_in_child(const Job& job, const std::string& kernel, const std::string& text);

}  // namespace acu::runtime::emulation
