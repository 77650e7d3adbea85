#include "runtime/emulation/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/emulation/shim.h"

namespace acu::runtime::emulation {

namespace {

Diagnostic refused(const std::string& why) { return {.code = "device.launch", .message = "no tensor map can describe this: " + why, .exit = Exit::Wrong}; }

/// CUDA driver API, cuTensorMapEncodeTiled.
Status check_shape(uint64_t address, const TensorMapShape& s) {
    const size_t rank = s.dims.size();
    if (rank < 1 || rank > 5 || s.box.size() != rank || s.strides.size() != rank - 1) return refused(fmt::format("{} dimensions", rank));
    if (address % 16) return refused("an address that is no multiple of 16");
    for (const uint64_t stride : s.strides)
        if (stride % 16) return refused(fmt::format("a stride of {} bytes, which is no multiple of 16", stride));
    for (const uint32_t box : s.box)
        if (box < 1 || box > 256) return refused(fmt::format("a box of {} elements", box));
    if (s.box[0] * s.element_bytes % 16) return refused(fmt::format("boxes whose lines have {} bytes, which is no multiple of 16", s.box[0] * s.element_bytes));
    if (s.swizzle_bytes && s.box[0] * s.element_bytes > s.swizzle_bytes) return refused(fmt::format("boxes whose lines of {} bytes are longer than the swizzle", s.box[0] * s.element_bytes));
    return ok();
}

}  // namespace

Result<KernelArgument> encode_tensor_map(uint64_t address, const TensorMapShape& s) {
    if (const Status good = check_shape(address, s); !good) return good.why();
    acu::TensorMap m{};
    m.base = reinterpret_cast<const void*>(address);
    m.rank = static_cast<uint16_t>(s.dims.size());
    m.element = static_cast<uint16_t>(s.element_bytes);
    m.swizzle = s.swizzle_bytes;
    std::copy(s.dims.begin(), s.dims.end(), m.dims);
    std::copy(s.strides.begin(), s.strides.end(), m.strides);
    std::copy(s.box.begin(), s.box.end(), m.box);
    KernelArgument a;
    a.bytes.resize(sizeof m);
    std::memcpy(a.bytes.data(), &m, sizeof m);
    return a;
}

}  // namespace acu::runtime::emulation
