#pragma once
#include <memory>

#include "runtime/driver.h"

namespace acu::runtime {

/// The byte that poisoned memory has at `position`.
constexpr std::byte poison_byte(size_t position) { return std::byte(0xA5 ^ (position & 0xFF)); }

/// The byte that a guard zone has at `position`; never 0 where a zeroing overrun would go unseen for long.
constexpr std::byte guard_byte(size_t position) { return std::byte(0x3C ^ ((position * 7) & 0xFF)); }

/// Allocates `bytes` of device memory between two guard zones, all filled. The zone behind starts at the very next byte.
/// The buffer keeps the driver alive. Code `device.memory`, `device.failed`.
Result<std::unique_ptr<Buffer>> allocate_guarded(std::shared_ptr<Driver> driver, size_t bytes);

}  // namespace acu::runtime
