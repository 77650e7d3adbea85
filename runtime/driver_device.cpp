#include "runtime/driver_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "runtime/compile.h"
#include "runtime/guarded_buffer.h"

namespace acu::runtime {

namespace {

using Handle = Driver::Handle;

/// A loaded module. It keeps the machine code (HIP may read it later) and the driver alive.
class DriverModule : public Module {
  public:
    DriverModule(std::shared_ptr<Driver> driver, std::vector<char> code) : driver_(std::move(driver)), code_(std::move(code)) {}
    ~DriverModule() override {
        driver_->make_current();
        if (module_ && driver_->unload_module(module_) != 0) driver_->clear_error();
    }

    int load() { return driver_->load_module(module_, code_.data()); }
    bool belongs_to(const std::shared_ptr<Driver>& driver) const { return driver_ == driver; }

    Result<Handle> kernel(const std::string& name) {
        if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
        Handle kernel = nullptr;
        if (const int error = driver_->find_kernel(kernel, module_, name.c_str())) {
            Diagnostic d = driver_failed(*driver_, error, "device.launch", fmt::format("finding the kernel `{}`", name));
            if (d.help.empty()) d.help = "a kernel is found by its `extern \"C\" __global__` name";
            return d;
        }
        kernels_[name] = kernel;
        return kernel;
    }

  private:
    std::shared_ptr<Driver> driver_;
    std::vector<char> code_;
    Handle module_ = nullptr;
    std::map<std::string, Handle> kernels_;
};

/// A launch with everything looked up, so that nothing but the driver's call is between two launches.
struct Prepared {
    const Launch* launch;
    Handle kernel;
    LaunchShape shape;
    std::vector<void*> arguments;
    int run(Driver& driver) { return driver.launch(kernel, shape, arguments.data()); }
};

/// Two events around something; they go away by themselves.
class Stopwatch {
  public:
    explicit Stopwatch(Driver& driver) : driver_(driver) {}
    Stopwatch(const Stopwatch&) = delete;
    ~Stopwatch() {
        for (Handle event : {start_, stop_})
            if (event) driver_.destroy_event(event);
    }
    int start() {
        int error = driver_.create_event(start_);
        if (!error) error = driver_.create_event(stop_);
        return error ? error : driver_.record(start_);
    }
    int stop(float& milliseconds) {
        const int error = driver_.record(stop_);
        return error ? error : driver_.elapsed(milliseconds, start_, stop_);
    }

  private:
    Driver& driver_;
    Handle start_ = nullptr;
    Handle stop_ = nullptr;
};

Diagnostic refused(const Launch& launch, const std::string& why) {
    return {.code = "device.launch", .message = fmt::format("cannot launch `{}`: {}", launch.kernel, why), .exit = Exit::Wrong};
}

std::string launch_text(const Launch& launch) {
    std::string text = fmt::format("launching `{}` with {} blocks of {} threads", launch.kernel, launch.grid, launch.block);
    if (launch.shared) text += fmt::format(", {} bytes of shared memory", launch.shared);
    if (launch.cluster > 1) text += fmt::format(", clusters of {}", launch.cluster);
    return text;
}

class DriverDevice : public Device {
  public:
    DriverDevice(std::shared_ptr<Driver> driver, const ToolkitOptions& options) : driver_(std::move(driver)), options_(options) {}

    std::string name() const override { return driver_->name(); }
    std::string architecture() const override { return driver_->architecture(); }
    std::string toolchain() const override { return toolchain_; }

    Result<std::unique_ptr<Module>> load(const std::string& source, const std::string& file_name) override {
        if (Status found = find_toolkits_once(); !found) return found.why();
        Result<Compiled> compiled = compile_with(toolkits_, {source, file_name, architecture()});
        if (!compiled) return compiled.why();
        toolchain_ = compiled->toolchain;
        if (Status current = use(); !current) return current.why();
        auto module = std::make_unique<DriverModule>(driver_, std::move(compiled->code));
        if (const int error = module->load()) return not_loaded(error, file_name);
        return std::unique_ptr<Module>(std::move(module));
    }

    Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override { return allocate_guarded(driver_, bytes); }

    Result<KernelArgument> tensor_map(uint64_t address, const TensorMapShape& shape) override {
        if (Status current = use(); !current) return current.why();
        alignas(64) std::array<std::byte, 128> map{};
        const std::optional<int> error = driver_->encode_tensor_map(map.data(), address, shape);
        if (!error) return Diagnostic{.code = "device.launch", .message = fmt::format("{} has no copy engine that moves boxes of tensors", driver_->name()), .exit = Exit::Lacking};
        if (*error) return driver_failed(*driver_, *error, "device.launch", "describing a tensor to the copy engine");
        return KernelArgument{{map.begin(), map.end()}};
    }

