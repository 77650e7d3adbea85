#pragma once
#include <string>
#include <vector>

#include "support/result.h"

namespace acu::runtime {

/// How the functions of a run-time compiler are called: NVRTC and hipRTC have one and the same interface under different names.
struct RtcNames {
    std::string prefix;     ///< "nvrtc", "hiprtc"
    std::string code_size;  ///< "nvrtcGetCUBINSize"
    std::string code;       ///< "nvrtcGetCUBIN"
};

/// A program for a run-time compiler.
struct RtcRequest {
    std::string library;  ///< path
    std::string source;
    std::string file_name;  ///< for messages
    std::vector<std::string> options;
};

/// Opens the library, compiles, and returns the machine code. Codes `toolkit.broken` (the library does not open or lacks functions),
/// `compile.failed`.
Result<std::vector<char>> compile_with_rtc(const RtcNames& names, const RtcRequest& request);

/// `compile.failed` for `compiler`, with the first lines of its log as notes.
Diagnostic compile_failed(const std::string& compiler, const std::string& file_name, const std::string& log);

}  // namespace acu::runtime
