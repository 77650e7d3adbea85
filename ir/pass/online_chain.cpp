#include "ir/pass/online_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/pass/padded.h"

namespace acu::ir::pass {

// ---- the law

static bool is_exponential(const Value& v) { return v->op == Op::Call && (v->name == "exp" || v->name == "exp2"); }
static bool is_positive(const Value& v) { return v->op == Op::Const && is_float(v->type) && v->number > 0 && v->number < std::numeric_limits<double>::infinity(); }

/// exp(t - m), exp(c*(t - m)) or (0 if t == -inf else exp(t - m)).
struct Law {
    Value call, difference;
    Value left_out;    ///< t of the condition, or null
};
static std::optional<Law> law_of(const Value& v) {
    Law l;
    Value x = v;
    const bool zero = x->op == Op::Select && x->args[1]->op == Op::Const && x->args[1]->number == 0 && is_float(x->type);
    if (zero && x->args[0]->op == Op::Eq && is_minus_infinity(x->args[0]->args[1])) l.left_out = x->args[0]->args[0], x = x->args[2];
    if (!is_exponential(x)) return {};
    l.call = x;
    Value d = x->args[0];
    if (d->op == Op::Mul && is_positive(d->args[1])) d = d->args[0];
    else if (d->op == Op::Mul && is_positive(d->args[0])) d = d->args[1];
    if (d->op != Op::Sub) return {};
    l.difference = d;
    if (l.left_out && !equal(l.left_out, d->args[0])) return {};
    return l;
}

static Value with_difference(const Law& l, const Value& a, const Value& b) {
    const Value difference = binary(Op::Sub, a, b);
    return replace(l.call, [&](const Value& x) { return x == l.difference ? difference : nullptr; });
}

Value OnlineChain::with_reference(const Value& m) const {
    const Value v = exponential().vals[0];
    const Law l = *law_of(v);
    const Value now = with_difference(l, l.difference->args[0], safe(m));
    return l.left_out ? select(v->args[0], v->args[1], now) : now;
}
Value OnlineChain::factor(const Value& from, const Value& to) const { return with_difference(*law_of(exponential().vals[0]), from, safe(to)); }
DType OnlineChain::factor_type() const { return law_of(exponential().vals[0])->call->type; }

// ---- parts

bool OnlineChain::is_use(const Stmt& s) const {
    return std::ranges::any_of(uses, [&](const OnlineUse& u) { return u.at.stmt == s; });
}
const OnlineUse& OnlineChain::use_of(const Stmt& s) const {
    return *std::ranges::find_if(uses, [&](const OnlineUse& u) { return u.at.stmt == s; });
}
std::set<std::string> OnlineChain::labels() const {
    std::set<std::string> out;
    for (const Stmt& s : group) out.insert(as_block(s)->label);
    return out;
}

static Value load_of(const Program& p, const Place& at, const Access& a) { return load(a.tensor, buffer_at(p, at, a.tensor)->type, a.subscripts); }

Value OnlineChain::top_at(const IndexMap& words) const {
    const Value m = exponential().vals[0];
    std::vector<Index> at;
    for (const Index& e : top().outs[0].subscripts) at.push_back(substitute(e, words));
    Value out;
    for_each_load(m, [&](const Value& v) {
        if (v->name == top().outs[0].tensor) out = with_source(v, v->name, at);
    });
    return out;
}

std::vector<Stmt> OnlineChain::fixes(const Program& p) const {
    std::vector<Stmt> out;
    for (const OnlineUse& u : uses) {
        if (!corrects) break;
        const Block& b = u.block();
        const Value m = top_at(u.rows), sum = load_of(p, u.at, b.outs[0]);
        Value bad = binary(Op::Eq, m, number(-std::numeric_limits<double>::infinity(), m->type));
        for (const std::vector<Value>* list : {&u.terms.of_sizes, &u.terms.of_guards})
            for (const Value& c : *list) bad = binary(Op::And, bad, c);
        Block fix{unique_name(p, b.label + ".fix"), axes_of_kind(b, true), b.outs, Monoid::None, {select(bad, number(std::numeric_limits<double>::quiet_NaN(), sum->type), sum)}, without(b.guards, reduced_names(b))};
        out.push_back(make_stmt(u.at.stmt->loc, std::move(fix)));
    }
    return out;
}

// ---- the checks

namespace {

const Body& sequence_of(const Program& p, const Stmt& s, const std::vector<Stmt>& above) {
    if (!above.empty())
        for (const Body* b : bodies_of(above.back()))
            if (std::ranges::find(*b, s) != b->end()) return *b;
    return p.body;
}

Value normalised(const Value& v) { return map_parts(v, normalised, normal); }

class Chaining {
  public:
    Chaining(const Program& p, const std::string& top, const std::string& exp, const std::string& axis, std::string code) : p_(p), code_(std::move(code)) {
        c_.max = find_block(p, top), c_.exp = find_block(p, exp), c_.axis = axis;
    }

