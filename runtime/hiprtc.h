#pragma once
#include <string>
#include <vector>

#include "runtime/toolkit.h"

namespace acu::runtime {

/// Compiles HIP source text to a code object for `arch` ("gfx90a") with the hipRTC library that `found` names.
/// Codes `toolkit.broken`, `compile.failed`.
Result<std::vector<char>> compile_code_object(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                              const std::string& file_name);

}  // namespace acu::runtime
