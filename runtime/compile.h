#pragma once
#include <string>
#include <vector>

#include "runtime/toolkit.h"

namespace acu::runtime {

/// Machine code and what made it ("nvrtc 13.0").
struct Compiled {
    std::vector<char> code;
    std::string toolchain;
};

/// What to compile, for which architecture.
struct CompileRequest {
    std::string source;
    std::string file_name;
    std::string arch;
};

/// Compiles with the first of `toolkits` (as `choose_toolkits` orders them) that works. Needs no GPU.
/// Codes `toolkit.broken` (none works), `compile.failed`, `compile.time`.
Result<Compiled> compile_with(const std::vector<ToolkitFound>& toolkits, const CompileRequest& request);

/// Looks for toolkits and compiles. Codes as above, and `toolkit.missing`, `toolkit.target`.
Result<Compiled> compile_for(const CompileRequest& request, const ToolkitOptions& options);

/// The toolkits for an architecture, in the order to try them; `driver_major` as for `choose_toolkits`.
Result<std::vector<ToolkitFound>> toolkits_for(const std::string& arch, const ToolkitOptions& options, int driver_major = 0);

}  // namespace acu::runtime
