#include "ir/pass/edit.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::ir::pass {

// ---- places

static void walk(const Body& body, std::vector<Stmt>& above, std::string role, const std::function<void(const Place&)>& f) {
    for (const Stmt& s : body) {
        f({s, above, role});
        above.push_back(s);
        if (const auto* r = std::get_if<Roles>(&s->node))
            for (const Role& x : r->roles) walk(x.body, above, x.name, f);
        else
            for (const Body* inner : bodies_of(s)) walk(*inner, above, role, f);
        above.pop_back();
    }
}

void for_each_place(const Program& p, const std::function<void(const Place&)>& f) {
    std::vector<Stmt> above;
    walk(p.body, above, "", f);
}

const Block* as_block(const Stmt& s) { return std::get_if<Block>(&s->node); }
const Loop* as_loop(const Stmt& s) { return std::get_if<Loop>(&s->node); }

template <class F>
static std::optional<Place> find_place(const Program& p, const std::string& name, F own_name) {
    const size_t slash = name.rfind('/');
    const std::string role = slash == std::string::npos ? "" : name.substr(0, slash), own = slash == std::string::npos ? name : name.substr(slash + 1);
    std::optional<Place> found;
    for_each_place(p, [&](const Place& x) {
        if (!found && own_name(x.stmt) == own && (role.empty() || x.role == role)) found = x;
    });
    return found;
}

std::optional<Place> try_block(const Program& p, const std::string& label) {
    return find_place(p, label, [](const Stmt& s) { return as_block(s) ? as_block(s)->label : std::string(); });
}
std::optional<Place> try_loop(const Program& p, const std::string& name) {
    return find_place(p, name, [](const Stmt& s) { return as_loop(s) ? as_loop(s)->var : std::string(); });
}

template <class F>
static std::vector<std::string> all_names(const Program& p, F own_name) {
    std::vector<std::string> out;
    for_each_place(p, [&](const Place& x) {
        if (std::string n = own_name(x.stmt); !n.empty()) out.push_back(std::move(n));
    });
    return out;
}

Place find_block(const Program& p, const std::string& label) {
    if (auto x = try_block(p, label)) return *x;
    refuse("site.unknown", fmt::format("no statement is named `{}`", label), did_you_mean(label, all_names(p, [](const Stmt& s) { return as_block(s) ? as_block(s)->label : std::string(); })));
}
Place find_loop(const Program& p, const std::string& name) {
    if (auto x = try_loop(p, name)) return *x;
    refuse("site.unknown", fmt::format("no loop is named `{}`", name), did_you_mean(name, all_names(p, [](const Stmt& s) { return as_loop(s) ? as_loop(s)->var : std::string(); })));
}

std::vector<Stmt> loops_of(const std::vector<Stmt>& above) {
    std::vector<Stmt> out;
    std::ranges::copy_if(above, std::back_inserter(out), [](const Stmt& s) { return as_loop(s) != nullptr; });
    return out;
}

std::vector<Stmt> block_stmts(const Body& body) {
    std::vector<Stmt> out;
    for (const Stmt& s : body) {
        if (as_block(s)) out.push_back(s);
        for (const Body* inner : bodies_of(s)) std::ranges::copy(block_stmts(*inner), std::back_inserter(out));
    }
    return out;
}

std::set<std::string> labels_in(const Stmt& s) {
    std::set<std::string> out;
    for_each_block({s}, [&](const Block& b, Loc) { out.insert(b.label); });
    return out;
}

static Body edited_decls(const Body& body, const std::string& buffer, const std::function<void(Decl&)>& change) {
    Body out;
    for (const Stmt& s : body) {
        Stmt now = map_bodies(s, [&](const Body& b) { return edited_decls(b, buffer, change); });
        const Loop* l = as_loop(now);
        if (l && std::ranges::find(l->allocs, buffer, &Decl::name) != l->allocs.end()) {
            Loop n = *l;
            for (Decl& d : n.allocs)
                if (d.name == buffer) change(d);
            now = with_node(now, std::move(n));
        }
        out.push_back(std::move(now));
    }
    return out;
}

