#include "runtime/emulation/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/emulation/build.h"
#include "runtime/emulation/child.h"
#include "runtime/emulation/memory.h"
#include "runtime/emulation/tensor_map.h"
#include "runtime/emulation/text.h"
#include "runtime/guarded_buffer.h"
#include "runtime/library.h"

namespace acu::runtime::emulation {

namespace {

Diagnostic refused(const Launch& launch, const std::string& why) {
    return {.code = "device.launch", .message = fmt::format("cannot launch `{}`: {}", launch.kernel, why), .exit = Exit::Wrong};
}

class EmulatedBuffer : public Buffer {
  public:
    EmulatedBuffer(std::shared_ptr<Memory> memory, size_t number) : memory_(std::move(memory)), number_(number) {}
    ~EmulatedBuffer() override { memory_->remove(number_); }

    uint64_t address() const override { return reinterpret_cast<uint64_t>(extent().first); }
    size_t bytes() const override { return extent().bytes; }

    Status upload(std::span<const std::byte> data) override {
        if (data.size() > bytes()) return too_long(data.size());
        if (!data.empty()) std::memcpy(extent().first, data.data(), data.size());
        memory_->mark_written(extent(), data.size());
        extent().written |= data.size() == bytes();
        return ok();
    }

    Status download(std::span<std::byte> data) const override {
        if (data.size() > bytes()) return too_long(data.size());
        if (!data.empty()) std::memcpy(data.data(), extent().first, data.size());
        const size_t unwritten = memory_->first_unwritten(extent(), data.size());
        if (unwritten == data.size() || extent().name.empty()) return ok();
        return Diagnostic{.code = "emu.unwritten", .message = fmt::format("no kernel wrote the byte at offset {} of `{}`, which is read back", unwritten, extent().name), .exit = Exit::Wrong};
    }

    Status check_guards(const std::string& name) const override {
        const uint8_t* first = extent().first;
        for (size_t i = 0; i < guard_bytes; ++i) {
            if (first[bytes() + i] != std::to_integer<uint8_t>(guard_byte(i))) return overrun(name, "behind");
            if (*(first - guard_bytes + i) != std::to_integer<uint8_t>(guard_byte(i))) return overrun(name, "before");
        }
        return ok();
    }

  private:
    Extent& extent() const { return memory_->extent(number_); }
    Diagnostic too_long(size_t size) const {
        return {.code = "device.memory", .message = fmt::format("{} bytes do not fit a buffer of {} bytes", size, bytes()), .exit = Exit::Wrong};
    }
    Diagnostic overrun(const std::string& name, const char* where) const {
        return {.code = "device.guard", .message = fmt::format("memory {} `{}` was written", where, name), .exit = Exit::Wrong};
    }

    std::shared_ptr<Memory> memory_;
    size_t number_;
};

/// Emitted text, compiled and opened. Its folder stays for the debug information.
class EmulatedModule : public Module {
  public:
    EmulatedModule(TemporaryFolder folder, Library library, std::string text, std::string file_name)
        : folder_(std::move(folder)), library_(std::move(library)), text_(std::move(text)), file_name_(std::move(file_name)), kernels_(kernels_in(text_)) {}

    const KernelHead* kernel(const std::string& name) const {
        const auto it = std::find_if(kernels_.begin(), kernels_.end(), [&](const KernelHead& k) { return k.name == name; });
        return it == kernels_.end() ? nullptr : &*it;
    }
    template <class F>
    F* function(const std::string& name) const {
        F* f = nullptr;
        library_.bind(f, name.c_str());
        return f;
    }
    const std::string& library() const { return library_.name(); }
    const std::string& text() const { return text_; }
    const std::string& file_name() const { return file_name_; }

  private:
    TemporaryFolder folder_;
    Library library_;
    std::string text_, file_name_;
    std::vector<KernelHead> kernels_;
};

/// The arguments of a launch where any type's alignment is kept (64 bytes for a tensor map).
class Arguments {
  public:
    explicit Arguments(const std::vector<KernelArgument>& list) {
        size_t bytes = alignment;
        for (const KernelArgument& a : list) bytes += padded(a.bytes.size());
        storage_.resize(bytes);
        std::byte* at = storage_.data() + (alignment - reinterpret_cast<uintptr_t>(storage_.data()) % alignment);
        for (const KernelArgument& a : list) {
            std::copy(a.bytes.begin(), a.bytes.end(), at);
            pointers_.push_back(at);
            at += padded(a.bytes.size());
        }
    }
    const std::vector<void*>& pointers() const { return pointers_; }

  private:
    static constexpr size_t alignment = 64;
    static size_t padded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
    std::vector<std::byte> storage_;
    std::vector<void*> pointers_;
};

class EmulatedDevice : public Device {
  public:
    EmulatedDevice(const Target& target, const EmulationOptions& options, HostCompiler compiler, std::unique_ptr<Memory> memory)
        : target_(target), options_(options), compiler_(std::move(compiler)), memory_(std::move(memory)) {
        if (options_.seed && !options_.preempt) options_.preempt = 50;
    }

    std::string name() const override { return fmt::format("emulated {}", target_.name); }
    std::string architecture() const override { return std::string(target_.name); }
    std::string toolchain() const override { return compiler_.name; }

