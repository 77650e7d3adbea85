#include "frontend/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/catalogue.h"
#include "target/target.h"

namespace acu::frontend {
namespace {

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
            found_.push_back({"schedule.target", s_.target_loc, fmt::format("no target `{}` is known", s_.target), {},
                              nearest(s_.target, names).empty() ? fmt::format("it is one of {}", fmt::join(names, ", ")) : did_you_mean(s_.target, names)});
        }
        if (s_.when) condition(*s_.when), truth(*s_.when);
        for (const Step& step : s_.steps) check(step);
    }

  private:
    static std::string first(const std::string& path) { return path.substr(0, path.find_first_of("./")); }

    /// Functions and operators that are called have names that `inline` can take.
    void called(const Expr& e) {
        if (e.kind == Expr::Call) known_.insert(e.text);
        for (const ExprPtr& a : e.args) called(*a);
    }

    void condition(const Expr& e) {
        if (e.kind == Expr::Name && std::ranges::find(dims_, e.text) == dims_.end() && std::ranges::none_of(op_.generics, [&](const Generic& g) { return g.name == e.text; }))
            found_.push_back({"schedule.when", e.loc, fmt::format("`{}` has no dimension `{}`", op_.name, e.text), {}, did_you_mean(e.text, dims_)});
        if (e.kind == Expr::Access || e.kind == Expr::Reduction || e.kind == Expr::Call)
            found_.push_back({"schedule.when", e.loc, "the condition of a schedule speaks of dimensions and compile-time values only"});
        for (const ExprPtr& a : e.args) condition(*a);
    }

    void truth(const Expr& e) {
        static const std::set<std::string> arithmetic{"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
        const bool number = e.kind == Expr::Integer || e.kind == Expr::Float || (e.kind == Expr::Infix && arithmetic.contains(e.text));
        if (number) found_.push_back({"schedule.when", e.loc, "the condition of a schedule is a comparison", {}, "as in `when M >= 512`"});
    }

    void check(const Step& step) {
        const ir::pass::Signature* pass = ir::pass::signature(step.pass);
        if (!pass) {
            std::vector<std::string> names;
            for (const auto& p : ir::pass::signatures()) names.emplace_back(p.name);
            found_.push_back({"schedule.pass", step.loc, fmt::format("no pass `{}` is known", step.pass), {}, did_you_mean(step.pass, names)});
            return;
        }
        int sites = 0;
        for (const StepArgument& a : step.arguments) {
            if (a.name.empty()) ++sites, site(a.value);
            else parameter(*pass, a);
        }
        if (sites < pass->least_sites || sites > pass->most_sites)
            found_.push_back({"schedule.sites", step.loc, fmt::format("`{}` takes {} name{}, but {} {} given", step.pass, pass->least_sites, pass->least_sites == 1 ? "" : "s", sites, sites == 1 ? "is" : "are"),
                              {}, std::string(pass->doc)});
    }

    void site(const StepValue& v) {
        if (v.kind == StepValue::Integer || known_.contains(first(v.text))) return;
        if (v.kind == StepValue::List)
            for (const auto& [key, item] : v.items) site(item);
        else found_.push_back({"schedule.name", v.loc, fmt::format("`{}` has nothing named `{}`", op_.name, v.text), {}, did_you_mean(first(v.text), {known_.begin(), known_.end()})});
    }

    void parameter(const ir::pass::Signature& pass, const StepArgument& a) {
        const bool axis = pass.name == "tile" && known_.contains(first(a.name));
        if (!axis && std::ranges::find(pass.parameters, a.name) == pass.parameters.end()) {
            const std::vector<std::string> names(pass.parameters.begin(), pass.parameters.end());
            found_.push_back({"schedule.parameter", a.loc, fmt::format("`{}` has no parameter `{}`", pass.name, a.name), {},
                              names.empty() ? std::string(pass.doc) : nearest(a.name, names).empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : did_you_mean(a.name, names)});
        }
        if (axis && (a.value.kind != StepValue::Integer || a.value.integer < 1))
            found_.push_back({"schedule.value", a.value.loc, "the size of a tile is a positive integer"});
        if (a.name == "into") known_.insert(first(a.value.text));
        if (a.name == "at") site(a.value);
        if (a.name == "over")
            for (const auto& [key, item] : a.value.items) over(key, item);
    }

    void over(const std::string& key, const StepValue& item) {
        if (!key.empty() && !known_.contains(first(key))) found_.push_back({"schedule.name", item.key_loc, fmt::format("`{}` has no index variable `{}`", op_.name, key), {}, did_you_mean(key, {known_.begin(), known_.end()})});
        if (!key.empty() && (item.kind != StepValue::Integer || item.integer < 1)) found_.push_back({"schedule.value", item.loc, "the size of a tile is a positive integer"});
    }

    const ScheduleDecl& s_;
    const OpDecl& op_;
    std::vector<Diagnostic>& found_;
    std::set<std::string> known_;
    std::vector<std::string> dims_;
};

}  // namespace

void check_schedule(const ScheduleDecl& s, const OpDecl& op, const Operator& instance, std::vector<Diagnostic>& found) { ScheduleChecker(s, op, instance, found).run(); }

}  // namespace acu::frontend
