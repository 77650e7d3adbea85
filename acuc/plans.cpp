#include "acuc/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/contract.h"
#include "frontend/guard.h"
#include "frontend/schedule.h"
#include "frontend/step_words.h"
#include "ir/lower/lower.h"
#include "ir/lower/protocol.h"
#include "ir/lower/spread.h"
#include "ir/pass/catalogue.h"
#include "microkernels/catalogue.h"
#include "synth/plan/default_plan.h"
#include "synth/record/words.h"

namespace acu {

using synth::record::Decision;

Result<Plan> load_plan(const std::string& path) {
    const auto text = read_text(path, synth::record::most_bytes);
    if (!text) return text.why();
    auto plan = synth::record::parse_plan(*text);
    if (plan) return plan;
    Diagnostic d = plan.why();
    d.notes.push_back({{}, fmt::format("in the plan `{}`", path)});
    return d;
}

// ---- what the command line leaves open

static bool is_set(const Selection& s, const std::string& name) {
    return std::ranges::any_of(s.sets, [&](const std::string& list) { return ("," + list).find("," + name + "=") != std::string::npos; });
}

static bool has_dim(const frontend::Expr& e, const std::string& name) {
    return (e.kind == frontend::Expr::Name && e.text == name) || std::ranges::any_of(e.args, [&](const frontend::ExprPtr& a) { return has_dim(*a, name); });
}

/// What `--set` could name: what is gone from the operator since shows as a stale plan.
static bool has_name(const frontend::OpDecl& op, const std::string& name) {
    const auto in = [&](const frontend::Param& p) { return p.name == name || std::ranges::any_of(p.shape.dims, [&](const frontend::ExprPtr& d) { return has_dim(*d, name); }); };
    return std::ranges::any_of(op.generics, [&](const frontend::Generic& g) { return g.name == name; }) || std::ranges::any_of(op.params, in) || std::ranges::any_of(op.outputs, in);
}

static std::string value_text(const frontend::OpDecl& op, const std::string& name, int64_t value) {
    const bool truth = std::ranges::any_of(op.generics, [&](const frontend::Generic& g) { return g.name == name && g.types == std::vector<std::string>{"bool"}; });
    return truth ? (value ? "true" : "false") : std::to_string(value);
}

static std::vector<std::string> sets_of(const Plan& plan, const frontend::OpDecl& op) {
    std::vector<std::string> out;
    const auto add = [&](const std::string& name, const std::string& value) {
        if (has_name(op, name)) out.push_back(name + "=" + value);
    };
    for (const auto& [n, t] : plan.types) add(n, t);
    for (const auto& [n, v] : plan.values) add(n, value_text(op, n, v));
    for (const auto& [n, v] : plan.dims) add(n, std::to_string(v));
    for (const auto& [n, v] : plan.scalars) add(n, fmt::format("{}", v));
    return out;
}

Status complete(Selection& s, const Plan& plan, const frontend::Module& m) {
    if (!s.op.empty() && s.op != plan.op) return Diagnostic{"plan.operator", {}, fmt::format("the plan is for the operator `{}`, not for `{}`", plan.op, s.op)};
    if (!s.case_name.empty()) return ok();
    const bool has_case = std::ranges::any_of(m.file.cases, [&](const frontend::CaseDecl& c) { return c.name == plan.case_name && c.op == plan.op; });
    if (s.op.empty() && s.sets.empty() && has_case) s.case_name = plan.case_name;
    s.op = plan.op;
    const auto op = m.ops.find(plan.op);
    if (op == m.ops.end()) return ok();
    std::vector<std::string> all;
    for (const std::string& set : sets_of(plan, *op->second.first))
        if (!is_set(s, set.substr(0, set.find('=')))) all.push_back(set);
    all.insert(all.end(), s.sets.begin(), s.sets.end());
    s.sets = std::move(all);
    return ok();
}

// ---- is it the plan of this subject?

Plan bare_plan(const Subject& s, const Target* target) {
    Plan p;
    p.op = s.op.program.name;
    p.case_name = s.case_name;
    p.definition = s.definition;
    if (target) p.target = target->name;
    for (const auto& [n, t] : s.op.bindings.types) p.types[n] = ir::name_of(t);
    p.values = s.op.bindings.values;
    for (const ir::Dim& d : s.op.program.dims)
        if (d.value) p.dims[d.name] = *d.value;
    for (const auto& [n, v] : s.op.scalars)
        if (std::isfinite(v)) p.scalars[n] = v;
    return p;
}

static Diagnostic other_shape(const std::string& message) { return {"plan.shape", {}, message, {}, "a plan without `dims` is for every size that its `when` admits"}; }

static Status same_instance(const Plan& plan, const Subject& s) {
    const auto stale = [&](const std::string& name) { return Diagnostic{"plan.stale", {}, fmt::format("the operator `{}` has changed since the plan was made: it has no `{}`", plan.op, name), {}, "make the plan anew"}; };
    for (const auto& [n, t] : plan.types) {
        const auto it = s.op.bindings.types.find(n);
        if (it == s.op.bindings.types.end()) return stale(n);
        if (ir::name_of(it->second) != t) return other_shape(fmt::format("the plan is for {} = {}, not for {}", n, t, ir::name_of(it->second)));
    }
    for (const auto& [n, v] : plan.values) {
        const auto it = s.op.bindings.values.find(n);
        if (it == s.op.bindings.values.end()) return stale(n);
        if (it->second != v) return other_shape(fmt::format("the plan is for {} = {}, not for {}", n, v, it->second));
    }
    for (const auto& [n, v] : plan.dims) {
        const auto it = std::ranges::find(s.op.program.dims, n, &ir::Dim::name);
        if (it == s.op.program.dims.end()) return stale(n);
        if (it->value != v) return other_shape(fmt::format("the plan is for {} = {}, but {} is {}", n, v, n, it->value ? std::to_string(*it->value) : "open"));
    }
    return ok();
}

/// True, false or open.
static std::optional<bool> truth_of(const ir::Value& condition, const ir::Program& p) {
    const ir::Env known = ir::known_dims(p);
    std::set<std::string> names;
    ir::free_names(condition, names);
    if (std::ranges::all_of(names, [&](const std::string& n) { return known.contains(n); })) return codegen::holds(condition, known);
    return std::ranges::any_of(p.facts, [&](const ir::Value& f) { return ir::equal(f, condition); }) ? std::optional(true) : std::nullopt;
}

static Result<std::vector<ir::Value>> open_conditions(const Plan& plan, const Subject& s) {
    if (plan.when.empty()) return std::vector<ir::Value>{};
    const auto when = frontend::parse_condition(plan.when);
    if (!when) return when.why();
    std::vector<Diagnostic> found;
    std::vector<ir::Value> open;
    for (const ir::Value& v : frontend::guard_of(*s.home, *s.decl, s.op.bindings, *when, found)) {
        const auto truth = truth_of(v, s.op.program);
        if (truth && !*truth) return other_shape(fmt::format("the plan is for `{}`, but these sizes break `{}`", plan.when, ir::describe(v)));
        if (!truth) open.push_back(v);
    }
    if (!found.empty()) return Diagnostic{"plan.when", {}, fmt::format("the condition `{}` does not fit the operator: {}", plan.when, found.front().message), {}, found.front().help};
    return open;
}

Result<std::vector<ir::Value>> fit(const Plan& plan, const Subject& s, const Target* target) {
    if (plan.op != s.op.program.name) return Diagnostic{"plan.operator", {}, fmt::format("the plan is for the operator `{}`, not for `{}`", plan.op, s.op.program.name)};
    if (target && plan.target != target->name) return Diagnostic{"plan.target", {}, fmt::format("the plan is for {}, not for {}", plan.target, target->name), {}, "a plan holds choices for one chip: make one for this"};
    if (const Status same = same_instance(plan, s); !same) return same.why();
    if (!plan.definition.empty() && plan.definition != s.definition)
        return Diagnostic{"plan.stale", {}, fmt::format("the operator `{}` has changed since the plan was made: its definition is {} now, and was {}", plan.op, s.definition, plan.definition), {}, "make the plan anew"};
    return open_conditions(plan, s);
}

Result<Plan> narrowed(const Plan& plan, const Subject& s, const Target* target) {
    if (plan.variants.empty()) return plan;
    std::vector<Plan> left;
    for (Plan& one : synth::record::alternatives_of(plan)) {
        const auto open = fit(one, s, target);
        const bool last = left.empty() && one.when == plan.when;
        if (!open && (open.why().code != "plan.shape" || last)) return open.why();
        if (!open) continue;
        left.push_back(std::move(one));
        if (open->empty()) break;
    }
    return synth::record::joined(std::move(left));
}

Subject opened(Subject s, const Plan& plan) {
    Subject open = s;
    for (ir::Dim& d : open.op.program.dims)
        if (!plan.dims.contains(d.name)) d.value.reset();
    return codegen::contract_of(open.op.program) ? open : s;
}

// ---- schedule blocks

/// Why a block is not used although it is for this target; empty: it can be.
static std::optional<Diagnostic> unusable(const Plan& plan) {
    for (const Decision& d : plan.decisions)
        if (ir::pass::is_reserved(d.step.pass))
            return Diagnostic{"schedule.later", d.step.loc, fmt::format("`{}` is kept for a pass that this compiler does not have yet: the schedule is left out", d.step.pass), {}, "the default plan is used", Exit::Input, true};
    return {};
}

static void add_steps(Plan& plan, std::vector<ir::pass::Step> steps) {
    for (ir::pass::Step& step : steps) {
        plan.decisions.push_back({});
        plan.decisions.back().id = static_cast<int>(plan.decisions.size());
        plan.decisions.back().step = std::move(step);
    }
}

Plan default_plan(const Subject& s, const Target* target) {
    Plan plan = bare_plan(s, target);
    if (!target) return plan;
    std::vector<Plan> alternatives;
    for (synth::plan::Alternative& a : synth::plan::default_plan(ir::lower::lower_reductions(s.op.program), *target)) {
        alternatives.push_back(plan);
        alternatives.back().when = synth::plan::words_of(a.bounds);
        add_steps(alternatives.back(), std::move(a.steps));
    }
    return synth::record::joined(std::move(alternatives));
}

Plan choose_plan(Session& session, const frontend::Module& m, const Subject& s, const Target* target) {
    std::vector<Plan> alternatives;
    for (const frontend::ScheduleDecl& block : m.file.schedules) {
        const auto op = m.ops.find(block.op);
        if (!target || block.target != target->name || op == m.ops.end() || op->second.first != s.decl) continue;
        const size_t before = session.found.size();
        frontend::check_schedule(block, *s.decl, s.op, session.found);
        Plan plan = synth::record::plan_of(block, session.found);
        if (session.found.size() > before) return bare_plan(s, target);
        const auto open = fit(plan, s, target);
        if (!open && open.why().code == "plan.shape") continue;
        if (!open) {
            session.found.push_back(open.why());
            session.found.back().loc = block.op_loc;
            return bare_plan(s, target);
        }
        if (const auto why = unusable(plan)) {
            session.found.push_back(*why);
            continue;
        }
        alternatives.push_back(std::move(plan));
        if (open->empty()) return synth::record::joined(std::move(alternatives));
    }
    const std::vector<Plan> rest = synth::record::alternatives_of(default_plan(s, target));
    alternatives.insert(alternatives.end(), rest.begin(), rest.end());
    return synth::record::joined(std::move(alternatives));
}

// ---- the steps

static std::string fault(ir::pass::Stage stage) {
    switch (stage) {
        case ir::pass::Stage::Resolve: return "it names what is not there";
        case ir::pass::Stage::Domain: return "a parameter does not fit";
        case ir::pass::Stage::Precondition: return "it would not be right here";
        default: return "a fault of the compiler: please report it, with the plan";
    }
}

static Diagnostic refused(const Decision& d, const ir::pass::Failure& f) {
    Diagnostic why = f.why;
    why.message = fmt::format("{}: {}", name_of(d), why.message);
    why.notes.push_back({{}, fmt::format("refused at stage `{}`: {}", name_of(f.at), fault(f.at))});
    if (d.step.loc) why.loc = d.step.loc;
    if (f.at == ir::pass::Stage::Apply || f.at == ir::pass::Stage::Verify) why.exit = Exit::Wrong;
    return why;
}

Result<ir::Program> apply_plan(const ir::Program& loops, const Plan& plan, const Target* target, std::vector<Diagnostic>& warnings, ir::pass::Observer* observer) {
    const ir::pass::Context context{target, &microkernels::find, &microkernels::stamped};
    ir::Program p = loops;
    for (const Decision& d : plan.decisions) {
        if (!is_replayed(d)) continue;
        if (auto bad = ir::pass::misfit(d.step)) {
            const auto stage = bad->code.starts_with("param.") ? ir::pass::Stage::Domain : ir::pass::Stage::Resolve;
            return refused(d, {stage, *bad});
        }
        auto result = ir::pass::apply_step(p, d.id, d.step, context, observer);
        if (const auto* f = std::get_if<ir::pass::Failure>(&result)) return refused(d, *f);
        auto& done = std::get<ir::pass::Applied>(result);
        if (!done.effect) warnings.push_back({"plan.no-effect", d.step.loc, fmt::format("{}, changes nothing", name_of(d)), {}, "leave it out", Exit::Input, true});
        p = std::move(done.program);
    }
    return p;
}

/// The one place where a scheduled program becomes kernels.
static Result<ir::Program> kernels_of(const ir::Program& scheduled, const Plan& plan, const Target& target, const Onlooker& onlooker) {
    const bool has_steps = std::ranges::any_of(plan.decisions, synth::record::is_replayed);
    if (!has_steps) return ir::lower::fallback_plan(scheduled);
    if (const Status s = ir::lower::check_protocol(scheduled); !s) return s.why();
    return ir::lower::schedule_to_kernels(scheduled, target, onlooker.lowering);
}

/// `inline(gelu)`: functions are part of the definition and are substituted always, so such a step is done before it begins.
static Plan without_functions(Plan plan, const Subject& s, const ir::Program& loops) {
    std::set<std::string> labels;
    ir::for_each_block(loops.body, [&](const ir::Block& b, Loc) { labels.insert(b.label); });
    const auto is_function = [&](const std::string& name) { return s.home->fns.contains(name) && !labels.contains(name); };
    for (Decision& d : plan.decisions)
        if (d.step.pass == "inline" && std::ranges::any_of(d.step.sites, is_function)) {
            std::erase_if(d.step.sites, is_function);
            if (d.step.sites.empty()) d.status = "rejected";
        }
    return plan;
}

Result<ir::Program> scheduled(const Subject& s, const Plan& plan, const Target* target, std::vector<Diagnostic>& warnings, ir::pass::Observer* observer) {
    const auto open = fit(plan, s, target);
    if (!open) return open.why();
    ir::Program loops = ir::lower::lower_reductions(s.op.program);
    loops.facts.insert(loops.facts.end(), open->begin(), open->end());
    return apply_plan(loops, without_functions(plan, s, loops), target, warnings, observer);
}

Result<Planned> planned(const Subject& s, const Plan& plan, const Target& target, std::vector<Diagnostic>& warnings, const Onlooker& onlooker) {
    auto program = scheduled(s, plan, &target, warnings, onlooker.steps);
    if (!program) return program.why();
    auto kernels = kernels_of(*program, plan, target, onlooker);
    if (!kernels) return kernels.why();
    Planned out{bare_plan(s, &target), std::move(*program), std::move(*kernels)};
    out.plan.when = plan.when, out.plan.toolchain = plan.toolchain, out.plan.doc = plan.doc;
    out.plan.decisions = plan.decisions;
    for (Decision& d : out.plan.decisions)
        if (d.status.empty()) d.status = "applied";
    return out;
}

Result<std::vector<Planned>> all_planned(const Subject& s, const Plan& plan, const Target& target, std::vector<Diagnostic>& warnings, const Onlooker& onlooker) {
    const auto left = narrowed(plan, s, &target);
    if (!left) return left.why();
    std::vector<Planned> out;
    for (const Plan& one : synth::record::alternatives_of(*left)) {
        auto done = planned(s, one, target, warnings, onlooker);
        if (!done) return done.why();
        out.push_back(std::move(*done));
    }
    return out;
}

Plan plan_of(const std::vector<Planned>& alternatives) {
    std::vector<Plan> plans;
    for (const Planned& p : alternatives) plans.push_back(p.plan);
    return synth::record::joined(std::move(plans));
}

/// `d2 bind(m.o, to = grid)` of each decision that the kernels came from.
static std::vector<std::string> words_of(const Plan& plan) {
    std::vector<std::string> out;
    for (const Decision& d : plan.decisions)
        if (is_replayed(d)) out.push_back(fmt::format("d{} {}", d.id, frontend::words_of(d.step)));
    return out;
}

/// What the plan assumes of the sizes: by its condition, and by its steps.
static std::vector<ir::Value> assumed(const Planned& planned, const Subject& s) {
    std::vector<ir::Value> out;
    for (const ir::Value& f : planned.scheduled.facts)
        if (std::ranges::none_of(s.op.program.facts, [&](const ir::Value& known) { return ir::equal(known, f); })) out.push_back(f);
    return out;
}

/// Does the copy engine move what a caller gave? Then addresses must be multiples of 16 bytes.
static bool wants_addresses(const ir::Program& kernels) {
    bool any = false;
    ir::for_each_block(kernels.body, [&](const ir::Block& b, Loc) {
        if (!ir::lower::moves_boxes(b)) return;
        const ir::Decl* d = kernels.find(ir::lower::stores_boxes(b) ? b.outs[0].tensor : b.vals[0]->name);
        any |= d && d->scope != ir::Scope::Temp;
    });
    return any;
}

/// For addresses that the copy engine cannot take: what the default plan does without it.
static codegen::Variant for_any_address(const Subject& s, const Target& target) {
    Target without = target;
    without.mbarrier = false;
    Plan plan = bare_plan(s, &target);
    add_steps(plan, synth::plan::default_plan(ir::lower::lower_reductions(s.op.program), without).back().steps);
    std::vector<Diagnostic> warnings;
    auto done = planned(s, plan, without, warnings);
    if (!done) return {ir::lower::fallback_plan(ir::lower::lower_reductions(s.op.program)), s.op.program.facts};
    return {done->kernels, assumed(*done, s), words_of(done->plan)};
}

Result<codegen::Emitted> compile_subject(const Subject& s, const std::vector<Planned>& alternatives, const Target& target, const codegen::EmitOptions& options) {
    const ir::Env known = ir::known_dims(s.op.program);
    if (known.size() == s.op.program.dims.size())
        if (const Status f = codegen::check_facts(s.op.program, known); !f) return f.why();
    std::vector<codegen::Variant> variants;
    for (const Planned& p : alternatives) variants.push_back({p.kernels, assumed(p, s), words_of(p.plan)});
    if (wants_addresses(alternatives.back().kernels)) variants.push_back(for_any_address(s, target));
    return codegen::emit(std::move(variants), target, {s.spec, s.op.doc, s.op.program, s.op.scalars}, options);
}

}  // namespace acu
