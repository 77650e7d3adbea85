#include "runtime/device.h"
#include "synth/blame/blame.h"
#include "synth/evaluate/run.h"

namespace acu::synth::blame {

using namespace ir;

namespace {

Result<Arrays> run_text(const Target& target, const codegen::Emitted& e, const Arguments& arguments, const Arrays& inputs) {
    std::unique_ptr<runtime::Module> module;
    Arrays out;
    for (const runtime::EmulationOptions& options : {runtime::EmulationOptions{.seed = 0, .guard = true}, runtime::EmulationOptions{.seed = 5}}) {
        auto device = runtime::open_device({runtime::DeviceId::Kind::Emulated, 0, std::string(target.name)}, {}, options);
        if (!device) return device.why();
        if (!module) {
            auto loaded = evaluate::load(**device, e);
            if (!loaded) return loaded.why();
            module = std::move(*loaded);
        }
        auto run = evaluate::run_loaded(**device, *module, e, arguments, inputs);
        if (!run) return run.why();
        out = std::move(run->outputs);
    }
    return out;
}

}  // namespace

Emulate in_emulation(const Target& target, const Arguments& arguments, const Arrays& inputs, Emit emit) {
    if (!emit) emit = [&target](const Program& p) { return codegen::emit({{p}}, target, {p.name, {}, p, {}}, {.provenance = true}); };
    return [&target, arguments, inputs, emit](const Program& kernels) -> Result<Arrays> {
        const auto e = emit(kernels);
        return e ? run_text(target, *e, arguments, inputs) : Result<Arrays>(e.why());
    };
}

}  // namespace acu::synth::blame
