#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "runtime/toolkit.h"

namespace acu::runtime {

/// Compiles with the program that `found` names (nvcc or hipcc), as a child process in a private temporary folder, which is removed again.
/// Codes `compile.failed`, `toolkit.broken` (the program does not start), `compile.time` (over the limit), `file.unwritable`.
Result<std::vector<char>> compile_in_child(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                           const std::string& file_name, std::chrono::seconds limit = std::chrono::seconds(300));

}  // namespace acu::runtime
