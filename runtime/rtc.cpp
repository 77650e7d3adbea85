#include "runtime/rtc.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "runtime/library.h"

namespace acu::runtime {

namespace {

using Program = void*;

/// The functions of a run-time compiler; each returns 0 for success.
struct Api {
    int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
    int (*destroy)(Program*);
    int (*compile)(Program, int options, const char* const*);
    int (*code_size)(Program, size_t*);
    int (*code)(Program, char*);
    int (*log_size)(Program, size_t*);
    int (*log)(Program, char*);
    const char* (*error)(int);
};

Result<Api> load_api(const Library& library, const RtcNames& names) {
    Api api{};
    Binder binder(library);
    binder.bind(api.create, (names.prefix + "CreateProgram").c_str())
        .bind(api.destroy, (names.prefix + "DestroyProgram").c_str())
        .bind(api.compile, (names.prefix + "CompileProgram").c_str())
        .bind(api.code_size, names.code_size.c_str())
        .bind(api.code, names.code.c_str())
        .bind(api.log_size, (names.prefix + "GetProgramLogSize").c_str())
        .bind(api.log, (names.prefix + "GetProgramLog").c_str())
        .bind(api.error, (names.prefix + "GetErrorString").c_str());
    if (Status status = binder.status(); !status) return status.why();
    return api;
}

Diagnostic broken(Diagnostic why) {
    why.code = "toolkit.broken";
    return why;
}

/// Opens the `libnvrtc-builtins.so.13.0` beside the library. The compiler asks the loader for it by name only, and a toolkit that was named by
/// its path need not be where the loader looks; once open, the name is known.
void open_companions(const RtcNames& names, const std::string& library) {
    namespace fs = std::filesystem;
    std::error_code ec;
    const fs::path folder = fs::canonical(library, ec).parent_path();
    const std::string prefix = fmt::format("lib{}-builtins.so", names.prefix);
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
        if (it->path().filename().string().starts_with(prefix)) (void)Library::open(it->path().string());
}

std::string read_log(const Api& api, Program program) {
    size_t size = 0;
    if (api.log_size(program, &size) != 0 || size <= 1) return "";
    std::string log(size, '\0');
    if (api.log(program, log.data()) != 0) return "";
    return log.substr(0, log.find('\0'));
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& t : texts) out.push_back(t.c_str());
    return out;
}

Result<std::vector<char>> read_code(const Api& api, Program program, const RtcNames& names, const std::string& file_name) {
    size_t size = 0;
    int error = api.code_size(program, &size);
    std::vector<char> code(size);
    if (!error && size) error = api.code(program, code.data());
    if (error || size == 0) return compile_failed(names.prefix, file_name, fmt::format("no machine code came out: {}", api.error(error)));
    return code;
}

}  // namespace

Diagnostic compile_failed(const std::string& compiler, const std::string& file_name, const std::string& log) {
    constexpr int most = 20;
    Diagnostic d{.code = "compile.failed", .message = fmt::format("{} did not compile `{}`", compiler, file_name), .exit = Exit::Wrong};
    std::istringstream lines(log);
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        if (++count <= most) d.notes.push_back({{}, line});
    }
    if (count > most) d.notes.push_back({{}, fmt::format("… and {} more lines", count - most)});
    return d;
}

Result<std::vector<char>> compile_with_rtc(const RtcNames& names, const RtcRequest& request) {
    Result<Library> library = Library::open(request.library);
    if (!library) return broken(library.why());
    Result<Api> api = load_api(*library, names);
    if (!api) return broken(api.why());
    open_companions(names, request.library);
    Program program = nullptr;
    if (const int error = api->create(&program, request.source.c_str(), request.file_name.c_str(), 0, nullptr, nullptr))
        return compile_failed(names.prefix, request.file_name, api->error(error));
    auto destroy = [&](Program* p) { api->destroy(p); };
    const std::unique_ptr<Program, decltype(destroy)> owner(&program, destroy);
    const std::vector<const char*> options = pointers(request.options);
    if (const int error = api->compile(program, static_cast<int>(options.size()), options.data()))
        return compile_failed(names.prefix, request.file_name, fmt::format("{}\n{}", api->error(error), read_log(*api, program)));
    return read_code(*api, program, names, request.file_name);
}

}  // namespace acu::runtime
