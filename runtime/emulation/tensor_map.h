#pragma once
#include "runtime/device.h"

namespace acu::runtime::emulation {

/// A kernel argument for a parameter of type acu::TensorMap. Codes `device.launch` for what the hardware refuses.
Result<KernelArgument> encode_tensor_map(uint64_t address, const TensorMapShape& shape);

}  // namespace acu::runtime::emulation
