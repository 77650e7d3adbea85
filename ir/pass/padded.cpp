#include "ir/pass/padded.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace acu::ir::pass {

static Value through_casts(const Value& v) { return v->op == Op::Cast && is_float(v->type) && is_float(v->args[0]->type) ? through_casts(v->args[0]) : v; }

std::vector<Factor> factors_at(const Program& p, const Place& at, const std::vector<Value>& values) {
    std::vector<Factor> out;
    for (const Value& v : values) {
        Factor f{through_casts(v)};
        if (f.load->op == Op::Load) f.decl = buffer_at(p, at, f.load->name);
        for (const Stmt& s : block_stmts(p.body))
            if (f.decl && written(s).contains(f.decl->name)) f.writers.push_back(*as_block(s));
        out.push_back(std::move(f));
    }
    return out;
}

/// In text order, do the statements fill all of the buffer before anything else happens to it? Both branches of a condition may do so.
static bool filled_in(const Body& body, const Decl& d) {
    for (const Stmt& s : body) {
        if (!touched(s).contains(d.name)) continue;
        if (const Block* b = as_block(s)) return b->monoid == Monoid::None && b->guards.empty() && fills_whole(*b, d);
        const auto* i = std::get_if<If>(&s->node);
        return i && filled_in(i->body, d) && filled_in(i->otherwise, d);
    }
    return false;
}

static const Loop* owner_of(const Place& at, const Decl& d) {
    for (size_t i = at.above.size(); i-- > 0;)
        if (const Loop* l = as_loop(at.above[i]); l && std::ranges::find(l->allocs, d.name, &Decl::name) != l->allocs.end()) return l;
    return nullptr;
}

std::string not_total(const Program& p, const Place& at, const Factor& f) {
    const Loop* owner = f.decl ? owner_of(at, *f.decl) : nullptr;
    if (!owner) return "is not a buffer of a loop around";
    if (f.decl->ring.versions || !f.load->args.empty()) return "is a ring or has a default";
    if (std::ranges::any_of(f.writers, [](const Block& b) { return b.monoid == Monoid::None && !b.guards.empty(); }) || !filled_in(owner->body, *f.decl)) return "is not filled as a whole";
    Block b = block_of(at);
    b.guards.clear();
    const Facts known = facts_in(p, at.above, b);
    for (size_t d = 0; d < f.decl->dims.size(); ++d) {
        const Index& e = f.load->subscripts[d];
        const Window& w = f.decl->dims[d];
        const Axis* a = e->op == IndexOp::Name ? axis_of(b, e->name) : nullptr;
        if (a && same(a->base, w.origin) && same(a->size, w.size)) continue;
        if (!known.nonnegative(e - w.origin) || !known.less(e, w.origin + w.size)) return fmt::format("may be read outside its window at {}", print(e));
    }
    return {};
}

static bool is_zero(const Value& v) { return v->op == Op::Const && v->number == 0 && v->integer == 0; }

static Value twice_not(const Value& v) { return v->op == Op::Not && v->args[0]->op == Op::Not ? twice_not(v->args[0]->args[0]) : v; }

bool agrees(const Value& first, const Value& second) {
    const Value a = twice_not(first), b = twice_not(second);
    const auto x = as_below(a), y = as_below(b);
    return equal(a, b) || (x && y && same(x->left - x->right, y->left - y->right));
}
bool is_minus_infinity(const Value& v) { return v->op == Op::Const && is_float(v->type) && v->number == -std::numeric_limits<double>::infinity(); }

Value safe(const Value& m) {
    const Value bottom = number(-std::numeric_limits<double>::infinity(), m->type);
    return select(binary(Op::Eq, m, bottom), number(0, m->type), m);
}
Value unsafe(const Value& v) {
    const bool shape = v->op == Op::Select && is_zero(v->args[1]) && v->args[0]->op == Op::Eq && is_minus_infinity(v->args[0]->args[1]) && equal(v->args[0]->args[0], v->args[2]);
    return shape ? v->args[2] : nullptr;
}

