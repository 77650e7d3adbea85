#include "ir/pass/window.h"

#include <algorithm>

namespace acu::ir::pass {

std::vector<Stmt> loops_inside(const std::vector<Stmt>& above, const Stmt& home) {
    const auto at = std::ranges::find(above, home);
    return at == above.end() ? std::vector<Stmt>{} : loops_of({at + 1, above.end()});
}

std::vector<Stmt> common_path(const Place& a, const Place& b) {
    const auto [end, other] = std::ranges::mismatch(a.above, b.above);
    return {a.above.begin(), end};
}

static bool holds(const Body& body, const Stmt& s) {
    return std::ranges::any_of(body, [&](const Stmt& x) {
        return x == s || std::ranges::any_of(bodies_of(x), [&](const Body* inner) { return holds(*inner, s); });
    });
}

bool same_branch(const Place& a, const Place& b) {
    const std::vector<Stmt> path = common_path(a, b);
    if (path.empty() || a.role != b.role) return a.role == b.role;
    const auto* i = std::get_if<If>(&path.back()->node);
    return !i || holds(i->body, a.stmt) == holds(i->body, b.stmt);
}

namespace {

/// The names that an index expression may run over, with their ranges, the innermost first.
struct Runner {
    std::string name;
    Index base, size;
};

std::vector<Runner> runners(const Block& b, const std::vector<Stmt>& loops) {
    std::vector<Runner> out;
    for (const Axis& a : b.axes) out.push_back({a.name, a.base, a.size});
    for (size_t i = loops.size(); i-- > 0;) out.push_back({as_loop(loops[i])->var, constant(0), as_loop(loops[i])->extent});
    return out;
}

bool closed(const Window& w, const Block& b, const std::vector<Stmt>& loops) {
    std::set<std::string> used = names_in(w.origin);
    used.merge(names_in(w.size));
    for (const Stmt& s : loops)
        for (const Let& x : as_loop(s)->lets)
            if (used.contains(x.name)) return false;
    return !mentions_load(w.origin) && !mentions_load(w.size) && std::ranges::none_of(runners(b, loops), [&](const Runner& r) { return used.contains(r.name); });
}

}  // namespace

std::optional<Window> dense(const Index& e, const Block& b, const std::vector<Stmt>& loops) {
    std::vector<Runner> left = runners(b, loops);
    Window w{normal(e), constant(1)};
    for (bool found = true; found;) {
        found = false;
        for (const Runner& r : left) {
            const auto a = affine(w.origin, r.name);
            if (!a || !mentions(w.origin, r.name)) continue;
            const bool one = constant_value(r.size) == 1;
            if (!one && !same(a->coefficient, w.size)) continue;
            w = {normal(a->rest + a->coefficient * r.base), one ? w.size : normal(r.size * w.size)};
            std::erase_if(left, [name = r.name](const Runner& x) { return x.name == name; });
            found = true;
            break;
        }
    }
    return closed(w, b, loops) ? std::optional(w) : std::nullopt;
}

std::optional<Window> span(const Index& e, const Block& b, const std::vector<Stmt>& loops) {
    Window w{normal(e), constant(1)};
    for (const Runner& r : runners(b, loops)) {
        if (!mentions(w.origin, r.name)) continue;
        const auto a = affine(w.origin, r.name);
        if (!a) return {};
        const Index back = normal(constant(0) - a->coefficient), last = r.base + r.size - constant(1);
        const bool up = Facts().obviously_nonnegative(a->coefficient);
        if (!up && !Facts().obviously_nonnegative(back)) return {};
        w = {normal(a->rest + a->coefficient * (up ? r.base : last)), normal(w.size + (r.size - constant(1)) * (up ? a->coefficient : back))};
    }
    return closed(w, b, loops) ? std::optional(w) : std::nullopt;
}

Facts facts_in(const Program& p, const std::vector<Stmt>& above, const Block& b) {
    Facts f = facts_at(p, above);
    for (const Axis& a : b.axes) f.add_range(a.name, a.base, a.size);
    for (const Value& g : b.guards) f.add(g);
    return f;
}

bool proven(const Facts& f, const Value& condition) {
    if (condition->op == Op::And) return proven(f, condition->args[0]) && proven(f, condition->args[1]);
    const auto b = as_below(condition);
    return b && f.less(b->left, b->right);
}

bool fills_whole(const Block& b, const Decl& d) {
    if (b.outs.size() != 1 || b.outs[0].tensor != d.name || b.outs[0].subscripts.size() != d.dims.size()) return false;
    std::set<std::string> used;
    for (size_t i = 0; i < d.dims.size(); ++i) {
        const Index& word = b.outs[0].subscripts[i];
        const Axis* a = word->op == IndexOp::Name ? axis_of(b, word->name) : nullptr;
        if (!a || !used.insert(a->name).second || !same(a->base, d.dims[i].origin) || !same(a->size, d.dims[i].size)) return false;
    }
    return true;
}

bool steers(const Program& p, const std::string& buffer) {
    std::set<std::string> out;
    const auto index = [&](const Index& e) { loaded_tensors(e, out); };
    const auto inside = [&](const Value& v) {
        visit(v, [&](const ValueNode& n) {
            std::ranges::for_each(n.subscripts, index);
            std::ranges::for_each(n.version, index);
        });
    };
    for_each_place(p, [&](const Place& x) {
        match(
            x.stmt,
            [&](const Block& b) {
                for (const Axis& a : b.axes) index(a.base), index(a.size);
                for (const Access& o : b.outs) std::ranges::for_each(o.subscripts, index);
                std::ranges::for_each(b.vals, inside);
                std::ranges::for_each(b.guards, inside);
            },
            [&](const Loop& l) {
                index(l.extent);
                for (const Let& y : l.lets) index(y.value);
            },
            [&](const If& i) {
                inside(i.condition);
                for_each_load(i.condition, [&](const Value& v) { out.insert(v->name); });
            },
            [&](const Roles&) {}, [&](const Sync&) {});
    });
    return out.contains(buffer);
}

Scope scope_named(const std::string& word) {
    for (const Scope s : {Scope::Shared, Scope::Cluster})
        if (name_of(s) == word) return s;
    return Scope::Register;
}

const Loop* divides_scope(const std::vector<Stmt>& loops, Scope scope) {
    for (const Stmt& s : loops) {
        const LoopKind k = as_loop(s)->kind;
        if (k == LoopKind::Grid || k == LoopKind::Thread || (k == LoopKind::Cluster && scope != Scope::Cluster)) return as_loop(s);
    }
    return nullptr;
}

}  // namespace acu::ir::pass
