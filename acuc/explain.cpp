#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "acuc/options.h"
#include "acuc/plans.h"
#include "frontend/step_words.h"
#include "synth/record/words.h"

namespace acu {
namespace {

using synth::record::Decision;
using Json = nlohmann::ordered_json;

struct ExplainArguments {
    std::string plan, target, as;
    Chosen chosen;
    bool json = false;
};

// ---- what a step changed

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (size_t from = 0; from < text.size();) {
        const size_t end = std::min(text.find('\n', from), text.size());
        out.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return out;
}

/// The lines that only one of two texts has, in order, with `-` and `+` in front: by the longest common subsequence, where that is cheap.
std::vector<std::string> difference(const std::string& before, const std::string& after) {
    auto a = lines_of(before), b = lines_of(after);
    const auto [x, y] = std::ranges::mismatch(a, b);
    b.erase(b.begin(), y), a.erase(a.begin(), x);
    while (!a.empty() && !b.empty() && a.back() == b.back()) a.pop_back(), b.pop_back();
    constexpr size_t most_cells = size_t{1} << 22;
    if ((a.size() + 1) * (b.size() + 1) > most_cells) a.resize(1), b.resize(1), a[0] = "…", b[0] = "… more lines than can be compared";
    std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
    for (size_t i = a.size(); i-- > 0;)
        for (size_t j = b.size(); j-- > 0;) common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    std::vector<std::string> out;
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (i < a.size() && j < b.size() && a[i] == b[j]) ++i, ++j;
        else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) out.push_back("-" + a[i++]);
        else out.push_back("+" + b[j++]);
    }
    return out;
}

struct Change {
    std::vector<std::string> lines = {};
    double seconds = 0;
};

class Tracer : public ir::pass::Observer {
  public:
    void before(int, const ir::pass::Step&, const ir::Program& p) override { before_ = ir::print(p); }
    void after(int id, const ir::pass::Step&, const ir::Program& p, double seconds) override { changes[id] = {difference(before_, ir::print(p)), seconds}; }
    std::map<int, Change> changes;

  private:
    std::string before_;
};

// ---- where a statement comes from

struct Line {
    std::string text;
    Loc loc;
    std::vector<int> decisions;
};

void statements(const ir::Body& body, int depth, std::vector<Line>& out) {
    for (const ir::Stmt& s : body) {
        const std::string text = ir::print(s, depth);
        out.push_back({text.substr(0, text.find('\n')), s->loc, s->decisions});
        for (const ir::Body* inner : ir::bodies_of(s)) statements(*inner, depth + 1, out);
    }
}

/// What is known of a plan with its operator.
struct Trace {
    std::map<int, Change> changes = {};
    std::vector<Line> statements = {};
};

/// One of the alternatives of a plan; with a trace where its operator is given.
struct Explained {
    Plan plan;
    std::optional<Trace> trace = {};
};

// ---- in words

std::string bindings(const Plan& p) {
    std::vector<std::string> list;
    for (const auto& [n, t] : p.types) list.push_back(fmt::format("{} = {}", n, t));
    for (const auto* map : {&p.values, &p.dims})
        for (const auto& [n, v] : *map) list.push_back(fmt::format("{} = {}", n, v));
    return fmt::format("{}", fmt::join(list, ", "));
}

void print_head(const Plan& p) {
    fmt::print("{} for {}{}\n", p.op, p.target, p.when.empty() ? "" : " when " + p.when);
    const std::string fixed = bindings(p);
    for (const auto& [name, text] : {std::pair{"about", p.doc}, {"case", p.case_name}, {"fixed", fixed}, {"definition", p.definition}, {"compiler", p.compiler}, {"toolchain", p.toolchain}})
        if (!text.empty()) fmt::print("  {:11} {}\n", name, text);
}

std::string measures_text(const synth::record::Measures& list) {
    std::vector<std::string> words;
    for (const auto& [name, m] : list) words.push_back(std::visit([&](const auto& x) { return fmt::format("{} {}", name, x); }, m));
    return fmt::format("{}", fmt::join(words, ", "));
}

void print_change(const Change& c) {
    constexpr size_t most = 24;
    const auto count = [&](char sign) { return std::ranges::count_if(c.lines, [&](const std::string& l) { return l[0] == sign; }); };
    fmt::print("     changes     {} line{} go{}, {} come{}\n", count('-'), count('-') == 1 ? "" : "s", count('-') == 1 ? "es" : "", count('+'), count('+') == 1 ? "s" : "");
    for (size_t i = 0; i < std::min(c.lines.size(), most); ++i) fmt::print("       {}\n", c.lines[i]);
    if (c.lines.size() > most) fmt::print("       … and {} lines more\n", c.lines.size() - most);
}

