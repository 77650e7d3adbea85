#include "ir/analysis/absence.h"

#include <cmath>

namespace acu::ir::analysis {

static bool index_only(const Value& v) {
    bool only = true;
    visit(v, [&](const ValueNode& n) { only &= n.op != Op::Reduce && !(n.op == Op::Load && is_float(n.type)) && !(n.op == Op::Const && is_float(n.type)); });
    return only;
}

static Value either(const Value& a, const Value& b) { return !a ? b : !b ? a : binary(Op::Or, a, b); }
static Value both(const Value& a, const Value& b) { return a && b ? binary(Op::And, a, b) : nullptr; }
static bool is_negative_infinity(const Value& v) { return v->op == Op::Const && is_float(v->type) && std::isinf(v->number) && v->number < 0; }

Value Absence::of_tensor(const ValueNode& load, Value Cells::*which) const {
    const auto it = tensors_.find(load.name);
    if (it == tensors_.end() || !(it->second.*which) || !load.args.empty()) return nullptr;
    IndexMap names;
    for (size_t i = 0; i < load.subscripts.size(); ++i) names[it->second.axes[i]] = load.subscripts[i];
    return substitute(it->second.*which, names);
}

Value Absence::negative_infinity(const Value& v) const {
    switch (v->op) {
        case Op::Load: return of_tensor(*v, &Cells::negative_infinity);
        case Op::Cast:
        case Op::Sub: return is_float(v->type) ? negative_infinity(v->args[0]) : nullptr;
        case Op::Add: return either(negative_infinity(v->args[0]), negative_infinity(v->args[1]));
        case Op::Select: {
            if (!index_only(v->args[0])) return both(negative_infinity(v->args[1]), negative_infinity(v->args[2]));
            const Value &c = v->args[0], no = unary(Op::Not, c);
            const Value first = is_negative_infinity(v->args[1]) ? c : both(c, negative_infinity(v->args[1]));
            const Value second = is_negative_infinity(v->args[2]) ? no : both(no, negative_infinity(v->args[2]));
            return either(first, second);
        }
        default: return nullptr;
    }
}

Value Absence::zero(const Value& v) const {
    switch (v->op) {
        case Op::Load: return of_tensor(*v, &Cells::zero);
        case Op::Cast:
        case Op::Div: return is_float(v->type) ? zero(v->args[0]) : nullptr;
        case Op::Mul: return either(zero(v->args[0]), zero(v->args[1]));
        case Op::Call: return v->name == "exp" || v->name == "exp2" ? negative_infinity(v->args[0]) : nullptr;
        default: return nullptr;
    }
}

void Absence::learn(const Block& b) {
    if (b.monoid != Monoid::None || b.outs.size() != 1) return;
    Cells cells{{}, negative_infinity(b.vals[0]), zero(b.vals[0])};
    if (!cells.negative_infinity && !cells.zero) return;
    for (const Index& s : b.outs[0].subscripts) {
        if (s->op != IndexOp::Name) return;
        cells.axes.push_back(s->name);
    }
    tensors_[b.outs[0].tensor] = std::move(cells);
}

}  // namespace acu::ir::analysis
