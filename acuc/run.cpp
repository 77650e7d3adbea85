#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "acuc/compare.h"
#include "acuc/inputs.h"
#include "acuc/npy.h"
#include "acuc/options.h"
#include "acuc/plans.h"
#include "codegen/cpu.h"
#include "ir/analysis/cells.h"
#include "ir/lower/lower.h"
#include "synth/evaluate/run.h"

namespace acu {
namespace {

using namespace ir;
using Clock = std::chrono::steady_clock;

struct RunOptions {
    Chosen chosen;
    std::string device = "cpu", out, inputs_out, plan;
    std::vector<std::string> in;
    bool check = false, json = false, interpret = false;
    uint64_t seed = 1;
    double check_seconds = 20;
    runtime::ToolkitOptions toolkits;
    runtime::EmulationOptions emulation;
};

/// What is reported of one run.
struct Outcome {
    std::string device, how;
    double seconds = 0;
    Arrays outputs;
};

Result<std::map<std::string, std::string>> input_files(const std::vector<std::string>& in) {
    std::map<std::string, std::string> files;
    for (const std::string& item : in) {
        const size_t eq = item.find('=');
        if (eq == std::string::npos || eq == 0) return Diagnostic{"input.usage", {}, fmt::format("`--in {}`: `NAME=FILE.npy` is expected", item), {}, {}, Exit::Usage};
        files[item.substr(0, eq)] = item.substr(eq + 1);
    }
    return files;
}

/// A subject and the plan that it runs under: the one given, the one in its file for the target, or none.
struct Work {
    const Subject& subject;
    const Plan& plan;
};

/// What is refused for these sizes may have been made for any.
Subject fitting(const Subject& s, const Plan& plan, const Target* target) {
    std::vector<Diagnostic> ignored;
    if (scheduled(s, plan, target, ignored)) return s;
    Subject open = opened(s, plan);
    return scheduled(open, plan, target, ignored) ? open : s;
}

/// Prints the warnings and answers the plan's program for a target.
Result<Planned> planned_for(const Work& w, const Target& target) {
    std::vector<Diagnostic> warnings;
    auto p = planned(w.subject, w.plan, target, warnings);
    for (const Diagnostic& d : warnings) fail(d);
    return p;
}

Result<Outcome> run_on_cpu(const Work& w, const RunInputs& in, bool interpreted) {
    Arrays arrays = in.arrays;
    std::vector<Diagnostic> warnings;
    const auto under = scheduled(w.subject, w.plan, target_named("cpu"), warnings);
    if (!under) return under.why();
    for (const Diagnostic& d : warnings) fail(d);
    const Program p = lower::fallback_plan(*under);
    const auto start = Clock::now();
    const Status done = interpreted ? interpret(p, in.arguments, arrays) : codegen::run_cpu(p, in.arguments, arrays);
    if (!done) return done.why();
    Outcome o{"cpu", interpreted ? "the interpreter" : codegen::cpu_executor(), std::chrono::duration<double>(Clock::now() - start).count(), {}};
    for (const Decl& d : p.decls)
        if (d.scope == Scope::Out) o.outputs[d.name] = std::move(arrays.at(d.name));
    return o;
}

Result<Outcome> run_on(runtime::Device& device, const Work& w, const RunInputs& in) {
    const Target& target = synth::evaluate::target_of(device);
    const auto p = planned_for(w, target);
    if (!p) return p.why();
    const auto e = compile_subject(w.subject, {*p}, target);
    if (!e) return e.why();
    auto r = synth::evaluate::run_emitted(device, *e, in.arguments, in.arrays);
    if (!r) return r.why();
    return Outcome{r->device, r->toolchain, r->seconds, std::move(r->outputs)};
}

// ---- the check against f64


std::vector<int64_t> candidates(const Array& y, uint64_t seed, bool& all) {
    constexpr int64_t whole = 4096, rows = 24, per_row = 64;
    std::vector<int64_t> out;
    all = y.count() <= whole;
    if (all)
        for (int64_t i = 0; i < y.count(); ++i) out.push_back(i);
    if (all) return out;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    const auto next = [&](int64_t below) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return static_cast<int64_t>(state % static_cast<uint64_t>(below));
    };
    const int64_t row = std::max<int64_t>(1, y.sizes.empty() ? 1 : y.sizes.back()), count = y.count() / row;
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t base = (r == 0 ? 0 : r == 1 ? count - 1 : next(count)) * row;
        for (int64_t k = 0; k < std::min(per_row, row); ++k) out.push_back(base + (k == 0 ? 0 : k == 1 ? row - 1 : next(row)));
    }
    return out;
}

