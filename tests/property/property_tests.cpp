// The property that every pass must keep: after any legal sequence of decisions the program computes what the unscheduled one computes.
//
// For each reduced case of the suite, plans of random decisions at tiny sizes. Every accepted step is interpreted in f64, in order and shuffled, and compared with the definition;
// for a sample, the same after every step of the fixed lowering, and the emitted text of all targets runs in emulation.
//   property_tests [--plans N] [--emulate N] [--steps N] [--seed N] [--cases A,B] [--targets T,U] [--json FILE]
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "acuc/inputs.h"
#include "codegen/contract.h"
#include "ir/lower/lower.h"
#include "ir/pass/driver.h"
#include "microkernels/catalogue.h"
#include "tests/property/random_steps.h"
#include "tests/property/scene.h"

using namespace acu;
using namespace acu::ir;

namespace {

struct Options {
    int plans = 6, emulate = 1, steps = 9, sample = 0;
    uint64_t seed = 0;
    std::string cases, targets = "sm_70,sm_80,sm_90a,gfx90a", json;
};

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string s; std::getline(in, s, ',');) out.push_back(s);
    return out;
}

struct Summary {
    int plans = 0, steps = 0, cases = 0;
    property::Emulated emulated;
    property::Tally tally;
    std::vector<property::Found> failures;
};

// ---- scenes

/// Points of all statements together.
int64_t points_of(const Program& tensor) {
    const Env known = known_dims(tensor);
    int64_t points = 0;
    for_each_block(lower::lower_reductions(tensor).body, [&](const Block& b, Loc) {
        int64_t n = 1;
        for (const Axis& a : b.axes) n *= std::max<int64_t>(1, evaluate(a.size, known));
        points += n;
    });
    return points;
}
/// So many are interpreted in a blink.
constexpr int64_t most_points = 20000;

/// The sizes of a case, made smaller at random where its conditions still hold; of all that were drawn the first that is small enough, or the smallest.
std::optional<Subject> smaller(Session& session, const frontend::Module& m, const std::string& name, property::Random& random) {
    auto base = subjects_of(session, m, {"", name, {}});
    if (session.failed()) return {};
    Subject best = std::move(base[0]);
    const std::vector<Dim> dims = best.op.program.dims;
    int64_t least = points_of(best.op.program);
    for (int attempt = 0; attempt < 100; ++attempt) {
        std::vector<std::string> sets;
        for (const Dim& d : dims) {
            static constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16};
            if (d.value && *d.value > 4 && !d.pack) sets.push_back(fmt::format("{}={}", d.name, sizes[random() % (10 - static_cast<uint64_t>(attempt) / 12)]));
        }
        Session quiet;
        const frontend::Module* again = quiet.open(session.sources[m.file.source].name);
        auto all = subjects_of(quiet, *again, {"", name, sets});
        if (quiet.failed() || all.empty()) continue;
        const Env known = known_dims(all[0].op.program);
        if (known.size() != all[0].op.program.dims.size() || !codegen::check_facts(all[0].op.program, known)) continue;
        const int64_t points = points_of(all[0].op.program);
        if (points < least) best = std::move(all[0]), least = points;
        if (least <= most_points) break;
    }
    return best;
}

std::optional<property::Scene> reduced_scene(Session& session, const frontend::Module& m, const std::string& name, property::Random& random) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        auto s = smaller(session, m, name, random);
        if (!s) return {};
        if (auto scene = property::scene_of(name, std::move(*s), random())) return scene;
    }
    auto whole = subjects_of(session, m, {"", name, {}});    // sizes that its inputs fit
    return session.failed() ? std::nullopt : property::scene_of(name, std::move(whole[0]), random());
}

// ---- plans

std::string check_lowering(const property::Scene& s, const property::Planned& t, const Target& target) {
    std::string bad;
    const auto after = [&](const lower::LoweringStep& step, const Program& p) {
        if (!bad.empty()) return;
        if (const auto v = verify(p); !v.empty()) bad = fmt::format("{}, lowering `{}`: {} {}", target.name, step.name, v[0].rule, v[0].what);
        else if (const std::string why = difference(s, p, t.approximate, {step.ordered ? uint64_t{5} : 0, step.ordered}); !why.empty()) bad = fmt::format("{}, lowering `{}`: {}", target.name, step.name, why);
    };
    (void)lower::schedule_to_kernels(t.program, target, after);
    return bad;
}

property::Planned random_plan(const property::Scene& s, const Options& o, property::Random& random, Summary& sum) {
    property::Planned t{&s, s.loops, {}, false};
    const pass::Context context{nullptr, &microkernels::find, &microkernels::stamped};
    for (int tried = 0; tried < 300 && static_cast<int>(t.steps.size()) < o.steps; ++tried) {
        const pass::Step step = property::random_step(t.program, t.steps, random);
        auto result = pass::apply_step(t.program, static_cast<int>(t.steps.size()) + 1, step, context);
        if (auto* f = std::get_if<pass::Failure>(&result)) {
            ++sum.tally.refused[f->why.code];
            if (f->at < pass::Stage::Apply) continue;
            t.steps.push_back(step);
            sum.failures.push_back({s.name, fmt::format("{}: {} [{}]", pass::name_of(f->at), f->why.message, f->why.code), t.steps});
            break;
        }
        auto& done = std::get<pass::Applied>(result);
        if (!done.effect) continue;
        t.steps.push_back(step);
        t.approximate |= pass::pass_named(step.pass)->rounding == pass::Rounding::Approximates;
        ++sum.tally.accepted[step.pass], ++sum.steps;
        std::string bad = difference(s, done.program, t.approximate);
        if (bad.empty()) bad = difference(s, done.program, t.approximate, {random() | 1, true});
        if (!bad.empty()) {
            sum.failures.push_back({s.name, bad, t.steps});
            break;
        }
        t.program = std::move(done.program);
    }
    return t;
}

