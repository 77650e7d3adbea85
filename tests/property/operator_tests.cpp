// The built-in planner makes a correct kernel of every legal operator.
//
// Operators are drawn (random_operators.h); those that the language refuses are counted and left out. For each of the others the default plan of one target, drawn too, is
// interpreted, in order and shuffled, and its emitted text runs in emulation, many operators in one module.
//   operator_tests [--count N] [--seed N] [--batch N] [--keep DIR]
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>

#include "microkernels/catalogue.h"
#include "synth/plan/default_plan.h"
#include "tests/property/random_operators.h"
#include "tests/property/scene.h"

using namespace acu;

namespace {

struct Tally {
    int legal = 0, refused = 0, planned = 0;
    property::Emulated emulated;
    std::vector<property::Found> failures;
};

ir::Program with_open_sizes(ir::Program p) {
    for (ir::Dim& d : p.dims) d.value.reset();
    return p;
}

/// Of the default plan of an operator with open sizes: what a launcher would take for those of the scene.
synth::plan::Alternative alternative_for(const property::Scene& s, const ir::Program& loops, const Target& target) {
    for (synth::plan::Alternative& a : synth::plan::default_plan(loops, target))
        if (synth::plan::admits(a.bounds, s.inputs.arguments.dims)) return std::move(a);
    return {};
}

/// The default plan, step by step: each must be accepted, as it is when a user compiles. `open`: the compiler does not know the sizes.
std::optional<property::Planned> planned(const property::Scene& s, const Target& target, bool open, Tally& tally) {
    const ir::Program loops = open ? with_open_sizes(s.loops) : s.loops;
    const synth::plan::Alternative chosen = alternative_for(s, loops, target);
    property::Planned p{&s, synth::plan::assuming(loops, chosen.bounds), {}, false};
    const ir::pass::Context context{&target, &microkernels::find, &microkernels::stamped};
    for (const ir::pass::Step& step : chosen.steps) {
        auto result = ir::pass::apply_step(p.program, static_cast<int>(p.steps.size()) + 1, step, context);
        p.steps.push_back(step);
        if (auto* f = std::get_if<ir::pass::Failure>(&result)) {
            tally.failures.push_back({s.name, fmt::format("{}: {} [{}]", target.name, f->why.message, f->why.code), p.steps});
            return {};
        }
        p.program = std::move(std::get<ir::pass::Applied>(result).program);
        p.approximate |= ir::pass::pass_named(step.pass)->rounding == ir::pass::Rounding::Approximates;
    }
    tally.planned += !p.steps.empty();
    for (const uint64_t shuffled : {0, 7})
        if (const std::string bad = property::difference(s, p.program, p.approximate, {shuffled, shuffled != 0}); !bad.empty()) {
            tally.failures.push_back({s.name, fmt::format("{}: {}", target.name, bad), p.steps});
            return {};
        }
    return p;
}

/// Operators of one file, whose kernels make one module a target.
void batch(int count, int first, property::Random& random, const std::filesystem::path& file, Tally& tally) {
    std::vector<std::string> texts;
    std::deque<property::Scene> scenes;
    for (int i = 0; i < count; ++i) {
        const std::string name = fmt::format("g{}", first + i), text = property::random_operator(name, random);
        std::ofstream(file) << text;
        Session session;
        const frontend::Module* m = session.open(file.string());
        std::vector<Subject> subjects;
        if (m && !session.failed()) subjects = subjects_of(session, *m, {"", name, {}});
        std::optional<property::Scene> scene;
        if (!session.failed() && !subjects.empty()) scene = property::scene_of(name, std::move(subjects[0]), random());
        ++(scene ? tally.legal : tally.refused);
        if (scene) scenes.push_back(std::move(*scene)), texts.push_back(text);
    }
    const size_t before = tally.failures.size();
    std::map<std::string_view, std::vector<property::Planned>> by_target;
    for (const property::Scene& s : scenes) {
        const Target& target = targets()[random() % 4];
        if (auto p = planned(s, target, random() % 2 == 0, tally)) by_target[target.name].push_back(std::move(*p));
    }
    for (const auto& [name, plans] : by_target) property::emulate(plans, *target_named(name), tally.emulated, tally.failures);
    for (size_t i = before; i < tally.failures.size(); ++i) {
        fmt::print("{}\n", property::text_of(tally.failures[i]));
        for (const std::string& t : texts)
            if (t.starts_with("op " + tally.failures[i].scene.substr(0, tally.failures[i].scene.find(' ')) + "(")) fmt::print("{}", t);
    }
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    int count = 500, size = 25;
    uint64_t seed = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1000000 + static_cast<uint64_t>(getpid());
    CLI::App app{"the built-in planner makes a correct kernel of every legal operator"};
    app.add_option("--count", count, "legal operators")->capture_default_str();
    app.add_option("--batch", size, "operators that are compiled together")->capture_default_str();
    app.add_option("--seed", seed)->envname("ACU_SEED");
    CLI11_PARSE(app, argc, argv);
    fmt::print("seed {} (repeat with --seed {})\n", seed, seed);
    property::Random random(seed);
    const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("acu_operators_{}.acu", getpid());
    Tally tally;
    for (int first = 0; tally.legal < count && first < 4 * count; first += size) batch(size, first, random, file, tally);
    std::filesystem::remove(file);
    fmt::print("{} legal operators, {} refused by the language or without inputs, {} with a plan, {} runs in emulation, {} too large for a target\n", tally.legal, tally.refused, tally.planned, tally.emulated.runs, tally.emulated.not_fitting);
    if (tally.legal < count) tally.failures.push_back({"", "too few operators were legal", {}});
    fmt::print("{} passed, {} failed\n", tally.legal - static_cast<int>(std::min<size_t>(tally.failures.size(), static_cast<size_t>(tally.legal))), tally.failures.size());
    return !tally.failures.empty();
}
