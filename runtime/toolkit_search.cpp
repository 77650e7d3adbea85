#include "runtime/toolkit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "runtime/process.h"

namespace acu::runtime {

namespace fs = std::filesystem;
using Platform = DeviceId::Kind;

namespace {

/// A folder to look in: the root of a toolkit (with `bin` and `lib` folders), or a plain folder of libraries.
struct Place {
    std::string origin;
    fs::path root;
};

/// What to look for on a platform.
struct Wanted {
    ToolkitKind library_kind;
    std::vector<std::string> libraries;  ///< by stem; one after the other, the first that is there counts
    ToolkitKind program_kind;
    std::string program;
};

const Wanted& wanted(Platform platform) {
    static const Wanted cuda{ToolkitKind::Nvrtc, {"libnvrtc.so"}, ToolkitKind::Nvcc, "nvcc"};
    // Old ROCm has the functions of libhiprtc in libamdhip64.
    static const Wanted hip{ToolkitKind::Hiprtc, {"libhiprtc.so", "libamdhip64.so"}, ToolkitKind::Hipcc, "hipcc"};
    return platform == Platform::Cuda ? cuda : hip;
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) out.push_back(it->path());
    std::sort(out.begin(), out.end(), std::greater<>());  // newer versions first, and always in the same order
    return out;
}

std::vector<fs::path> entries_with_prefix(const fs::path& folder, const std::string& prefix) {
    std::vector<fs::path> out = entries(folder);
    std::erase_if(out, [&](const fs::path& p) { return !p.filename().string().starts_with(prefix); });
    return out;
}

fs::path real_path(const fs::path& path) {
    std::error_code ec;
    const fs::path real = fs::canonical(path, ec);
    return ec ? path : real;
}

bool runnable(const fs::path& path) {
    std::error_code ec;
    return fs::is_regular_file(path, ec) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);)
        if (!part.empty()) out.push_back(part);
    return out;
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// ---- versions ----

/// The version, at most `major.minor`, that stands behind `marker`; empty when there is none.
std::string version_after(const std::string& text, const std::string& marker) {
    const size_t at = text.find(marker);
    if (at == std::string::npos) return "";
    std::string version = text.substr(at + marker.size());
    version = version.substr(0, version.find_first_not_of("0123456789."));
    const size_t first = version.find('.');
    if (first != std::string::npos) version = version.substr(0, version.find('.', first + 1));
    while (version.ends_with('.')) version.pop_back();
    return version;
}

/// From file names: `libnvrtc.so.12.4.127`, or the `libnvrtc-builtins.so.12.4` beside `libnvrtc.so.12`.
std::string library_version(const fs::path& library) {
    const fs::path real = real_path(library);
    const std::string own = version_after(real.filename().string(), ".so.");
    if (own.find('.') != std::string::npos) return own;
    for (const fs::path& builtins : entries_with_prefix(real.parent_path(), "libnvrtc-builtins.so.")) {
        const std::string version = version_after(builtins.filename().string(), ".so.");
        if (own.empty() || version.starts_with(own + ".")) return version;
    }
    return own;
}

std::string program_version(const fs::path& program, ToolkitKind kind) {
    const ProcessResult run = run_process({.arguments = {program.string(), "--version"}, .folder = {}, .limit = std::chrono::seconds(10)});
    if (!run.good()) return "";
    return version_after(run.output, kind == ToolkitKind::Nvcc ? "release " : "HIP version: ");
}

// ---- places ----

