#include "frontend/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/guard.h"
#include "frontend/step_words.h"
#include "ir/pass/catalogue.h"
#include "target/target.h"

namespace acu::frontend {
namespace {

using ir::pass::Domain;
using ir::pass::ParamSpec;
using ir::pass::Pass;

/// Names grow by dots as passes derive them (`k.o`, `x.t`), so a name is known by its first part: a tensor, a statement, an index variable, or a name that
/// an earlier step introduced with `into`.
class ScheduleChecker {
  public:
    ScheduleChecker(const ScheduleDecl& s, const OpDecl& op, const Operator& instance, std::vector<Diagnostic>& found) : s_(s), op_(op), found_(found) {
        for (const ir::Decl& d : instance.program.decls) known_.insert(first(d.name));
        ir::for_each_block(instance.program.body, [&](const ir::Block& b, Loc) {
            for (const ir::Axis& a : b.axes) known_.insert(a.name);
            for (const ir::Value& v : b.vals)
                ir::visit(v, [&](const ir::ValueNode& n) {
                    for (const ir::Axis& a : n.axes) known_.insert(a.name);
                });
        });
        for (const Statement& st : op.body) called(*st.value);
        known_.insert({"consumer", "producer"});
        for (const ir::Dim& d : instance.program.dims) dims_.push_back(d.name);
    }

    void run() {
        if (!target_named(s_.target)) {
            std::vector<std::string> names;
            for (const acu::Target& t : acu::targets()) names.emplace_back(t.name);
            report("schedule.target", s_.target_loc, fmt::format("no target `{}` is known", s_.target), nearest(s_.target, names).empty() ? fmt::format("it is one of {}", fmt::join(names, ", ")) : did_you_mean(s_.target, names));
        }
        if (s_.when) condition(*s_.when), truth(*s_.when);
        later_ = std::ranges::any_of(s_.steps, [](const Step& step) { return ir::pass::is_reserved(step.pass); });
        for (const Step& step : s_.steps) check(step);
    }

  private:
    static std::string first(const std::string& path) { return path.substr(0, path.find_first_of("./")); }
    bool known(const std::string& path) const { return known_.contains(first(path)); }
    std::string near(const std::string& path) const { return did_you_mean(first(path), {known_.begin(), known_.end()}); }
    void report(std::string code, Loc loc, std::string message, std::string help = {}) { found_.push_back({std::move(code), loc, std::move(message), {}, std::move(help)}); }

    /// Functions and operators that are called have names that `inline` can take.
    void called(const Expr& e) {
        if (e.kind == Expr::Call) known_.insert(e.text);
        for (const ExprPtr& a : e.args) called(*a);
    }

    // ---- the condition

    void condition(const Expr& e) {
        if (e.kind == Expr::Name && std::ranges::find(dims_, e.text) == dims_.end() && std::ranges::none_of(op_.generics, [&](const Generic& g) { return g.name == e.text; }))
            report("schedule.when", e.loc, fmt::format("`{}` has no dimension `{}`", op_.name, e.text), did_you_mean(e.text, dims_));
        if (e.kind == Expr::Access || e.kind == Expr::Reduction || e.kind == Expr::Call || e.kind == Expr::If || e.kind == Expr::Or || e.kind == Expr::Float)
            report("schedule.when", e.loc, "the condition of a schedule speaks of dimensions and compile-time values only");
        for (const ExprPtr& a : e.args) condition(*a);
    }