    OnlineChain run() {
        check_maximum();
        check_exponential();
        find_readers();
        for (OnlineUse& u : c_.uses) check_use(u);
        check_fill(c_.max, -std::numeric_limits<double>::infinity());
        for (const OnlineUse& u : c_.uses) check_fill(u.at, 0);
        collect_group();
        return std::move(c_);
    }

  private:
    void require(bool holds, const char* what, const std::string& message, const std::string& help = {}, Loc loc = {}) const { need(holds, (code_ + what).c_str(), message, help, loc); }
    const Block& top() const { return c_.top(); }
    const Block& exp() const { return c_.exponential(); }
    const std::string& e() const { return exp().outs[0].tensor; }
    const std::string& m() const { return top().outs[0].tensor; }

    void check_maximum() {
        const Axis* a = axis_of(top(), c_.axis);
        require(top().monoid == Monoid::Max && a && a->kind == AxisKind::Red && reduced_names(top()).size() == 1, ".max", fmt::format("`{}` is not a maximum over `{}` alone", top().label, c_.axis), {}, c_.max.stmt->loc);
        require(is_float(top().vals[0]->type) && !is_scatter(top()) && top().outs[0].version.empty(), ".max", fmt::format("`{}` is not a maximum of floats in a plain buffer", top().label), {}, c_.max.stmt->loc);
        require(c_.max.role == c_.exp.role && c_.max.above == c_.exp.above, ".place", fmt::format("`{}` and `{}` are not in one sequence", top().label, exp().label), "fuse the loops around them", c_.exp.stmt->loc);
        seq_ = sequence_of(p_, c_.max.stmt, c_.max.above);
        require(order_of(c_.exp.stmt) < seq_.size() && order_of(c_.max.stmt) < order_of(c_.exp.stmt), ".place", fmt::format("`{}` does not follow `{}` in one sequence", exp().label, top().label), {}, c_.exp.stmt->loc);
    }
    size_t order_of(const Stmt& s) const { return static_cast<size_t>(std::ranges::find(seq_, s) - seq_.begin()); }

