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

void use_buffer(const Context& c, const std::string& label, const std::string& tensor, size_t rank) {
    const auto it = c.buffers.find(tensor);
    c.check(it != c.buffers.end(), "V5", fmt::format("{}: `{}` is not alive here", label, tensor));
    if (it != c.buffers.end())
        c.check(it->second->dims.size() == rank, "V5", fmt::format("{}: `{}` has {} dimensions, but {} subscripts", label, tensor, it->second->dims.size(), rank));
}

void use_index(const Context& c, const std::string& label, const Index& e) {
    if (e->op == IndexOp::Load) use_buffer(c, label, e->name, e->args.size());
    if (e->op == IndexOp::Segment) use_buffer(c, label, e->name, 1);
    for (const Index& a : e->args) use_index(c, label, a);
}

void alive_buffers(const Context& c, const Block& b) {
    const auto value = [&](const Value& v) {
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) use_buffer(c, b.label, n.name, n.subscripts.size());
            for (const Index& s : n.subscripts) use_index(c, b.label, s);
            c.check(n.op != Op::Reduce || c.program.level == Level::Tensor, "V4", fmt::format("{}: a reduction inside a value", b.label));
        });
    };
    for (const Value& v : b.vals) value(v);
    for (const Value& g : b.guards) value(g);
    for (const Access& o : b.outs) {
        use_buffer(c, b.label, o.tensor, o.subscripts.size() + (b.monoid == Monoid::TopK));
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
    c.check(l.kind == LoopKind::Serial || l.order == AxisKind::Par, "V7", fmt::format("the ordered loop `{}` runs in parallel", l.var));
}

void walk(Context& c, const Body& body, Names& labels);

void walk_loop(Context& c, const Loop& l, Names& labels) {
    c.check(!c.names.contains(l.var), "V2", fmt::format("the loop `{}` shadows a name", l.var));
    closed(c, l.extent, c.names, l.var);
    parallel_kind(c, l);
    Context inner = c;
    inner.names.insert(l.var);
    for (const Let& x : l.lets) {
        closed(inner, x.value, inner.names, x.name);
        inner.check(inner.names.insert(x.name).second, "V2", fmt::format("the derived name `{}` shadows a name", x.name));
    }
    for (const Decl& d : l.allocs) {
        for (const Window& w : d.dims) closed(inner, w.origin, inner.names, d.name), closed(inner, w.size, inner.names, d.name);
        inner.buffers[d.name] = &d;
    }
    walk(inner, l.body, labels);
}

void walk(Context& c, const Body& body, Names& labels) {
    for (const Stmt& s : body) {
        c.loc = s->loc;
        match(
            s,
            [&](const Block& b) {
                c.check(labels.insert(b.label).second, "V1", fmt::format("the label `{}` stands twice", b.label));
                for (const auto rule : block_rules) rule(c, b);
            },
            [&](const Loop& l) {
                c.check(c.program.level == Level::Loop, "V4", "a loop at tensor level");
                walk_loop(c, l, labels);
            },
            [&](const If& i) {
                closed(c, i.condition, c.names, "if");
                walk(c, i.body, labels);
                walk(c, i.otherwise, labels);
            });
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
    Names labels;
    walk(c, p.body, labels);
    return found;
}

}  // namespace acu::ir
