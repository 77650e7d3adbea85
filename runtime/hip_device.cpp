// The one file that sees the HIP runtime: libamdhip64, opened when it is first needed, through our own declarations.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "runtime/driver.h"
#include "runtime/library.h"
#include "runtime/toolkit.h"

namespace acu::runtime {

namespace {

constexpr int no_device = 100;  // hipErrorNoDevice

struct Api {
    int (*init)(unsigned flags);
    int (*device_count)(int*);
    int (*device_set)(int ordinal);
    int (*device_properties)(void*, int ordinal);
    int (*device_name)(char*, int length, int device);
    int (*device_synchronize)();
    int (*allocate)(void**, size_t);
    int (*release)(void*);
    int (*copy_in)(void*, void*, size_t);
    int (*copy_out)(void*, void*, size_t);
    int (*copy_within)(void*, void*, size_t);
    int (*module_load)(void**, const void*);
    int (*module_unload)(void*);
    int (*module_kernel)(void**, void*, const char*);
    int (*launch)(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
                  void** arguments, void** extra);
    int (*event_create)(void**);
    int (*event_destroy)(void*);
    int (*event_record)(void*, void* stream);
    int (*event_synchronize)(void*);
    int (*event_elapsed)(float*, void*, void*);
    int (*last_error)();
    const char* (*error_string)(int);
    const char* (*error_name)(int);
};

void bind_device(Binder& binder, Api& api) {
    binder.bind(api.init, "hipInit")
        .bind(api.device_count, "hipGetDeviceCount")
        .bind(api.device_set, "hipSetDevice")
        .bind(api.device_name, "hipDeviceGetName")
        .bind(api.device_synchronize, "hipDeviceSynchronize")
        .bind(api.last_error, "hipGetLastError")
        .bind(api.error_string, "hipGetErrorString")
        .bind(api.error_name, "hipGetErrorName");
}

void bind_work(Binder& binder, Api& api) {
    binder.bind(api.allocate, "hipMalloc")
        .bind(api.release, "hipFree")
        .bind(api.copy_in, "hipMemcpyHtoD")
        .bind(api.copy_out, "hipMemcpyDtoH")
        .bind(api.copy_within, "hipMemcpyDtoD")
        .bind(api.module_load, "hipModuleLoadData")
        .bind(api.module_unload, "hipModuleUnload")
        .bind(api.module_kernel, "hipModuleGetFunction")
        .bind(api.launch, "hipModuleLaunchKernel")
        .bind(api.event_create, "hipEventCreate")
        .bind(api.event_destroy, "hipEventDestroy")
        .bind(api.event_record, "hipEventRecord")
        .bind(api.event_synchronize, "hipEventSynchronize")
        .bind(api.event_elapsed, "hipEventElapsedTime");
}

std::string explain_error(const Api& api, int error) {
    const char* text = api.error_string(error);
    const char* name = api.error_name(error);
    if (!text || !name) return fmt::format("unknown error ({})", error);
    return std::string_view(text) == name ? fmt::format("{} ({})", name, error) : fmt::format("{} ({})", text, name);
}

/// "gfx90a" out of the bytes of a hipDeviceProp_t. That struct's layout differs between ROCm 5, 6 and 7, so its field `gcnArchName` is found
/// by what it holds, "gfx90a:sramecc+:xnack-", and not by its place.
std::string find_architecture(std::string_view properties) {
    constexpr std::string_view prefix = "gfx";
    for (size_t at = properties.find(prefix); at != std::string_view::npos; at = properties.find(prefix, at + 1)) {
        const size_t end = properties.find_first_not_of("0123456789abcdef", at + prefix.size());
        const std::string_view name = properties.substr(at, end - at);
        if (name.size() >= prefix.size() + 3) return std::string(name);
    }
    return "";
}

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

class HipDriver : public Driver {
  public:
    HipDriver(Library library, const Api& api, int ordinal) : library_(std::move(library)), api_(api), ordinal_(ordinal) {}

    int open() {
        std::array<char, 256> name{};
        std::vector<char> properties(16384);  // several times as large as any version's struct
        int error = api_.device_set(ordinal_);
        if (!error) error = api_.device_name(name.data(), static_cast<int>(name.size()) - 1, ordinal_);
        if (!error) error = api_.device_properties(properties.data(), ordinal_);
        constexpr size_t name_field = 256;  // the struct starts with the name in every version
        architecture_ = find_architecture({properties.data() + name_field, properties.size() - name_field});
        name_ = name.data();
        return error;
    }