class Places {
  public:
    void add(const std::string& origin, const fs::path& root) {
        std::error_code ec;
        looked.push_back(fmt::format("{} ({})", root.string(), origin));
        if (fs::is_directory(root, ec))
            found.push_back({origin, real_path(root)});
        else
            looked.back() += ", which is no folder";
    }
    void add_option(const char* option, const std::string& path) {
        if (!path.empty()) add(option, fs::absolute(path));
    }
    void add_variable(const char* name) {
        const std::string value = environment(name);
        if (value.empty())
            looked.push_back(fmt::format("{} (not set)", name));
        else
            add(name, fs::absolute(value));
    }
    /// The toolkit around a program in PATH: `/x/bin/nvcc` → `/x`.
    void add_program(const std::string& program) {
        looked.push_back(fmt::format("{} in PATH", program));
        for (const std::string& folder : split(environment("PATH"), ':'))
            if (runnable(fs::path(folder) / program))
                found.push_back({"PATH", real_path(fs::path(folder) / program).parent_path().parent_path()});
    }
    void add_siblings(const fs::path& folder, const std::string& prefix) {
        looked.push_back((folder / prefix).string() + "*");
        for (const fs::path& root : entries_with_prefix(folder, prefix)) found.push_back({folder.string(), real_path(root)});
    }
    void add_library_folders() {
        for (const std::string& folder : split(environment("LD_LIBRARY_PATH"), ':')) add("LD_LIBRARY_PATH", fs::absolute(folder));
        looked.push_back("the system's library folders");
        for (const char* folder : {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"})
            found.push_back({"library folder", folder});
    }
    void add_python(const std::string& origin, const fs::path& environment) {
        looked.push_back(fmt::format("{} (the nvidia packages of {})", environment.string(), origin));
        for (const fs::path& python : entries_with_prefix(environment / "lib", "python3"))
            for (const fs::path& package : entries(python / "site-packages" / "nvidia")) found.push_back({origin, package});
    }

    std::vector<Place> found;
    std::vector<std::string> looked;
};

Places cuda_places(const ToolkitOptions& options) {
    Places places;
    places.add_option("--cuda-path", options.cuda_path);
    places.add_variable("CUDA_HOME");
    places.add_variable("CUDA_PATH");
    places.add_program("nvcc");
    places.add_siblings("/usr/local", "cuda");
    places.add_library_folders();
    if (const std::string active = environment("VIRTUAL_ENV"); !active.empty()) places.add_python("VIRTUAL_ENV", active);
    std::error_code ec;
    places.add_python(".venv", fs::current_path(ec) / ".venv");
    return places;
}

Places hip_places(const ToolkitOptions& options) {
    Places places;
    places.add_option("--rocm-path", options.rocm_path);
    places.add_variable("ROCM_PATH");
    places.add_variable("HIP_PATH");
    places.add_program("hipcc");
    places.add_siblings("/opt", "rocm");
    places.add_library_folders();
    return places;
}

// ---- looking into a place ----

std::vector<fs::path> libraries_in(const fs::path& root, const std::string& stem) {
    std::vector<fs::path> out;
    for (const char* folder : {"lib64", "lib", "lib/x86_64-linux-gnu", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "."})
        for (const fs::path& file : entries_with_prefix(root / folder, stem))
            if (file.filename().string().find_first_not_of("0123456789.", stem.size()) == std::string::npos) out.push_back(file);
    return out;
}

/// Collects what the places hold, each file once.
class Collector {
  public:
    Collector(Platform platform, std::vector<ToolkitFound>& found) : want_(wanted(platform)), found_(found) {}

    void look(const Place& place) {
        for (const std::string& stem : want_.libraries) {
            const std::vector<fs::path> libraries = libraries_in(place.root, stem);
            for (const fs::path& library : libraries) add(want_.library_kind, library, place.origin);
            if (!libraries.empty()) break;
        }
        if (const fs::path program = place.root / "bin" / want_.program; runnable(program)) add(want_.program_kind, program, place.origin);
    }

  private:
    void add(ToolkitKind kind, const fs::path& path, const std::string& origin) {
        if (!seen_.insert(real_path(path)).second) return;
        const bool library = kind == want_.library_kind;
        found_.push_back({kind, library ? library_version(path) : program_version(path, kind), path.lexically_normal().string(), origin});
    }
    const Wanted& want_;
    std::vector<ToolkitFound>& found_;
    std::set<fs::path> seen_;
};

}  // namespace

ToolkitSearch search_toolkits(Platform platform, const ToolkitOptions& options) {
    Places places = platform == Platform::Cuda ? cuda_places(options) : hip_places(options);
    ToolkitSearch search{{}, std::move(places.looked)};
    Collector collector(platform, search.found);
    for (const Place& place : places.found) collector.look(place);
    return search;
}

std::vector<ToolkitFound> find_toolkits(const ToolkitOptions& options) {
    std::vector<ToolkitFound> found = search_toolkits(Platform::Cuda, options).found;
    for (ToolkitFound& hip : search_toolkits(Platform::Hip, options).found) found.push_back(std::move(hip));
    return found;
}

std::vector<std::string> hip_driver_libraries(const ToolkitOptions& options) {
    std::vector<std::string> names;
    for (const char* name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) names.emplace_back(name);
    for (const Place& place : hip_places(options).found)
        for (const fs::path& library : libraries_in(place.root, "libamdhip64.so")) names.push_back(library.string());
    if (!options.rocm_path.empty()) std::rotate(names.begin(), names.begin() + 4, names.end());
    return names;
}

}  // namespace acu::runtime