/// The sampled elements of y and their references as two arrays of one row each; empty when not even one could be computed in time.
std::optional<std::pair<Array, Array>> sampled(const std::string& name, const Array& y, analysis::Cells& cells, const RunOptions& a, bool& all) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(a.check_seconds * 1000));
    std::vector<double> expected;
    std::vector<int64_t> used;
    const std::vector<int64_t> wanted = candidates(y, a.seed, all);
    for (const int64_t i : wanted) {
        const auto v = cells.at(name, i, deadline);
        if (!v) break;
        expected.push_back(*v);
        used.push_back(i);
    }
    all &= used.size() == wanted.size();
    if (used.empty() && !wanted.empty()) return {};
    const auto n = static_cast<int64_t>(used.size());
    const std::vector<int64_t> sizes = all ? y.sizes : std::vector<int64_t>{n};
    std::pair<Array, Array> out{Array::zeros(y.type, sizes), Array::zeros(DType::F64, sizes)};
    const size_t bytes = info(y.type).bytes;
    for (size_t k = 0; k < used.size(); ++k) {
        std::copy_n(y.bytes.begin() + used[k] * static_cast<int64_t>(bytes), bytes, out.first.bytes.begin() + static_cast<ptrdiff_t>(k * bytes));
        out.second.set(static_cast<int64_t>(k), expected[k]);
    }
    return out;
}

struct Verdict {
    std::string output, text;
    bool good = false;
    double worst = 0;
    int64_t compared = 0;
};

Verdict check_output(const std::string& name, const Array& y, analysis::Cells& cells, const Tolerance& t, const RunOptions& a) {
    bool all = false;
    const auto pair = sampled(name, y, cells, a, all);
    if (!pair) return {name, fmt::format("not checked: one element of `{}` takes more than {} s in f64 (--check-seconds)", name, a.check_seconds)};
    const Comparison c = compare(pair->first, pair->second, t);
    const std::string amount = fmt::format("{} of {} elements", c.compared, y.count());
    if (c.equal) return {name, fmt::format("correct: `{}`, {}, largest error {:.3f} of the bound ({})", name, amount, c.worst, t.why), true, c.worst, c.compared};
    return {name, fmt::format("wrong: `{}`, {}: element {} is {} but should be {} (error {:.3g} of the bound; {})", name, amount, c.at, c.actual, c.expected, c.worst, t.why), false, c.worst, c.compared};
}

std::vector<Verdict> check_outputs(const Subject& s, const RunInputs& in, const Outcome& o, const RunOptions& a) {
    analysis::Cells cells(lower::in_float64(s.op.program), in.arguments, in.arrays);
    const Tolerance t = tolerance_of(s.op.program, in.arguments.dims);
    std::vector<Verdict> out;
    for (const auto& [name, y] : o.outputs) out.push_back(check_output(name, y, cells, t, a));
    return out;
}

// ---- reporting

std::string shape_text(const Array& a) { return fmt::format("{}[{}]", name_of(a.type), fmt::join(a.sizes, ", ")); }

std::string time_text(double s) { return s >= 1 ? fmt::format("{:.2f} s", s) : s >= 1e-3 ? fmt::format("{:.2f} ms", s * 1e3) : fmt::format("{:.1f} us", s * 1e6); }

void report(const Subject& s, const Outcome& o, const std::vector<Verdict>& verdicts, const RunOptions& a) {
    if (a.json) {
        nlohmann::ordered_json j{{"operator", s.spec}, {"device", o.device}, {"by", o.how}, {"seconds", o.seconds}, {"seed", a.seed}};
        for (const Verdict& v : verdicts) j["checks"].push_back({{"output", v.output}, {"correct", v.good}, {"worst", v.worst}, {"elements", v.compared}, {"text", v.text}});
        fmt::print("{}\n", j.dump());
        return;
    }
    fmt::print("{}\n  ran on {} by {} in {} (seed {})\n", s.spec, o.device, o.how, time_text(o.seconds), a.seed);
    for (const auto& [name, y] : o.outputs) {
        std::string head;
        for (int64_t i = 0; i < std::min<int64_t>(y.count(), 4); ++i) head += fmt::format(" {:.6g}", y.get(i));
        fmt::print("  {}: {} ={}{}\n", name, shape_text(y), head, y.count() > 4 ? " …" : "");
    }
    for (const Verdict& v : verdicts) fmt::print("  {}\n", v.text);
}

Status write_arrays(const Arrays& arrays, const std::string& directory) {
    if (directory.empty()) return ok();
    std::error_code ec;
    std::filesystem::create_directories(directory, ec);
    if (ec) return Diagnostic{"file.unwritable", {}, fmt::format("cannot make the folder `{}`: {}", directory, ec.message())};
    for (const auto& [name, a] : arrays)
        if (const Status w = write_npy((std::filesystem::path(directory) / (name + ".npy")).string(), a); !w) return w;
    return ok();
}

/// The operator must be one: `--op` or `--case`, unless the file has only one.
Result<Subject> single(std::vector<Subject> all) {
    if (all.size() == 1) return std::move(all[0]);
    std::string names;
    for (const Subject& s : all) names += (names.empty() ? "" : ", ") + s.op.program.name;
    return Diagnostic{"run.which", {}, "the file has several operators", {}, fmt::format("choose one with `--op` or `--case`: {}", names), Exit::Usage};
}