    std::string name() const override { return name_.empty() ? architecture_ : name_; }
    std::string architecture() const override { return architecture_; }
    int toolkit_major() const override { return 0; }  // compiler and runtime come from one ROCm installation

    int make_current() override { return api_.device_set(ordinal_); }
    int allocate(uint64_t& address, size_t bytes) override {
        void* got = nullptr;
        const int error = api_.allocate(&got, bytes);
        address = reinterpret_cast<uint64_t>(got);
        return error;
    }
    int release(uint64_t address) override { return api_.release(pointer(address)); }
    int copy_in(uint64_t to, const void* from, size_t bytes) override { return api_.copy_in(pointer(to), const_cast<void*>(from), bytes); }
    int copy_out(void* to, uint64_t from, size_t bytes) override { return api_.copy_out(to, pointer(from), bytes); }

    int copy_within(uint64_t to, uint64_t from, size_t bytes) override { return api_.copy_within(pointer(to), pointer(from), bytes); }

    int load_module(Handle& module, const void* code) override { return api_.module_load(&module, code); }
    int unload_module(Handle module) override { return api_.module_unload(module); }
    int find_kernel(Handle& kernel, Handle module, const char* name) override { return api_.module_kernel(&kernel, module, name); }
    int launch(Handle kernel, const LaunchShape& s, void** arguments) override {
        return api_.launch(kernel, s.grid, 1, 1, s.block, 1, 1, s.shared, nullptr, arguments, nullptr);
    }
    int synchronize() override { return api_.device_synchronize(); }

    int create_event(Handle& event) override { return api_.event_create(&event); }
    int destroy_event(Handle event) override { return api_.event_destroy(event); }
    int record(Handle event) override { return api_.event_record(event, nullptr); }
    int elapsed(float& milliseconds, Handle start, Handle stop) override {
        const int error = api_.event_synchronize(stop);
        return error ? error : api_.event_elapsed(&milliseconds, start, stop);
    }

    std::string explain(int error) const override { return explain_error(api_, error); }
    bool lost(int error) const override { return error == 700 || error == 702 || error == 710 || error == 719; }
    void clear_error() override { api_.last_error(); }

  private:
    Library library_;
    Api api_;
    int ordinal_;
    std::string name_;
    std::string architecture_;
};

Diagnostic no_driver(const Diagnostic& why) {
    return {.code = "device.no-driver",
            .message = "there is no HIP runtime here: " + why.message,
            .help = "install ROCm (Debian, Ubuntu: apt install libamdhip64-dev) or name it with `--rocm-path`; or run with `--device cpu`, "
                    "which needs no GPU",
            .exit = Exit::Lacking};
}

Diagnostic none(const std::string& why) {
    return {.code = "device.none",
            .message = "there is no usable HIP device: " + why,
            .help = "`rocminfo` should list one (in a container, pass /dev/kfd and /dev/dri; HIP_VISIBLE_DEVICES can hide it); "
                    "or run with `--device cpu`, which needs no GPU",
            .exit = Exit::Lacking};
}

Status check_devices(const Api& api, int ordinal) {
    int count = 0;
    int error = api.init(0);
    if (!error) error = api.device_count(&count);
    if (!error && count == 0) error = no_device;
    if (error) return none(explain_error(api, error));
    return ordinal < count ? ok() : Status(no_such_device("hip", ordinal, count));
}

}  // namespace

Result<std::shared_ptr<Driver>> open_hip_driver(int ordinal, const ToolkitOptions& options) {
    Result<Library> library = Library::open_first(hip_driver_libraries(options));
    if (!library) return no_driver(library.why());
    Api api{};
    Binder binder(*library);
    bind_device(binder, api);
    bind_work(binder, api);
    if (!library->bind(api.device_properties, "hipGetDevicePropertiesR0600"))  // what ROCm 6 and later call it
        binder.bind(api.device_properties, "hipGetDeviceProperties");
    if (Status complete = binder.status(); !complete) return no_driver(complete.why());
    if (Status there = check_devices(api, ordinal); !there) return there.why();
    auto driver = std::make_shared<HipDriver>(std::move(*library), api, ordinal);
    if (const int error = driver->open()) return none(explain_error(api, error));
    if (driver->architecture().empty()) return none("its architecture (gfx…) is not in its properties");
    return std::shared_ptr<Driver>(std::move(driver));
}

}  // namespace acu::runtime
