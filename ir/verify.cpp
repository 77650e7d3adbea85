#include <fmt/format.h>

#include <algorithm>

#include "ir/program.h"

namespace acu::ir {
namespace {

using Names = std::set<std::string>;

/// One walk over the program with what is in scope; each rule of the table looks at one kind of place.
struct Context {
    const Program& program;
    std::vector<Violation>& found;
    Names names;                                   // dimensions, loop variables, derived names
    std::map<std::string, const Decl*> buffers;    // alive here
    Loc loc;

    void check(bool holds, const char* rule, const std::string& what) const {
        if (!holds) found.push_back({rule, what, loc});
    }
};

void closed(const Context& c, const Index& e, const Names& names, const std::string& where) {
    Names used;
    free_names(e, used);
    for (const std::string& n : used) c.check(names.contains(n), "V3", fmt::format("{}: `{}` is not in scope", where, n));
}

void closed(const Context& c, const Value& v, const Names& names, const std::string& where) {
    Names used;
    free_names(v, used);
    for (const std::string& n : used) c.check(names.contains(n), "V3", fmt::format("{}: `{}` is not in scope", where, n));
}

// ---- rules of a block

void fresh_axes(const Context& c, const Block& b) {
    Names seen;
    for (const Axis& a : b.axes) {
        c.check(!c.names.contains(a.name) && seen.insert(a.name).second, "V2", fmt::format("{}: the axis `{}` shadows a name", b.label, a.name));
        closed(c, a.base, c.names, b.label);
        closed(c, a.size, c.names, b.label);
    }
}

Names with_axes(const Context& c, const Block& b) {
    Names names = c.names;
    for (const Axis& a : b.axes) names.insert(a.name);
    return names;
}

void closed_expressions(const Context& c, const Block& b) {
    const Names names = with_axes(c, b);
    for (const Value& v : b.vals) closed(c, v, names, b.label);
    for (const Value& g : b.guards) {
        closed(c, g, names, b.label);
        c.check(g->type == DType::Bool, "V3", fmt::format("{}: a guard is not a condition", b.label));
    }
    for (const Access& o : b.outs)
        for (const Index& s : o.subscripts) closed(c, s, names, b.label);
}

void axes_and_outs(const Context& c, const Block& b) {
    for (const Axis& a : b.axes) {
        c.check(a.kind == AxisKind::Par || b.monoid != Monoid::None, "V4", fmt::format("{}: `=` has the reduced axis `{}`", b.label, a.name));
        for (size_t i = 0; i < b.outs.size(); ++i)
            for (const Index& s : b.outs[i].subscripts) {
                Names used;
                free_names(s, used);
                const bool scanned = a.kind == AxisKind::Scan && i == 1;
                c.check(a.kind == AxisKind::Par || scanned || !used.contains(a.name), "V4", fmt::format("{}: the reduced axis `{}` subscripts `{}`", b.label, a.name, b.outs[i].tensor));
            }
    }
}

void arity(const Context& c, const Block& b) {
    const bool scans = std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; });
    const bool pair = is_pair(b.monoid);
    const size_t outs = pair || scans ? 2 : 1, vals = pair ? 2 : 1;
    const bool plain = b.monoid == Monoid::None && b.outs.size() == b.vals.size() && !b.outs.empty();
    c.check(plain || (b.outs.size() == outs && b.vals.size() == vals), "V4", fmt::format("{}: {} outs and {} values", b.label, b.outs.size(), b.vals.size()));
    c.check((b.monoid == Monoid::TopK) == (b.k > 0), "V4", fmt::format("{}: top-k needs its k", b.label));
}

void use_buffer(const Context& c, const std::string& label, const std::string& tensor, size_t rank, size_t version = 0) {
    const auto it = c.buffers.find(tensor);
    c.check(it != c.buffers.end(), "V5", fmt::format("{}: `{}` is not alive here", label, tensor));
    if (it == c.buffers.end()) return;
    const Decl& d = *it->second;
    c.check(d.dims.size() == rank, "V5", fmt::format("{}: `{}` has {} dimensions, but {} subscripts", label, tensor, d.dims.size(), rank));
    const size_t keys = d.ring.versions ? d.ring.keys.size() : 0;
    c.check(keys == version, "V5", fmt::format("{}: a version of `{}` has {} keys, not {}", label, tensor, keys, version));
}

void use_index(const Context& c, const std::string& label, const Index& e) {
    if (e->op == IndexOp::Load) use_buffer(c, label, e->name, e->args.size());
    if (e->op == IndexOp::Segment) use_buffer(c, label, e->name, 1);
    for (const Index& a : e->args) use_index(c, label, a);
}

void alive_buffers(const Context& c, const Block& b) {
    const auto value = [&](const Value& v) {
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) use_buffer(c, b.label, n.name, n.subscripts.size(), n.version.size());
            for (const Index& s : n.subscripts) use_index(c, b.label, s);
            c.check(n.op != Op::Reduce || c.program.level == Level::Tensor, "V4", fmt::format("{}: a reduction inside a value", b.label));
        });
    };
    for (const Value& v : b.vals) value(v);
    for (const Value& g : b.guards) value(g);
    for (const Access& o : b.outs) {
        use_buffer(c, b.label, o.tensor, o.subscripts.size() + (b.monoid == Monoid::TopK), o.version.size());
        for (const Index& s : o.subscripts) use_index(c, b.label, s);
        const auto it = c.buffers.find(o.tensor);
        const bool given = it != c.buffers.end() && (it->second->scope == Scope::In || it->second->scope == Scope::Param);
        c.check(!given, "V5", fmt::format("{}: the input `{}` is written", b.label, o.tensor));
    }
}

