#include "ir/pass/trim_effects.h"

#include <algorithm>
#include <cmath>

#include "ir/pass/clone.h"

namespace acu::ir::pass {

HiddenIteration::HiddenIteration(const Program& p, const Place& loop, Index edge) : p_(p), loop_(loop), edge_(std::move(edge)), facts_(facts_at(p, loop.above)) {
    bool passed = false;
    for_each_place(p, [&](const Place& x) {
        const bool inside = std::ranges::find(x.above, loop.stmt) != x.above.end();
        passed |= x.stmt == loop.stmt;
        if (as_block(x.stmt)) blocks_.push_back({x, inside ? Writer::Inside : passed ? Writer::After : Writer::Before});
        const Loop* l = inside || x.stmt == loop.stmt ? as_loop(x.stmt) : nullptr;
        for (size_t i = 0; l && i < l->allocs.size(); ++i) owned_.insert(l->allocs[i].name);
    });
}

Stmt HiddenIteration::effect() const {
    for (const Writer& w : blocks_)
        if (w.where == Writer::Inside && !no_effect(w.at)) return w.at.stmt;
    return nullptr;
}

// ---- conditions

std::optional<bool> HiddenIteration::compared(const Value& condition, const Place& at) const {
    const auto x = comparison(condition);
    if (!x) return {};
    const std::vector<Span> box = box_of(at, loop_.stmt.get());
    const Index gap = ir::substitute(x->right - x->left, derived_names(at, loop_.stmt.get()));
    if (const auto lo = least(gap, box); lo && facts_.nonnegative(normal(*lo - edge_))) return true;
    if (const auto hi = greatest(gap, box); hi && facts_.nonnegative(normal(constant(1) - edge_ - *hi))) return false;
    return {};
}

std::optional<bool> HiddenIteration::holds(const Value& c, const Place& at) const {
    if (const auto t = constant_truth(c)) return t;
    if (c->op == Op::Not) {
        const auto a = holds(c->args[0], at);
        return a ? std::optional(!*a) : std::nullopt;
    }
    if (c->op == Op::And || c->op == Op::Or) {
        const auto a = holds(c->args[0], at), b = holds(c->args[1], at);
        const bool decides = c->op == Op::Or;
        if ((a && *a == decides) || (b && *b == decides)) return decides;
        return a && b ? std::optional(!decides) : std::nullopt;
    }
    return compared(c, at);
}

bool HiddenIteration::inactive(const Place& at) const {
    for (const Value& g : block_of(at).guards)
        if (holds(g, at) == false) return true;
    const auto loop = std::ranges::find(at.above, loop_.stmt);
    for (auto s = loop; s != at.above.end(); ++s) {
        const auto* i = std::get_if<If>(&(*s)->node);
        if (!i) continue;
        const bool first = any_inside(i->body, [&](const Stmt& x) { return x == at.stmt; });
        if (holds(i->condition, at) == !first) return true;
    }
    return false;
}

// ---- values

static bool is_constant(const Value& v, double x) { return v->op == Op::Const && is_float(v->type) && v->number == x; }
static bool is_negative_infinity_constant(const Value& v) { return is_constant(v, -INFINITY); }
static bool is_load_of(const Value& v, const std::string& tensor, const std::vector<Index>& at) {
    return v->op == Op::Load && v->name == tensor && v->args.empty() && same(v->subscripts, at);
}
static bool is_zero(const Value& v) { return is_constant(v, 0.0) && !std::signbit(v->number); }

std::vector<HiddenIteration::Writer> HiddenIteration::writers(const std::string& buffer) const {
    std::vector<Writer> out;
    std::ranges::copy_if(blocks_, std::back_inserter(out), [&](const Writer& w) {
        return std::ranges::any_of(block_of(w.at).outs, [&](const Access& o) { return o.tensor == buffer; });
    });
    return out;
}

bool HiddenIteration::holds_negative_infinity(const std::string& buffer) const {
    if (!owned_.contains(buffer) || !asked_.insert(buffer).second) return false;
    const std::vector<Writer> all = writers(buffer);
    const bool result = !all.empty() && std::ranges::all_of(all, [&](const Writer& w) {
        const Block& b = block_of(w.at);
        return inactive(w.at) || (b.outs.size() == 1 && (b.monoid == Monoid::None || b.monoid == Monoid::Max) && is_negative_infinity(b.vals[0], w.at));
    });
    asked_.erase(buffer);
    return result;
}

bool HiddenIteration::is_negative_infinity(const Value& v, const Place& at) const {
    switch (v->op) {
        case Op::Const: return is_negative_infinity_constant(v);
        case Op::Load: return v->args.empty() && holds_negative_infinity(v->name);
        case Op::Cast: return is_float(v->type) && v->name != name_of(DType::F8E4M3) && is_negative_infinity(v->args[0], at);
        case Op::Mul: return is_negative_infinity(v->args[0], at) && v->args[1]->op == Op::Const && v->args[1]->number > 0;
        case Op::Select: {
            const auto c = holds(v->args[0], at);
            return (c == false || is_negative_infinity(v->args[1], at)) && (c == true || is_negative_infinity(v->args[2], at));
        }
        default: return false;
    }
}

/// What a buffer of the iteration holds, where one plain statement writes it in the same words.
Value HiddenIteration::resolved(const Value& v) const {
    if (v->op == Op::Cast && is_float(v->type) && is_float(v->args[0]->type)) return resolved(v->args[0]);
    if (v->op != Op::Load || !owned_.contains(v->name) || !v->args.empty()) return v;
    const std::vector<Writer> all = writers(v->name);
    if (all.size() != 1) return v;
    const Block& b = block_of(all[0].at);
    const bool plain = b.monoid == Monoid::None && b.outs.size() == 1 && same(b.outs[0].subscripts, v->subscripts);
    if (!plain || !asked_.insert(v->name).second) return v;
    Value out = resolved(b.vals[0]);
    asked_.erase(v->name);
    return out;
}

/// exp(x - safe(m)) with safe(m) = (0 if m == -inf else m): answers m and x.
std::string HiddenIteration::exponential_of(const Value& v, Value& exponent) const {
    const Value e = resolved(v);
    if (e->op != Op::Call || (e->name != "exp" && e->name != "exp2") || e->args[0]->op != Op::Sub) return {};
    const Value s = resolved(e->args[0]->args[1]);
    if (s->op != Op::Select || s->args[0]->op != Op::Eq || !is_zero(s->args[1]) || s->args[2]->op != Op::Load) return {};
    const Value &m = s->args[2], &a = s->args[0]->args[0], &b = s->args[0]->args[1];
    const bool tests = (is_negative_infinity_constant(b) && equal(a, m)) || (is_negative_infinity_constant(a) && equal(b, m));
    if (!tests || !m->args.empty()) return {};
    exponent = e->args[0]->args[0];
    const Value x = resolved(exponent);
    if (is_load_of(x, m->name, m->subscripts)) exponent = x;
    return m->name;
}

/// exp(old - safe(m)) where old is m itself as the iteration found it: 1, unless m is infinite or not a number. Answers m.
std::string HiddenIteration::unit_factor(const Value& v) const {
    Value x;
    const std::string m = exponential_of(v, x);
    return !m.empty() && !owned_.contains(m) && x->op == Op::Load && x->name == m ? m : std::string();
}

/// The state `maximum` starts at -inf and takes the maximum over buffers `over`, all of them: it is -inf only as long as all that they held was.
bool HiddenIteration::only_grows(const std::string& maximum, std::set<std::string>& over) const {
    std::set<std::string> through;
    for (const Writer& w : writers(maximum)) {
        const Block& b = block_of(w.at);
        if (w.where == Writer::After) continue;
        if (w.where == Writer::Before) {
            if (b.monoid != Monoid::None || !is_negative_infinity_constant(b.vals[0])) return false;
            continue;
        }
        const Value& v = b.vals[0];
        if (b.monoid == Monoid::Max && v->op == Op::Load) over.insert(v->name);
        else if (b.monoid == Monoid::None && v->op == Op::Call && v->name == "max" && v->args[0]->op == Op::Load && v->args[1]->op == Op::Load) through.insert({v->args[0]->name, v->args[1]->name});
        else if (b.monoid == Monoid::None && v->op == Op::Select && v->args[1]->op == Op::Load && is_load_of(v->args[2], maximum, b.outs[0].subscripts)) {
            const Value &c = v->args[0], &tile = v->args[1];
            const bool later = c->op == Op::Lt && equal(c->args[1], tile) && c->args[0]->op == Op::Add && equal(c->args[0]->args[0], v->args[2]) && c->args[0]->args[1]->op == Op::Const && std::isfinite(c->args[0]->args[1]->number);
            if (!later) return false;
            through.insert(tile->name);
        } else return false;
    }
    through.erase(maximum);
    for (const std::string& t : through)
        for (const Writer& w : writers(t)) {
            const Block& b = block_of(w.at);
            if (b.monoid == Monoid::Max && b.vals[0]->op == Op::Load) over.insert(b.vals[0]->name);
            else if (b.monoid != Monoid::None || !is_negative_infinity_constant(b.vals[0])) return false;
        }
    return !over.empty();
}

/// While `maximum` is -inf, the sum holds nothing but zeros and NaN, which a factor of 0 leaves as they are: every term has a factor exp(x - safe(maximum)).
bool HiddenIteration::rescales_exponentials(const std::string& sum, const std::string& maximum) const {
    std::set<std::string> over;
    if (!only_grows(maximum, over)) return false;
    const std::vector<Stmt> around = loops_of(loop_.above);
    const auto declares = [&](const Stmt& s) { return std::ranges::find(as_loop(s)->allocs, sum, &Decl::name) != as_loop(s)->allocs.end(); };
    const bool at_home = std::ranges::all_of(around, [](const Stmt& s) { return is_parallel(as_loop(s)->kind); }) || declares(around.back());    // what comes after does not come before again
    return std::ranges::all_of(writers(sum), [&](const Writer& w) {
        const Block& b = block_of(w.at);
        if (w.where == Writer::After) return at_home;
        if (w.where == Writer::Before) return b.monoid == Monoid::None && is_zero(b.vals[0]);
        if (b.monoid == Monoid::Prod) return unit_factor(b.vals[0]) == maximum;
        if (b.monoid != Monoid::Sum) return false;
        return std::ranges::any_of(factors(b.vals[0]).num, [&](const Value& f) {
            Value x;
            return exponential_of(f, x) == maximum && x->op == Op::Load && over.contains(x->name);
        });
    });
}

bool HiddenIteration::unchanged(const Value& v, const Access& out, const Place& at) const {
    if (v->op == Op::Load) return is_load_of(v, out.tensor, out.subscripts);
    if (v->op == Op::Call && v->name == "max")
        return (unchanged(v->args[0], out, at) && is_negative_infinity(v->args[1], at)) || (unchanged(v->args[1], out, at) && is_negative_infinity(v->args[0], at));
    if (v->op != Op::Select) return false;
    const Value& c = v->args[0];
    const bool never = (c->op == Op::Lt && is_negative_infinity(c->args[1], at)) || (c->op == Op::Gt && is_negative_infinity(c->args[0], at));
    const auto known = never ? std::optional(false) : holds(c, at);
    return (known == false || unchanged(v->args[1], out, at)) && (known == true || unchanged(v->args[2], out, at));
}

bool HiddenIteration::no_effect(const Place& at) const {
    const Block& b = block_of(at);
    if (inactive(at)) return true;
    if (std::ranges::all_of(b.outs, [&](const Access& o) { return owned_.contains(o.tensor); })) return true;
    if (b.outs.size() != 1 || is_scatter(b)) return false;
    if (b.monoid == Monoid::Max) return is_negative_infinity(b.vals[0], at);
    if (b.monoid == Monoid::None) return unchanged(b.vals[0], b.outs[0], at);
    const std::string m = b.monoid == Monoid::Prod ? unit_factor(b.vals[0]) : std::string();
    return !m.empty() && rescales_exponentials(b.outs[0].tensor, m);
}

}  // namespace acu::ir::pass
