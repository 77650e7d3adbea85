#pragma once
#include <cstdint>
#include <span>

#include "runtime/device.h"

namespace acu::runtime::emulation {

/// What cuTensorMapEncodeTiled is told. Dimension 0 is contiguous; `strides` are in bytes, of the others.
struct TensorMapShape {
    std::span<const uint64_t> dims;
    std::span<const uint64_t> strides;
    std::span<const uint32_t> box;
    uint32_t element_bytes = 2;
    uint32_t swizzle_bytes = 0;  ///< 0, 32, 64 or 128
};

/// A kernel argument for a parameter of type acu::TensorMap. Codes `device.launch` for what the hardware refuses.
Result<KernelArgument> encode_tensor_map(uint64_t address, const TensorMapShape& shape);

}  // namespace acu::runtime::emulation
