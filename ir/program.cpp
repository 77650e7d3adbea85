#include "ir/program.h"

#include <algorithm>

namespace acu::ir {

std::string_view name_of(Scope scope) {
    switch (scope) {
        case Scope::In: return "in";
        case Scope::Out: return "out";
        case Scope::Param: return "param";
        case Scope::Temp: return "temp";
        case Scope::Register: return "register";
        case Scope::Shared: return "shared";
        case Scope::Cluster: return "cluster";
    }
    return "?";
}

std::string_view name_of(LoopKind kind) {
    switch (kind) {
        case LoopKind::Serial: return "serial";
        case LoopKind::Grid: return "grid";
        case LoopKind::Cluster: return "cluster";
        case LoopKind::Warpgroup: return "warpgroup";
        case LoopKind::Thread: return "thread";
        case LoopKind::Vector: return "vector";
        case LoopKind::Unroll: return "unroll";
    }
    return "?";
}

std::string_view name_of(SyncOp op) {
    switch (op) {
        case SyncOp::Acquire: return "acquire";
        case SyncOp::Commit: return "commit";
        case SyncOp::Wait: return "wait";
        case SyncOp::Release: return "release";
        case SyncOp::Take: return "take";
        case SyncOp::Pass: return "pass";
        case SyncOp::Barrier: return "barrier";
        case SyncOp::CopyCommit: return "copy_commit";
        case SyncOp::CopyWait: return "copy_wait";
        case SyncOp::Fence: return "fence";
        case SyncOp::StoreWait: return "store_wait";
    }
    return "?";
}

const Decl* Program::find(std::string_view wanted) const {
    const auto it = std::ranges::find(decls, wanted, &Decl::name);
    return it == decls.end() ? nullptr : &*it;
}

Env known_dims(const Program& p) {
    Env env;
    for (const Dim& d : p.dims)
        if (d.value) env[d.name] = *d.value;
    return env;
}

Stmt map_bodies(const Stmt& s, const std::function<Body(const Body&)>& f) {
    return match(
        s, [&](const Block&) { return s; },
        [&](const Loop& l) {
            Loop n = l;
            n.body = f(l.body);
            return n.body == l.body ? s : with_node(s, std::move(n));
        },
        [&](const If& i) {
            If n{i.condition, f(i.body), f(i.otherwise)};
            return n.body == i.body && n.otherwise == i.otherwise ? s : with_node(s, std::move(n));
        },
        [&](const Roles& r) {
            Roles n = r;
            bool changed = false;
            for (Role& role : n.roles) {
                Body now = f(role.body);
                changed |= now != role.body;
                role.body = std::move(now);
            }
            return changed ? with_node(s, std::move(n)) : s;
        },
        [&](const Sync&) { return s; });
}

std::vector<const Body*> bodies_of(const Stmt& s) {
    return match(
        s, [](const Block&) { return std::vector<const Body*>{}; }, [](const Loop& l) { return std::vector<const Body*>{&l.body}; },
        [](const If& i) { return std::vector<const Body*>{&i.body, &i.otherwise}; },
        [](const Roles& r) {
            std::vector<const Body*> out;
            for (const Role& role : r.roles) out.push_back(&role.body);
            return out;
        },
        [](const Sync&) { return std::vector<const Body*>{}; });
}

bool any_inside(const Body& body, const std::function<bool(const Stmt&)>& f) {
    return std::ranges::any_of(body, [&](const Stmt& s) {
        return f(s) || std::ranges::any_of(bodies_of(s), [&](const Body* inner) { return any_inside(*inner, f); });
    });
}

bool runs_by_itself(const Block& b) { return b.via.find(".wgmma_") != std::string::npos; }

bool any_block(const Body& body, const std::function<bool(const Block&)>& f) {
    return any_inside(body, [&](const Stmt& s) {
        const auto* b = std::get_if<Block>(&s->node);
        return b && f(*b);
    });
}

bool has_sync(const Body& body, SyncOp op, const std::string& name) {
    return any_inside(body, [&](const Stmt& s) {
        const auto* y = std::get_if<Sync>(&s->node);
        return y && y->op == op && (name.empty() || y->name == name);
    });
}

std::vector<Axis> axes_of_kind(const Block& b, bool parallel) {
    std::vector<Axis> out;
    std::ranges::copy_if(b.axes, std::back_inserter(out), [&](const Axis& a) { return (a.kind == AxisKind::Par) == parallel; });
    return out;
}

void for_each_block(const Body& body, const std::function<void(const Block&, Loc)>& f) {
    for (const Stmt& s : body)
        if (const auto* b = std::get_if<Block>(&s->node)) f(*b, s->loc);
        else
            for (const Body* inner : bodies_of(s)) for_each_block(*inner, f);
}

static void tensors_in(const Value& v, std::set<std::string>& out) {
    visit(v, [&](const ValueNode& n) {
        if (n.op == Op::Load) out.insert(n.name);
        for (const Index& s : n.subscripts) loaded_tensors(s, out);
        for (const Axis& a : n.axes) loaded_tensors(a.size, out);
    });
}

std::set<std::string> tensors_read(const Block& b) {
    std::set<std::string> out;
    for (const Value& v : b.vals) tensors_in(v, out);
    for (const Value& g : b.guards) tensors_in(g, out);
    for (const Access& o : b.outs)
        for (const Index& s : o.subscripts) loaded_tensors(s, out);
    return out;
}

Block map_block(Block b, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g) {
    for (Axis& a : b.axes) a.base = g(a.base), a.size = g(a.size);
    for (Access& o : b.outs)
        for (std::vector<Index>* list : {&o.subscripts, &o.version})
            for (Index& s : *list) s = g(s);
    for (Value& v : b.vals) v = f(v);
    for (Value& v : b.guards) v = f(v);
    return b;
}

Decl map_decl(Decl d, const std::function<Index(const Index&)>& g) {
    for (Window& w : d.dims) w.origin = g(w.origin), w.size = g(w.size);
    return d;
}

static bool same(const Block& a, const Block& b) {
    const auto equal_access = [](const Access& x, const Access& y) { return x.subscripts == y.subscripts && x.version == y.version; };
    const auto equal_axis = [](const Axis& x, const Axis& y) { return x.base == y.base && x.size == y.size; };
    return a.vals == b.vals && a.guards == b.guards && std::ranges::equal(a.outs, b.outs, equal_access) && std::ranges::equal(a.axes, b.axes, equal_axis);
}

Stmt map_expressions(const Stmt& s, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g) {
    const Stmt inner = map_bodies(s, [&](const Body& body) {
        Body out;
        for (const Stmt& x : body) out.push_back(map_expressions(x, f, g));
        return out;
    });
    return match(
        inner,
        [&](const Block& b) {
            Block n = map_block(b, f, g);
            return same(n, b) ? inner : with_node(inner, std::move(n));
        },
        [&](const Loop& l) {
            Loop n = l;
            bool changed = false;
            const auto now = [&](Index& e) { const Index x = g(e); changed |= x != e, e = x; };
            now(n.extent);
            for (Let& x : n.lets) now(x.value);
            for (Decl& d : n.allocs)
                for (Window& w : d.dims) now(w.origin), now(w.size);
            return changed ? with_node(inner, std::move(n)) : inner;
        },
        [&](const If& i) {
            const Value c = f(i.condition);
            return c == i.condition ? inner : with_node(inner, If{c, i.body, i.otherwise});
        },
        [&](const Roles&) { return inner; },
        [&](const Sync& y) {
            Sync n = y;
            for (Index& e : n.key) e = g(e);
            return n.key == y.key ? inner : with_node(inner, std::move(n));
        });
}

static std::string renamed(const std::string& name, const std::map<std::string, std::string>& names) {
    const auto it = names.find(name);
    return it == names.end() ? name : it->second;
}

/// Where they are declared and written; loads are expressions.
static Stmt rename_places(const Stmt& s, const std::map<std::string, std::string>& names) {
    const Stmt inner = map_bodies(s, [&](const Body& body) {
        Body now;
        for (const Stmt& x : body) now.push_back(rename_places(x, names));
        return now;
    });
    if (const auto* b = std::get_if<Block>(&inner->node)) {
        if (std::ranges::none_of(b->outs, [&](const Access& o) { return names.contains(o.tensor); })) return inner;
        Block n = *b;
        for (Access& o : n.outs) o.tensor = renamed(o.tensor, names);
        return with_node(inner, std::move(n));
    }
    const auto* l = std::get_if<Loop>(&inner->node);
    if (!l || std::ranges::none_of(l->allocs, [&](const Decl& d) { return names.contains(d.name); })) return inner;
    Loop n = *l;
    for (Decl& d : n.allocs) d.name = renamed(d.name, names);
    return with_node(inner, std::move(n));
}

Stmt rename_buffers(const Stmt& s, const std::map<std::string, std::string>& names) {
    return rename_places(map_expressions(
                             s, [&](const Value& v) { return rename_tensors(v, names); }, [&](const Index& e) { return rename_tensors(e, names); }),
                         names);
}

bool is_scatter(const Block& b) {
    return std::ranges::any_of(b.outs, [](const Access& o) { return std::ranges::any_of(o.subscripts, mentions_load); });
}

}  // namespace acu::ir
