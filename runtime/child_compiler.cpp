#include "runtime/child_compiler.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/process.h"
#include "runtime/rtc.h"
#include "runtime/temporary_folder.h"
#include "support/source.h"

namespace acu::runtime {

namespace fs = std::filesystem;

namespace {

/// The last part of the name, with the ending that the compiler expects; never something that reads like an option.
std::string source_name(const std::string& file_name, const std::string& ending) {
    std::string name = fs::path(file_name).filename().string();
    if (name.empty() || !std::isalnum(static_cast<unsigned char>(name[0]))) name = "kernel";
    return name.ends_with(ending) ? name : name + ending;
}

std::vector<std::string> command(const ToolkitFound& found, const std::string& arch, const std::string& in, const std::string& out) {
    if (found.kind == ToolkitKind::Nvcc) return {found.path, "-cubin", "-arch=" + arch, "-std=c++17", "-o", out, in};
    return {found.path, "--genco", "--offload-arch=" + arch, "-std=c++17", "-O3", "-include", "hip/hip_runtime.h", "-o", out, in};
}

Diagnostic child_failed(const ToolkitFound& found, const std::string& file_name, const ProcessResult& run) {
    if (!run.failure.empty())
        return {.code = "toolkit.broken", .message = fmt::format("`{}` {}", found.path, run.explain()), .exit = Exit::Lacking};
    if (run.timed_out)
        return {.code = "compile.time",
                .message = fmt::format("`{}` took too long for `{}` and was killed", found.path, file_name),
                .exit = Exit::Wrong};
    return compile_failed(describe(found), file_name, fmt::format("{} {}\n{}", kind_name(found.kind), run.explain(), run.output));
}

}  // namespace

Result<std::vector<char>> compile_in_child(const ToolkitFound& found, const std::string& source, const std::string& arch,
                                           const std::string& file_name, std::chrono::seconds limit) {
    const auto folder = TemporaryFolder::make();
    if (!folder) return folder.why();
    const std::string in = source_name(file_name, found.kind == ToolkitKind::Nvcc ? ".cu" : ".hip");
    if (Status written = write_text((folder->path() / in).string(), source); !written) return written.why();
    // The compiler's own temporary files go with ours, also when it is killed.
    const ProcessResult run = run_process({.arguments = command(found, arch, in, "out.bin"),
                                           .folder = folder->path().string(),
                                           .limit = limit,
                                           .variables = {"TMPDIR=" + folder->path().string()}});
    if (!run.good()) return child_failed(found, file_name, run);
    std::ifstream out(folder->path() / "out.bin", std::ios::binary);
    std::vector<char> code{std::istreambuf_iterator<char>(out), {}};
    if (code.empty()) return compile_failed(describe(found), file_name, "it wrote no machine code\n" + run.output);
    return code;
}

}  // namespace acu::runtime
