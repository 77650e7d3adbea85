#include "frontend/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/signature.h"

namespace acu::frontend {

static std::string bare_text(const Expr& e) {
    const auto part = [&](size_t i) { return condition_text(*e.args[i]); };
    switch (e.kind) {
        case Expr::Integer: return std::to_string(e.integer);
        case Expr::Unary: return e.text + part(0);
        case Expr::Infix: return fmt::format("{} {} {}", part(0), e.text, part(1));
        default: return e.text;
    }
}

std::string condition_text(const Expr& e) { return e.grouped ? fmt::format("({})", bare_text(e)) : bare_text(e); }

static bool speaks_of_sizes(const Expr& e) {
    const bool simple = e.kind == Expr::Name || e.kind == Expr::Integer || e.kind == Expr::Boolean || e.kind == Expr::Unary || e.kind == Expr::Infix;
    return simple && !e.pack && std::ranges::all_of(e.args, [](const ExprPtr& a) { return speaks_of_sizes(*a); });
}

Result<ExprPtr> parse_condition(const std::string& text) {
    const auto wrong = [&](const std::string& why) { return Diagnostic{"plan.when", {}, fmt::format("`when` of the plan is not a condition on sizes: {}", why), {}, "as in `M >= 512 && K % 64 == 0`"}; };
    if (text.size() > 500 || text.find_first_of("\n\r{}") != std::string::npos) return wrong("it is one line of at most 500 characters");
    SourceMap sources;
    std::vector<Diagnostic> found;
    const File f = parse(sources, sources.add("when", fmt::format("schedule f for t when {} {{}}\n", text)), found);
    if (!found.empty()) return wrong(found.front().message);
    if (f.schedules.size() != 1 || !f.schedules[0].when || !f.schedules[0].steps.empty() || f.ops.size() + f.fns.size() + f.cases.size() + f.imports.size() > 0) return wrong("something follows it");
    if (!speaks_of_sizes(*f.schedules[0].when)) return wrong("it holds names, whole numbers and operators only");
    return f.schedules[0].when;
}

/// Comparisons of sizes, joined: what the launcher can check.
static bool is_checkable(const ir::Value& v) {
    const auto sized = [](const ir::Value& x) { return x->op == ir::Op::OfIndex || (x->op == ir::Op::Const && !is_float(x->type)); };
    if (v->op == ir::Op::And || v->op == ir::Op::Or || v->op == ir::Op::Not) return std::ranges::all_of(v->args, is_checkable);
    if (v->op == ir::Op::Const) return true;
    return v->op >= ir::Op::Eq && v->op <= ir::Op::Ge && std::ranges::all_of(v->args, sized);
}

static void conjuncts(const ExprPtr& e, std::vector<ExprPtr>& out) {
    if (e->kind != Expr::Infix || e->text != "&&") return out.push_back(e);
    conjuncts(e->args[0], out);
    conjuncts(e->args[1], out);
}

std::vector<ir::Value> guard_of(const Module& home, const OpDecl& op, const Bindings& bindings, const ExprPtr& when, std::vector<Diagnostic>& found) {
    Build build{{}, found};
    Instance in{home, op, build};
    if (!bind_generics(in, bindings.types, bindings.values)) return {};
    declare_dims(in, bindings);
    std::vector<ExprPtr> parts;
    conjuncts(when, parts);
    for (const ExprPtr& part : parts) {
        const ir::Value v = where_condition(in, part);
        if (v && !is_checkable(v)) found.push_back({"schedule.when", part->loc, "the condition of a schedule compares sizes and compile-time values", {}, "as in `when M >= 512 && K % 64 == 0`"});
        if (!v || !is_checkable(v)) return {};
        divisor_facts(in, v);
        build.program.facts.push_back(v);
    }
    return build.program.facts;
}

}  // namespace acu::frontend