    Status launch(Module& module, const Launch& launch) override {
        if (Status current = use(); !current) return current;
        Result<Prepared> prepared = prepare(module, launch);
        if (!prepared) return prepared.why();
        if (const int error = prepared->run(*driver_)) return driver_failed(*driver_, error, "device.launch", launch_text(launch));
        return ok();
    }

    Status synchronize() override {
        if (Status current = use(); !current) return current;
        if (const int error = driver_->synchronize()) return driver_failed(*driver_, error, "device.failed", "running the kernels");
        return ok();
    }

    Result<double> time(const std::vector<Launch>& launches, Module& module, int repeats) override {
        if (Status current = use(); !current) return current.why();
        std::vector<Prepared> prepared;
        for (const Launch& launch : launches) {
            Result<Prepared> one = prepare(module, launch);
            if (!one) return one.why();
            prepared.push_back(std::move(*one));
        }
        return time_prepared(prepared, std::max(1, repeats));
    }

  private:
    Status use() {
        const int error = driver_->make_current();
        return error ? Status(driver_failed(*driver_, error, "device.failed", "making the device current")) : ok();
    }

    Status find_toolkits_once() {
        if (!toolkits_.empty()) return ok();
        Result<std::vector<ToolkitFound>> found = toolkits_for(architecture(), options_, driver_->toolkit_major());
        if (!found) return found.why();
        toolkits_ = std::move(*found);
        return ok();
    }

    Result<Prepared> prepare(Module& module, const Launch& launch) {
        auto* own = dynamic_cast<DriverModule*>(&module);
        if (!own || !own->belongs_to(driver_)) return refused(launch, "its module was loaded on another device");
        if (launch.grid == 0 || launch.block == 0)
            return refused(launch, fmt::format("{} blocks of {} threads do nothing", launch.grid, launch.block));
        Result<Handle> kernel = own->kernel(launch.kernel);
        if (!kernel) return kernel.why();
        if (launch.cluster > 1 && !driver_->has_clusters()) return refused(launch, "this device has no clusters of blocks");
        Prepared prepared{&launch, *kernel, {launch.grid, launch.block, launch.shared, launch.cluster}, {}};
        if (const int error = driver_->prepare(*kernel, prepared.shape)) return driver_failed(*driver_, error, "device.launch", launch_text(launch));
        for (const KernelArgument& argument : launch.arguments) prepared.arguments.push_back(const_cast<std::byte*>(argument.bytes.data()));
        return prepared;
    }

    Result<double> time_prepared(std::vector<Prepared>& launches, int repeats) {
        Stopwatch watch(*driver_);
        if (const int error = watch.start()) return driver_failed(*driver_, error, "device.failed", "starting the clock");
        for (int r = 0; r < repeats; ++r)
            for (Prepared& one : launches)
                if (const int error = one.run(*driver_)) return driver_failed(*driver_, error, "device.launch", launch_text(*one.launch));
        float milliseconds = 0;
        if (const int error = watch.stop(milliseconds)) return driver_failed(*driver_, error, "device.failed", "timing the kernels");
        return static_cast<double>(milliseconds) / 1000.0 / repeats;
    }

    Diagnostic not_loaded(int error, const std::string& file_name) {
        Diagnostic d = driver_failed(*driver_, error, "device.failed", fmt::format("loading `{}`, compiled by {},", file_name, toolchain_));
        if (d.help.empty()) d.help = "if the toolkit is newer than the driver, install an older toolkit or a newer driver";
        return d;
    }

    std::shared_ptr<Driver> driver_;
    ToolkitOptions options_;
    std::vector<ToolkitFound> toolkits_;
    std::string toolchain_;
};

}  // namespace

Diagnostic driver_failed(Driver& driver, int error, const char* code, const std::string& what) {
    Diagnostic d{.code = code, .message = fmt::format("{} failed: {}", what, driver.explain(error)), .exit = Exit::Wrong};
    if (driver.lost(error)) d.help = "the device is lost to this process; start a new one to use it again";
    driver.clear_error();
    return d;
}

Diagnostic no_such_device(const std::string& kind, int ordinal, int count) {
    return {.code = "device.ordinal",
            .message = fmt::format("there is no {}:{}", kind, ordinal),
            .help = count == 1 ? fmt::format("the only one here is {}:0", kind) : fmt::format("{0}:0 to {0}:{1} are here", kind, count - 1),
            .exit = Exit::Lacking};
}

std::unique_ptr<Device> make_device(std::shared_ptr<Driver> driver, const ToolkitOptions& options) {
    return std::make_unique<DriverDevice>(std::move(driver), options);
}

}  // namespace acu::runtime