/// Whenever `c` holds, so does `g`: one of its parts says the same.
static bool implies(const Value& c, const Value& g) { return agrees(c, g) || (c->op == Op::And && (implies(c->args[0], g) || implies(c->args[1], g))); }

/// `v` is 0, or -inf, wherever `g` fails.
class Outside {
  public:
    Outside(const Program& p, const Value& g) : program_(p), guard_(g) {}

    bool zero(const Value& v) const {
        if (is_zero(v)) return true;
        if (v->op == Op::Select && is_zero(v->args[2]) && implies(v->args[0], guard_)) return true;
        if (v->op == Op::Select) return zero(v->args[1]) && zero(v->args[2]);
        if (v->op == Op::Call && (v->name == "exp" || v->name == "exp2")) return v->args[0]->op == Op::Sub && infinite(v->args[0]->args[0]) && unsafe(v->args[0]->args[1]);
        if (v->op == Op::Cast) return is_float(v->type) && zero(v->args[0]);
        if (v->op != Op::Load) return false;
        if (!v->args.empty() && !is_zero(v->args[0])) return false;
        if (!v->args.empty() && beyond(v)) return true;
        const auto inner = written_value(program_, v);
        return inner && zero(*inner);
    }

    bool infinite(const Value& v) const {
        if (is_minus_infinity(v)) return true;
        if (v->op == Op::Cast) return is_float(v->type) && infinite(v->args[0]);
        if (v->op == Op::Select) {
            const bool no = infinite(v->args[2]) && (implies(v->args[0], guard_) || infinite(v->args[1]));
            return no || (infinite(v->args[1]) && agrees(unary(Op::Not, v->args[0]), guard_));
        }
        const auto inner = v->op == Op::Load && v->args.empty() ? written_value(program_, v) : std::nullopt;
        return inner && infinite(*inner);
    }

    /// What the only statement that writes the loaded buffer, by `=`, puts into the cell that is read.
    static std::optional<Value> written_value(const Program& p, const Value& load) {
        std::optional<Value> out;
        for (const Stmt& s : block_stmts(p.body)) {
            if (!written(s).contains(load->name)) continue;
            const Block& b = *as_block(s);
            if (out || b.monoid != Monoid::None || b.outs.size() != 1) return {};
            out = value_at(b, load);
            if (!out) return {};
        }
        return out;
    }
    static std::optional<Value> value_at(const Block& writer, const Value& load) {
        IndexMap here;
        for (size_t d = 0; d < load->subscripts.size(); ++d) {
            const Index& e = writer.outs[0].subscripts[d];
            if (e->op != IndexOp::Name || !axis_of(writer, e->name)) {
                if (!same(e, load->subscripts[d])) return {};
                continue;
            }
            here[e->name] = load->subscripts[d];
        }
        for (const Axis& a : writer.axes)
            if (!here.contains(a.name)) return {};
        return substitute(writer.vals[0], here);
    }

  private:
    /// The load is outside its tensor.
    bool beyond(const Value& v) const {
        const Decl* d = program_.find(v->name);
        const auto b = as_below(guard_);
        for (size_t i = 0; d && b && i < d->dims.size(); ++i)
            if (same(b->left - b->right, v->subscripts[i] - d->dims[i].origin - d->dims[i].size)) return true;
        return false;
    }

    const Program& program_;
    const Value& guard_;
};

bool zero_as_written(const Program& p, const Value& condition, const Value& load) {
    const auto value = Outside::written_value(p, load);
    return value && Outside(p, condition).zero(*value);
}

bool zero_unless(const Program& p, const Value& condition, const Factor& f) {
    const Outside outside(p, condition);
    return !f.writers.empty() && std::ranges::all_of(f.writers, [&](const Block& w) {
        const auto v = w.outs.size() == 1 ? Outside::value_at(w, f.load) : std::nullopt;
        return v && outside.zero(*v);
    });
}

bool minus_infinity_unless(const Program& p, const Value& condition, const Value& v) { return Outside(p, condition).infinite(v); }

}  // namespace acu::ir::pass