/// A finding with a place in a source is shown there.
int report_failure(Session& session, const Diagnostic& why) {
    if (!why.loc || why.loc.file < 0) return fail(why);
    session.found.push_back(why);
    return session.report();
}

int run(const RunOptions& a) {
    Session session;
    const frontend::Module* m = session.open(a.chosen.file);
    if (!m || session.failed()) return session.report();
    Selection selection = a.chosen.selection;
    std::optional<Plan> given;
    if (!a.plan.empty()) {
        auto plan = load_plan(a.plan);
        if (!plan) return fail(plan.why());
        if (const Status c = complete(selection, *plan, *m); !c) return fail(c.why());
        given = std::move(*plan);
    }
    std::vector<Subject> subjects = subjects_of(session, *m, selection);
    if (session.failed()) return session.report();
    const auto s = single(std::move(subjects));
    if (!s) return fail(s.why());
    const auto files = input_files(a.in);
    if (!files) return fail(files.why());
    const auto in = make_inputs(*s, *files, a.seed);
    if (!in) return fail(in.why());
    std::unique_ptr<runtime::Device> device;
    if (a.device != "cpu") {
        const auto id = runtime::parse_device(a.device);
        if (!id) return fail(id.why());
        auto opened = runtime::open_device(*id, a.toolkits, a.emulation);
        if (!opened) return fail(opened.why());
        device = std::move(*opened);
    }
    const Target* target = device ? &synth::evaluate::target_of(*device) : target_named("cpu");
    const auto plan = narrowed(given ? *given : choose_plan(session, *m, *s, target), at_sizes(*s, in->arguments.dims), target);
    if (const int exit = session.report(); session.failed()) return exit;
    if (!plan) return fail(plan.why());
    const Work work{fitting(*s, *plan, target), *plan};
    const auto o = device ? run_on(*device, work, *in) : run_on_cpu(work, *in, a.interpret);
    if (!o) return report_failure(session, o.why());
    const std::vector<Verdict> verdicts = a.check ? check_outputs(*s, *in, *o, a) : std::vector<Verdict>{};
    report(*s, *o, verdicts, a);
    if (const Status w = write_arrays(o->outputs, a.out); !w) return fail(w.why());
    if (const Status w = write_arrays(in->arrays, a.inputs_out); !w) return fail(w.why());
    return std::ranges::all_of(verdicts, &Verdict::good) ? 0 : static_cast<int>(Exit::Wrong);
}

}  // namespace

void add_run(CLI::App& app, int& exit) {
    auto a = std::make_shared<RunOptions>();
    CLI::App* c = app.add_subcommand("run", "run an operator on a device, on files or on drawn inputs");
    add_selection(*c, a->chosen);
    c->add_option("--device", a->device, "cpu, cuda:0, hip:0, emu:sm_70, emu:sm_80, emu:sm_90a, emu:gfx90a")->capture_default_str();
    c->add_option("--plan", a->plan, "a plan file, as compile writes it; without it the file's schedule for the device, if it has one");
    c->add_option("--in", a->in, "an input: NAME=FILE.npy; the others are drawn")->take_all();
    c->add_option("--out", a->out, "write each output as NAME.npy to this folder");
    c->add_option("--inputs-out", a->inputs_out, "write each input as NAME.npy to this folder");
    c->add_option("--seed", a->seed, "of drawn inputs and of what --check samples")->capture_default_str()->check([](const std::string& text) {
        uint64_t seed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        return error == std::errc{} && end == text.data() + text.size() ? std::string{} : "a seed is an integer from 0 to 2^64 - 1";
    });
    c->add_flag("--check", a->check, "compare with f64, evaluated from the definition; exit 4 if wrong");
    c->add_option("--check-seconds", a->check_seconds, "time for the reference of one output")->capture_default_str();
    c->add_flag("--interpret", a->interpret, "on cpu: by the interpreter, which checks every access");
    c->add_flag("--json", a->json, "the result as JSON");
    c->add_option("--emu-seed", a->emulation.seed, "on emu: of a random order of threads, with stops within them; 0: in order")->capture_default_str();
    c->add_flag("--emu-guard", a->emulation.guard, "on emu: shared buffers apart from each other, to see one run over into the next");
    c->add_option("--emu-shift", a->emulation.shift, "on emu: tensors start so many bytes behind an aligned address: 8, 16, … 248")->check(CLI::Range(0, 248))->check([](const std::string& text) {
        return std::atoi(text.c_str()) % 8 == 0 ? std::string{} : "a shift is a multiple of 8 bytes";
    });
    add_toolkits(*c, a->toolkits);
    c->callback([a, &exit] { exit = run(*a); });
}

}  // namespace acu
