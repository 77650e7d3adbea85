// The one file that sees the CUDA driver: libcuda.so.1, opened when it is first needed, through our own declarations.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "runtime/driver.h"
#include "runtime/library.h"

namespace acu::runtime {

namespace {

using Context = void*;
using Address = unsigned long long;

constexpr int attribute_major = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int attribute_minor = 76;
constexpr int no_device = 100;  // CUDA_ERROR_NO_DEVICE
constexpr int attribute_shared = 8;             // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int attribute_large_cluster = 14;     // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
constexpr uint32_t free_shared = 48 << 10;      // bytes that every kernel may have
constexpr uint32_t portable_cluster = 8;

/// CUlaunchConfig and its attribute CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, as cuda.h lays them out.
struct LaunchAttribute {
    int id = 4;
    int padding = 0;
    unsigned value[16] = {1, 1, 1};
};
struct LaunchConfig {
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    unsigned shared = 0;
    void* stream = nullptr;
    LaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

/// The functions of libcuda, by the names that cuda.h maps to. Every driver since CUDA 7 has them.
struct Api {
    int (*init)(unsigned flags);
    int (*driver_version)(int*);
    int (*device_count)(int*);
    int (*device_get)(int*, int ordinal);
    int (*device_name)(char*, int length, int device);
    int (*device_attribute)(int*, int attribute, int device);
    int (*context_retain)(Context*, int device);
    int (*context_release)(int device);
    int (*context_set)(Context);
    int (*context_synchronize)();
    int (*allocate)(Address*, size_t);
    int (*release)(Address);
    int (*copy_in)(Address, const void*, size_t);
    int (*copy_out)(void*, Address, size_t);
    int (*copy_within)(Address, Address, size_t);
    int (*module_load)(void**, const void*);
    int (*module_unload)(void*);
    int (*module_kernel)(void**, void*, const char*);
    int (*launch)(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
                  void** arguments, void** extra);
    int (*launch_extended)(const LaunchConfig*, void*, void** arguments, void** extra);  // null before CUDA 11.8
    int (*encode_map)(void*, int type, uint32_t rank, void* address, const uint64_t* dims, const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle,
                      int l2_promotion, int fill);  // null before CUDA 12
    int (*set_attribute)(void*, int attribute, int value);
    int (*event_create)(void**, unsigned flags);
    int (*event_destroy)(void*);
    int (*event_record)(void*, void* stream);
    int (*event_synchronize)(void*);
    int (*event_elapsed)(float*, void*, void*);
    int (*error_string)(int, const char**);
    int (*error_name)(int, const char**);
};

void bind_device(Binder& binder, Api& api) {
    binder.bind(api.init, "cuInit")
        .bind(api.driver_version, "cuDriverGetVersion")
        .bind(api.device_count, "cuDeviceGetCount")
        .bind(api.device_get, "cuDeviceGet")
        .bind(api.device_name, "cuDeviceGetName")
        .bind(api.device_attribute, "cuDeviceGetAttribute")
        .bind(api.context_retain, "cuDevicePrimaryCtxRetain")
        .bind(api.context_release, "cuDevicePrimaryCtxRelease_v2")
        .bind(api.context_set, "cuCtxSetCurrent")
        .bind(api.context_synchronize, "cuCtxSynchronize")
        .bind(api.error_string, "cuGetErrorString")
        .bind(api.error_name, "cuGetErrorName");
}

void bind_work(Binder& binder, Api& api) {
    binder.bind(api.allocate, "cuMemAlloc_v2")
        .bind(api.release, "cuMemFree_v2")
        .bind(api.copy_in, "cuMemcpyHtoD_v2")
        .bind(api.copy_out, "cuMemcpyDtoH_v2")
        .bind(api.copy_within, "cuMemcpyDtoD_v2")
        .bind(api.module_load, "cuModuleLoadData")
        .bind(api.module_unload, "cuModuleUnload")
        .bind(api.module_kernel, "cuModuleGetFunction")
        .bind(api.launch, "cuLaunchKernel")
        .bind(api.set_attribute, "cuFuncSetAttribute")
        .bind(api.event_create, "cuEventCreate")
        .bind(api.event_destroy, "cuEventDestroy_v2")
        .bind(api.event_record, "cuEventRecord")
        .bind(api.event_synchronize, "cuEventSynchronize")
        .bind(api.event_elapsed, "cuEventElapsedTime");  // not _v2, which only drivers of CUDA 12.8 and later have
}

std::string explain_error(const Api& api, int error) {
    const char* text = nullptr;
    const char* name = nullptr;
    if (api.error_string(error, &text) != 0 || !text) text = "unknown error";
    if (api.error_name(error, &name) != 0 || !name) return fmt::format("{} ({})", text, error);
    return fmt::format("{} ({})", text, name);
}

class CudaDriver : public Driver {
  public:
    CudaDriver(Library library, const Api& api) : library_(std::move(library)), api_(api) {}
    ~CudaDriver() override {
        if (context_) api_.context_release(device_);
    }

