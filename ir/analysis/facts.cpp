#include "ir/analysis/facts.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/scalar.h"

namespace acu::ir::analysis {

// ---- linear forms

static void add_term(Linear& l, const Monomial& m, int64_t c) {
    if (const int64_t sum = (l[m] += c); sum == 0) l.erase(m);
}
static Linear plus(Linear a, const Linear& b, int64_t factor = 1) {
    for (const auto& [m, c] : b) add_term(a, m, c * factor);
    return a;
}
static Linear times(const Linear& a, const Linear& b) {
    Linear out;
    for (const auto& [m, c] : a)
        for (const auto& [n, d] : b) {
            Monomial both = m;
            both.insert(both.end(), n.begin(), n.end());
            std::ranges::sort(both);
            add_term(out, both, c * d);
        }
    return out;
}
static Linear number_of(int64_t v) { return v ? Linear{{{}, v}} : Linear{}; }
static bool is_number(const Linear& l) { return l.empty() || (l.size() == 1 && l.begin()->first.empty()); }
static int64_t constant_of(const Linear& l) {
    const auto it = l.find({});
    return it == l.end() ? 0 : it->second;
}

static std::string key_of(const Linear& l) {
    std::string s;
    for (const auto& [m, c] : l) {
        s += (s.empty() ? "" : "+") + std::to_string(c);
        for (const std::string& f : m) s += "*" + f;
    }
    return s.empty() ? "0" : s;
}

Facts::Facts(Env known, std::function<Index(const std::string&)> offsets_size) : known_(std::move(known)), offsets_size_(std::move(offsets_size)) {}

/// An opaque expression becomes an atom, named by its normal form.
Linear Facts::atom(const Index& e) const {
    std::string key = e->op == IndexOp::Name ? e->name : std::to_string(static_cast<int>(e->op)) + e->name + "(";
    if (e->op != IndexOp::Name) {
        for (const Index& a : e->args) key += key_of(linear(a)) + ",";
        key += ")";
        atoms_.emplace(key, e);
    }
    return {{{key}, 1}};
}

/// floor(a / b): what a constant divides comes out; the rest is an atom.
Linear Facts::quotient(const Index& a, const Index& b) const {
    const Linear x = linear(a), y = linear(b);
    if (is_number(x) && is_number(y)) return number_of(floor_div(constant_of(x), constant_of(y)));
    if (!is_number(y) || constant_of(y) <= 0) return atom(div(a, b));
    const int64_t d = constant_of(y);
    Linear whole;
    bool rest = false;
    for (const auto& [m, c] : x)
        if (c % d == 0) whole[m] = c / d;
        else if (!m.empty()) rest = true;
    if (rest) return atom(div(a, b));
    return plus(whole, number_of(floor_div(constant_of(x), d) - (whole.contains({}) ? whole[{}] : 0)));
}

Linear Facts::linear(const Index& e) const {
    switch (e->op) {
        case IndexOp::Const: return number_of(e->value);
        case IndexOp::Name: {
            const auto it = known_.find(e->name);
            return it == known_.end() ? atom(e) : number_of(it->second);
        }
        case IndexOp::Add: return plus(linear(e->args[0]), linear(e->args[1]));
        case IndexOp::Sub: return plus(linear(e->args[0]), linear(e->args[1]), -1);
        case IndexOp::Mul: return times(linear(e->args[0]), linear(e->args[1]));
        case IndexOp::Div: return quotient(e->args[0], e->args[1]);
        case IndexOp::Mod: return plus(linear(e->args[0]), times(linear(e->args[1]), quotient(e->args[0], e->args[1])), -1);
        case IndexOp::Min:
        case IndexOp::Max: {
            const Linear x = linear(e->args[0]), y = linear(e->args[1]);
            if (!is_number(x) || !is_number(y)) return atom(e);
            return number_of(e->op == IndexOp::Min ? std::min(constant_of(x), constant_of(y)) : std::max(constant_of(x), constant_of(y)));
        }
        case IndexOp::Load:
        case IndexOp::Segment: return atom(e);
    }
    return {};
}

// ---- what is known

void Facts::add_dim(const std::string& name) {
    if (!known_.contains(name)) facts_.push_back(linear(ir::name(name)));
}

/// max(0, n) is n where there is a point, as is max(0, n) - m with m not negative.
static Index of_some_point(const Index& size) {
    const auto nothing = [](const Index& i) { return is_const(i) && i->value <= 0; };
    const auto is_negated = [](const Index& i) { return i->op == IndexOp::Mul && is_const(i->args[0]) && i->args[0]->value < 0; };
    const auto not_negative = [&](const Index& i) { return i->op == IndexOp::Max && (nothing(i->args[0]) || nothing(i->args[1])); };
    if (size->op == IndexOp::Max && nothing(size->args[0])) return of_some_point(size->args[1]);
    if (size->op == IndexOp::Max && nothing(size->args[1])) return of_some_point(size->args[0]);
    if (size->op == IndexOp::Sub && not_negative(size->args[1])) return of_some_point(size->args[0]) - size->args[1];
    if (size->op == IndexOp::Add && is_negated(size->args[1]) && not_negative(size->args[1]->args[1])) return of_some_point(size->args[0]) + size->args[1];
    if (size->op == IndexOp::Add && is_negated(size->args[0]) && not_negative(size->args[0]->args[1])) return size->args[0] + of_some_point(size->args[1]);
    return size;
}

void Facts::add_range(const std::string& name, const Index& base, const Index& size) {
    ranges_[name] = {base, size};
    definitions_.erase(name);
    const Index n = ir::name(name);
    add_nonnegative(n - base);
    add_nonnegative(base + of_some_point(size) - constant(1) - n);
}

void Facts::define(const std::string& name, const Index& e) {
    add_nonnegative(e - ir::name(name));
    add_nonnegative(ir::name(name) - e);
    definitions_.insert_or_assign(name, e);
}
Index Facts::definition(const std::string& name) const {
    const auto it = definitions_.find(name);
    return it == definitions_.end() ? nullptr : it->second;
}

void Facts::add_nonnegative(const Index& e) {
    facts_.push_back(linear(e));
    positive_.clear();
}

static Index index_of(const Value& v) {
    if (v->op == Op::OfIndex) return v->subscripts[0];
    return v->op == Op::Const && is_int(v->type) ? constant(v->integer) : nullptr;
}

void Facts::add(const Value& c) {
    if (c->op == Op::And) return add(c->args[0]), add(c->args[1]);
    if (c->op == Op::Not) return add_negation(c->args[0]);
    if (c->op < Op::Eq || c->op > Op::Ge) return;
    const Index a = index_of(c->args[0]), b = index_of(c->args[1]);
    if (!a || !b) return;
    const Index one = constant(1);
    if (c->op == Op::Lt) add_nonnegative(b - a - one);
    if (c->op == Op::Gt) add_nonnegative(a - b - one);
    if (c->op == Op::Le || c->op == Op::Eq) add_nonnegative(b - a);
    if (c->op == Op::Ge || c->op == Op::Eq) add_nonnegative(a - b);
}

void Facts::add_negation(const Value& c) {
    if (c->op == Op::Or) return add_negation(c->args[0]), add_negation(c->args[1]);
    if (c->op == Op::Not) return add(c->args[0]);
    const std::map<Op, Op> opposite{{Op::Lt, Op::Ge}, {Op::Ge, Op::Lt}, {Op::Le, Op::Gt}, {Op::Gt, Op::Le}, {Op::Ne, Op::Eq}};
    if (const auto it = opposite.find(c->op); it != opposite.end()) add(binary(it->second, c->args[0], c->args[1]));
}

// ---- proving

/// The laws of an atom `q = floor(e/d)` with d >= 1: d*q <= e <= d*q + d - 1; of min, max and segment likewise.
void Facts::define(const std::string& key, std::vector<Linear>& out) const {
    const auto it = atoms_.find(key);
    if (it == atoms_.end()) return;
    const Index& e = it->second;
    const Linear q{{{key}, 1}};
    if (e->op == IndexOp::Segment) {
        out.push_back(q);
        if (const Index size = offsets_size_ ? offsets_size_(e->name) : nullptr) out.push_back(plus(plus(linear(size), q, -1), number_of(-2)));
    }
    if (e->op == IndexOp::Min || e->op == IndexOp::Max)
        for (const Index& a : e->args) out.push_back(e->op == IndexOp::Min ? plus(linear(a), q, -1) : plus(q, linear(a), -1));
    if (e->op != IndexOp::Div) return;
    const auto known = positive_.find(key);
    bool positive = known != positive_.end() && known->second;
    if (known == positive_.end()) {
        positive_[key] = false;    // a divisor whose own proof needs this quotient is not proven
        positive = positive_[key] = nonnegative(e->args[1] - constant(1));
    }
    if (!positive) return;
    const Linear d = linear(e->args[1]), rest = plus(linear(e->args[0]), times(d, q), -1);
    out.push_back(rest);
    out.push_back(plus(plus(d, number_of(-1)), rest, -1));
}

bool Facts::nonnegative_atom(const std::string& key) const {
    if (const auto range = ranges_.find(key); range != ranges_.end()) return is_const(range->second.base) && range->second.base->value >= 0;
    if (const Index meaning = definition(key)) return obviously_nonnegative(meaning);
    const auto it = atoms_.find(key);
    if (it == atoms_.end()) return true;    // a dimension
    std::set<std::string> names;
    free_names(it->second, names);
    return it->second->op == IndexOp::Div && std::ranges::all_of(names, [&](const std::string& n) { return !ranges_.contains(n); });
}

/// For a product x*y the bounds of x times y, and the negated goal times each symbolic divisor: the nonlinear facts that index arithmetic needs.
void Facts::multiply_bounds(std::vector<Linear>& constraints, const Linear& negated_goal) const {
    std::set<Monomial> products;
    for (const Linear& l : constraints)
        for (const auto& [m, c] : l)
            if (m.size() == 2) products.insert(m);
    std::set<std::string> divisors;
    for (const Monomial& m : products)
        for (size_t i = 0; i < 2; ++i) {
            const std::string &x = m[i], &y = m[1 - i];
            if (!nonnegative_atom(y)) continue;
            if (const auto range = ranges_.find(x); range != ranges_.end()) {
                const Linear name{{{x}, 1}}, factor{{{y}, 1}}, base = linear(range->second.base);
                constraints.push_back(times(plus(name, base, -1), factor));
                constraints.push_back(times(plus(plus(plus(base, linear(range->second.size)), number_of(-1)), name, -1), factor));
            } else {
                constraints.push_back({{m, 1}});
                if (!nonnegative_atom(x)) constraints.pop_back();
            }
            divisors.insert(y);
        }
    for (const std::string& d : divisors) constraints.push_back(times(negated_goal, {{{d}, 1}}));
}

/// Divides by the common factor of the coefficients; the constant rounds down, which is what integers allow.
static void tighten(Linear& l) {
    int64_t g = 0;
    for (const auto& [m, c] : l)
        if (!m.empty()) g = std::gcd(g, c);
    if (g <= 1) return;
    for (auto& [m, c] : l) c = floor_div(c, g);
    std::erase_if(l, [](const auto& t) { return t.second == 0; });
}

static bool contradicts(const Linear& l) { return is_number(l) && constant_of(l) < 0; }
static constexpr int64_t coefficient_limit = int64_t{1} << 40;

/// c*a.at(m) + … with the monomial m eliminated; empty when coefficients grow too large.
static std::optional<Linear> combine(const Linear& positive, const Linear& negative, const Monomial& m) {
    const int64_t p = positive.at(m), n = -negative.at(m), g = std::gcd(p, n);
    Linear out;
    for (const auto& [t, c] : positive) add_term(out, t, c * (n / g));
    for (const auto& [t, c] : negative) add_term(out, t, c * (p / g));
    tighten(out);
    for (const auto& [t, c] : out)
        if (std::abs(c) > coefficient_limit) return {};
    return out;
}

static std::optional<Monomial> cheapest(const std::vector<Linear>& all) {
    std::map<Monomial, std::pair<size_t, size_t>> counts;
    for (const Linear& l : all)
        for (const auto& [m, c] : l)
            if (!m.empty()) ++(c > 0 ? counts[m].first : counts[m].second);
    if (counts.empty()) return {};
    return std::ranges::min_element(counts, {}, [](const auto& e) { return e.second.first * e.second.second; })->first;
}

/// Are the constraints `l >= 0` without a common solution? Sound; gives up beyond a size.
static bool infeasible(std::vector<Linear> all) {
    constexpr size_t limit = 600;
    for (Linear& l : all) tighten(l);
    while (true) {
        if (std::ranges::any_of(all, contradicts)) return true;
        const auto m = cheapest(all);
        if (!m || all.size() > limit) return false;
        std::set<Linear> next;
        std::vector<const Linear*> up, down;
        for (const Linear& l : all) {
            const auto it = l.find(*m);
            if (it == l.end()) next.insert(l);
            else (it->second > 0 ? up : down).push_back(&l);
        }
        for (const Linear* a : up)
            for (const Linear* b : down)
                if (auto c = combine(*a, *b, *m)) next.insert(std::move(*c));
        all.assign(next.begin(), next.end());
    }
}

/// Facts that share a name with the goal, directly or through others.
static std::vector<Linear> relevant(const std::vector<Linear>& facts, std::set<std::string> names) {
    std::vector<Linear> out;
    std::vector<bool> used(facts.size());
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < facts.size(); ++i) {
            if (used[i]) continue;
            std::set<std::string> mine;
            for (const auto& [m, c] : facts[i]) mine.insert(m.begin(), m.end());
            if (std::ranges::none_of(mine, [&](const std::string& n) { return names.contains(n); })) continue;
            used[i] = grown = true;
            out.push_back(facts[i]);
            names.merge(mine);
        }
    }
    return out;
}

