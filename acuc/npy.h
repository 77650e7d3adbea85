#pragma once
#include <string>

#include "ir/interpret.h"

namespace acu {

/// Reads a .npy file (format 1.0 to 3.0, C order) as an array of `type`. bf16 is `<u2` or `|V2`, 8-bit floats `|u1` or `|V1`: their bits.
/// Codes `npy.format`, `npy.truncated`, `npy.type`, `npy.order`, and those of files.
Result<ir::Array> read_npy(const std::string& path, ir::DType type);

/// Writes format 1.0 through a temporary file.
Status write_npy(const std::string& path, const ir::Array& a);

}  // namespace acu