void value_types(const Context& c, const Block& b) {
    for (size_t i = 0; i < b.outs.size() && i < b.vals.size(); ++i) {
        const auto it = c.buffers.find(b.outs[i].tensor);
        if (it == c.buffers.end()) continue;
        const bool narrows = is_float(b.vals[i]->type) && !is_float(it->second->type);
        c.check(!narrows, "V11", fmt::format("{}: a {} is stored in `{}`, which holds {}", b.label, name_of(b.vals[i]->type), b.outs[i].tensor, name_of(it->second->type)));
    }
}

constexpr std::array block_rules{fresh_axes, closed_expressions, axes_and_outs, arity, alive_buffers, value_types};

// ---- rules of a loop, and the walk

void parallel_kind(const Context& c, const Loop& l) {
    c.check(!is_parallel(l.kind) || l.order == AxisKind::Par, "V7", fmt::format("the ordered loop `{}` runs in parallel", l.var));
}

/// Names that must be unique: labels in the program, loops in a kernel.
struct Seen {
    Names labels, loops;
};

void walk(Context& c, const Body& body, Seen& seen);

void window_closed(const Context& c, const Decl& d) {
    Names names = c.names;
    names.insert(d.ring.keys.begin(), d.ring.keys.end());    // who fills a version of a ring knows its keys
    for (const Window& w : d.dims) closed(c, w.origin, names, d.name), closed(c, w.size, names, d.name);
}

void walk_loop(Context& c, const Loop& l, Seen& seen) {
    c.check(!c.names.contains(l.var), "V2", fmt::format("the loop `{}` shadows a name", l.var));
    c.check(seen.loops.insert(l.var).second, "V1", fmt::format("the loop `{}` stands twice in a kernel", l.var));
    closed(c, l.extent, c.names, l.var);
    parallel_kind(c, l);
    Context inner = c;
    inner.names.insert(l.var);
    for (const Let& x : l.lets) {
        closed(inner, x.value, inner.names, x.name);
        inner.check(inner.names.insert(x.name).second, "V2", fmt::format("the derived name `{}` shadows a name", x.name));
    }
    for (const Decl& d : l.allocs) {
        window_closed(inner, d);
        inner.buffers[d.name] = &d;
    }
    walk(inner, l.body, seen);
}

// ---- rules of roles

struct Touched {
    Names read, written;
};

Touched touched_by(const Body& body) {
    Touched t;
    for_each_block(body, [&](const Block& b, Loc) {
        t.read.merge(tensors_read(b));
        for (const Access& o : b.outs) t.written.insert(o.tensor);
    });
    return t;
}

/// Two roles share only rings (one writer each), inputs, and outputs that both write but neither reads.
void roles_meet(const Context& c, const Role& a, const Role& b) {
    const Touched x = touched_by(a.body), y = touched_by(b.body);
    for (const std::string& t : x.written) {
        const auto it = c.buffers.find(t);
        if (it == c.buffers.end()) continue;
        const Decl& d = *it->second;
        c.check(!y.written.contains(t) || d.scope == Scope::Out, "V8", fmt::format("the roles `{}` and `{}` both write `{}`", a.name, b.name, t));
        c.check(!y.read.contains(t) || d.ring.versions > 0, "V8", fmt::format("the role `{}` reads `{}`, which `{}` writes and which is no ring", b.name, t, a.name));
    }
}

void walk_roles(Context& c, const Roles& r, Seen& seen) {
    for (const Role& a : r.roles)
        for (const Role& b : r.roles)
            if (&a != &b) roles_meet(c, a, b);
    const Names outside = seen.loops;
    for (const Role& role : r.roles) {
        seen.loops = outside;
        walk(c, role.body, seen);
    }
}

void known_sync(const Context& c, const Sync& y) {
    for (const Index& e : y.key) closed(c, e, c.names, y.name);
    if (y.op > SyncOp::Release) return;
    const auto it = c.buffers.find(y.name);
    c.check(it != c.buffers.end() && it->second->ring.versions > 0, "V8", fmt::format("{} of `{}`, which is no ring here", name_of(y.op), y.name));
    if (it != c.buffers.end()) c.check(it->second->ring.keys.size() == y.key.size(), "V8", fmt::format("{} of `{}` names {} keys", name_of(y.op), y.name, y.key.size()));
}

void walk(Context& c, const Body& body, Seen& seen) {
    for (const Stmt& s : body) {
        c.loc = s->loc;
        match(
            s,
            [&](const Block& b) {
                c.check(seen.labels.insert(b.label).second, "V1", fmt::format("the label `{}` stands twice", b.label));
                for (const auto rule : block_rules) rule(c, b);
            },
            [&](const Loop& l) {
                c.check(c.program.level == Level::Loop, "V4", "a loop at tensor level");
                walk_loop(c, l, seen);
            },
            [&](const If& i) {
                closed(c, i.condition, c.names, "if");
                walk(c, i.body, seen);
                walk(c, i.otherwise, seen);
            },
            [&](const Roles& r) { walk_roles(c, r, seen); }, [&](const Sync& y) { known_sync(c, y); });
    }
}

}  // namespace

std::vector<Violation> verify(const Program& p) {
    std::vector<Violation> found;
    Context c{p, found, {}, {}, {}};
    for (const Dim& d : p.dims) c.check(c.names.insert(d.name).second, "V2", fmt::format("the dimension `{}` stands twice", d.name));
    for (const Decl& d : p.decls) {
        c.check(c.buffers.emplace(d.name, &d).second, "V1", fmt::format("the buffer `{}` is declared twice", d.name));
        for (const Window& w : d.dims) closed(c, w.size, c.names, d.name);
    }
    Seen seen;
    for (const Stmt& kernel : p.body) {
        seen.loops.clear();
        walk(c, {kernel}, seen);
    }
    return found;
}

}  // namespace acu::ir