void print_decision(const Decision& d, const Trace* trace) {
    const ir::pass::Pass* pass = ir::pass::pass_named(d.step.pass);
    fmt::print("\n{:3}  {}\n", d.id, frontend::words_of(d.step));
    const std::string what = pass ? fmt::format("{} ({})", pass->doc, name_of(pass->rounding)) : "";
    const std::string bad = d.diagnostic ? fmt::format("{} [{}]", d.diagnostic->message, d.diagnostic->code) : "";
    for (const auto& [name, text] : {std::pair{"what", what}, {"why", d.step.why}, {"by", d.step.by}, {"status", d.status}, {"because", bad}, {"predicted", measures_text(d.predicted)}, {"measured", measures_text(d.measured)}})
        if (!text.empty()) fmt::print("     {:11} {}\n", name, text);
    if (!trace) return;
    const auto it = trace->changes.find(d.id);
    if (it == trace->changes.end()) fmt::print("     changes     not applied\n");
    else if (it->second.lines.empty()) fmt::print("     changes     nothing\n");
    else print_change(it->second);
}

std::string place(const Session& s, Loc loc) { return loc && loc.file >= 0 ? fmt::format("{}:{}", s.sources[loc.file].name, loc.line) : ""; }

void print_statements(const Session& s, const std::vector<Line>& lines) {
    fmt::print("\nthe program after all steps, with the line that each statement comes from and the steps that made or changed it\n");
    for (const Line& l : lines) fmt::print("  {}\n      {}{}\n", l.text, place(s, l.loc), l.decisions.empty() ? "" : fmt::format(", steps {}", fmt::join(l.decisions, " ")));
}

/// `one_of`: there are others, so its condition is said.
void print_alternative(const Session& s, const Explained& e, bool one_of) {
    if (one_of && e.plan.when.empty()) fmt::print("\nfor every other size\n");
    else if (one_of) fmt::print("\nwhen {}{}{}\n", e.plan.when, e.plan.doc.empty() ? "" : ": ", e.plan.doc);
    for (const Decision& d : e.plan.decisions) print_decision(d, e.trace ? &*e.trace : nullptr);
    if (e.plan.decisions.empty()) fmt::print("\nno steps: one thread a cell, any legal shape\n");
    if (e.trace && !s.failed()) print_statements(s, e.trace->statements);
}

// ---- as JSON

Json change_json(const Change& c) { return {{"effect", !c.lines.empty()}, {"lines", c.lines}, {"seconds", c.seconds}}; }

void add_steps(const Session& s, const Explained& e, Json& j) {
    const Trace* trace = e.trace ? &*e.trace : nullptr;
    j["steps"] = Json::array();
    for (const Decision& d : e.plan.decisions) {
        const ir::pass::Pass* pass = ir::pass::pass_named(d.step.pass);
        Json one{{"id", d.id}, {"words", frontend::words_of(d.step)}};
        if (pass) one["doc"] = pass->doc, one["rounding"] = name_of(pass->rounding);
        if (trace && trace->changes.contains(d.id)) one.update(change_json(trace->changes.at(d.id)));
        j["steps"].push_back(one);
    }
    if (!trace) return;
    j["statements"] = Json::array();
    for (const Line& l : trace->statements) j["statements"].push_back({{"text", l.text}, {"source", place(s, l.loc)}, {"decisions", l.decisions}});
}

Json explained_json(const Session& s, const Plan& p, const std::vector<Explained>& alternatives) {
    Json j{{"plan", to_json(p)}, {"schedule", print_schedule(p)}};
    for (const Explained& e : alternatives) {
        Json variant{{"when", e.plan.when}};
        const bool last = &e == &alternatives.back();
        add_steps(s, e, last ? j : variant);
        if (!last) j["variants"].push_back(variant);
    }
    return j;
}

// ---- the command

/// Applies a plan without variants to its operator; what goes wrong goes to the session, what was seen until then is kept.
Trace trace_of(Session& s, const Plan& plan, const Subject& subject) {
    Tracer tracer;
    Trace out;
    const auto done = scheduled(subject, plan, target_named(plan.target), s.found, &tracer);
    if (done) statements(done->body, 0, out.statements);
    else s.found.push_back(done.why());
    out.changes = std::move(tracer.changes);
    return out;
}

