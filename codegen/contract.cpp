#include "codegen/contract.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/scalar.h"

namespace acu::codegen {

using namespace ir;

static bool outside(const Decl& d) { return d.scope == Scope::In || d.scope == Scope::Out; }

/// e as scale*name + offset.
static std::optional<DimSource> affine(const Index& e) {
    if (e->op == IndexOp::Name) return DimSource{e->name, {}, 0};
    if (e->args.size() != 2) return {};
    const Index &a = e->args[0], &b = e->args[1];
    const bool constant_left = is_const(a);
    const Index &c = constant_left ? a : b, &x = constant_left ? b : a;
    if (!is_const(c)) return {};
    auto inner = affine(x);
    if (!inner) return {};
    if (e->op == IndexOp::Mul) inner->scale *= c->value, inner->offset *= c->value;
    else if (e->op == IndexOp::Add) inner->offset += c->value;
    else if (e->op == IndexOp::Sub && !constant_left) inner->offset -= c->value;
    else return {};
    return inner->scale != 0 ? inner : std::nullopt;
}

Result<Contract> contract_of(const Program& p) {
    Contract out;
    for (const Dim& dim : p.dims) {
        std::optional<DimSource> best;
        for (const Decl& d : p.decls) {
            if (!outside(d)) continue;
            for (size_t axis = 0; axis < d.dims.size(); ++axis) {
                auto s = affine(d.dims[axis].size);
                if (!s || s->dim != dim.name) continue;
                s->tensor = d.name, s->axis = axis;
                const bool plain = s->scale == 1 && s->offset == 0;
                if (!best || (plain && best->scale != 1)) best = s;
            }
        }
        if (best) out.sources.push_back(*best);
        else if (!dim.value)
            return Diagnostic{"emit.unsolved", {}, fmt::format("the dimension `{}` follows from the size of no tensor", dim.name), {}, fmt::format("fix it: `--set {}=…`", dim.name)};
    }
    return out;
}

Result<Env> solve_dims(const Program& p, const std::map<std::string, std::vector<int64_t>>& sizes) {
    Env env = known_dims(p);
    const auto contract = contract_of(p);
    if (!contract) return contract.why();
    for (const DimSource& s : contract->sources) {
        const auto it = sizes.find(s.tensor);
        if (it == sizes.end() || env.contains(s.dim)) continue;
        const int64_t rest = it->second[s.axis] - s.offset;
        if (rest < 0 || rest % s.scale != 0)
            return Diagnostic{"shape.mismatch", {}, fmt::format("`{}` has size {} in dimension {}, which is not {}*{} + {}", s.tensor, it->second[s.axis], s.axis, s.scale, s.dim, s.offset)};
        env[s.dim] = rest / s.scale;
    }
    for (const Decl& d : p.decls) {
        const auto it = sizes.find(d.name);
        if (it == sizes.end()) continue;
        for (size_t axis = 0; axis < d.dims.size(); ++axis)
            if (const int64_t wanted = evaluate(d.dims[axis].size, env); wanted != it->second[axis])
                return Diagnostic{"shape.mismatch", {}, fmt::format("`{}` has size {} in dimension {}, but {} is {}", d.name, it->second[axis], axis, print(d.dims[axis].size), wanted)};
    }
    return env;
}

static int64_t side(const Value& v, const Env& dims) {
    if (v->op == Op::Const) return v->integer;
    return v->op == Op::OfIndex ? evaluate(v->subscripts[0], dims) : 0;
}

bool holds(const Value& v, const Env& dims) {
    if (v->op == Op::And) return holds(v->args[0], dims) && holds(v->args[1], dims);
    if (v->op == Op::Or) return holds(v->args[0], dims) || holds(v->args[1], dims);
    if (v->op == Op::Not) return !holds(v->args[0], dims);
    if (v->op == Op::Const) return v->integer != 0;
    if (v->op < Op::Eq || v->op > Op::Ge) return true;
    return compare(v->op, side(v->args[0], dims), side(v->args[1], dims));
}

Status check_facts(const Program& p, const Env& dims) {
    for (const Value& v : p.facts)
        if (!holds(v, dims)) {
            std::string values;
            std::set<std::string> names;
            free_names(v, names);
            for (const std::string& n : names) values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", n, dims.at(n));
            return Diagnostic{"shape.fact", {}, fmt::format("the sizes break the condition `{}`{}", describe(v), values.empty() ? "" : fmt::format(" ({})", values))};
        }
    for (const Decl& d : p.decls)
        for (const Window& w : d.dims)
            if (evaluate(w.size, dims) < 0) return Diagnostic{"shape.negative", {}, fmt::format("the size {} of `{}` is negative", print(w.size), d.name)};
    return ok();
}

}  // namespace acu::codegen
