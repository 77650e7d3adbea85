#include "ir/pass/span.h"

#include <algorithm>

namespace acu::ir::pass {
namespace {

void collect(const Body& body, std::vector<Stmt>& loops, std::vector<Inside>& out) {
    for (const Stmt& s : body) {
        if (as_block(s)) out.push_back({s, loops});
        const bool loop = as_loop(s) != nullptr;
        if (loop) loops.push_back(s);
        for (const Body* inner : bodies_of(s)) collect(*inner, loops, out);
        if (loop) loops.pop_back();
    }
}

using Bounds = std::optional<Interval>;

Bounds through(const Index& e, const std::string& name, const Interval& range, const Facts& facts);

Bounds sum(const Index& e, const std::string& name, const Interval& range, const Facts& facts) {
    const auto a = through(e->args[0], name, range, facts), b = through(e->args[1], name, range, facts);
    if (!a || !b) return {};
    if (e->op == IndexOp::Add) return Interval{a->low + b->low, a->high + b->high};
    return Interval{a->low - b->high, a->high - b->low};
}

/// Floor division by something that is never negative, min and max grow with their operands.
Bounds monotone(const Index& e, const std::string& name, const Interval& range, const Facts& facts) {
    if (e->op == IndexOp::Div && (mentions(e->args[1], name) || !facts.nonnegative(e->args[1]))) return {};
    const auto a = through(e->args[0], name, range, facts), b = through(e->args[1], name, range, facts);
    if (!a || !b) return {};
    const Index low = e->op == IndexOp::Div && is_const(a->low, 0) ? a->low : binary(e->op, a->low, b->low);
    return Interval{low, binary(e->op, a->high, b->high)};
}

Bounds through(const Index& e, const std::string& name, const Interval& range, const Facts& facts) {
    if (!mentions(e, name)) return Interval{e, e};
    if (const auto x = affine(e, name)) {
        const bool up = facts.nonnegative(x->coefficient);
        if (!up && !facts.nonnegative(constant(0) - x->coefficient)) return {};
        const Index first = x->coefficient * range.low + x->rest, last = x->coefficient * range.high + x->rest;
        return up ? Interval{first, last} : Interval{last, first};
    }
    switch (e->op) {
        case IndexOp::Add:
        case IndexOp::Sub: return sum(e, name, range, facts);
        case IndexOp::Div:
        case IndexOp::Min:
        case IndexOp::Max: return monotone(e, name, range, facts);
        case IndexOp::Mod:
            if (mentions(e->args[1], name) || !facts.less(constant(0), e->args[1])) return {};
            return Interval{constant(0), e->args[1] - constant(1)};
        default: return {};
    }
}

bool eliminate(Interval& x, const std::string& name, const Index& base, const Index& size, const Facts& facts) {
    const Interval range{base, base + size - constant(1)};
    const auto low = through(normal(x.low), name, range, facts), high = through(normal(x.high), name, range, facts);
    if (!low || !high) return false;
    x = {low->low, high->high};
    return true;
}

Index without_lets(Index e, const Loop& l) {
    for (size_t i = l.lets.size(); i-- > 0;) e = ir::substitute(e, {{l.lets[i].name, l.lets[i].value}});
    return e;
}

/// A constant that the expression does not pass, by its form alone.
std::optional<int64_t> most(const Index& e) {
    if (is_const(e)) return e->value;
    if (e->args.size() != 2 || e->op == IndexOp::Sub || e->op == IndexOp::Mod) return {};
    const auto a = most(e->args[0]), b = most(e->args[1]);
    if (e->op == IndexOp::Min && (!a || !b)) return a ? a : b;
    const bool grows = e->op == IndexOp::Min || e->op == IndexOp::Max || e->op == IndexOp::Add || (e->op == IndexOp::Div && is_const(e->args[1]) && e->args[1]->value > 0);
    return a && b && grows ? std::optional(apply(e->op, *a, *b)) : std::nullopt;
}
/// The length of a loop, or a constant that it does not pass, so that boxes have constant sizes.
Index at_most(const Index& extent) {
    const auto c = most(extent);
    return c ? constant(*c) : extent;
}

/// Where a touch lies, as coefficient*var + rest .. coefficient*var + rest, a dimension at a time.
struct Footprint {
    std::vector<std::optional<Interval>> dims;
};

Footprint footprint_of(const Touch& t, const Inside& at, const Loop& l, const Facts& facts) {
    Footprint f;
    for (const Index& e : t.subscripts) {
        auto x = interval_of(e, at, facts);
        if (x) x = Interval{normal(without_lets(x->low, l)), normal(without_lets(x->high, l))};
        f.dims.push_back(x);
    }
    return f;
}

/// In dimension d each iteration has a range of its own: the bounds move by one coefficient, and the greatest lies below the least of the next iteration.
bool separated(const std::vector<Footprint>& all, size_t d, const std::string& var, const Facts& facts) {
    Index step;
    std::vector<Interval> rests;
    for (const Footprint& f : all) {
        if (d >= f.dims.size() || !f.dims[d]) return false;
        const auto low = affine(f.dims[d]->low, var), high = affine(f.dims[d]->high, var);
        if (!low || !high || !same(low->coefficient, high->coefficient) || (step && !same(step, low->coefficient))) return false;
        step = low->coefficient;
        rests.push_back({low->rest, high->rest});
    }
    if (!facts.nonnegative(step) || (is_const(step) && step->value == 0)) return false;
    return std::ranges::all_of(rests, [&](const Interval& a) {
        return std::ranges::all_of(rests, [&](const Interval& b) { return facts.less(normal(a.high), normal(b.low + step)); });
    });
}

}  // namespace

std::vector<Inside> blocks_inside(const Loop& outer) {
    std::vector<Inside> out;
    std::vector<Stmt> loops;
    collect(outer.body, loops, out);
    return out;
}

Bounds interval_of(const Index& e, const Inside& at, const Facts& facts) {
    if (mentions_load(e)) return {};
    Interval x{e, e};
    for (const Axis& a : as_block(at.block)->axes)
        if (!eliminate(x, a.name, a.base, a.size, facts)) return {};
    for (size_t i = at.loops.size(); i-- > 0;) {
        const Loop& l = *as_loop(at.loops[i]);
        x = {without_lets(x.low, l), without_lets(x.high, l)};
        if (!eliminate(x, l.var, constant(0), at_most(l.extent), facts)) return {};
    }
    if (mentions_load(x.low) || mentions_load(x.high)) return {};
    return Interval{normal(x.low), normal(x.high)};
}

std::string shared_by_iterations(const Program& p, const Place& place) {
    const Loop& l = loop_of(place);
    std::set<std::string> own;
    for (const Decl& d : l.allocs) own.insert(d.name);
    const std::set<std::string> outputs = written(l.body);
    std::map<std::string, std::vector<Footprint>> all;
    Facts facts = facts_at(p, place.above);
    facts.add_range(l.var, constant(0), l.extent);
    for (const Inside& at : blocks_inside(l)) {
        std::set<std::string> mine = own;
        mine.merge(local_buffers(at.loops));
        for (const Touch& t : touches(*as_block(at.block)))
            if (!mine.contains(t.tensor) && outputs.contains(t.tensor)) all[t.tensor].push_back(t.version.empty() ? footprint_of(t, at, l, facts) : Footprint{});
    }
    for (const auto& [tensor, list] : all) {
        bool fine = false;
        for (size_t d = 0; !fine && d < list[0].dims.size(); ++d) fine = separated(list, d, l.var, facts);
        if (!fine) return tensor;
    }
    return {};
}

Index count_of(const Index& extent, const Facts& facts) { return facts.nonnegative(extent) ? extent : binary(IndexOp::Max, constant(0), extent); }

void add_guard(Block& b, const Value& guard) {
    const auto reads = [](const Value& g) { return !tensors_read(Block{{}, {}, {}, Monoid::None, {g}}).empty(); };
    b.guards.insert(std::ranges::find_if(b.guards, reads), guard);
}

Value in_box(const std::vector<Index>& at, const std::vector<Window>& box) {
    Value out;
    const auto add = [&](const Value& v) { out = out ? binary(Op::And, out, v) : v; };
    for (size_t d = 0; d < at.size(); ++d) {
        add(binary(Op::Le, of_index(box[d].origin), of_index(at[d])));
        add(below(at[d], box[d].origin + box[d].size));
    }
    return out ? out : boolean(true);
}

bool holds_sync(const Stmt& s) {
    return any_inside({s}, [](const Stmt& x) { return std::holds_alternative<Sync>(x->node) || std::holds_alternative<Roles>(x->node); });
}

/// A statement without guards, in a sequence around and before, writes all of it.
static bool written_before(const Program& p, const Place& at, const Decl& d) {
    bool found = false, passed = false;
    for_each_place(p, [&](const Place& x) {
        passed |= x.stmt == at.stmt;
        const Block* w = as_block(x.stmt);
        const bool around = x.above.size() <= at.above.size() && std::equal(x.above.begin(), x.above.end(), at.above.begin()) && std::ranges::all_of(x.above, as_loop);
        if (passed || !w || !around || w->monoid != Monoid::None || !w->guards.empty() || w->outs[0].tensor != d.name) return;
        found |= std::ranges::equal(w->outs[0].subscripts, d.dims, [&](const Index& e, const Window& win) {
            const Axis* a = e->op == IndexOp::Name ? axis_of(*w, e->name) : nullptr;
            return a && same(a->base, win.origin) && same(a->size, win.size);
        });
    });
    return found;
}

bool readable(const Program& p, const Place& at, const Value& v, const Facts& facts) {
    bool fine = true;
    for_each_load(v, [&](const Value& x) {
        const Decl* d = buffer_at(p, at, x->name);
        fine &= d && x->version.empty() && (d->scope == Scope::In || d->scope == Scope::Param || written_before(p, at, *d));
        for (size_t i = 0; fine && i < x->subscripts.size(); ++i) {
            const Index& e = x->subscripts[i];
            const Window& w = d->dims[i];
            fine = !mentions_load(e) && facts.nonnegative(e - w.origin) && facts.less(e, w.origin + w.size);
        }
    });
    return fine;
}

bool loads(const Stmt& s, const std::string& buffer) {
    bool found = false;
    const auto value = [&](const Value& v) {
        for_each_load(v, [&](const Value& x) { found |= x->name == buffer; });
        return v;
    };
    map_expressions(s, value, [](const Index& e) { return e; });
    return found;
}

Program without_buffer(Program p, const std::string& name) {
    const auto named = [&](const Decl& d) { return d.name == name; };
    std::erase_if(p.decls, named);
    return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
        const Loop* l = as_loop(s);
        if (!l || std::ranges::none_of(l->allocs, named)) return {};
        Loop n = *l;
        std::erase_if(n.allocs, named);
        return Body{with_node(s, std::move(n))};
    });
}

std::set<std::string> index_loaded(const Program& p) {
    std::set<std::string> out;
    const auto index = [&](const Index& e) { return loaded_tensors(e, out), e; };
    const std::function<Value(const Value&)> value = [&](const Value& v) {
        visit(v, [&](const ValueNode& n) {
            for (const Index& e : n.subscripts) loaded_tensors(e, out);
            for (const Index& e : n.version) loaded_tensors(e, out);
        });
        return v;
    };
    map_program(p, value, index);
    return out;
}

}  // namespace acu::ir::pass