    int open(int ordinal) {
        int error = api_.device_get(&device_, ordinal);
        std::array<char, 256> name{};
        if (!error) error = api_.device_name(name.data(), static_cast<int>(name.size()) - 1, device_);
        if (!error) error = api_.device_attribute(&major_, attribute_major, device_);
        if (!error) error = api_.device_attribute(&minor_, attribute_minor, device_);
        if (!error) error = api_.context_retain(&context_, device_);
        name_ = name.data();
        int version = 0;
        if (api_.driver_version(&version) == 0) toolkit_major_ = version / 1000;
        return error;
    }

    std::string name() const override { return name_; }
    std::string architecture() const override { return fmt::format("sm_{}{}{}", major_, minor_, major_ == 9 && minor_ == 0 ? "a" : ""); }
    int toolkit_major() const override { return toolkit_major_; }

    int make_current() override { return api_.context_set(context_); }
    int allocate(uint64_t& address, size_t bytes) override {
        Address got = 0;
        const int error = api_.allocate(&got, bytes);
        address = got;
        return error;
    }
    int release(uint64_t address) override { return api_.release(address); }
    int copy_in(uint64_t to, const void* from, size_t bytes) override { return api_.copy_in(to, from, bytes); }
    int copy_out(void* to, uint64_t from, size_t bytes) override { return api_.copy_out(to, from, bytes); }
    int copy_within(uint64_t to, uint64_t from, size_t bytes) override { return api_.copy_within(to, from, bytes); }

    int load_module(Handle& module, const void* code) override { return api_.module_load(&module, code); }
    int unload_module(Handle module) override { return api_.module_unload(module); }
    int find_kernel(Handle& kernel, Handle module, const char* name) override { return api_.module_kernel(&kernel, module, name); }
    bool has_clusters() const override { return major_ >= 9 && api_.launch_extended; }
    int prepare(Handle kernel, const LaunchShape& s) override {
        int error = s.shared > free_shared ? api_.set_attribute(kernel, attribute_shared, static_cast<int>(s.shared)) : 0;
        if (!error && s.cluster > portable_cluster) error = api_.set_attribute(kernel, attribute_large_cluster, 1);
        return error;
    }
    int launch(Handle kernel, const LaunchShape& s, void** arguments) override {
        if (s.cluster == 1) return api_.launch(kernel, s.grid, 1, 1, s.block, 1, 1, s.shared, nullptr, arguments, nullptr);
        LaunchAttribute cluster;
        cluster.value[0] = s.cluster;
        LaunchConfig config;
        config.grid[0] = s.grid, config.block[0] = s.block, config.shared = s.shared, config.attributes = &cluster, config.attribute_count = 1;
        return api_.launch_extended(&config, kernel, arguments, nullptr);
    }
    /// CUDA driver API, "Tensor Map Object Management": unsigned elements of 1, 2, 4 or 8 bytes, nothing interleaved, zeros outside.
    std::optional<int> encode_tensor_map(void* map, uint64_t address, const TensorMapShape& s) override {
        if (major_ < 9 || !api_.encode_map) return {};
        const std::vector<uint32_t> steps(s.dims.size(), 1);
        std::vector<uint64_t> strides = s.strides;
        strides.push_back(0);    // a tensor of one dimension has none, but the driver wants an address
        const int type = s.element_bytes == 1 ? 0 : s.element_bytes == 2 ? 1 : s.element_bytes == 4 ? 2 : 4, swizzle = s.swizzle_bytes == 128 ? 3 : s.swizzle_bytes == 64 ? 2 : s.swizzle_bytes == 32 ? 1 : 0;
        constexpr int promote_256 = 3;
        return api_.encode_map(map, type, static_cast<uint32_t>(s.dims.size()), reinterpret_cast<void*>(address), s.dims.data(), strides.data(), s.box.data(), steps.data(), 0, swizzle, promote_256, 0);
    }
    int synchronize() override { return api_.context_synchronize(); }

