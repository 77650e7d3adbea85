#include "runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/driver.h"
#include "runtime/driver_device.h"
#include "runtime/emulation/device.h"
#include "target/target.h"

namespace acu::runtime {

namespace {

/// A small decimal number without sign, or -1.
int parse_ordinal(std::string_view text) {
    constexpr size_t most_digits = 3;
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.empty() || text.size() > most_digits || !std::all_of(text.begin(), text.end(), digit)) return -1;
    int value = 0;
    for (char c : text) value = value * 10 + (c - '0');
    return value;
}

bool can_emulate(const std::string& target) {
    const Target* t = target_named(target);
    return t && t->platform != Platform::Cpu;
}

std::vector<std::string> device_names() {
    std::vector<std::string> names{"cuda:0", "hip:0"};
    for (const Target& t : targets())
        if (t.platform != Platform::Cpu) names.push_back("emu:" + std::string(t.name));
    return names;
}

}  // namespace

Result<DeviceId> parse_device(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    if (kind == "emu" && colon != std::string::npos && can_emulate(text.substr(colon + 1))) return DeviceId{DeviceId::Kind::Emulated, 0, text.substr(colon + 1)};
    const int ordinal = colon == std::string::npos ? -1 : parse_ordinal(std::string_view(text).substr(colon + 1));
    if (kind == "cuda" && ordinal >= 0) return DeviceId{DeviceId::Kind::Cuda, ordinal};
    if (kind == "hip" && ordinal >= 0) return DeviceId{DeviceId::Kind::Hip, ordinal};
    std::string help = did_you_mean(text, device_names());
    if (help.empty()) help = "write cuda:N or hip:N, with a number such as 0, or emu:TARGET, such as emu:sm_80";
    return Diagnostic{.code = "device.unknown", .message = fmt::format("`{}` names no GPU", text), .help = help, .exit = Exit::Usage};
}

Result<std::unique_ptr<Device>> open_device(const DeviceId& id, const ToolkitOptions& options, const EmulationOptions& emulation) {
    if (id.kind == DeviceId::Kind::Emulated) return emulation::open_emulated(id.target, emulation);
    Result<std::shared_ptr<Driver>> driver =
        id.kind == DeviceId::Kind::Cuda ? open_cuda_driver(id.ordinal) : open_hip_driver(id.ordinal, options);
    if (!driver) return driver.why();
    return make_device(std::move(*driver), options);
}

}  // namespace acu::runtime