// ---- all

void run_case(Session& session, const frontend::Module& m, const std::string& name, const Options& o, Summary& sum) {
    property::Random random(o.seed * 1000003 + std::hash<std::string>{}(name));
    const size_t failures = sum.failures.size();
    std::vector<property::Planned> chosen;
    std::optional<property::Scene> last;
    for (int i = 0; i < o.plans && sum.failures.size() < failures + 3; ++i) {
        if (!last || i % 4 == 0) {
            if (last && !chosen.empty())
                for (const std::string& t : listed(o.targets)) emulate(chosen, *target_named(t), sum.emulated, sum.failures);
            chosen.clear();
            last = reduced_scene(session, m, name, random);
            if (!last) return sum.failures.push_back({name, "no inputs could be made", {}});
        }
        const property::Planned t = random_plan(*last, o, random, sum);
        ++sum.plans;
        const bool wanted = i * o.emulate / o.plans != (i + 1) * o.emulate / o.plans;    // o.emulate of them, evenly
        if (!wanted || sum.failures.size() > failures) continue;
        for (const char* target : {"sm_80", "gfx90a"})
            if (const std::string bad = check_lowering(*last, t, *target_named(target)); !bad.empty()) sum.failures.push_back({name, bad, t.steps});
        if (sum.failures.size() == failures) chosen.push_back(t);
    }
    if (last && !chosen.empty())
        for (const std::string& t : listed(o.targets)) emulate(chosen, *target_named(t), sum.emulated, sum.failures);
    ++sum.cases;
}

void write_json(const Options& o, const Summary& sum, double seconds) {
    if (o.json.empty()) return;
    nlohmann::ordered_json j{{"seed", o.seed}, {"cases", sum.cases}, {"plans", sum.plans}, {"accepted_steps", sum.steps}, {"emulated_runs", sum.emulated.runs}, {"targets", o.targets},
                             {"not_fitting", sum.emulated.not_fitting}, {"failures", sum.failures.size()}, {"seconds", static_cast<int64_t>(seconds)}};
    j["accepted"] = sum.tally.accepted;
    j["refused"] = sum.tally.refused;
    std::ofstream(o.json) << j.dump(1) << "\n";
}

std::set<std::string> sampled(const std::vector<std::filesystem::path>& files, const Options& o) {
    std::vector<std::string> all;
    for (const auto& file : files) {
        Session session;
        for (const auto& c : session.open(file.string())->file.cases)
            if (c.name.ends_with("_small")) all.push_back(c.name);
    }
    property::Random random(o.seed);
    std::ranges::shuffle(all, random);
    return {all.begin(), all.begin() + std::min<std::ptrdiff_t>(o.sample, static_cast<std::ptrdiff_t>(all.size()))};
}

}  // namespace

int main(int argc, char** argv) {
    Options o;
    o.seed = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1000000 + static_cast<uint64_t>(getpid());
    CLI::App app{"random legal plans compute what the definition says"};
    app.add_option("--plans", o.plans, "a case")->capture_default_str();
    app.add_option("--emulate", o.emulate, "of these, lowered and in emulation")->capture_default_str();
    app.add_option("--steps", o.steps, "accepted decisions a plan, at most")->capture_default_str();
    app.add_option("--seed", o.seed);
    app.add_option("--cases", o.cases, "names, by commas");
    app.add_option("--sample", o.sample, "so many cases, drawn by the seed; 0: all")->capture_default_str();
    app.add_option("--targets", o.targets)->capture_default_str();
    app.add_option("--json", o.json, "write a summary");
    CLI11_PARSE(app, argc, argv);
    fmt::print("seed {} (repeat with --seed {})\n", o.seed, o.seed);
    const auto start = std::chrono::steady_clock::now();
    const char* root = std::getenv("ACU_SOURCE_ROOT");
    std::vector<std::filesystem::path> files;
    for (const auto& e : std::filesystem::directory_iterator(std::filesystem::path(root ? root : ".") / "benchmarks/suite"))
        if (e.path().extension() == ".acu") files.push_back(e.path());
    std::ranges::sort(files);
    const std::vector<std::string> wanted = listed(o.cases);
    Summary sum;
    const std::set<std::string> drawn = o.sample ? sampled(files, o) : std::set<std::string>{};
    for (const auto& file : files) {
        Session session;
        const frontend::Module* m = session.open(file.string());
        for (const auto& c : m->file.cases) {
            if (!c.name.ends_with("_small") || (!wanted.empty() && std::ranges::find(wanted, c.name.substr(0, 4)) == wanted.end())) continue;
            if (o.sample && !drawn.contains(c.name)) continue;
            const size_t before = sum.failures.size();
            run_case(session, *m, c.name, o, sum);
            for (size_t i = before; i < sum.failures.size(); ++i) fmt::print("{}\n", property::text_of(sum.failures[i]));
            std::fflush(stdout);
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::string accepted, refused;
    for (const auto& [n, k] : sum.tally.accepted) accepted += fmt::format(" {} {}", n, k);
    fmt::print("{} cases, {} plans, {} accepted steps ({} codes of refusal), {} runs in emulation, {} plans too large for a target, {:.0f} s\naccepted:{}\n", sum.cases, sum.plans, sum.steps, sum.tally.refused.size(), sum.emulated.runs,
               sum.emulated.not_fitting, seconds, accepted);
    write_json(o, sum, seconds);
    fmt::print("{} passed, {} failed\n", sum.cases - static_cast<int>(std::min<size_t>(sum.failures.size(), static_cast<size_t>(sum.cases))), sum.failures.size());
    return !sum.failures.empty();
}
