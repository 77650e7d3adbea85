#include <algorithm>

#include "ir/pass/edit.h"

namespace acu::ir::pass {

std::vector<Value> without(const std::vector<Value>& guards, const std::set<std::string>& names) {
    std::vector<Value> out;
    std::ranges::copy_if(guards, std::back_inserter(out), [&](const Value& g) { return !meet(names_in(g), names); });
    return out;
}

bool contains(const std::vector<Value>& guards, const Value& g) {
    return std::ranges::any_of(guards, [&](const Value& x) { return equal(x, g); });
}

Factors factors(const Value& v) {
    if (v->op != Op::Mul && v->op != Op::Div) return {{v}, {}};
    if (!is_float(v->type) && v->op == Op::Div) return {{v}, {}};
    Factors a = factors(v->args[0]);
    const Factors b = factors(v->args[1]);
    const bool times = v->op == Op::Mul;
    a.num.insert(a.num.end(), (times ? b.num : b.den).begin(), (times ? b.num : b.den).end());
    a.den.insert(a.den.end(), (times ? b.den : b.num).begin(), (times ? b.den : b.num).end());
    return a;
}

Value product_of(const std::vector<Value>& list) {
    Value out = list.front();
    for (size_t i = 1; i < list.size(); ++i) out = binary(Op::Mul, out, list[i]);
    return out;
}

static bool has_load(const Value& v) {
    bool found = false;
    for_each_load(v, [&](const Value&) { found = true; });
    return found;
}

bool is_fill(const Block& b) { return b.monoid == Monoid::None && std::ranges::none_of(b.vals, has_load); }

bool is_copy(const Block& b) {
    if (b.monoid != Monoid::None || b.vals.size() != 1) return false;
    const Value& v = b.vals[0];
    const bool guarded = v->op == Op::Select && v->args[1]->op == Op::Load && v->args[2]->op == Op::Const;
    const bool plain = std::ranges::all_of(b.outs[0].subscripts, [&](const Index& i) { return i->op == IndexOp::Name && axis_of(b, i->name); });
    return plain && (v->op == Op::Load || guarded);
}

Stmt fill_of(const Program& p, const Block& b) {
    Stmt found;
    if (b.monoid == Monoid::None) return found;
    for (const Stmt& s : block_stmts(p.body)) {
        const Block& x = *as_block(s);
        if (x.label == b.label) break;
        const bool sets = x.monoid == Monoid::None && std::ranges::any_of(x.outs, [&](const Access& o) { return o.tensor == b.outs[0].tensor; });
        if (sets && is_fill(x)) found = s;
    }
    return found;
}

static std::set<std::string> states_of(const Block& b) {
    std::set<std::string> out{b.outs[0].tensor};
    if (is_pair(b.monoid)) out.insert(b.outs[1].tensor);
    return out;
}

std::vector<std::string> with_fills(const Program& p, const std::vector<std::string>& labels) {
    std::set<std::string> wanted, states;
    for (const std::string& l : labels) {
        const Place at = find_block(p, l);
        wanted.insert(block_of(at).label);
        if (block_of(at).monoid != Monoid::None && !is_scatter(block_of(at))) states.merge(states_of(block_of(at)));
    }
    std::vector<std::string> out;
    for (const Stmt& s : block_stmts(p.body)) {
        const Block& b = *as_block(s);
        const bool fills = is_fill(b) && std::ranges::all_of(b.outs, [&](const Access& o) { return states.contains(o.tensor); });
        if (wanted.contains(b.label) || fills) out.push_back(b.label);
    }
    return out;
}

Facts facts_at(const Program& p, const std::vector<Stmt>& above) {
    Facts f(known_dims(p), [&p](const std::string& t) { return p.find(t) ? p.find(t)->dims[0].size : nullptr; });
    for (const Dim& d : p.dims) f.add_dim(d.name);
    for (const Value& v : p.facts) f.add(v);
    for (const Stmt& s : above) {
        const Loop* l = as_loop(s);
        if (!l) continue;
        f.add_range(l->var, constant(0), l->extent);
        for (const Let& x : l->lets) {
            f.add_nonnegative(x.value - ir::name(x.name));
            f.add_nonnegative(ir::name(x.name) - x.value);
        }
    }
    return f;
}

bool divides(const Program& p, const Index& e, int64_t f) {
    if (f == 1) return true;
    const Index rest = normal(mod(ir::substitute(e, [&] {
                                      IndexMap known;
                                      for (const auto& [n, v] : known_dims(p)) known.emplace(n, constant(v));
                                      return known;
                                  }()),
                                  constant(f)));
    if (is_const(rest)) return rest->value == 0;
    return facts_at(p, {}).equal(rest, constant(0));
}

std::optional<int64_t> known_value(const Program& p, const Index& e) {
    IndexMap known;
    for (const Dim& d : p.dims)
        if (d.value) known.emplace(d.name, constant(*d.value));
    return constant_value(normal(ir::substitute(e, known)));
}
std::optional<int64_t> constant_value(const Index& e) {
    const Index n = normal(e);
    return is_const(n) ? std::optional(n->value) : std::nullopt;
}

}  // namespace acu::ir::pass
