#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulation/options.h"
#include "support/result.h"

namespace acu::runtime {

/// `cuda:0`, `hip:1`, `emu:sm_90a`, parsed. Code `device.unknown`.
struct DeviceId {
    enum class Kind { Cuda, Hip, Emulated } kind;
    int ordinal = 0;
    std::string target = {};  ///< of an emulated device
};
Result<DeviceId> parse_device(const std::string& text);

/// Where to look for compilers before the usual places: what `--cuda-path` and `--rocm-path` said.
struct ToolkitOptions {
    std::string cuda_path;
    std::string rocm_path;
};

/// One argument of a kernel: the bytes that are passed by value (a device pointer, an int64_t, a float).
struct KernelArgument {
    std::vector<std::byte> bytes;
};
template <class T>
KernelArgument argument_of(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {{bytes.begin(), bytes.end()}};
}

/// A tensor of 1 to 5 dimensions and boxes of it, as cuTensorMapEncodeTiled is told. Dimension 0 is contiguous; `strides` are in bytes, of the others.
struct TensorMapShape {
    std::vector<uint64_t> dims;
    std::vector<uint64_t> strides;
    std::vector<uint32_t> box;
    uint32_t element_bytes = 2;
    uint32_t swizzle_bytes = 0;    ///< 0, 32, 64 or 128
};

/// A launch on a one-dimensional grid of `grid` blocks of `block` threads.
struct Launch {
    std::string kernel;
    uint32_t grid = 1;
    uint32_t block = 256;
    std::vector<KernelArgument> arguments;
    uint32_t shared = 0;   ///< bytes of dynamic shared memory of a block
    uint32_t cluster = 1;  ///< blocks that are scheduled together
};

/// Device memory with guard zones of `guard_bytes` on both sides, filled with a pattern; the memory itself starts poisoned (every byte 0xA5 xor its position).
class Buffer {
  public:
    virtual ~Buffer() = default;
    virtual uint64_t address() const = 0;  ///< of the usable memory; at least 256-byte aligned
    virtual size_t bytes() const = 0;
    virtual Status upload(std::span<const std::byte> data) = 0;
    virtual Status download(std::span<std::byte> data) const = 0;
    virtual Status
    check_guards(const std::string& name) const = 0;  ///< code `device.guard`, exit 4: says before or behind, and the first offset
};
inline constexpr size_t guard_bytes = 4096;

/// A compiled module, loaded on a device.
class Module {
  public:
    virtual ~Module() = default;
};

/// One GPU, through its driver API, or its emulation. The driver and the run-time compiler are opened with dlopen when they are first needed.
class Device {
  public:
    virtual ~Device() = default;
    virtual std::string name() const = 0;          ///< "NVIDIA H200"
    virtual std::string architecture() const = 0;  ///< "sm_90a" (a suffix `a` for 9.0), "sm_80", "gfx90a"
    virtual std::string toolchain() const = 0;     ///< "nvrtc 13.0", "nvcc 13.0", "hiprtc 5.2"; known after the first compile
    /// Compiles CUDA or HIP source text for this device (nothing is included from outside) and loads it.
    /// Codes: `toolkit.missing`, `toolkit.target` (exit 3, help names the package), `compile.failed` (with the first lines of the log).
    virtual Result<std::unique_ptr<Module>> load(const std::string& source, const std::string& file_name) = 0;
    virtual Result<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;  ///< code `device.memory`
    /// An argument for a parameter of type TensorMap. Code `device.launch` for what the hardware refuses.
    virtual Result<KernelArgument> tensor_map(uint64_t address, const TensorMapShape& shape) = 0;
    virtual Status launch(Module& module, const Launch& launch) = 0;     ///< asynchronous; code `device.launch`
    virtual Status synchronize() = 0;                                    ///< code `device.failed`: what the driver said
    /// Seconds on the device, between two events, of one pass over `launches`: the mean of `repeats` passes. Warming up is the caller's.
    virtual Result<double> time(const std::vector<Launch>& launches, Module& module, int repeats) = 0;
};

/// Opens a device. Codes `device.no-driver`, `device.none` (exit 3, with advice), `device.ordinal`, `toolkit.missing` (emulation without a host compiler).
Result<std::unique_ptr<Device>> open_device(const DeviceId& id, const ToolkitOptions& options, const EmulationOptions& emulation = {});

}  // namespace acu::runtime