    Result<std::unique_ptr<Module>> load(const std::string& source, const std::string& file_name) override {
        Result<TemporaryFolder> folder = TemporaryFolder::make();
        if (!folder) return folder.why();
        const Result<std::string> built = build_text(compiler_, *folder, target_, source, file_name);
        if (!built) return built.why();
        Result<Library> library = Library::open(*built);
        if (!library) return Diagnostic{.code = "compile.failed", .message = fmt::format("`{}` calls what emulation does not have: {}", file_name, library.why().message), .exit = Exit::Wrong};
        return std::unique_ptr<Module>(std::make_unique<EmulatedModule>(std::move(*folder), std::move(*library), source, file_name));
    }

    Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
        const Result<size_t> number = memory_->add(bytes, options_.shift);
        if (!number) return number.why();
        return std::unique_ptr<Buffer>(std::make_unique<EmulatedBuffer>(memory_, *number));
    }

    /// Runs to its end: nothing is left for `synchronize`.
    Result<KernelArgument> tensor_map(uint64_t address, const TensorMapShape& shape) override { return encode_tensor_map(address, shape); }

    Status launch(Module& module, const Launch& launch) override {
        auto* own = dynamic_cast<EmulatedModule*>(&module);
        if (!own) return refused(launch, "its module was loaded on another device");
        const KernelHead* kernel = own->kernel(launch.kernel);
        if (!kernel) return refused(launch, "the module has no such kernel");
        if (const Status fits = check_limits(launch, *kernel); !fits) return fits;
        if (const Status fits = check_arguments(launch, *own); !fits) return fits;
        name_buffers(launch, *kernel);
        const Arguments arguments(launch.arguments);
        const Job job{memory_.get(), &target_, options_, own->library(), own->file_name(), launch.grid, launch.block, launch.shared, launch.cluster, own->function<void(void**)>("acu_call_" + launch.kernel), arguments.pointers()};
        return run_in_child(job, launch.kernel, own->text());
    }

    Status synchronize() override { return ok(); }

    Result<double> time(const std::vector<Launch>& launches, Module& module, int repeats) override {
        const auto start = std::chrono::steady_clock::now();
        for (int r = 0; r < std::max(1, repeats); ++r)
            for (const Launch& one : launches)
                if (const Status done = launch(module, one); !done) return done.why();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / std::max(1, repeats);
    }

  private:
    /// What the hardware refuses to launch.
    Status check_limits(const Launch& l, const KernelHead& kernel) const {
        constexpr uint32_t most_threads = 1024, most_cluster = 16;
        if (l.grid == 0 || l.block == 0 || l.cluster == 0) return refused(l, fmt::format("{} blocks of {} threads do nothing", l.grid, l.block));
        if (l.block > most_threads) return refused(l, fmt::format("a block has at most {} threads, not {}", most_threads, l.block));
        if (kernel.launch_bounds && l.block > kernel.launch_bounds) return refused(l, fmt::format("blocks of {} threads, where __launch_bounds__ says {}", l.block, kernel.launch_bounds));
        if (l.grid > target_.max_grid) return refused(l, fmt::format("a grid has at most {} blocks, not {}", target_.max_grid, l.grid));
        if (l.cluster > 1 && (target_.name != "sm_90a" || l.cluster > most_cluster || l.grid % l.cluster))
            return refused(l, fmt::format("{} blocks in clusters of {} on {}", l.grid, l.cluster, target_.name));
        if (l.shared > target_.shared_bytes)
            return Diagnostic{.code = "emu.shared-limit", .message = fmt::format("`{}` needs {} bytes of shared memory; a block on {} has {}", l.kernel, l.shared, target_.name, target_.shared_bytes),
                              .help = "make tiles smaller or take fewer stages", .exit = Exit::Wrong};
        return ok();
    }

    static Status check_arguments(const Launch& l, const EmulatedModule& module) {
        const unsigned* sizes = module.function<const unsigned*()>("acu_sizes_" + l.kernel)();
        if (l.arguments.size() != sizes[0]) return refused(l, fmt::format("{} arguments for {} parameters", l.arguments.size(), sizes[0]));
        for (size_t i = 0; i < l.arguments.size(); ++i)
            if (l.arguments[i].bytes.size() != sizes[i + 1]) return refused(l, fmt::format("argument {} has {} bytes, its parameter {}", i + 1, l.arguments[i].bytes.size(), sizes[i + 1]));
        return ok();
    }

    /// Buffers are called by the parameters that they are given to.
    void name_buffers(const Launch& l, const KernelHead& kernel) {
        for (size_t i = 0; i < l.arguments.size() && i < kernel.parameters.size(); ++i) {
            uint64_t address = 0;
            if (l.arguments[i].bytes.size() < sizeof address) continue;
            std::memcpy(&address, l.arguments[i].bytes.data(), sizeof address);
            if (Extent* e = memory_->owner(reinterpret_cast<const void*>(address))) e->name = kernel.parameters[i];
        }
    }

    const Target& target_;
    EmulationOptions options_;
    HostCompiler compiler_;
    std::shared_ptr<Memory> memory_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_emulated(const std::string& name, const EmulationOptions& options) {
    const Target* target = target_named(name);
    if (!target || target->platform == Platform::Cpu) return Diagnostic{.code = "device.unknown", .message = fmt::format("there is no target `{}` to emulate", name), .exit = Exit::Usage};
    Result<HostCompiler> compiler = find_host_compiler();
    if (!compiler) return compiler.why();
    Result<std::unique_ptr<Memory>> memory = Memory::reserve();
    if (!memory) return memory.why();
    return std::unique_ptr<Device>(std::make_unique<EmulatedDevice>(*target, options, std::move(*compiler), std::move(*memory)));
}

}  // namespace acu::runtime::emulation
