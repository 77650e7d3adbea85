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
    }
    return "?";
}

std::string_view name_of(LoopKind kind) { return kind == LoopKind::Serial ? "serial" : "grid"; }

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
            return n.body == l.body ? s : make_stmt(s->loc, std::move(n));
        },
        [&](const If& i) {
            If n{i.condition, f(i.body), f(i.otherwise)};
            return n.body == i.body && n.otherwise == i.otherwise ? s : make_stmt(s->loc, std::move(n));
        });
}

void for_each_block(const Body& body, const std::function<void(const Block&, Loc)>& f) {
    for (const Stmt& s : body)
        match(
            s, [&](const Block& b) { f(b, s->loc); }, [&](const Loop& l) { for_each_block(l.body, f); },
            [&](const If& i) { for_each_block(i.body, f), for_each_block(i.otherwise, f); });
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
        for (Index& s : o.subscripts) s = g(s);
    for (Value& v : b.vals) v = f(v);
    for (Value& v : b.guards) v = f(v);
    return b;
}

bool is_scatter(const Block& b) {
    return std::ranges::any_of(b.outs, [](const Access& o) { return std::ranges::any_of(o.subscripts, mentions_load); });
}

}  // namespace acu::ir