static void names_in(const std::vector<Linear>& all, std::set<std::string>& out) {
    for (const Linear& l : all)
        for (const auto& [m, c] : l) out.insert(m.begin(), m.end());
}

bool Facts::obviously_nonnegative(const Index& e) const {
    switch (e->op) {
        case IndexOp::Const: return e->value >= 0;
        case IndexOp::Name: {
            const auto range = ranges_.find(e->name);
            if (range != ranges_.end()) return is_const(range->second.base) && range->second.base->value >= 0;
            const Index meaning = definition(e->name);
            return !meaning || obviously_nonnegative(meaning);    // else a dimension
        }
        case IndexOp::Sub:
        case IndexOp::Load: return false;
        case IndexOp::Segment: return true;
        case IndexOp::Max: return obviously_nonnegative(e->args[0]) || obviously_nonnegative(e->args[1]);
        default: return obviously_nonnegative(e->args[0]) && obviously_nonnegative(e->args[1]);
    }
}

bool Facts::nonnegative(const Index& e) const {
    if (obviously_nonnegative(e)) return true;
    const Linear goal = linear(e);
    if (is_number(goal)) return constant_of(goal) >= 0;
    const Linear negated = plus(number_of(-1), goal, -1);
    std::set<std::string> wanted, defined;
    names_in({goal}, wanted);
    std::vector<Linear> definitions;
    for (int round = 0; round < 4; ++round) {
        const size_t before = defined.size();
        for (const std::string& n : std::set<std::string>(wanted))
            if (defined.insert(n).second) define(n, definitions);
        names_in(definitions, wanted);
        names_in(relevant(facts_, wanted), wanted);
        if (defined.size() == before) break;
    }
    std::vector<Linear> constraints = relevant(facts_, wanted);
    constraints.insert(constraints.end(), definitions.begin(), definitions.end());
    constraints.push_back(negated);
    multiply_bounds(constraints, negated);
    return infeasible(std::move(constraints));
}

