#pragma once
#include <memory>

#include "runtime/driver.h"

namespace acu::runtime {

/// A Device over any driver: compiles, loads, launches and times.
std::unique_ptr<Device> make_device(std::shared_ptr<Driver> driver, const ToolkitOptions& options);

}  // namespace acu::runtime
