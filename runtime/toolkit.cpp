#include "runtime/toolkit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace acu::runtime {

namespace {

struct Version {
    int major = 0;
    int minor = 99;  ///< unknown: as new as can be
};

Version parse_version(const std::string& text) {
    Version version;
    if (std::sscanf(text.c_str(), "%d.%d", &version.major, &version.minor) < 1) return {};
    return version;
}

bool older(Version a, Version b) { return a.major != b.major ? a.major < b.major : a.minor < b.minor; }

/// The toolkits that build an architecture: from `first` on, up to the major version `last`.
struct Range {
    const char* arch;
    Version first;
    int last = 1000;
};

constexpr Range ranges[] = {
    {"sm_50", {6, 5}, 12}, {"sm_52", {6, 5}, 12}, {"sm_60", {8, 0}, 12}, {"sm_61", {8, 0}, 12}, {"sm_70", {9, 0}, 12},
    {"sm_72", {9, 2}, 12}, {"sm_75", {10, 0}},    {"sm_80", {11, 0}},    {"sm_86", {11, 1}},    {"sm_87", {11, 4}},
    {"sm_89", {11, 8}},    {"sm_90", {11, 8}},    {"sm_90a", {12, 0}},   {"sm_100", {12, 8}},   {"sm_100a", {12, 8}},
    {"sm_103", {12, 9}},   {"sm_103a", {12, 9}},  {"sm_120", {12, 8}},   {"sm_120a", {12, 8}},  {"gfx906", {3, 0}},
    {"gfx908", {3, 5}},    {"gfx90a", {4, 3}},    {"gfx942", {5, 7}},    {"gfx950", {6, 4}},    {"gfx1030", {4, 0}},
    {"gfx1100", {5, 3}},   {"gfx1200", {6, 3}},   {"gfx1201", {6, 3}},
};

const Range* range_of(const std::string& arch) {
    const auto it = std::find_if(std::begin(ranges), std::end(ranges), [&](const Range& r) { return arch == r.arch; });
    return it == std::end(ranges) ? nullptr : it;
}

bool is_hip(const std::string& arch) { return arch.starts_with("gfx"); }
bool is_library(ToolkitKind kind) { return kind == ToolkitKind::Nvrtc || kind == ToolkitKind::Hiprtc; }

Diagnostic nothing_found(const ToolkitSearch& search, const std::string& arch) {
    Diagnostic d{.code = "toolkit.missing",
                 .message = fmt::format("no {} that compiles for {} was found", is_hip(arch) ? "hiprtc or hipcc" : "nvrtc or nvcc", arch),
                 .help = toolkit_advice(arch) + (is_hip(arch) ? "; or name one with --rocm-path" : "; or name one with --cuda-path"),
                 .exit = Exit::Lacking};
    for (const std::string& place : search.looked) d.notes.push_back({{}, "looked at " + place});
    return d;
}

Diagnostic none_builds(const ToolkitSearch& search, const std::string& arch) {
    Diagnostic d{.code = "toolkit.target",
                 .message = fmt::format("no toolkit here builds {}", arch),
                 .help = toolkit_advice(arch),
                 .exit = Exit::Lacking};
    for (const ToolkitFound& found : search.found)
        d.notes.push_back({{}, fmt::format("{} at {} does not build it", describe(found), found.path)});
    return d;
}

}  // namespace

std::string kind_name(ToolkitKind kind) {
    switch (kind) {
        case ToolkitKind::Nvrtc: return "nvrtc";
        case ToolkitKind::Nvcc: return "nvcc";
        case ToolkitKind::Hiprtc: return "hiprtc";
        case ToolkitKind::Hipcc: return "hipcc";
    }
    return "?";
}

std::string describe(const ToolkitFound& found) { return kind_name(found.kind) + (found.version.empty() ? "" : " " + found.version); }

bool builds(const ToolkitFound& found, const std::string& arch) {
    const bool hip_kind = found.kind == ToolkitKind::Hiprtc || found.kind == ToolkitKind::Hipcc;
    if (hip_kind != is_hip(arch)) return false;
    const Version version = parse_version(found.version);
    const Range* range = range_of(arch);
    if (version.major == 0 || !range) return true;
    return !older(version, range->first) && version.major <= range->last;
}

std::string toolkit_advice(const std::string& arch) {
    const Range* range = range_of(arch);
    if (is_hip(arch))
        return fmt::format("{} needs ROCm{}: apt install hipcc libamdhip64-dev, or AMD's packages (https://rocm.docs.amd.com)", arch,
                           range ? fmt::format(" {}.{} or newer", range->first.major, range->first.minor) : "");
    if (range && range->last < 1000)
        return fmt::format("{} needs a CUDA {} toolkit: pip install nvidia-cuda-nvrtc-cu{}", arch, range->last, range->last);
    return fmt::format("{} needs CUDA{}: pip install nvidia-cuda-nvrtc", arch,
                       range ? fmt::format(" {}.{} or newer", range->first.major, range->first.minor) : "");
}

Result<std::vector<ToolkitFound>> choose_toolkits(const ToolkitSearch& search, const std::string& arch, int driver_major) {
    if (search.found.empty()) return nothing_found(search, arch);
    std::vector<ToolkitFound> able = search.found;
    std::erase_if(able, [&](const ToolkitFound& f) { return !builds(f, arch); });
    if (able.empty()) return none_builds(search, arch);
    std::stable_partition(able.begin(), able.end(), [](const ToolkitFound& f) { return is_library(f.kind); });
    if (driver_major > 0)
        std::stable_partition(able.begin(), able.end(),
                              [&](const ToolkitFound& f) { return parse_version(f.version).major <= driver_major; });
    return able;
}

}  // namespace acu::runtime
