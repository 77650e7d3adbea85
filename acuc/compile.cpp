#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "acuc/options.h"
#include "acuc/plans.h"
#include "codegen/cpu.h"
#include "codegen/dialect.h"
#include "frontend/ast_print.h"
#include "frontend/step_words.h"
#include "ir/pass/catalogue.h"

namespace acu {
namespace {

struct CompileArguments {
    Chosen chosen;
    std::string target, output = ".", emit, plan, print_after;
    bool provenance = false;
};

/// Prints the program after each step that `--print-after` names.
class Printer : public ir::pass::Observer {
  public:
    explicit Printer(std::string wanted) : wanted_(std::move(wanted)) {}
    void after(int id, const ir::pass::Step& step, const ir::Program& p, double) override {
        if (wants(step.pass)) fmt::print("// after step {}, {}\n{}", id, frontend::words_of(step), ir::print(p, true));
    }
    void lowered(const ir::lower::LoweringStep& step, const ir::Program& p) const {
        if (wants(step.name)) fmt::print("// after {}: {}\n{}", step.name, step.doc, ir::print(p, true));
    }
    Onlooker onlooker() {
        return {this, [this](const ir::lower::LoweringStep& s, const ir::Program& p) { lowered(s, p); }};
    }

  private:
    bool wants(std::string_view name) const { return wanted_ == "all" || wanted_ == name; }
    std::string wanted_;
};

Status known_step(const std::string& name) {
    std::vector<std::string> names{"all"};
    for (const ir::pass::Pass& p : ir::pass::all_passes()) names.emplace_back(p.name);
    for (const ir::lower::LoweringStep& s : ir::lower::lowering_steps()) names.emplace_back(s.name);
    if (name.empty() || std::ranges::find(names, name) != names.end()) return ok();
    return Diagnostic{"pass.unknown", {}, fmt::format("--print-after {}: no pass and no step of the lowering has this name", name), {}, did_you_mean(name, names), Exit::Usage};
}

/// A subject with the alternatives of its plan: the one given, the one in the file, or none.
struct Job {
    Subject subject;
    const Target* target = nullptr;    ///< null: none is given
    std::vector<Planned> alternatives = {};    ///< none: no target
};

/// `text` of each alternative, with its condition in front where there are several.
std::string of_each(const Job& j, const std::function<std::string(const Planned&)>& text) {
    std::string out;
    for (const Planned& p : j.alternatives) out += (j.alternatives.size() == 1 ? "" : fmt::format("// when {}\n", p.plan.when.empty() ? "nothing above" : p.plan.when)) + text(p);
    return out;
}

/// Text of a subject for `--emit`; what needs a target has one.
Result<std::string> emitted(const Job& j, const std::string& what, const codegen::EmitOptions& options) {
    const Subject& s = j.subject;
    if (what == "tensor") return ir::print(s.op.program);
    const bool steps = std::ranges::any_of(j.alternatives, [](const Planned& p) { return !p.plan.decisions.empty(); });
    if (what == "loop") return steps ? of_each(j, [](const Planned& p) { return ir::print(p.scheduled); }) : ir::print(planned(s.op.program));
    if (what == "llvm") return codegen::llvm_text(steps ? ir::lower::fallback_plan(j.alternatives.back().scheduled) : planned(s.op.program));
    if (what == "plan") return synth::record::print(plan_of(j.alternatives));
    auto e = compile_subject(s, j.alternatives, *j.target, options);
    if (!e) return e.why();
    return e->source;
}

/// The files of one operator.
struct Files {
    std::string stem;
    codegen::Emitted emitted;
    std::string plan;
};

Result<Files> files_of(const Job& j, const std::string& directory, const codegen::EmitOptions& options) {
    auto e = compile_subject(j.subject, j.alternatives, *j.target, options);
    if (!e) return e.why();
    return Files{(std::filesystem::path(directory) / j.subject.op.program.name).string(), std::move(*e), synth::record::print(plan_of(j.alternatives))};
}

Status write(const Files& f, const Target& target) {
    const std::pair<std::string, const std::string*> files[] = {
        {f.stem + std::string(codegen::dialect_of(target.platform).extension), &f.emitted.source}, {f.stem + ".h", &f.emitted.header}, {f.stem + ".plan.json", &f.plan}};
    for (const auto& [path, text] : files) {
        if (const Status w = write_text(path, *text); !w) return w;
        fmt::print("wrote {}\n", path);
    }
    return ok();
}

/// Compiles all before it writes any.
int write_all(const std::vector<Job>& jobs, const std::string& directory, const codegen::EmitOptions& options) {
    std::vector<Files> all;
    for (const Job& j : jobs) {
        auto f = files_of(j, directory, options);
        if (!f) return fail(f.why());
        all.push_back(std::move(*f));
    }
    std::error_code ec;
    std::filesystem::create_directories(directory, ec);
    if (ec) return fail({"file.unwritable", {}, fmt::format("cannot make the folder `{}`: {}", directory, ec.message())});
    for (size_t i = 0; i < all.size(); ++i)
        if (const Status w = write(all[i], *jobs[i].target); !w) return fail(w.why());
    return 0;
}

int print_all(const std::vector<Job>& jobs, const std::string& what, const codegen::EmitOptions& options) {
    for (const Job& j : jobs) {
        const auto text = emitted(j, what, options);
        if (!text) return fail(text.why());
        fmt::print("{}", *text);
    }
    return 0;
}

/// The target, where one is needed; null after an error.
const Target* target_of(const CompileArguments& a, int& exit) {
    const Target* t = target_named(a.target);
    const bool gpu = t && (t->platform != Platform::Cpu || a.emit == "tensor" || a.emit == "loop" || a.emit == "llvm");
    const bool hip = t && t->platform == Platform::Hip;
    std::vector<std::string> names;
    for (const Target& x : targets()) names.emplace_back(x.name);
    if (a.target.empty()) exit = fail({"target.missing", {}, "no target is given", {}, fmt::format("--target is one of {}", fmt::join(names, ", ")), Exit::Usage});
    else if (!t) exit = fail({"target.unknown", {}, fmt::format("no target `{}` is known", a.target), {}, fmt::format("it is one of {}", fmt::join(names, ", ")), Exit::Usage});
    else if (!gpu && a.emit != "plan") exit = fail({"target.cpu", {}, "the cpu target is compiled in memory", {}, "see what it does with `--emit llvm` or `--emit loop`, or run it with `acuc run`", Exit::Usage});
    else if ((a.emit == "cuda" && hip) || (a.emit == "hip" && !hip)) exit = fail({"target.emit", {}, fmt::format("{} is not what {} is compiled from", a.emit, a.target), {}, {}, Exit::Usage});
    else return t;
    return nullptr;
}

/// Findings go to the session: what is wrong with a plan stands in a schedule block, perhaps.
std::vector<Job> jobs_of(Session& s, const frontend::Module& m, const CompileArguments& a, const std::optional<Plan>& given, const Target* target) {
    std::vector<Job> out;
    Printer printer(a.print_after);
    for (Subject& subject : subjects_of(s, m, a.chosen.selection)) {
        if (s.failed()) return out;
        out.push_back({std::move(subject), target});
        Job& j = out.back();
        if (!target) continue;
        const Plan plan = given ? *given : choose_plan(s, m, j.subject, target);
        if (s.failed()) return out;
        auto done = all_planned(j.subject, plan, *target, s.found, printer.onlooker());
        if (!done) return s.found.push_back(done.why()), out;
        j.alternatives = std::move(*done);
    }
    return out;
}

int compile(CompileArguments a) {
    Session s;
    const frontend::Module* m = s.open(a.chosen.file);
    if (!m || s.failed()) return s.report();
    if (a.emit == "ast") {
        fmt::print("{}", frontend::print(m->file));
        return 0;
    }
    if (const Status known = known_step(a.print_after); !known) return fail(known.why());
    std::optional<Plan> plan;
    if (!a.plan.empty()) {
        auto loaded = load_plan(a.plan);
        if (!loaded) return fail(loaded.why());
        plan = std::move(*loaded);
        if (const Status c = complete(a.chosen.selection, *plan, *m); !c) return fail(c.why());
        if (a.target.empty()) a.target = plan->target;
    }
    const bool needs_target = a.emit != "tensor" && a.emit != "loop" && a.emit != "llvm";
    int exit = 0;
    const Target* target = needs_target || !a.target.empty() ? target_of(a, exit) : nullptr;
    const std::vector<Job> jobs = target || !needs_target ? jobs_of(s, *m, a, plan, target) : std::vector<Job>{};
    if (s.failed()) return s.report();
    if (exit != 0) return exit;
    s.report();
    const codegen::EmitOptions options{a.provenance, [&s](int file) { return s.sources[file].name; }};
    return a.emit.empty() ? write_all(jobs, a.output, options) : print_all(jobs, a.emit, options);
}

}  // namespace

void add_compile(CLI::App& app, int& exit) {
    auto a = std::make_shared<CompileArguments>();
    CLI::App* c = app.add_subcommand("compile", "emit CUDA or HIP with a C launcher: NAME.cu or NAME.hip, NAME.h, NAME.plan.json");
    add_selection(*c, a->chosen);
    c->add_option("--target", a->target, "sm_70, sm_80, sm_90a, gfx90a");
    c->add_option("-o", a->output, "the folder to write to")->capture_default_str();
    c->add_option("--emit", a->emit, "print to standard output instead")->check(CLI::IsMember({"ast", "tensor", "loop", "cuda", "hip", "llvm", "plan"}));
    c->add_option("--plan", a->plan, "a plan file: the decisions, and what they are for where the command line does not say it");
    c->add_option("--print-after", a->print_after, "print the program after each step of this pass, or of this step of the lowering, or after all");
    c->add_flag("--provenance", a->provenance, "say behind each statement of a kernel where it comes from: // @file:line:column, and the decisions that made it");
    c->callback([a, &exit] { exit = compile(*a); });
}

}  // namespace acu