    void check_exponential() {
        const Axis* a = axis_of(exp(), c_.axis);
        const bool one = exp().monoid == Monoid::None && exp().outs.size() == 1 && exp().outs[0].version.empty() && a;
        const auto law = one ? law_of(exp().vals[0]) : std::nullopt;
        const Value raw = law ? law->difference->args[1] : nullptr, inner = raw ? unsafe(raw) : nullptr, reference = inner ? inner : raw;
        const bool reads_top = reference && reference->op == Op::Load && reference->name == m() && reference->args.empty();
        require(reads_top, ".law", fmt::format("`{}` is not exp(t - {}): no factor turns an old value into a new one", exp().label, m()), {}, c_.exp.stmt->loc);
        std::set<std::string> own;
        for (const Index& x : exp().outs[0].subscripts) require(x->op == IndexOp::Name && (!axis_of(exp(), x->name) || own.insert(x->name).second), ".law", fmt::format("`{}` is not subscripted by axes", e()), {}, c_.exp.stmt->loc);
        require(own.size() == exp().axes.size(), ".law", fmt::format("`{}` is not subscripted by all its axes", e()), {}, c_.exp.stmt->loc);
        for (size_t d = 0; d < reference->subscripts.size(); ++d) {
            const Index& x = top().outs[0].subscripts[d];
            if (x->op == IndexOp::Name && axis_of(top(), x->name)) c_.rows[x->name] = reference->subscripts[d];
            else require(same(x, reference->subscripts[d]), ".law", fmt::format("`{}` reads another cell of `{}` than `{}` writes", exp().label, m(), top().label), {}, c_.exp.stmt->loc);
            require(!mentions(reference->subscripts[d], c_.axis), ".law", fmt::format("`{}` reads `{}` by `{}`", exp().label, m(), c_.axis), {}, c_.exp.stmt->loc);
        }
        require(c_.rows.size() + 1 == top().axes.size() && equal(normalised(substitute(top().vals[0], c_.rows)), normalised(law->difference->args[0])), ".law",
                fmt::format("`{}` is the maximum of {}, but `{}` subtracts it from {}", top().label, print(top().vals[0]), exp().label, print(law->difference->args[0])), {}, c_.exp.stmt->loc);
        c_.corrects = !inner && !law->left_out;
    }

    void find_readers() {
        const Decl& d = *buffer_at(p_, c_.exp, e());
        require(d.scope != Scope::Out && !steers_(), ".escapes", fmt::format("`{}` is an output, or steers the program", e()), {}, c_.exp.stmt->loc);
        for_each_place(p_, [&](const Place& x) {
            if (!as_block(x.stmt) || x.stmt == c_.exp.stmt || !touched(x.stmt).contains(e())) return;
            require(!written(x.stmt).contains(e()), ".escapes", fmt::format("`{}` writes `{}`, too", block_of(x).label, e()), {}, x.stmt->loc);
            const Axis* a = axis_of(block_of(x), c_.axis);
            const bool sums = a && a->kind == AxisKind::Red && block_of(x).monoid == Monoid::Sum && order_of(x.stmt) < seq_.size();
            if (sums) c_.uses.push_back({x, {}, {}});
            else c_.escapes.push_back(x);
        });
        require(!c_.uses.empty(), ".linear", fmt::format("no sum over `{}` reads `{}`", c_.axis, e()), {}, c_.exp.stmt->loc);
    }
    bool steers_() const { return steers(p_, e()); }

    void check_use(OnlineUse& u) const {
        const Block& b = u.block();
        const Value x = linear_load(u);
        IndexMap words;
        for (size_t d = 0; d < x->subscripts.size(); ++d) {
            const Index& own = exp().outs[0].subscripts[d];
            if (axis_of(exp(), own->name)) words[own->name] = x->subscripts[d];
            else require(same(own, x->subscripts[d]), ".linear", fmt::format("`{}` reads another row of `{}`", b.label, e()), {}, u.at.stmt->loc);
        }
        require(is_name(words.at(c_.axis), c_.axis), ".linear", fmt::format("`{}` reads `{}` by other words than `{}`", b.label, e(), c_.axis), {}, u.at.stmt->loc);
        for (const auto& [axis, word] : c_.rows) {
            u.rows[axis] = substitute(word, words);
            require(!meet(names_in(u.rows[axis]), reduced_names(b)), ".linear", fmt::format("`{}` sums over rows, which have maxima of their own", b.label), {}, u.at.stmt->loc);
        }
        check_guards(u, words);
        Facts f = facts_at(p_, u.at.above);
        for (const Axis& a : axes_of_kind(b, true)) f.add_range(a.name, a.base, a.size);
        for (const Value& g : without(b.guards, reduced_names(b))) f.add(g);
        u.terms = some_term(b, f);
        require(u.terms.known || !c_.corrects, ".guard", fmt::format("it is not known where `{}` has a term: a guard is no bound of one axis", b.label), {}, u.at.stmt->loc);
    }

