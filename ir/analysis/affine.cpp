#include "ir/analysis/affine.h"

#include <algorithm>

namespace acu::ir::analysis {
namespace {

/// A product of atoms, by their text, with the atoms themselves.
struct Product {
    std::vector<Index> atoms;
    int64_t coefficient = 0;
};
using Sum = std::map<std::vector<std::string>, Product>;

void add(Sum& to, const Sum& x, int64_t factor) {
    for (const auto& [key, p] : x) {
        Product& mine = to[key];
        mine.atoms = p.atoms;
        mine.coefficient += factor * p.coefficient;
        if (mine.coefficient == 0) to.erase(key);
    }
}

Sum times(const Sum& a, const Sum& b) {
    Sum out;
    for (const auto& [ka, pa] : a)
        for (const auto& [kb, pb] : b) {
            std::vector<std::pair<std::string, Index>> all;
            for (size_t i = 0; i < ka.size(); ++i) all.emplace_back(ka[i], pa.atoms[i]);
            for (size_t i = 0; i < kb.size(); ++i) all.emplace_back(kb[i], pb.atoms[i]);
            std::ranges::sort(all, {}, &std::pair<std::string, Index>::first);
            std::vector<std::string> key;
            Product p{{}, pa.coefficient * pb.coefficient};
            for (auto& [k, e] : all) key.push_back(k), p.atoms.push_back(e);
            add(out, Sum{{key, p}}, 1);
        }
    return out;
}

Sum constant_sum(int64_t c) { return c ? Sum{{{}, {{}, c}}} : Sum{}; }
Sum sum_of(const Index& e);

Index rebuild(const Sum& s) {
    Index out;
    const auto term = [](const Product& p, int64_t c) {
        Index t;
        for (const Index& a : p.atoms) t = t ? t * a : a;
        if (!t) return constant(c);
        return c == 1 ? t : constant(c) * t;
    };
    for (const bool positive : {true, false})
        for (const auto& [key, p] : s) {
            if (key.empty() || (p.coefficient > 0) != positive) continue;
            if (!out) out = positive ? term(p, p.coefficient) : constant(0) - term(p, -p.coefficient);
            else out = positive ? out + term(p, p.coefficient) : out - term(p, -p.coefficient);
        }
    const auto c = s.find({});
    if (!out) return constant(c == s.end() ? 0 : c->second.coefficient);
    if (c == s.end()) return out;
    return c->second.coefficient > 0 ? out + constant(c->second.coefficient) : out - constant(-c->second.coefficient);
}

Sum atom(Index e) {
    std::string key = print(e);
    return {{{key}, {{std::move(e)}, 1}}};
}

/// The terms of `s` that are multiples of c, and the rest.
std::pair<Sum, Sum> multiples(const Sum& s, int64_t c) {
    Sum whole, rest;
    for (const auto& [key, p] : s) {
        const bool divides = p.coefficient % c == 0;
        (divides ? whole : rest)[key] = p;
    }
    return {whole, rest};
}

Sum quotient(const Sum& a, const Index& b, bool remainder) {
    if (!is_const(b) || b->value <= 0) return atom(binary(remainder ? IndexOp::Mod : IndexOp::Div, rebuild(a), b));
    auto [whole, rest] = multiples(a, b->value);
    Sum out;
    if (!remainder)
        for (auto& [key, p] : whole) out[key] = {p.atoms, p.coefficient / b->value};
    if (rest.empty()) return out;
    if (rest.size() == 1 && rest.begin()->first.empty()) {
        const int64_t c = apply(remainder ? IndexOp::Mod : IndexOp::Div, rest.begin()->second.coefficient, b->value);
        add(out, constant_sum(c), 1);
        return out;
    }
    add(out, atom(binary(remainder ? IndexOp::Mod : IndexOp::Div, rebuild(rest), b)), 1);
    return out;
}

Sum sum_of(const Index& e) {
    switch (e->op) {
        case IndexOp::Const: return constant_sum(e->value);
        case IndexOp::Name: return atom(e);
        case IndexOp::Add:
        case IndexOp::Sub: {
            Sum s = sum_of(e->args[0]);
            add(s, sum_of(e->args[1]), e->op == IndexOp::Add ? 1 : -1);
            return s;
        }
        case IndexOp::Mul: return times(sum_of(e->args[0]), sum_of(e->args[1]));
        case IndexOp::Div:
        case IndexOp::Mod: return quotient(sum_of(e->args[0]), normal(e->args[1]), e->op == IndexOp::Mod);
        default: {
            const Index n = map_args(e, normal);
            return is_const(n) ? constant_sum(n->value) : atom(n);
        }
    }
}

}  // namespace

Index normal(const Index& e) { return rebuild(sum_of(e)); }

bool same(const Index& a, const Index& b) { return equal(a, b) || equal(normal(a), normal(b)); }
bool same(const std::vector<Index>& a, const std::vector<Index>& b) {
    return std::ranges::equal(a, b, [](const Index& x, const Index& y) { return same(x, y); });
}

std::optional<Affine> affine(const Index& e, const std::string& name) {
    if (!mentions(e, name)) return Affine{constant(0), e};
    if (e->op == IndexOp::Name) return Affine{constant(1), constant(0)};
    if (e->op == IndexOp::Add || e->op == IndexOp::Sub) {
        const auto a = affine(e->args[0], name), b = affine(e->args[1], name);
        if (!a || !b) return {};
        return Affine{normal(binary(e->op, a->coefficient, b->coefficient)), normal(binary(e->op, a->rest, b->rest))};
    }
    if (e->op != IndexOp::Mul) return {};
    const bool left = mentions(e->args[0], name);
    if (left && mentions(e->args[1], name)) return {};
    const auto inner = affine(e->args[left ? 0 : 1], name);
    if (!inner) return {};
    const Index& factor = e->args[left ? 1 : 0];
    return Affine{normal(inner->coefficient * factor), normal(inner->rest * factor)};
}

std::set<std::string> names_in(const Index& e) {
    std::set<std::string> out;
    free_names(e, out);
    return out;
}
std::set<std::string> names_in(const Value& v) {
    std::set<std::string> out;
    free_names(v, out);
    return out;
}
bool mentions(const Index& e, const std::string& name) { return names_in(e).contains(name); }
bool mentions(const Value& v, const std::string& name) { return names_in(v).contains(name); }
bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::ranges::any_of(a, [&](const std::string& x) { return b.contains(x); });
}

Value below(const Index& a, const Index& b) { return binary(Op::Lt, of_index(a), of_index(b)); }

static Index index_side(const Value& v) {
    if (v->op == Op::OfIndex) return v->subscripts[0];
    if (v->op == Op::Const && is_int(v->type)) return constant(v->integer);
    return v->op == Op::Cast && is_int(v->type) ? index_side(v->args[0]) : nullptr;
}

std::optional<Below> as_below(const Value& v) {
    if (v->op != Op::Lt && v->op != Op::Le && v->op != Op::Gt && v->op != Op::Ge) return {};
    const Index a = index_side(v->args[0]), b = index_side(v->args[1]);
    if (!a || !b) return {};
    switch (v->op) {
        case Op::Lt: return Below{a, b};
        case Op::Le: return Below{a, b + constant(1)};
        case Op::Gt: return Below{b, a};
        default: return Below{b, a + constant(1)};
    }
}

}  // namespace acu::ir::analysis
