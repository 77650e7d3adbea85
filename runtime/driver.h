#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/device.h"

namespace acu::runtime {

/// How a launch lies on the device.
struct LaunchShape {
    uint32_t grid, block;
    uint32_t shared = 0;   ///< bytes of dynamic shared memory of a block
    uint32_t cluster = 1;  ///< blocks that are scheduled together
};

/// What CUDA's and HIP's driver interfaces have in common: one opened device. Functions return the driver's error number, 0 for success.
class Driver {
  public:
    using Handle = void*;  ///< a module, a kernel or an event
    virtual ~Driver() = default;

    virtual std::string name() const = 0;
    virtual std::string architecture() const = 0;
    virtual int toolkit_major() const = 0;  ///< the newest toolkit that this driver knows, 0 for unknown

    virtual int make_current() = 0;  ///< for the calling thread; before every other function
    virtual int allocate(uint64_t& address, size_t bytes) = 0;
    virtual int release(uint64_t address) = 0;
    virtual int copy_in(uint64_t to, const void* from, size_t bytes) = 0;
    virtual int copy_out(void* to, uint64_t from, size_t bytes) = 0;
    virtual int copy_within(uint64_t to, uint64_t from, size_t bytes) = 0;

    virtual int load_module(Handle& module, const void* code) = 0;
    virtual int unload_module(Handle module) = 0;
    virtual int find_kernel(Handle& kernel, Handle module, const char* name) = 0;
    virtual bool has_clusters() const { return false; }
    virtual int prepare(Handle, const LaunchShape&) { return 0; }  ///< before the first launch of this shape: what a kernel must be allowed
    virtual int launch(Handle kernel, const LaunchShape& shape, void** arguments) = 0;
    virtual int synchronize() = 0;
    /// Fills 128 bytes, aligned to 64; none: there is no copy engine.
    virtual std::optional<int> encode_tensor_map(void*, uint64_t, const TensorMapShape&) { return {}; }

    virtual int create_event(Handle& event) = 0;
    virtual int destroy_event(Handle event) = 0;
    virtual int record(Handle event) = 0;
    virtual int elapsed(float& milliseconds, Handle start, Handle stop) = 0;  ///< waits for `stop`

    virtual std::string explain(int error) const = 0;  ///< "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
    virtual bool lost(int error) const = 0;            ///< whether the process can no longer use the device after this error
    virtual void clear_error() {}                      ///< forgets a remembered error, where the interface remembers one
};

/// Each in the one file that sees its library. Codes as for `open_device`.
Result<std::shared_ptr<Driver>> open_cuda_driver(int ordinal);
Result<std::shared_ptr<Driver>> open_hip_driver(int ordinal, const ToolkitOptions& options);

/// `code`: "`what` failed: what the driver said"; clears the error.
Diagnostic driver_failed(Driver& driver, int error, const char* code, const std::string& what);

/// Code `device.ordinal`: only `count` devices are here.
Diagnostic no_such_device(const std::string& kind, int ordinal, int count);

}  // namespace acu::runtime
