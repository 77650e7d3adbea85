#include "runtime/compile.h"

#include "runtime/child_compiler.h"
#include "runtime/hiprtc.h"
#include "runtime/nvrtc.h"

namespace acu::runtime {

static Result<std::vector<char>> compile_by(const ToolkitFound& found, const CompileRequest& request) {
    switch (found.kind) {
        case ToolkitKind::Nvrtc: return compile_cubin(found, request.source, request.arch, request.file_name);
        case ToolkitKind::Hiprtc: return compile_code_object(found, request.source, request.arch, request.file_name);
        case ToolkitKind::Nvcc:
        case ToolkitKind::Hipcc: break;
    }
    return compile_in_child(found, request.source, request.arch, request.file_name);
}

Result<Compiled> compile_with(const std::vector<ToolkitFound>& toolkits, const CompileRequest& request) {
    std::vector<Note> broken;
    for (const ToolkitFound& found : toolkits) {
        Result<std::vector<char>> code = compile_by(found, request);
        if (code) return Compiled{std::move(*code), describe(found)};
        if (code.why().code != "toolkit.broken") return code.why();
        broken.push_back({{}, code.why().message});
    }
    return Diagnostic{.code = "toolkit.broken",
                      .message = "toolkits were found for " + request.arch + ", but none of them works",
                      .notes = std::move(broken),
                      .help = toolkit_advice(request.arch),
                      .exit = Exit::Lacking};
}

Result<Compiled> compile_for(const CompileRequest& request, const ToolkitOptions& options) {
    const Result<std::vector<ToolkitFound>> toolkits = toolkits_for(request.arch, options);
    return toolkits ? compile_with(*toolkits, request) : toolkits.why();
}

Result<std::vector<ToolkitFound>> toolkits_for(const std::string& arch, const ToolkitOptions& options, int driver_major) {
    const auto platform = arch.starts_with("gfx") ? DeviceId::Kind::Hip : DeviceId::Kind::Cuda;
    return choose_toolkits(search_toolkits(platform, options), arch, driver_major);
}

}  // namespace acu::runtime
