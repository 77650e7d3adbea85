// `fault_tests [--no-emulation] [--verbose] [WORDS OF A NAME…]`: every planted fault is found, and blamed on what was broken; plans without a fault are blamed on nothing.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "microkernels/catalogue.h"
#include "synth/record/step.h"
#include "tests/faults/faults.h"

using namespace acu;
using namespace acu::faults;

namespace {

/// Passes and lowering are rows of plain functions: these look here for what is broken now.
const Fault* planted = nullptr;

std::variant<ir::pass::Rewrite, ir::pass::Failure> broken_pass(const ir::pass::Site& site, const ir::pass::Arguments& args, const ir::pass::Context& context) {
    auto done = ir::pass::pass_named(planted->pass)->run(site, args, context);
    if (auto* r = std::get_if<ir::pass::Rewrite>(&done)) r->program = planted->damage(r->program);
    return done;
}

const ir::pass::Pass* pass_here(std::string_view name) {
    static ir::pass::Pass row;
    if (planted->pass != name) return nullptr;
    row = *ir::pass::pass_named(name);
    row.run = &broken_pass;
    return &row;
}

Result<ir::Program> broken_lowering(const ir::Program& p, const Target& target) {
    const auto& steps = ir::lower::lowering_steps();
    if (planted->lowering == "check_resources") return planted->damage(p);    // what is broken is that it does nothing
    auto done = std::ranges::find(steps, planted->lowering, &ir::lower::LoweringStep::name)->run(p, target);
    return done ? Result<ir::Program>(planted->damage(*done)) : done;
}

std::vector<ir::lower::LoweringStep> lowering_here() {
    auto steps = ir::lower::lowering_steps();
    for (auto& s : steps)
        if (s.name == planted->lowering) s.run = &broken_lowering;
    return steps;
}

ir::Arrays drawn(const ir::Program& p, const ir::Env& dims) {
    std::mt19937_64 random(5);
    ir::Arrays out;
    for (const ir::Decl& d : p.decls) {
        if (d.scope != ir::Scope::In) continue;
        ir::Array a = ir::Array::zeros(d.type, ir::sizes_of(d, dims));
        for (int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>(static_cast<int>(random() % 31) - 15) / 8 + 0.0625);
        out[d.name] = std::move(a);
    }
    return out;
}

/// Empty, or what is not as expected.
std::string problem(const Fault& f, const synth::blame::Blame& b) {
    std::string s;
    const auto differs = [&](const char* what, const std::string& want, const std::string& got) {
        if (want != got) s += fmt::format("\n    {}: expected `{}`, got `{}`", what, want, got);
    };
    const auto ids = [](const std::vector<int>& list) { return fmt::format("{}", fmt::join(list, " ")); };
    differs("cause", std::string(name_of(f.expected.cause)), std::string(name_of(b.cause)));
    differs("detector", f.expected.detector, b.evidence.detector());
    differs("decisions", ids(f.expected.decisions), ids(b.decisions));
    differs("part", f.expected.part, b.part);
    return s;
}

std::string trials_of(const synth::blame::Blame& b) {
    std::string s = "\n    " + b.text();
    for (const auto& t : b.trials) {
        s += fmt::format("\n    {:60} {}", t.of, t.verdict == synth::blame::Trial::Right ? "right" : t.verdict == synth::blame::Trial::Wrong ? "wrong" : "refused");
        if (t.differs) s += fmt::format(": {}[{}] is {}, not {}", t.differs->output, t.differs->element, t.differs->actual, t.differs->expected);
        if (t.finding) s += fmt::format(": {} [{}]", t.finding->message, t.finding->code);
        if (t.finding)
            for (const Note& n : t.finding->notes) s += "\n        " + n.text;
    }
    return s;
}

}  // namespace

Result<synth::blame::Blame> faults::blamed(const Fault& f, bool emulate) {
    planted = &f;
    const auto program = ir::parse_program(f.scene.program);
    if (!program) return program.why();
    synth::blame::Request r{*program, {}, {f.scene.dims, {}}, drawn(*program, f.scene.dims), target_named(f.scene.target)};
    for (const std::string& text : f.scene.steps) {
        const auto step = synth::record::step_from_json(nlohmann::ordered_json::parse(text));
        if (!step) return step.why();
        r.decisions.push_back({static_cast<int>(r.decisions.size()) + 1, *step});
    }
    r.context = {r.target, &microkernels::find, [](const ir::Microkernel& m, const Target& t) { return m.on(t.name) != nullptr; }};
    r.pass = &pass_here;
    const auto lowering = lowering_here();
    r.lowering = &lowering;
    if (emulate)
        r.emulate = synth::blame::in_emulation(*r.target, r.arguments, r.inputs, [&](const ir::Program& p) {
            auto e = codegen::emit({{p}}, *r.target, {p.name, {}, p, {}}, {.provenance = true});
            if (e && f.text) f.text(e->device);
            return e;
        });
    return synth::blame::find_blame(r);
}

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto has = [&](const char* w) { return std::ranges::find(words, w) != words.end(); };
    const auto chosen = [&](const Fault& f) {
        return std::ranges::all_of(words, [](const auto& w) { return w.starts_with("--"); }) || std::ranges::any_of(words, [&](const auto& w) { return f.name.find(w) != std::string::npos; });
    };
    int passed = 0, failed = check_tools(), skipped = 0;
    for (const auto& list : {clean_plans(), pass_faults(), lowering_faults(), text_faults()})
        for (const Fault& f : list) {
            if (!chosen(f)) continue;
            if (has("--no-emulation") && (f.text || f.expected.detector.starts_with("emu."))) {
                ++skipped;
                continue;
            }
            const auto b = blamed(f, !has("--no-emulation"));
            if (!b && b.why().code == "toolkit.missing") {    // no host compiler here
                ++skipped;
                continue;
            }
            const std::string bad = b ? problem(f, *b) : fmt::format("\n    {} [{}]", b.why().message, b.why().code);
            ++(bad.empty() ? passed : failed);
            if (!bad.empty()) fmt::print("FAILED {}{}{}\n", f.name, bad, b ? trials_of(*b) : "");
            else if (has("--verbose")) fmt::print("{}{}\n", f.name, trials_of(*b));
            std::fflush(stdout);
        }
    if (skipped) fmt::print("{} need emulation\n", skipped);
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed != 0;
}
