#include "runtime/hiprtc.h"

#include "runtime/rtc.h"

namespace acu::runtime {

Result<std::vector<char>> compile_code_object(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                              const std::string& file_name) {
    static const RtcNames names{"hiprtc", "hiprtcGetCodeSize", "hiprtcGetCode"};
    return compile_with_rtc(names, {found.path, source, file_name, {"--offload-arch=" + arch, "-std=c++17"}});
}

}  // namespace acu::runtime
