#pragma once
#include <string>
#include <vector>

#include "runtime/device.h"

namespace acu::runtime {

/// A compiler for device code: a library (`nvrtc`, `hiprtc`) or a program (`nvcc`, `hipcc`).
struct ToolkitFound {
    enum class Kind { Nvrtc, Nvcc, Hiprtc, Hipcc } kind;
    std::string version;  ///< "13.0", or "12" or "" when no more could be learnt
    std::string path;     ///< the library or the program
    std::string origin;   ///< how it was found: "--cuda-path", "CUDA_HOME", "PATH", …
};
using ToolkitKind = ToolkitFound::Kind;

/// `nvrtc 13.0`
std::string describe(const ToolkitFound& found);
std::string kind_name(ToolkitKind kind);

/// The toolkits of this machine, best place first, and the places that were looked at.
struct ToolkitSearch {
    std::vector<ToolkitFound> found;
    std::vector<std::string> looked;  ///< "CUDA_HOME (not set)", "/usr/local/cuda-13.0"
};

/// Looks for CUDA: `--cuda-path`, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda*, the library folders, the packages of the Python
/// environment (VIRTUAL_ENV, `.venv`). For HIP: `--rocm-path`, ROCM_PATH, HIP_PATH, PATH, /opt/rocm*, the library folders.
/// Compiler programs are asked for their version; no library is opened.
ToolkitSearch search_toolkits(DeviceId::Kind platform, const ToolkitOptions& options);

/// Both platforms' toolkits, for `acuc targets`.
std::vector<ToolkitFound> find_toolkits(const ToolkitOptions& options);

/// Whether it can compile for `arch` ("sm_70", "sm_90a", "gfx90a"). An unknown version gets the benefit of the doubt.
bool builds(const ToolkitFound& found, const std::string& arch);

/// What to install to build for `arch`: "sm_70 needs a CUDA 12 toolkit: pip install nvidia-cuda-nvrtc-cu12".
std::string toolkit_advice(const std::string& arch);

/// Those that build for `arch`, in the order to try them: libraries before programs, and first those that are not newer than the driver
/// (`driver_major`, 0 for unknown). Codes `toolkit.missing` (with the places looked at) and `toolkit.target`.
Result<std::vector<ToolkitFound>> choose_toolkits(const ToolkitSearch& search, const std::string& arch, int driver_major = 0);

/// Paths and names under which libamdhip64 may open.
std::vector<std::string> hip_driver_libraries(const ToolkitOptions& options);

}  // namespace acu::runtime
