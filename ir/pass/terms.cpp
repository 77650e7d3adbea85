#include "ir/pass/terms.h"

#include <algorithm>

namespace acu::ir::pass {

std::set<std::string> reduced_names(const Block& b) {
    std::set<std::string> out;
    for (const Axis& a : axes_of_kind(b, false)) out.insert(a.name);
    return out;
}

std::vector<Index> names_of(const std::vector<Axis>& axes) {
    std::vector<Index> out;
    for (const Axis& a : axes) out.push_back(name(a.name));
    return out;
}

std::vector<Window> windows_of(const std::vector<Axis>& axes) {
    std::vector<Window> out;
    for (const Axis& a : axes) out.push_back({a.base, a.size});
    return out;
}

namespace {

/// low <= axis < high
struct Bounds {
    std::vector<Value> low, high;
};

Value plus(const Value& v, const Index& e) {
    if (v->op == Op::OfIndex) return of_index(normal(v->subscripts[0] + e));
    if (v->op == Op::Const && is_int(v->type)) return of_index(normal(constant(v->integer) + e));
    return is_const(e, 0) ? v : binary(Op::Add, v, of_index(e));
}

class Finder {
  public:
    Finder(const Block& b, const Facts& f) : facts_(f), reduced_(reduced_names(b)) {
        for (const Axis& a : axes_of_kind(b, false)) bounds_[a.name];
        for (const Value& g : b.guards) read(g);
        for (const Axis& a : axes_of_kind(b, false)) {
            if (!facts_.less(constant(0), a.size)) out_.of_sizes.push_back(below(constant(0), a.size));
            close(a);
        }
    }
    Terms result() { return std::move(out_); }

  private:
    void read(const Value& g) {
        if (!meet(names_in(g), reduced_)) return;
        if (g->op == Op::And) return read(g->args[0]), read(g->args[1]);
        if (g->op == Op::Not && g->args[0]->op == Op::Not) return read(g->args[0]->args[0]);
        if (g->op == Op::Not && g->args[0]->op == Op::Or) return read(unary(Op::Not, g->args[0]->args[0])), read(unary(Op::Not, g->args[0]->args[1]));
        switch (g->op) {
            case Op::Lt: return bound(g->args[0], g->args[1], 0);
            case Op::Le: return bound(g->args[0], g->args[1], 1);
            case Op::Gt: return bound(g->args[1], g->args[0], 0);
            case Op::Ge: return bound(g->args[1], g->args[0], 1);
            default: out_.known = false;
        }
    }

    /// a < b + more
    void bound(const Value& a, const Value& b, int64_t more) {
        const auto whole = as_below(binary(Op::Lt, a, b));
        if (whole) return difference(whole->left - whole->right - constant(more));
        const bool left = a->op == Op::OfIndex && !meet(names_in(b), reduced_), right = b->op == Op::OfIndex && !meet(names_in(a), reduced_);
        if (left) return one(a->subscripts[0], [&](const Index& rest) { return plus(b, constant(more) - rest); }, true);
        if (right) return one(b->subscripts[0], [&](const Index& rest) { return plus(a, constant(1 - more) - rest); }, false);
        out_.known = false;
    }

    /// e < 0
    void difference(const Index& e) {
        for (const bool upper : {true, false})
            for (const std::string& n : reduced_)
                if (const auto x = affine(e, n); x && is_const(x->coefficient, upper ? 1 : -1) && !meet(names_in(x->rest), reduced_)) {
                    if (upper) bounds_[n].high.push_back(of_index(normal(constant(0) - x->rest)));
                    else bounds_[n].low.push_back(of_index(normal(x->rest + constant(1))));
                    return;
                }
        out_.known = false;
    }

    template <class F>
    void one(const Index& e, F bound_of, bool upper) {
        for (const std::string& n : reduced_) {
            const auto x = affine(e, n);
            if (!x || !is_const(x->coefficient, 1) || meet(names_in(x->rest), reduced_)) continue;
            (upper ? bounds_[n].high : bounds_[n].low).push_back(bound_of(x->rest));
            return;
        }
        out_.known = false;
    }

    void close(const Axis& a) {
        Bounds b = bounds_[a.name];
        b.low.insert(b.low.begin(), of_index(normal(a.base)));
        b.high.insert(b.high.begin(), of_index(normal(a.base + a.size)));
        for (size_t i = 0; i < b.low.size(); ++i)
            for (size_t j = 0; j < b.high.size(); ++j) {
                if (i == 0 && j == 0) continue;
                const Value c = binary(Op::Lt, b.low[i], b.high[j]);
                if (!proven(facts_, c) && !contains(out_.of_guards, c)) out_.of_guards.push_back(c);
            }
    }

    const Facts& facts_;
    std::set<std::string> reduced_;
    std::map<std::string, Bounds> bounds_;
    Terms out_;
};

}  // namespace

Terms some_term(const Block& b, const Facts& facts) { return Finder(b, facts).result(); }

}  // namespace acu::ir::pass
