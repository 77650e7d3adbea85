#include "acuc/validate_microkernels.h"

#include <fmt/format.h>

#include <chrono>

namespace acu {

namespace {

constexpr size_t shown_faults = 3;
constexpr size_t shuffled_step = 4;    ///< every so many trials are repeated in a random order of threads

/// Runs a trial on fresh buffers: no input changes, nothing is written around the output.
Status run_trial(runtime::Device& device, runtime::Module& module, const Trial& t, std::vector<std::byte>& output) {
    runtime::Launch launch{t.kernel, t.grid, t.block, {}, t.shared, t.cluster};
    std::vector<std::unique_ptr<runtime::Buffer>> buffers;
    for (size_t i = 0; i <= t.inputs.size(); ++i) {
        auto b = device.allocate(i < t.inputs.size() ? t.inputs[i].size() : t.output_bytes);
        if (!b) return b.why();
        if (i < t.inputs.size())
            if (const Status up = (*b)->upload(t.inputs[i]); !up) return up;
        launch.arguments.push_back(runtime::argument_of((*b)->address()));
        buffers.push_back(std::move(*b));
    }
    for (const int32_t n : t.numbers) launch.arguments.push_back(runtime::argument_of(n));
    for (const runtime::TensorMapShape& shape : t.maps) {
        auto map = device.tensor_map(buffers[0]->address(), shape);
        if (!map) return map.why();
        launch.arguments.push_back(std::move(*map));
    }
    if (const Status done = device.launch(module, launch); !done) return done;
    if (const Status done = device.synchronize(); !done) return done;
    for (size_t i = 0; i < buffers.size(); ++i) {
        if (const Status guards = buffers[i]->check_guards(i < t.inputs.size() ? fmt::format("input {}", i) : "output"); !guards) return guards;
        std::vector<std::byte> now(buffers[i]->bytes());
        if (const Status down = buffers[i]->download(now); !down) return down;
        if (i == t.inputs.size()) output = std::move(now);
        else if (now != t.inputs[i]) return Diagnostic{"microkernels.input-changed", {}, fmt::format("input {} was changed", i), {}, {}, Exit::Wrong};
    }
    return ok();
}

std::string told(const Diagnostic& d) {
    std::string text = fmt::format("{} [{}]", d.message, d.code);
    for (const Note& n : d.notes) text += "\n      " + n.text;
    return text;
}

void run_trials(runtime::Device& device, const std::string& file_name, const TrialSet& set, size_t step, Validation& v) {
    const auto module = device.load(set.source(), file_name);
    if (!module) {
        v.faults.push_back(told(module.why()));
        return;
    }
    for (size_t i = 0; i < set.trials.size() && v.faults.size() < shown_faults; i += step) {
        const Trial& t = set.trials[i];
        std::vector<std::byte> output;
        const Status ran = run_trial(device, **module, t, output);
        const std::string fault = ran ? t.fault(output) : told(ran.why());
        if (!fault.empty()) v.faults.push_back(fmt::format("{}: {}", t.what, fault));
        ++v.trials;
        if (!ran && ran.why().code == "device.failed") return;  // the device is lost
    }
}

}  // namespace

Result<ValidationDevice> open_for_validation(const std::string& name, const runtime::ToolkitOptions& toolkits) {
    const auto id = runtime::parse_device(name);
    if (!id) return id.why();
    auto device = runtime::open_device(*id, toolkits);
    if (!device) return device.why();
    ValidationDevice on{target_named((*device)->architecture()), std::move(*device), nullptr};
    if (!on.target) return Diagnostic{"microkernels.target", {}, fmt::format("`{}` is a {}, which is no target", name, on.device->architecture()), {}, "`acuc targets` lists them", Exit::Lacking};
    if (id->kind == runtime::DeviceId::Kind::Emulated) {
        auto shuffled = runtime::open_device(*id, toolkits, {.seed = 1, .guard = true, .preempt = 64});
        if (!shuffled) return shuffled.why();
        on.shuffled = std::move(*shuffled);
    }
    return on;
}

Validation validate(const ValidationDevice& on, const ir::Microkernel& m, const TrialSet& set) {
    const auto start = std::chrono::steady_clock::now();
    Validation v{m.id, std::string(on.target->name), on.device->name(), {}, 0, 0, {}};
    const std::string file_name = m.id + (on.target->platform == Platform::Hip ? ".hip" : ".cu");
    run_trials(*on.device, file_name, set, 1, v);
    if (on.shuffled && v.faults.empty()) run_trials(*on.shuffled, file_name, set, shuffled_step, v);
    v.toolchain = on.device->toolchain();
    v.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return v;
}

}  // namespace acu
