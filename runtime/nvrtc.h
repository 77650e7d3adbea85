#pragma once
#include <string>
#include <vector>

#include "runtime/toolkit.h"

namespace acu::runtime {

/// Compiles CUDA source text to a cubin for `arch` ("sm_90a") with the NVRTC library that `found` names. No GPU and no driver is needed.
/// Codes `toolkit.broken`, `compile.failed`.
Result<std::vector<char>> compile_cubin(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                        const std::string& file_name);

}  // namespace acu::runtime