bool Facts::obviously_less(const Index& a, const Index& b) const {
    const auto range = a->op == IndexOp::Name ? ranges_.find(a->name) : ranges_.end();
    return range != ranges_.end() && is_const(range->second.base, 0) && ir::equal(range->second.size, b);
}

bool Facts::less(const Index& a, const Index& b) const { return obviously_less(a, b) || nonnegative(b - a - constant(1)); }

std::optional<int64_t> Facts::value(const Index& e) const {
    const Linear l = linear(e);
    if (is_number(l)) return constant_of(l);
    return {};
}

/// Interval arithmetic over dimensions: each name takes the end of its range that moves the expression in the wanted direction.
std::optional<Index> Facts::bound(const Index& e, bool upper) const {
    const auto pick = [&](const Index& a, bool up) { return bound(a, up); };
    switch (e->op) {
        case IndexOp::Const: return e;
        case IndexOp::Name: {
            const auto it = ranges_.find(e->name);
            if (it == ranges_.end()) return e;
            const auto base = pick(it->second.base, upper), size = pick(it->second.size, upper);
            if (!base || !size) return {};
            return upper ? *base + *size - constant(1) : *base;
        }
        case IndexOp::Add:
        case IndexOp::Sub: {
            const auto a = pick(e->args[0], upper), b = pick(e->args[1], e->op == IndexOp::Add ? upper : !upper);
            if (!a || !b) return {};
            return binary(e->op, *a, *b);
        }
        case IndexOp::Mul: {
            const bool left = is_const(e->args[0]);
            const Index& factor = e->args[left ? 0 : 1];
            const Index& other = e->args[left ? 1 : 0];
            if (!is_const(factor)) return {};
            const auto a = pick(other, factor->value >= 0 ? upper : !upper);
            if (!a) return {};
            return *a * factor;
        }
        case IndexOp::Div: {
            if (!is_const(e->args[1]) || e->args[1]->value <= 0) return {};
            const auto a = pick(e->args[0], upper);
            if (!a) return {};
            return div(*a, e->args[1]);
        }
        default: return {};
    }
}

std::optional<Index> Facts::upper_bound(const Index& e) const { return bound(e, true); }
std::optional<Index> Facts::lower_bound(const Index& e) const { return bound(e, false); }

}  // namespace acu::ir::analysis
