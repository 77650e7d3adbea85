#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "acuc/inputs.h"
#include "acuc/options.h"
#include "acuc/plans.h"
#include "microkernels/catalogue.h"
#include "synth/blame/blame.h"

namespace acu {
namespace {

using namespace ir;
using synth::blame::Blame;
using synth::blame::Cause;
using synth::blame::Trial;
using Json = nlohmann::ordered_json;

struct BlameArguments {
    Chosen chosen;
    std::string plan, device;
    uint64_t seed = 1;
    bool json = false;
};

/// The blame at some sizes.
struct Report {
    Env dims;
    Blame blame;
};

// ---- one experiment

/// Values that its blocks compute, as far as sizes alone say.
double work_of(const Program& loops, const Env& dims) {
    double all = 0;
    for_each_block(loops.body, [&](const Block& b, Loc) {
        double points = 1;
        for (const Axis& a : b.axes) {
            std::set<std::string> names;
            free_names(a.size, names);
            loaded_tensors(a.size, names);
            if (std::ranges::all_of(names, [&](const std::string& n) { return dims.contains(n); })) points *= static_cast<double>(std::max<int64_t>(0, evaluate(a.size, dims)));
        }
        all += points;
    });
    return all;
}

/// A fact `P == …` gives the size of P.
bool follows(const Program& p, const std::string& dim) {
    return std::ranges::any_of(p.facts, [&](const Value& f) { return f->op == Op::Eq && f->args[0]->op == Op::OfIndex && is_name(f->args[0]->subscripts[0], dim); });
}

Result<Report> experiment(const Session& session, const Subject& subject, const Plan& plan, const Target& target, const Env& dims, const BlameArguments& a, bool emulate) {
    Subject s = subject;
    for (Dim& d : s.op.program.dims) d.value = follows(s.op.program, d.name) ? std::nullopt : std::optional(dims.at(d.name));
    const auto in = make_inputs(s, {}, a.seed);
    if (!in) return in.why();
    s = at_sizes(std::move(s), in->arguments.dims);
    const auto here = narrowed(plan, s, &target);
    if (!here) return here.why();
    const Program loops = lower::lower_reductions(s.op.program);
    constexpr double most_work = 5e5;
    if (work_of(loops, in->arguments.dims) > most_work) return Diagnostic{"blame.size", {}, "the sizes at which this plan applies are too large to interpret", {}, "give smaller ones with --set"};
    synth::blame::Request r{loops, here->decisions, in->arguments, in->arrays, &target};
    r.context = {&target, &microkernels::find, &microkernels::stamped};
    const auto emit = [&](const Program& p) {
        const codegen::EmitOptions options{true, [&](int file) { return file < 0 ? std::string("?") : session.sources[file].name; }};
        return codegen::emit({{p}}, target, {s.spec, s.op.doc, s.op.program, s.op.scalars}, options);
    };
    if (emulate) r.emulate = synth::blame::in_emulation(target, r.arguments, r.inputs, emit);
    auto blame = synth::blame::find_blame(r);
    if (!blame) return blame.why();
    return Report{in->arguments.dims, std::move(*blame)};
}

/// At small sizes that the plan admits, until something is blamed: all that are quick for the program, the longest few of them for its text.
Result<Report> search(const Session& session, const Subject& s, const Plan& plan, const Target& target, const BlameArguments& a) {
    const Env full = known_dims(s.op.program);
    if (full.size() != s.op.program.dims.size()) return Diagnostic{"input.size", {}, "not all sizes are given", {}, "give them with `--set` or `--case`: blame takes smaller ones that are like them", Exit::Usage};
    constexpr size_t most_texts = 3;
    Result<Report> last = Diagnostic{"blame.size", {}, "the operator has no sizes"};
    std::vector<Env> admitted;
    for (const Env& dims : synth::blame::small_sizes(full)) {
        auto r = experiment(session, s, plan, target, dims, a, false);
        if (r && r->blame.cause != Cause::None) return r;
        if (r) admitted.push_back(dims);
        if (r || admitted.empty()) last = std::move(r);
    }
    if (a.device == "none") return last;
    for (size_t i = admitted.size() - std::min(admitted.size(), most_texts); i < admitted.size(); ++i) {
        last = experiment(session, s, plan, target, admitted[i], a, true);
        if (!last || last->blame.cause != Cause::None) return last;
    }
    return last;
}

// ---- reporting

std::string verdict_of(const Trial& t) {
    std::string s = t.verdict == Trial::Right ? "right" : t.verdict == Trial::Wrong ? "wrong" : "refused";
    if (t.differs) s += fmt::format(": element {} of `{}` is {:.6g}, not {:.6g}", t.differs->element, t.differs->output, t.differs->actual, t.differs->expected);
    if (t.finding) s += fmt::format(": {} [{}]", t.finding->message, t.finding->code);
    return s;
}

void print_report(const Subject& s, const Plan& plan, const Report& r, const BlameArguments& a) {
    std::vector<std::string> sizes;
    for (const auto& [n, v] : r.dims) sizes.push_back(fmt::format("{} = {}", n, v));
    fmt::print("{} for {}, at {} (seed {})\n", s.op.program.name, plan.target, fmt::join(sizes, ", "), a.seed);
    size_t width = 0;
    for (const Trial& t : r.blame.trials) width = std::max(width, std::min<size_t>(t.of.size(), 70));
    for (const Trial& t : r.blame.trials) {
        fmt::print("  {:{}}  {}\n", t.of, width, verdict_of(t));
        if (t.finding && t.verdict == Trial::Wrong)
            for (const Note& n : t.finding->notes) fmt::print("      {}\n", n.text);
    }
    fmt::print("{}\n", r.blame.text());
}

Json report_json(const Subject& s, const Plan& plan, const Report& r, const BlameArguments& a) {
    Json j{{"operator", s.op.program.name}, {"target", plan.target}, {"dims", r.dims}, {"seed", a.seed}, {"cause", name_of(r.blame.cause)}, {"decisions", r.blame.decisions}, {"part", r.blame.part}};
    j["detector"] = r.blame.evidence.detector();
    j["text"] = r.blame.text();
    for (const Trial& t : r.blame.trials) {
        Json one{{"of", t.of}, {"verdict", t.verdict == Trial::Right ? "right" : t.verdict == Trial::Wrong ? "wrong" : "refused"}};
        if (t.differs) one["output"] = t.differs->output, one["element"] = t.differs->element, one["expected"] = t.differs->expected, one["actual"] = t.differs->actual;
        if (t.finding) one["code"] = t.finding->code, one["message"] = t.finding->message;
        j["trials"].push_back(one);
    }
    return j;
}

// ---- the command

/// `--device` must be an emulation of the plan's target; left out, it is.
Status check_device(const BlameArguments& a, const Plan& plan) {
    if (a.device.empty() || a.device == "none" || a.device == "emu:" + plan.target) return ok();
    return Diagnostic{"plan.target", {}, fmt::format("the plan is for {}, which `{}` does not emulate", plan.target, a.device), {}, fmt::format("--device is emu:{} or none", plan.target), Exit::Usage};
}

int blame(BlameArguments a) {
    Session session;
    const frontend::Module* m = session.open(a.chosen.file);
    if (!m || session.failed()) return session.report();
    const auto plan = load_plan(a.plan);
    if (!plan) return fail(plan.why());
    if (const Status c = complete(a.chosen.selection, *plan, *m); !c) return fail(c.why());
    if (const Status d = check_device(a, *plan); !d) return fail(d.why());
    const std::vector<Subject> subjects = subjects_of(session, *m, a.chosen.selection);
    if (session.failed() || subjects.empty()) return session.report();
    const Target* target = target_named(plan->target);
    if (!target || target->platform == Platform::Cpu) return fail({"target.unknown", {}, fmt::format("no GPU target `{}` is known", plan->target)});
    const auto r = search(session, subjects.front(), *plan, *target, a);
    if (!r) return fail(r.why());
    if (a.json) fmt::print("{}\n", report_json(subjects.front(), *plan, *r, a).dump());
    else print_report(subjects.front(), *plan, *r, a);
    return r->blame.cause == Cause::None ? 0 : static_cast<int>(Exit::Wrong);
}

}  // namespace

void add_blame(CLI::App& app, int& exit) {
    auto a = std::make_shared<BlameArguments>();
    CLI::App* c = app.add_subcommand("blame", "find the decision of a plan, the lowering or the microkernel that makes a result wrong; exit 4 when something is blamed");
    add_selection(*c, a->chosen);
    c->add_option("--plan", a->plan, "the plan file")->required();
    c->add_option("--device", a->device, "emu:TARGET of the plan (the default), or none: the program only, not its text");
    c->add_option("--seed", a->seed, "of drawn inputs")->capture_default_str();
    c->add_flag("--json", a->json, "the result as JSON");
    c->callback([a, &exit] { exit = blame(*a); });
}

}  // namespace acu
