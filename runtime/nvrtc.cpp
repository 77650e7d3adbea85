#include "runtime/nvrtc.h"

#include "runtime/rtc.h"

namespace acu::runtime {

Result<std::vector<char>> compile_cubin(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                        const std::string& file_name) {
    static const RtcNames names{"nvrtc", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"};
    return compile_with_rtc(names, {found.path, source, file_name, {"--gpu-architecture=" + arch, "--std=c++17"}});
}

}  // namespace acu::runtime
