#include "ir/pass/mask.h"

#include <algorithm>

#include "ir/pass/ring.h"

namespace acu::ir::pass {

std::vector<Span> box_of(const Place& at, const StmtNode* up_to) {
    std::vector<Span> out;
    for (const Axis& a : block_of(at).axes) out.push_back({a.name, a.base, a.size});
    for (size_t i = at.above.size(); up_to && i-- > 0 && at.above[i].get() != up_to;)
        if (const Loop* l = as_loop(at.above[i])) out.push_back({l->var, constant(0), l->extent});
    return out;
}

IndexMap derived_names(const Place& at, const StmtNode* up_to) {
    IndexMap out;
    bool inside = false;
    for (const Stmt& s : at.above) {
        inside |= s.get() == up_to;
        const Loop* l = as_loop(s);
        if (!inside || !l) continue;
        for (const auto& [n, x] : let_values(*l)) out[n] = ir::substitute(x, out);
    }
    return out;
}

static std::optional<Index> corner(const Index& e, const std::vector<Span>& box, bool high) {
    Index now = normal(e);
    for (const Span& s : box) {
        if (!mentions(now, s.name)) continue;
        const auto a = affine(now, s.name);
        const auto slope = a ? constant_value(a->coefficient) : std::nullopt;
        if (!slope) return {};
        const bool last = (*slope > 0) == high;
        now = normal(a->rest + a->coefficient * (last ? s.base + s.size - constant(1) : s.base));
    }
    return now;
}
std::optional<Index> least(const Index& e, const std::vector<Span>& box) { return corner(e, box, false); }
std::optional<Index> greatest(const Index& e, const std::vector<Span>& box) { return corner(e, box, true); }

/// An integer as an index, also an element of a tensor.
static Index as_index(const Value& v) {
    if (v->op == Op::OfIndex) return v->subscripts[0];
    if (v->op == Op::Const && is_int(v->type)) return constant(v->integer);
    if (v->op == Op::Load && is_int(v->type) && v->args.empty() && v->version.empty()) return load_index(v->name, v->subscripts);
    return v->op == Op::Cast && is_int(v->type) && is_int(v->args[0]->type) && v->name == name_of(DType::I64) ? as_index(v->args[0]) : nullptr;
}

std::optional<Below> comparison(const Value& v) {
    if (v->op < Op::Lt || v->op > Op::Ge) return {};
    const Index a = as_index(v->args[0]), b = as_index(v->args[1]);
    if (!a || !b) return {};
    switch (v->op) {
        case Op::Lt: return Below{a, b};
        case Op::Le: return Below{a, b + constant(1)};
        case Op::Gt: return Below{b, a};
        default: return Below{b, a + constant(1)};
    }
}

bool may_read_outside(const Program& p, const Block& b, const Index& e, const Value& own) {
    if (e->op == IndexOp::Segment) return false;
    if (e->op == IndexOp::Load) {
        if (!p.find(e->name) || p.find(e->name)->scope != Scope::In) return false;
        for (const Value& g : b.guards)
            if (g != own && meet(names_in(g), names_in(e))) return false;
    }
    return std::ranges::all_of(e->args, [&](const Index& a) { return may_read_outside(p, b, a, own); });
}
bool may_read_outside(const Program& p, const Block& b, const Value& c, const Value& own) {
    if (c->op == Op::Load && !may_read_outside(p, b, load_index(c->name, c->subscripts), own)) return false;
    return std::ranges::all_of(c->subscripts, [&](const Index& e) { return may_read_outside(p, b, e, own); }) &&
           std::ranges::all_of(c->args, [&](const Value& a) { return may_read_outside(p, b, a, own); });
}

std::optional<bool> constant_truth(const Value& c) { return c->op == Op::Const ? std::optional(c->integer != 0) : std::nullopt; }

Value both(const Value& a, const Value& b) {
    if (const auto t = constant_truth(a)) return *t ? b : a;
    if (const auto t = constant_truth(b)) return *t ? a : b;
    return binary(Op::And, a, b);
}
Value either(const Value& a, const Value& b) {
    if (const auto t = constant_truth(a)) return *t ? a : b;
    if (const auto t = constant_truth(b)) return *t ? b : a;
    return binary(Op::Or, a, b);
}

/// An index as a value: elements of tensors are the loads of `c` that it came from.
static Value as_value(const Index& e, const Value& c) {
    if (!mentions_load(e)) return of_index(e);
    if (e->op == IndexOp::Load) {
        if (c->op == Op::Load && c->name == e->name && same(c->subscripts, e->args)) return cast(DType::I64, c);
        for (const Value& a : c->args)
            if (Value found = as_value(e, a)) return found;
        return nullptr;
    }
    if (e->op != IndexOp::Add && e->op != IndexOp::Sub && e->op != IndexOp::Mul) return nullptr;
    const Value a = as_value(e->args[0], c), b = as_value(e->args[1], c);
    return a && b ? binary(e->op == IndexOp::Add ? Op::Add : e->op == IndexOp::Sub ? Op::Sub : Op::Mul, a, b) : nullptr;
}

/// `e` compared with 0.
static Value decided(const Index& e, bool positive, const Value& c) {
    if (is_const(e)) return boolean(positive == (e->value > 0));
    const Value v = as_value(e, c);
    if (!v) return nullptr;
    return positive ? binary(Op::Lt, of_index(constant(0)), v) : binary(Op::Le, v, of_index(constant(0)));
}

static Value truth(const Value& c, const std::vector<Span>& box, bool wanted) {
    if (const auto t = constant_truth(c)) return boolean(*t == wanted);
    if (c->op == Op::Not) return truth(c->args[0], box, !wanted);
    if (c->op == Op::And || c->op == Op::Or) {
        const Value a = truth(c->args[0], box, wanted), b = truth(c->args[1], box, wanted);
        if ((c->op == Op::And) == wanted) return a && b ? both(a, b) : nullptr;
        return !a ? b : !b ? a : either(a, b);
    }
    const auto x = comparison(c);
    if (!x) return nullptr;
    const auto edge = wanted ? least(x->right - x->left, box) : greatest(x->right - x->left, box);
    if (!edge) return nullptr;
    return decided(*edge, wanted, c);
}
Value everywhere(const Value& c, const std::vector<Span>& box) { return truth(c, box, true); }
Value nowhere(const Value& c, const std::vector<Span>& box) { return truth(c, box, false); }

}  // namespace acu::ir::pass
