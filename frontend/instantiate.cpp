#include "frontend/instantiate.h"

#include <algorithm>

#include "frontend/signature.h"
#include "frontend/statements.h"

namespace acu::frontend {

using namespace ir;

/// Conditions that are true, or stand twice, need no check.
static void drop_known_facts(Program& p) {
    std::vector<Value> kept;
    analysis::Facts f(known_dims(p));
    for (const Dim& d : p.dims) f.add_dim(d.name);
    for (const Value& v : p.facts) {
        const bool comparison = v->op >= Op::Eq && v->op <= Op::Ge && v->args[0]->op == Op::OfIndex;
        const Index a = comparison ? v->args[0]->subscripts[0] : nullptr;
        const Index b = comparison ? (v->args[1]->op == Op::OfIndex ? v->args[1]->subscripts[0] : constant(v->args[1]->integer)) : nullptr;
        if (comparison && ((v->op == Op::Ge && f.nonnegative(a - b)) || (v->op == Op::Lt && f.less(a, b)))) continue;
        if (std::ranges::none_of(kept, [&](const Value& k) { return equal(k, v); })) kept.push_back(v);
    }
    p.facts = std::move(kept);
}

Operator instantiate(const Module& module, const OpDecl& op, const Bindings& bindings, std::vector<Diagnostic>& found) {
    Build build{{}, found};
    build.program.name = op.name;
    Instance in{module, op, build};
    Operator out{{}, bindings.scalars, op.doc, bindings};
    const size_t errors = found.size();
    if (bind_generics(in, bindings.types, bindings.values)) {
        declare_dims(in, bindings);
        declare_signature(in, out.scalars);
        if (found.size() == errors) declare_where(in);
        if (found.size() == errors) elaborate_body(in);
        if (found.size() == errors) check_outputs(in);
    }
    if (found.size() == errors) drop_known_facts(build.program);
    for (const auto& [n, t] : in.types) out.bindings.types[n] = t;
    for (const auto& [n, v] : in.values) out.bindings.values[n] = v.first;
    out.program = std::move(build.program);
    return out;
}

void check_fn(const Module& module, const FnDecl& fn, std::vector<Diagnostic>& found) {
    static const OpDecl nothing{};
    Build build{{}, found};
    Instance in{module, nothing, build};
    Names names;
    names.fn_params = &names;
    for (const std::string& p : fn.params) names.values[p] = load(p, DType::F32, {});
    Elaborator(in, in.base_facts()).value(*fn.body, names);
}

}  // namespace acu::frontend
