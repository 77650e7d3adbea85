#include "runtime/emulation/build.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/emulation/text.h"
#include "runtime/process.h"
#include "runtime/rtc.h"
#include "support/source.h"

namespace acu::runtime::emulation {

namespace fs = std::filesystem;

namespace {

Diagnostic lacking(const std::string& what, const std::string& help) { return {.code = "toolkit.missing", .message = "emulation needs " + what, .help = help, .exit = Exit::Lacking}; }

/// "12.2" of the first line that a compiler prints for --version.
std::string version_in(const std::string& output) {
    const std::string line = output.substr(0, output.find('\n'));
    size_t from = line.find_last_of(' ');
    if (const size_t word = line.find("version "); word != std::string::npos) from = word + 7;
    const std::string rest = line.substr(from + 1);
    const size_t dot = rest.find('.'), second = dot == std::string::npos ? dot : rest.find('.', dot + 1);
    return rest.substr(0, std::min(second, rest.find_first_not_of("0123456789.")));
}

ProcessResult try_program(const std::string& program) { return run_process({.arguments = {program, "--version"}, .folder = "", .limit = std::chrono::seconds(20)}); }

/// What g++ and clang++ both understand. -O1: more takes longer to compile than it saves in running.
std::vector<std::string> flags_for(const HostCompiler& compiler, const Target& target) {
    std::vector<std::string> flags{"-x", "c++", "-std=c++17", "-O1", "-g1", "-w", "-Wno-psabi", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti", "-fvisibility=default",
                                   "-fstack-clash-protection", "-fsanitize=thread,alignment,signed-integer-overflow", "-DACU_EMU=1", fmt::format("-DACU_WARP={}", target.warp)};
    if (target.platform == Platform::Hip) flags.push_back("-DACU_HIP=1");
    // clang drops the read of `x += v`, and an uninitialised read with it
    if (compiler.clang) flags.insert(flags.end(), {"-mllvm", "-tsan-instrument-read-before-write=1"});
#if defined(__x86_64__)
    if (__builtin_cpu_supports("f16c")) flags.push_back("-mf16c");
#endif
    return flags;
}

Status run_step(const HostCompiler& compiler, const std::vector<std::string>& command, const TemporaryFolder& folder, const std::string& file_name) {
    const ProcessResult r = run_process({.arguments = command, .folder = folder.path().string(), .limit = std::chrono::seconds(300)});
    if (r.timed_out) return Diagnostic{.code = "compile.time", .message = fmt::format("{} took more than 300 s to compile `{}`", compiler.name, file_name), .exit = Exit::Wrong};
    return r.good() ? ok() : Status(compile_failed(compiler.name, file_name, r.output));
}

}  // namespace

Result<HostCompiler> find_host_compiler() {
    std::vector<std::string> programs{"g++", "clang++"};
    if (const char* chosen = std::getenv("ACU_HOST_CXX"); chosen && *chosen) programs.insert(programs.begin(), chosen);
    for (const std::string& program : programs) {
        const ProcessResult r = try_program(program);
        if (!r.good()) continue;
        const bool clang = r.output.find("clang") != std::string::npos;
        if (!try_program("addr2line").good()) return lacking("`addr2line`, to say where a finding is", "Debian, Ubuntu: apt install binutils");
        return HostCompiler{program, fmt::format("{} {}", fs::path(program).filename().string(), version_in(r.output)), clang};
    }
    return lacking("a C++ compiler for this machine: g++ or clang++", "Debian, Ubuntu: apt install g++; another one is named by ACU_HOST_CXX");
}

Result<std::string> build_text(const HostCompiler& compiler, const TemporaryFolder& folder, const Target& target, const std::string& text, const std::string& file_name) {
    const std::string library = folder.path().string() + "/text.so";
    for (const auto& [stem, header] : shim_headers())
        if (const Status w = write_text(fmt::format("{}/{}.h", folder.path().string(), stem), header); !w) return w.why();
    if (const Status w = write_text(folder.path().string() + "/" + file_name, text + callers(kernels_in(text))); !w) return w.why();
    std::vector<std::string> compile{compiler.program};
    for (std::string& flag : flags_for(compiler, target)) compile.push_back(std::move(flag));
    for (const std::string& word : {std::string("-include"), std::string("shim.h"), std::string("-c"), file_name, std::string("-o"), std::string("text.o")}) compile.push_back(word);
    // linked without the sanitizers' run time: their functions are acuc's own (hooks.cpp)
    const std::vector<std::string> link{compiler.program, "-shared", "-nostartfiles", "-Wl,-Bsymbolic,--as-needed", "text.o", "-o", "text.so", "-lm"};
    for (const std::vector<std::string>& command : {compile, link})
        if (const Status done = run_step(compiler, command, folder, file_name); !done) return done.why();
    return library;
}

}  // namespace acu::runtime::emulation