    void truth(const Expr& e) {
        static const std::set<std::string> arithmetic{"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
        const bool number = e.kind == Expr::Integer || e.kind == Expr::Float || (e.kind == Expr::Infix && arithmetic.contains(e.text));
        if (number) report("schedule.when", e.loc, "the condition of a schedule is a comparison", "as in `when M >= 512`");
    }

    // ---- a step

    void check(const Step& step) {
        const Pass* pass = ir::pass::pass_named(step.pass);
        if (!pass && !ir::pass::is_reserved(step.pass)) return report("schedule.pass", step.loc, fmt::format("no pass `{}` is known", step.pass), did_you_mean(step.pass, ir::pass::pass_names()));
        const auto slots = slots_of(step);
        size_t sites = 0;
        for (size_t i = 0; i < step.arguments.size(); ++i) {
            const StepArgument& a = step.arguments[i];
            if (a.name.empty() && a.value.kind == StepValue::Path) ++sites, name(a.value.text, a.value.loc);
            else if (pass) parameter(*pass, step, i, slots);
            introduce(a);
        }
        if (!pass) return;
        if (const auto wrong = ir::pass::wrong_count(*pass, sites)) report("schedule.sites", step.loc, *wrong, std::string(pass->doc));
        const bool misspelt = std::ranges::any_of(step.arguments, [&](const StepArgument& a) { return !a.name.empty() && !slots[static_cast<size_t>(&a - step.arguments.data())]; });
        if (!misspelt && !later_) missing(*pass, step);
    }

    void name(const std::string& path, Loc loc) {
        if (!known(path)) report("schedule.name", loc, fmt::format("`{}` has nothing named `{}`", op_.name, path), near(path));
    }

    /// Names that the step makes, for the steps that follow.
    void introduce(const StepArgument& a) {
        if (a.name == "into" || a.name == "outer") known_.insert(first(a.value.text));
        if (a.name == "into" || a.name == "sizes")
            for (const auto& [key, item] : a.value.items) known_.insert(first(key.empty() ? item.text : key));
    }

    void missing(const Pass& pass, const Step& step) {
        const ir::pass::Step data = step_of(step);
        for (const ParamSpec& s : pass.params)
            if (s.required && !data.args.contains(s.name)) report("schedule.parameter", step.loc, fmt::format("`{}` needs its parameter `{}`", pass.name, s.name), std::string(s.doc));
    }

    void parameter(const Pass& pass, const Step& step, size_t i, const std::vector<std::optional<Slot>>& slots) {
        const StepArgument& a = step.arguments[i];
        const auto& slot = slots[i];
        if (!slot) return unknown_parameter(pass, a);
        const bool twice = std::ranges::any_of(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(i), [&](const auto& s) { return s && !s->axis && !slot->axis && s->parameter == slot->parameter; });
        if (twice) return report("schedule.parameter", a.loc, fmt::format("`{}` is given twice", slot->parameter));
        if (slot->axis) return axis(pass, a, *slot->spec);
        references(a);
        if (a.value.kind == StepValue::Condition) condition(*a.value.condition);
        value(pass, a, *slot->spec);
    }

    void unknown_parameter(const Pass& pass, const StepArgument& a) {
        std::vector<std::string> names;
        for (const ParamSpec& s : pass.params) names.emplace_back(s.name);
        const std::string has = names.empty() ? std::string(pass.doc) : fmt::format("it has {}", fmt::join(names, ", "));
        if (a.name.empty()) report("schedule.parameter", a.loc, fmt::format("`{}` has no parameter for `{}`", pass.name, a.value.text), has);
        else report("schedule.parameter", a.loc, fmt::format("`{}` has no parameter `{}`", pass.name, a.name), nearest(a.name, names).empty() ? has : did_you_mean(a.name, names));
    }

    /// `k = 64`: an axis with the size of its tiles.
    void axis(const Pass& pass, const StepArgument& a, const ParamSpec& spec) {
        if (!known(a.name)) report("schedule.parameter", a.loc, fmt::format("`{}` has no parameter and `{}` no index variable `{}`", pass.name, op_.name, a.name), near(a.name));
        size(a.name, a.value, spec);
    }

    void size(const std::string& key, const StepValue& v, const ParamSpec& spec) {
        if (v.kind != StepValue::Integer) report("schedule.value", v.loc, fmt::format("the size of `{}` is a whole number", key), std::string(spec.doc));
        else if (v.integer < spec.domain.low || v.integer > spec.domain.high) report("schedule.value", v.loc, fmt::format("the size of `{}` is {}, outside {} to {}", key, v.integer, spec.domain.low, spec.domain.high), std::string(spec.doc));
    }

    /// What a parameter names must be there. Names that a step makes (`into`, `sizes`) are new, and words are no names.
    void references(const StepArgument& a) {
        static const std::set<std::string> referring{"at", "over", "axes", "copies", "ahead", "behind"};
        if (!referring.contains(a.name)) return;
        if (a.value.kind == StepValue::Path) name(a.value.text, a.value.loc);
        for (const auto& [key, item] : a.value.items) {
            if (key.empty() && item.kind == StepValue::Path) name(item.text, item.loc);
            if (!key.empty() && !known(key)) report("schedule.name", item.key_loc, fmt::format("`{}` has no index variable `{}`", op_.name, key), near(key));
        }
    }

    void value(const Pass& pass, const StepArgument& a, const ParamSpec& spec) {
        if (spec.domain.kind == Domain::Sizes && a.value.kind == StepValue::List) {
            for (const auto& [key, item] : a.value.items)
                if (!key.empty()) size(key, item, spec);
            return;
        }
        Step alone{std::string(pass.name), a.loc, {a}, {}};
        alone.arguments[0].name = spec.name;
        if (const auto bad = ir::pass::misfit(pass, spec, step_of(alone).args)) report("schedule.value", a.value.loc, bad->message, bad->help);
        if (spec.domain.kind == Domain::Names && a.value.kind == StepValue::List)
            for (const auto& [key, item] : a.value.items)
                if (!key.empty() || item.kind != StepValue::Path) report("schedule.value", item.loc, fmt::format("`{}` of `{}` is a list of names", spec.name, pass.name), std::string(spec.doc));
    }

    const ScheduleDecl& s_;
    const OpDecl& op_;
    std::vector<Diagnostic>& found_;
    std::set<std::string> known_;
    std::vector<std::string> dims_;
    bool later_ = false;    ///< a step is for a later compiler, which may know by itself what this one must be told
};

}  // namespace

void check_schedule(const ScheduleDecl& s, const OpDecl& op, const Operator& instance, std::vector<Diagnostic>& found) { ScheduleChecker(s, op, instance, found).run(); }

}  // namespace acu::frontend