Program edit_decls(Program p, const std::string& buffer, const std::function<void(Decl&)>& change) {
    p.body = edited_decls(p.body, buffer, change);
    return p;
}

const Decl& find_buffer(const Program& p, const std::string& name) {
    if (const Decl* d = p.find(name)) return *d;
    const Decl* found = nullptr;
    std::vector<std::string> known;
    for (const Decl& d : p.decls) known.push_back(d.name);
    for_each_place(p, [&](const Place& x) {
        if (const Loop* l = as_loop(x.stmt))
            for (const Decl& d : l->allocs) {
                known.push_back(d.name);
                if (!found && d.name == name) found = &d;
            }
    });
    if (!found) refuse("site.unknown", fmt::format("no buffer is named `{}`", name), did_you_mean(name, known));
    return *found;
}

const Decl* buffer_at(const Program& p, const Place& at, const std::string& name) {
    for (size_t i = at.above.size(); i-- > 0;)
        if (const Loop* l = as_loop(at.above[i]))
            if (const auto it = std::ranges::find(l->allocs, name, &Decl::name); it != l->allocs.end()) return &*it;
    return p.find(name);
}

std::set<std::string> names_around(const Program& p, const Place& at) {
    std::set<std::string> out;
    for (const Dim& d : p.dims) out.insert(d.name);
    for (const Axis& a : block_of(at).axes) out.insert(a.name);
    for (const Stmt& s : loops_of(at.above)) {
        out.insert(as_loop(s)->var);
        for (const Let& x : as_loop(s)->lets) out.insert(x.name);
    }
    return out;
}

std::set<std::string> names_made_in(const Body& body) {
    std::set<std::string> out;
    for (const Stmt& s : body) {
        if (const Loop* l = as_loop(s)) {
            out.insert(l->var);
            for (const Let& x : l->lets) out.insert(x.name);
        }
        for (const Body* inner : bodies_of(s)) out.merge(names_made_in(*inner));
    }
    return out;
}

std::set<std::string> local_buffers(const std::vector<Stmt>& above) {
    std::set<std::string> out;
    for (const Stmt& s : above)
        if (const Loop* l = as_loop(s))
            for (const Decl& d : l->allocs) out.insert(d.name);
    return out;
}

// ---- new names

static std::set<std::string> used_names(const Program& p) {
    std::set<std::string> out = names_made_in(p.body);
    for (const Dim& d : p.dims) out.insert(d.name);
    for (const Decl& d : p.decls) out.insert(d.name);
    for_each_place(p, [&](const Place& x) {
        if (const Block* b = as_block(x.stmt)) {
            out.insert(b->label);
            for (const Axis& a : b->axes) out.insert(a.name);
        }
        if (const Loop* l = as_loop(x.stmt))
            for (const Decl& d : l->allocs) out.insert(d.name);
    });
    return out;
}

std::string unique_name(const Program& p, const std::string& stem) {
    const std::set<std::string> used = used_names(p);
    std::string name = stem;
    for (int i = 2; used.contains(name); ++i) name = stem + std::to_string(i);
    return name;
}

std::string tile_loop_name(const Program& p, const std::string& axis) {
    const std::set<std::string> used = used_names(p);
    std::string stem = axis;
    while (used.contains(stem + ".o")) stem += ".i";
    return stem + ".o";
}

// ---- rebuilding

Body edit(const Body& body, const std::function<std::optional<Body>(const Stmt&)>& f) {
    Body out;
    for (const Stmt& s : body) {
        if (auto now = f(s)) out.insert(out.end(), now->begin(), now->end());
        else out.push_back(map_bodies(s, [&](const Body& inner) { return edit(inner, f); }));
    }
    return out;
}

Program edit(Program p, const std::function<std::optional<Body>(const Stmt&)>& f) {
    p.body = edit(p.body, f);
    return p;
}

Program replace_stmt(Program p, const Stmt& old, Body now) {
    return edit(std::move(p), [&](const Stmt& s) { return s == old ? std::optional(now) : std::nullopt; });
}