/// The alternatives of the plan that the sizes leave, each applied to the operator.
std::vector<Explained> traced(Session& s, const Plan& plan, Chosen chosen) {
    const frontend::Module* m = s.open(chosen.file);
    if (!m || s.failed()) return {};
    if (const Status c = complete(chosen.selection, plan, *m); !c) return s.found.push_back(c.why()), std::vector<Explained>{};
    const std::vector<Subject> subjects = subjects_of(s, *m, chosen.selection);
    if (s.failed() || subjects.empty()) return {};
    const auto left = narrowed(plan, subjects.front(), target_named(plan.target));
    if (!left) return s.found.push_back(left.why()), std::vector<Explained>{};
    std::vector<Explained> out;
    for (Plan& one : synth::record::alternatives_of(*left)) {
        Trace trace = trace_of(s, one, subjects.front());
        out.push_back({std::move(one), std::move(trace)});
    }
    return out;
}

/// The plan of a file, or the schedule blocks of a source for one operator and the target that is asked for: the last with the others as variants.
Result<Plan> plan_in(Session& s, const ExplainArguments& a) {
    if (!a.plan.ends_with(".acu")) return load_plan(a.plan);
    const frontend::Module* m = s.open(a.plan);
    std::vector<const frontend::ScheduleDecl*> blocks;
    if (m)
        for (const frontend::ScheduleDecl& d : m->file.schedules)
            if (a.target.empty() || d.target == a.target) blocks.push_back(&d);
    if (!s.failed() && !blocks.empty() && std::ranges::all_of(blocks, [&](const auto* b) { return b->op == blocks[0]->op && b->target == blocks[0]->target && (b->when || b == blocks.back()); })) {
        std::vector<Plan> alternatives;
        for (const frontend::ScheduleDecl* b : blocks) alternatives.push_back(synth::record::plan_of(*b, s.found));
        Plan plan = synth::record::joined(std::move(alternatives));
        if (const Status fits = check_steps(plan); s.found.empty() && !fits) return fits.why();
        if (!s.failed()) return plan;
    }
    if (s.failed()) return s.found.front();
    const std::string target = a.target.empty() ? "" : " for " + a.target;
    if (blocks.empty())
        return Diagnostic{"plan.block", {}, fmt::format("`{}` has no schedule block{}", a.plan, target), {},
                          fmt::format("the built-in planner's choice: `acuc compile {} --target TARGET -o DIR`, then `acuc explain DIR/NAME.plan.json`", a.plan)};
    return Diagnostic{"plan.block", {}, fmt::format("`{}` has {} schedule blocks{}, which are not one plan", a.plan, blocks.size(), target), {},
                      "they are for one operator and one target (choose one with --target), and each but the last has a condition"};
}

int explain(const ExplainArguments& a) {
    Session s;
    const auto plan = plan_in(s, a);
    if (!plan && s.found.empty()) s.found.push_back(plan.why());
    if (!plan) return s.report();
    if (!a.as.empty()) return fmt::print("{}", a.as == "json" ? synth::record::print(*plan) : print_schedule(*plan)), 0;
    std::vector<Explained> alternatives;
    if (!a.chosen.file.empty()) alternatives = traced(s, *plan, a.chosen);
    if (alternatives.empty())
        for (Plan& one : synth::record::alternatives_of(*plan)) alternatives.push_back({std::move(one)});
    if (a.json) {
        fmt::print("{}\n", explained_json(s, *plan, alternatives).dump(2));
        return s.report(true);
    }
    print_head(*plan);
    for (const Explained& e : alternatives) print_alternative(s, e, alternatives.size() > 1);
    return s.report();
}

}  // namespace

void add_explain(CLI::App& app, int& exit) {
    auto a = std::make_shared<ExplainArguments>();
    CLI::App* c = app.add_subcommand("explain", "a plan in words: each step with its reason; with its source, what each step changes and where each statement comes from");
    c->add_option("PLAN", a->plan, "the plan file, or a source with a schedule block")->required();
    c->add_option("--target", a->target, "of the block, where the source has several");
    c->add_option("FILE", a->chosen.file, "the .acu source of its operator");
    c->add_option("--set", a->chosen.selection.sets, "types, compile-time values, sizes and scalars that the plan leaves open")->take_all();
    c->add_option("--as", a->as, "print the plan as a schedule block or as a plan file, without loss")->check(CLI::IsMember({"schedule", "json"}));
    c->add_flag("--json", a->json, "as JSON");
    c->callback([a, &exit] { exit = explain(*a); });
}

}  // namespace acu
