#include "ir/pass/ring.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"

namespace acu::ir::pass {

IndexMap let_values(const Loop& l) {
    IndexMap out;
    for (const Let& x : l.lets) out[x.name] = ir::substitute(x.value, out);
    return out;
}

static bool index_reads(const Stmt& s, const std::string& buffer) {
    bool found = control_reads({s}).contains(buffer);
    map_expressions(
        s,
        [&](const Value& v) {
            visit(v, [&](const ValueNode& n) {
                std::set<std::string> loaded;
                for (const Index& e : n.subscripts) loaded_tensors(e, loaded);
                found |= loaded.contains(buffer);
            });
            return v;
        },
        [&](const Index& e) {
            std::set<std::string> loaded;
            loaded_tensors(e, loaded);
            found |= loaded.contains(buffer);
            return e;
        });
    return found;
}

Rings::Rings(const Program& p, const Stmt& home, const Stmt& loop, std::map<std::string, int64_t> versions, std::vector<std::string> keys, const IndexMap& closed, const std::string& code)
    : keys_(std::move(keys)) {
    const Loop &h = *as_loop(home), &l = *as_loop(loop);
    const Body around = edit(h.body, [&](const Stmt& s) { return s == loop ? std::optional(Body{}) : std::nullopt; });
    std::set<std::string> others = touched(around);    // of other loops, if of the same name
    any_inside(around, [&](const Stmt& s) {
        if (const Loop* x = as_loop(s))
            for (const Decl& d : x->allocs) others.insert(d.name);
        return false;
    });
    for (const Decl& d : l.allocs) {
        const auto wanted = versions.find(d.name);
        if (wanted == versions.end()) continue;
        for (const Stmt& s : l.body) {
            need(!index_reads(s, d.name), (code + ".index").c_str(), fmt::format("`{}` is read in an index or a condition, which names no version of a ring", d.name), "", s->loc);
            const bool shadowed = any_inside({s}, [&](const Stmt& x) { return as_loop(x) && std::ranges::find(as_loop(x)->allocs, d.name, &Decl::name) != as_loop(x)->allocs.end(); });
            need(!shadowed, (code + ".shadow").c_str(), fmt::format("a loop inside `{}` has a `{}` of its own", l.var, d.name), "", s->loc);
        }
        const bool taken = std::ranges::find(h.allocs, d.name, &Decl::name) != h.allocs.end() || others.contains(d.name);
        Decl ring = map_decl(d, [&](const Index& e) {
            const Index now = ir::substitute(e, closed);
            return now == e ? e : normal(now);
        });
        ring.name = names_[d.name] = taken ? unique_name(p, d.name) : d.name;
        ring.ring = {wanted->second, keys_, 1};
        decls_.push_back(std::move(ring));
    }
}

std::vector<Index> Rings::key() const {
    std::vector<Index> out;
    for (const std::string& k : keys_) out.push_back(name(k));
    return out;
}

Value Rings::versioned(const Value& v) const {
    const Value inner = map_parts(v, [&](const Value& a) { return versioned(a); }, [](const Index& e) { return e; });
    if (v->op != Op::Load || !moves(v->name)) return inner;
    return with_version(with_source(inner, name_at_home(v->name), inner->subscripts), key());
}

Stmt Rings::versioned(const Stmt& s) const {
    const Stmt loads = map_expressions(s, [&](const Value& v) { return versioned(v); }, [](const Index& e) { return e; });
    const std::function<Stmt(const Stmt&)> outs = [&](const Stmt& x) {
        const Stmt inner = map_bodies(x, [&](const Body& body) {
            Body now;
            for (const Stmt& y : body) now.push_back(outs(y));
            return now;
        });
        const Block* b = as_block(inner);
        if (!b || std::ranges::none_of(b->outs, [&](const Access& o) { return moves(o.tensor); })) return inner;
        Block n = *b;
        for (Access& o : n.outs)
            if (moves(o.tensor)) o.tensor = name_at_home(o.tensor), o.version = key();
        return with_node(inner, std::move(n));
    };
    return outs(loads);
}

Program rehome(Program p, const Stmt& home, const std::vector<Decl>& decls, const Stmt& loop, const Body& now) {
    Loop h = *as_loop(home);
    h.body = edit(h.body, [&](const Stmt& s) { return s == loop ? std::optional(now) : std::nullopt; });
    h.allocs.insert(h.allocs.end(), decls.begin(), decls.end());
    return replace_stmt(std::move(p), home, {with_node(home, std::move(h))});
}

}  // namespace acu::ir::pass