static bool holds_any(const Stmt& s, const std::set<std::string>& labels) { return meet(labels_in(s), labels); }

/// The innermost sequence that holds all the labels, several of its members or one of them a block.
static std::optional<Body> edit_sequence(const Body& body, const std::set<std::string>& labels, const std::function<Body(Body, Body, Body)>& f) {
    std::vector<size_t> hits;
    std::set<std::string> found;
    for (size_t i = 0; i < body.size(); ++i)
        if (holds_any(body[i], labels)) hits.push_back(i), found.merge(labels_in(body[i]));
    if (!std::ranges::includes(found, labels)) return {};
    if (hits.size() == 1 && !as_block(body[hits[0]])) {
        bool changed = false;
        Body out = body;
        out[hits[0]] = map_bodies(body[hits[0]], [&](const Body& inner) {
            const auto now = changed ? std::nullopt : edit_sequence(inner, labels, f);
            changed |= now.has_value();
            return now ? *now : inner;
        });
        return changed ? std::optional(out) : std::nullopt;
    }
    std::set<std::string> run_labels;
    for (const size_t i : hits) run_labels.merge(labels_in(body[i]));
    if (run_labels != labels) return {};
    const auto first = body.begin() + static_cast<std::ptrdiff_t>(hits.front()), last = body.begin() + static_cast<std::ptrdiff_t>(hits.back()) + 1;
    return f(Body(body.begin(), first), Body(first, last), Body(last, body.end()));
}

Program edit_run(Program p, const std::set<std::string>& labels, const std::string& code, const std::function<Body(Body, Body, Body)>& f) {
    auto now = edit_sequence(p.body, labels, f);
    if (!now) refuse(code + ".adjacent", fmt::format("{} are not the statements of one sequence", fmt::join(labels, ", ")), "name all statements of the loops that hold them, or fuse those first");
    p.body = std::move(*now);
    return p;
}

Gathered gather(const Body& run, const std::set<std::string>& labels, const std::string& code) {
    Gathered g;
    for (const Stmt& s : run) {
        if (holds_any(s, labels)) {
            g.mine.push_back(s);
            continue;
        }
        const std::set<std::string> against = conflicts({s}, g.mine);
        const bool barrier = std::holds_alternative<Sync>(s->node);
        if (!against.empty() || barrier)
            refuse(code + ".between", fmt::format("`{}` stands between them{}", barrier ? "a barrier" : *labels_in(s).begin(), against.empty() ? "" : fmt::format(" and uses {}", fmt::join(against, ", "))),
                   "name it, too", s->loc);
        g.others.push_back(s);
    }
    return g;
}

Program map_program(Program p, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g) {
    for (Stmt& s : p.body) s = map_expressions(s, f, g);
    return p;
}

Stmt substitute(const Stmt& s, const IndexMap& names) {
    return map_expressions(
        s, [&](const Value& v) { return ir::substitute(v, names); }, [&](const Index& e) { return ir::substitute(e, names); });
}

Stmt replace_loads(const Stmt& s, const std::function<Value(const Value&)>& f) {
    return map_expressions(
        s, [&](const Value& v) { return replace(v, [&](const Value& x) { return x->op == Op::Load ? f(x) : nullptr; }); }, [](const Index& e) { return e; });
}

Program declare(Program p, const std::vector<Stmt>& above, std::vector<Decl> decls, Scope local) {
    const std::vector<Stmt> loops = loops_of(above);
    for (Decl& d : decls) d.scope = loops.empty() ? Scope::Temp : local;
    if (loops.empty()) {
        p.decls.insert(p.decls.end(), decls.begin(), decls.end());
        return p;
    }
    const std::string home = as_loop(loops.back())->var;
    return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
        const Loop* l = as_loop(s);
        if (!l || l->var != home) return {};
        Loop n = *l;
        n.allocs.insert(n.allocs.end(), decls.begin(), decls.end());
        return Body{with_node(s, std::move(n))};
    });
}

}  // namespace acu::ir::pass
