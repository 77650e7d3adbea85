#include "runtime/child_compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/process.h"
#include "runtime/rtc.h"
#include "support/source.h"

namespace acu::runtime {

namespace fs = std::filesystem;

namespace {

/// A folder that only we can read, and that goes with us.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::error_code ec;
        const fs::path base = fs::temp_directory_path(ec);
        std::string name = ((ec ? fs::path("/tmp") : base) / "acuc-XXXXXX").string();
        if (mkdtemp(name.data())) path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ec;
        if (!path_.empty()) fs::remove_all(path_, ec);
    }
    const fs::path& path() const { return path_; }  ///< empty when it could not be made

  private:
    fs::path path_;
};

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
    const TemporaryFolder folder;
    if (folder.path().empty())
        return Diagnostic{.code = "file.unwritable",
                          .message = fmt::format("cannot make a temporary folder: {}", std::strerror(errno)),
                          .help = "set TMPDIR to a folder with room",
                          .exit = Exit::Lacking};
    const std::string in = source_name(file_name, found.kind == ToolkitKind::Nvcc ? ".cu" : ".hip");
    if (Status written = write_text((folder.path() / in).string(), source); !written) return written.why();
    // The compiler's own temporary files go with ours, also when it is killed.
    const ProcessResult run = run_process({.arguments = command(found, arch, in, "out.bin"),
                                           .folder = folder.path().string(),
                                           .limit = limit,
                                           .variables = {"TMPDIR=" + folder.path().string()}});
    if (!run.good()) return child_failed(found, file_name, run);
    std::ifstream out(folder.path() / "out.bin", std::ios::binary);
    std::vector<char> code{std::istreambuf_iterator<char>(out), {}};
    if (code.empty()) return compile_failed(describe(found), file_name, "it wrote no machine code\n" + run.output);
    return code;
}

}  // namespace acu::runtime
