#include "tests/faults/faults.h"

namespace acu::faults {

using namespace ir;

static Body rebuilt(const Body& stmts, const std::function<Body(const Stmt&)>& f) {
    Body out;
    for (const Stmt& s : stmts)
        for (const Stmt& x : f(map_bodies(s, [&](const Body& b) { return rebuilt(b, f); }))) out.push_back(x);
    return out;
}

Program rebuilt(const Program& p, const std::function<Body(const Stmt&)>& f) {
    Program out = p;
    out.body = rebuilt(p.body, f);
    return out;
}

Program change_loop(const Program& p, const std::string& var, const std::function<void(Loop&)>& f) {
    return rebuilt(p, [&](const Stmt& s) -> Body {
        const auto* l = std::get_if<Loop>(&s->node);
        if (!l || l->var != var) return {s};
        Loop n = *l;
        f(n);
        return {with_node(s, std::move(n))};
    });
}

Program change_block(const Program& p, const std::string& label, const std::function<void(Block&)>& f) {
    return rebuilt(p, [&](const Stmt& s) -> Body {
        const auto* b = std::get_if<Block>(&s->node);
        if (!b || b->label != label) return {s};
        Block n = *b;
        f(n);
        return {with_node(s, std::move(n))};
    });
}

Program without_block(const Program& p, const std::string& label) {
    return rebuilt(p, [&](const Stmt& s) -> Body {
        const auto* b = std::get_if<Block>(&s->node);
        return b && b->label == label ? Body{} : Body{s};
    });
}

Program without_sync_before(const Program& p, SyncOp op, const std::string& label) {
    const StmtNode *last = nullptr, *found = nullptr;
    const auto look = [&](const Stmt& s) -> Body {
        const auto* y = std::get_if<Sync>(&s->node);
        const auto* b = std::get_if<Block>(&s->node);
        if (y && y->op == op) last = s.get();
        if (b && b->label == label && !found) found = last;
        return {s};
    };
    rebuilt(p, look);
    return rebuilt(p, [&](const Stmt& s) -> Body { return s.get() == found ? Body{} : Body{s}; });
}

Program without_sync_of(const Program& p, SyncOp op, const std::string& ring) {
    return rebuilt(p, [&](const Stmt& s) -> Body {
        const auto* y = std::get_if<Sync>(&s->node);
        return y && y->op == op && y->name == ring ? Body{} : Body{s};
    });
}

static Index exchanged(const Index& e, const std::function<Index(const Index&)>& f) {
    if (Index other = f(e)) return other;
    if (e->args.empty()) return e;
    auto n = std::make_shared<IndexNode>(*e);
    for (Index& a : n->args) a = exchanged(a, f);
    return n;
}

Program change_index(const Program& p, const std::function<Index(const Index&)>& f) {
    Program out = p;
    for (Stmt& s : out.body) s = map_expressions(s, [](const Value& v) { return v; }, [&](const Index& e) { return exchanged(e, f); });
    return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

}  // namespace acu::faults