    Value linear_load(const OnlineUse& u) const {
        const Block& b = u.block();
        require(b.outs.size() == 1 && !is_scatter(b) && b.outs[0].version.empty() && is_float(b.vals[0]->type), ".linear", fmt::format("`{}` is not one sum of floats", b.label), {}, u.at.stmt->loc);
        const Factors f = factors(b.vals[0]);
        Value found;
        int others = 0;
        for (const Value& v : f.num) {
            Value x = v;
            while (x->op == Op::Cast && is_float(x->type) && is_float(x->args[0]->type)) x = x->args[0];
            if (x->op == Op::Load && x->name == e() && !found && x->args.empty()) found = x;
            else for_each_load(v, [&](const Value& l) { others += l->name == e(); });
        }
        for (const Value& v : f.den) for_each_load(v, [&](const Value& l) { others += l->name == e(); });
        for (const Value& g : b.guards) for_each_load(g, [&](const Value& l) { others += l->name == e(); });
        require(found && others == 0, ".linear", fmt::format("`{}` is not linear in `{}`", b.label, e()), {}, u.at.stmt->loc);
        return found;
    }

    /// The sum leaves out only terms that are -inf, and none that the maximum has not seen.
    void check_guards(const OnlineUse& u, const IndexMap& words) const {
        std::vector<Value> seen;
        for (const Value& g : top().guards) {
            seen.push_back(substitute(substitute(g, c_.rows), words));
            const bool both = std::ranges::any_of(u.block().guards, [&](const Value& x) { return agrees(x, seen.back()); });
            require(both, ".guard", fmt::format("`{}` has no guard {}, as `{}` has", u.block().label, describe(seen.back()), top().label), {}, u.at.stmt->loc);
        }
        const Value t = substitute(substitute(top().vals[0], c_.rows), words);
        for (const Value& g : u.block().guards) {
            if (!mentions(g, c_.axis) || std::ranges::any_of(seen, [&](const Value& x) { return agrees(x, g); })) continue;
            require(minus_infinity_unless(p_, g, t), ".guard", fmt::format("`{}` leaves out terms where {} fails, which need not be -inf", u.block().label, describe(g)), {}, u.at.stmt->loc);
        }
    }

    /// The state starts from the identity, by a statement of the same sequence, wherever it is corrected; nothing else adds to it before.
    void check_fill(const Place& at, double identity) const {
        const Block& b = block_of(at);
        const Stmt fill = fill_of(p_, b);
        require(fill && order_of(fill) < order_of(at.stmt) && as_block(fill)->vals[0]->op == Op::Const && as_block(fill)->vals[0]->number == identity, ".fill", fmt::format("`{}` does not start from {} in the same sequence", b.label, identity), {}, at.stmt->loc);
        const Block& f = *as_block(fill);
        const std::vector<Value> par = without(b.guards, reduced_names(b));
        bool covers = same(f.outs[0].subscripts, b.outs[0].subscripts);
        for (const Value& g : f.guards) covers &= contains(par, g);
        for (const Axis& a : f.axes) {
            const Axis* mine = axis_of(b, a.name);
            covers &= mine && same(mine->base, a.base) && same(mine->size, a.size);
        }
        require(covers, ".fill", fmt::format("`{}` does not fill all that `{}` would correct", f.label, b.label), {}, fill->loc);
        for (const Stmt& s : seq_) {
            if (s == at.stmt) break;
            require(s == fill || order_of(s) < order_of(fill) || !written(s).contains(b.outs[0].tensor), ".fill", fmt::format("`{}` changes `{}` before `{}` does", *labels_in(s).begin(), b.outs[0].tensor, b.label), {}, s->loc);
        }
    }

    // ---- what goes along

    bool must(const Stmt& s) const { return s == c_.max.stmt || s == c_.exp.stmt || c_.is_use(s); }

