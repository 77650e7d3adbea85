#include "tests/property/scene.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "acuc/compare.h"
#include "ir/lower/lower.h"
#include "synth/evaluate/run.h"
#include "synth/record/step.h"

namespace acu::property {

using namespace ir;

std::optional<Scene> scene_of(std::string name, Subject s, uint64_t seed) {
    auto in = make_inputs(s, {}, seed);    // offsets of segments may not fit the sizes that were drawn
    if (!in) return {};
    Program loops = lower::lower_reductions(s.op.program);
    for (const Dim& d : loops.dims)
        if (d.value && !d.pack) name += fmt::format(" {}={}", d.name, *d.value);
    Scene out{std::move(name), std::move(s), std::move(*in), std::move(loops), {}};
    out.expected = out.inputs.arrays;
    if (!interpret(lower::in_float64(out.loops), out.inputs.arguments, out.expected)) return {};
    return out;
}

static std::string differs(const Scene& s, const Arrays& got, bool approximate) {
    for (const Decl& d : s.loops.decls) {
        if (d.scope != Scope::Out) continue;
        const Array &a = s.expected.at(d.name), &b = got.at(d.name);
        int64_t off = 0;
        double scale = 0;
        for (int64_t i = 0; i < a.count(); ++i)
            if (std::isfinite(a.get(i))) scale = std::max(scale, std::abs(a.get(i)));
        for (int64_t i = 0; i < a.count(); ++i) {
            const double x = a.get(i), y = b.get(i), bound = (approximate ? 1e-4 : 1e-9) * (scale + 1);
            if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= bound) continue;
            const bool rounded = !is_float(d.type) && std::abs(x - y) <= 1 && ++off * 100 <= a.count();
            if (!rounded) return fmt::format("element {} of `{}`: expected {}, got {}", i, d.name, x, y);
        }
    }
    return {};
}

std::string difference(const Scene& s, const Program& p, bool approximate, const InterpretOptions& options) {
    Arrays got = s.inputs.arrays;
    if (const Status done = interpret(lower::in_float64(p), s.inputs.arguments, got, options); !done) return fmt::format("{} [{}]", done.why().message, done.why().code);
    return differs(s, got, approximate);
}

std::string text_of(const Found& f) {
    std::string s = fmt::format("FAILED {}: {}", f.scene, f.what);
    for (const pass::Step& x : f.steps) s += "\n    --- step " + synth::record::to_json(x).dump();
    return s;
}

namespace {

struct Lowered {
    const Planned* plan;
    codegen::Emitted emitted;
};

std::vector<Lowered> emit_all(const std::vector<Planned>& all, const Target& target, Emulated& tally, std::vector<Found>& failures) {
    std::vector<Lowered> out;
    for (size_t i = 0; i < all.size(); ++i) {
        const Scene& s = *all[i].scene;
        auto p = lower::schedule_to_kernels(all[i].program, target);
        if (!p) {
            ++tally.not_fitting;
            continue;
        }
        p->name = fmt::format("{}_{}", p->name, i);
        auto e = codegen::emit({{*p}}, target, {s.subject.spec, "", s.subject.op.program, {}});
        if (!e) failures.push_back({s.name, fmt::format("{}: {} [{}]", target.name, e.why().message, e.why().code), all[i].steps});
        else out.push_back({&all[i], std::move(*e)});
    }
    return out;
}

/// In units of the bound: an approximation has one of its own, and what the definition itself loses in its own types, at these sizes and inputs, no plan can win back.
double allowed(const Scene& s, const std::string& output, const Tolerance& tolerance, bool approximate) {
    Arrays own = s.inputs.arrays;
    const bool ran = static_cast<bool>(interpret(s.loops, s.inputs.arguments, own));
    const double lost = ran ? compare(own.at(output), s.expected.at(output), tolerance).worst : 0;
    return std::max(approximate ? 8.0 : 1.0, lost < 100 ? 4 * lost : 0);
}

}  // namespace

void emulate(const std::vector<Planned>& all, const Target& target, Emulated& tally, std::vector<Found>& failures) {
    const std::vector<Lowered> lowered = emit_all(all, target, tally, failures);
    if (lowered.empty()) return;
    std::vector<codegen::Kernel> kernels;
    for (const Lowered& l : lowered) kernels.insert(kernels.end(), l.emitted.variants[0].kernels.begin(), l.emitted.variants[0].kernels.end());
    runtime::EmulationOptions options;
    options.seed = tally.runs % 3 == 0 ? 0 : static_cast<uint64_t>(tally.runs);
    options.guard = tally.runs % 2 == 1;
    options.shift = tally.runs % 4 == 2 ? 8 : 0;
    const Scene& first = *lowered[0].plan->scene;
    auto device = runtime::open_device(*runtime::parse_device(fmt::format("emu:{}", target.name)), {}, options);
    if (!device) return failures.push_back({first.name, device.why().message, {}});
    auto module = (*device)->load(codegen::device_text(kernels), "plans.cu");
    if (!module) return failures.push_back({first.name, fmt::format("{}: {}", target.name, module.why().message), lowered[0].plan->steps});
    for (const auto& [plan, emitted] : lowered) {
        const Scene& s = *plan->scene;
        ++tally.runs;
        const Tolerance tolerance = tolerance_of(s.subject.op.program, s.inputs.arguments.dims);
        auto run = synth::evaluate::run_loaded(**device, **module, emitted, s.inputs.arguments, s.inputs.arrays);
        if (!run) {
            failures.push_back({s.name, fmt::format("emu:{}: {} [{}]", target.name, run.why().message, run.why().code), plan->steps});
            continue;
        }
        for (const auto& [name, y] : run->outputs)
            if (const Comparison c = compare(y, s.expected.at(name), tolerance); !c.equal && c.worst > allowed(s, name, tolerance, plan->approximate))
                failures.push_back({s.name, fmt::format("emu:{}: element {} of `{}` is {}, expected {}", target.name, c.at, name, c.actual, c.expected), plan->steps});
    }
}

}  // namespace acu::property