    int create_event(Handle& event) override { return api_.event_create(&event, 0); }
    int destroy_event(Handle event) override { return api_.event_destroy(event); }
    int record(Handle event) override { return api_.event_record(event, nullptr); }
    int elapsed(float& milliseconds, Handle start, Handle stop) override {
        const int error = api_.event_synchronize(stop);
        return error ? error : api_.event_elapsed(&milliseconds, start, stop);
    }

    std::string explain(int error) const override { return explain_error(api_, error); }

    /// Memory, hardware and trap errors stay with the context; the driver's interface has no way to clear them.
    bool lost(int error) const override {
        return error == 214 || error == 220 || error == 700 || error == 702 || error == 710 || (error >= 714 && error <= 719);
    }

  private:
    Library library_;
    Api api_;
    int device_ = 0;
    int major_ = 0;
    int minor_ = 0;
    int toolkit_major_ = 0;
    std::string name_;
    Context context_ = nullptr;
};

Diagnostic no_driver(const Diagnostic& why) {
    return {.code = "device.no-driver",
            .message = "there is no CUDA driver here: " + why.message,
            .help = "install NVIDIA's driver (in a container: start it with `--gpus all`); or run with `--device cpu`, which needs no GPU",
            .exit = Exit::Lacking};
}

Diagnostic none(const std::string& why) {
    return {.code = "device.none",
            .message = "there is no usable CUDA device: " + why,
            .help = "`nvidia-smi` should list one (CUDA_VISIBLE_DEVICES can hide it); or run with `--device cpu`, which needs no GPU",
            .exit = Exit::Lacking};
}

/// Starts the driver and checks that the device is there.
Status check_devices(const Api& api, int ordinal) {
    int count = 0;
    int error = api.init(0);
    if (!error) error = api.device_count(&count);
    if (!error && count == 0) error = no_device;
    if (error) return none(explain_error(api, error));
    return ordinal < count ? ok() : Status(no_such_device("cuda", ordinal, count));
}

}  // namespace

Result<std::shared_ptr<Driver>> open_cuda_driver(int ordinal) {
    Result<Library> library = Library::open("libcuda.so.1");
    if (!library) return no_driver(library.why());
    Api api{};
    Binder binder(*library);
    bind_device(binder, api);
    bind_work(binder, api);
    library->bind(api.launch_extended, "cuLaunchKernelEx");
    library->bind(api.encode_map, "cuTensorMapEncodeTiled");
    if (Status complete = binder.status(); !complete) return no_driver(complete.why());
    if (Status there = check_devices(api, ordinal); !there) return there.why();
    auto driver = std::make_shared<CudaDriver>(std::move(*library), api);
    if (const int error = driver->open(ordinal)) return none(explain_error(api, error));
    return std::shared_ptr<Driver>(std::move(driver));
}

}  // namespace acu::runtime