    bool fits(const Stmt& s) const {
        const Block* b = as_block(s);
        const Axis* a = b ? axis_of(*b, c_.axis) : nullptr;
        const Axis& main = *axis_of(top(), c_.axis);
        return a && same(a->base, main.base) && same(a->size, main.size) && a->kind != AxisKind::Scan && !is_scatter(*b);
    }

    /// Statements that compute what the group reads, as far as they can share its loop.
    void collect_group() {
        for (const Stmt& s : seq_)
            if (must(s)) require(fits(s), ".range", fmt::format("the range of `{}` in `{}` differs from that in `{}`", c_.axis, as_block(s)->label, top().label), {}, s->loc);
        std::set<Stmt> out;
        for (bool grown = true; grown;) {
            close_over(out);
            grown = drop_one(out);
        }
        for (size_t i = 0; i < c_.group.size(); ++i)
            for (size_t j = i + 1; j < c_.group.size(); ++j) {
                const Block &a = *as_block(c_.group[i]), &b = *as_block(c_.group[j]);
                const std::string buffer = exempt(i, j) ? "" : carried(a, b, c_.axis);
                require(buffer.empty(), ".carried", fmt::format("`{}` needs `{}` of `{}` from other values of `{}`", b.label, buffer, a.label, c_.axis), {}, c_.group[j]->loc);
            }
        for (const Stmt& a : c_.group)
            for (const Stmt& b : c_.group)
                if (must(a) && !must(b) && order_of(a) < order_of(b)) require(conflicts({a}, {b}).empty(), ".order", fmt::format("`{}` cannot go before `{}`", as_block(b)->label, as_block(a)->label), {}, b->loc);
    }
    bool exempt(size_t i, size_t j) const { return c_.group[i] == c_.max.stmt && c_.group[j] == c_.exp.stmt; }

    void close_over(const std::set<Stmt>& left_out) {
        std::set<Stmt> in;
        for (const Stmt& s : seq_)
            if (must(s)) in.insert(s);
        for (size_t i = seq_.size(); i-- > 0;) {
            const Stmt& s = seq_[i];
            if (in.contains(s) || left_out.contains(s) || !fits(s) || touched(s).contains(e())) continue;
            std::set<std::string> wanted;
            for (size_t k = i + 1; k < seq_.size(); ++k)
                if (in.contains(seq_[k])) wanted.merge(read(seq_[k]));
            wanted.erase(m());
            if (meet(written(s), wanted) && !is_state_fill(s)) in.insert(s);
        }
        c_.group.clear();
        std::ranges::copy_if(seq_, std::back_inserter(c_.group), [&](const Stmt& s) { return in.contains(s); });
    }
    bool is_state_fill(const Stmt& s) const {
        return std::ranges::any_of(c_.uses, [&](const OnlineUse& u) { return written(s).contains(u.block().outs[0].tensor); });
    }

    /// Leaves out one statement that needs to be done before the loop, or whose input is.
    bool drop_one(std::set<Stmt>& left_out) const {
        for (size_t i = 0; i < c_.group.size(); ++i) {
            const Stmt& a = c_.group[i];
            if (must(a)) continue;
            bool drop = std::ranges::any_of(seq_, [&](const Stmt& s) { return left_out.contains(s) && order_of(s) > order_of(a) && !conflicts({a}, {s}).empty(); });
            for (size_t j = i + 1; j < c_.group.size() && !drop; ++j) drop = !carried(*as_block(a), *as_block(c_.group[j]), c_.axis).empty();
            if (drop) return left_out.insert(a).second;
        }
        return false;
    }

    const Program& p_;
    std::string code_;
    OnlineChain c_;
    Body seq_;
};

}  // namespace

OnlineChain online_chain(const Program& p, const std::string& top, const std::string& exp, const std::string& axis, const std::string& code) { return Chaining(p, top, exp, axis, code).run(); }

}  // namespace acu::ir::pass
