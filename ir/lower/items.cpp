#include "ir/lower/items.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"

namespace acu::ir::lower {

void Items::check(bool holds, Loc loc, const std::string& message, const std::string& help) {
    if (!holds && !why_) why_ = Diagnostic{"lower.roles", loc, message, {}, help};
}

Result<Items> Items::of(const Loop& kernel) {
    Items items;
    items.around(kernel.body, kernel.allocs);
    if (items.why_) return *items.why_;
    return items;
}

void Items::around(const Body& body, const std::vector<Decl>& home) {
    for (const Stmt& s : body) {
        const auto* r = std::get_if<Roles>(&s->node);
        if (!r) {
            const auto* l = std::get_if<Loop>(&s->node);
            for (const Body* inner : bodies_of(s)) around(*inner, l ? l->allocs : home);
            continue;
        }
        home_ = home;
        for (const Role& role : r->roles)
            if (has_sync(role.body, SyncOp::Take)) takes_.insert(role.name);
        for (const Role& role : r->roles) inside(role.body, {}, role.name);
    }
}

/// The loop's body: its extent and derived names in words of what is known around the roles and of the variables of loops inside.
Items::Walk Items::entered(Walk walk, const Loop& l) {
    walk.loops.push_back({l.var, analysis::normal(substitute(l.extent, walk.lets))});
    for (const Let& x : l.lets) walk.lets.insert_or_assign(x.name, substitute(x.value, walk.lets));
    return walk;
}

void Items::inside(const Body& body, const Walk& walk, const std::string& role) {
    for (const Stmt& s : body) {
        if (const auto* l = std::get_if<Loop>(&s->node)) inside(l->body, entered(walk, *l), role);
        check(!std::holds_alternative<Roles>(s->node), s->loc, fmt::format("the role `{}` has roles inside", role));
        if (std::holds_alternative<If>(s->node)) {
            Walk below = walk;
            below.conditional = true;
            for (const Body* inner : bodies_of(s)) inside(*inner, below, role);
        }
        const auto* y = std::get_if<Sync>(&s->node);
        if (y && y->op == SyncOp::Acquire) acquire(*y, walk, s->loc);
        if (y && y->op == SyncOp::Wait) wait(*y, walk, role, s->loc);
        if (y && y->op == SyncOp::Take) known(walk, s->loc);
    }
}

/// Iterations are counted: each takes place, and as often in each iteration of the loops around.
void Items::known(const Walk& walk, Loc loc) {
    check(!walk.conditional, loc, "what stands under a condition cannot be counted by the threads of another role", "see `pipeline`, which needs no roles");
    for (size_t i = 1; i < walk.loops.size(); ++i)
        for (size_t k = 0; k < i; ++k)
            check(!analysis::mentions(walk.loops[i].extent, walk.loops[k].var), loc, fmt::format("the trips of `{}` change with `{}`: the versions of both cannot be counted", walk.loops[i].var, walk.loops[k].var),
                  fmt::format("make `{}` a loop of the grid: specialise inside it", walk.loops[k].var));
}

void Items::acquire(const Sync& y, const Walk& walk, Loc loc) {
    const auto d = std::ranges::find(home_, y.name, &Decl::name);
    check(d != home_.end(), loc, fmt::format("`{}` does not belong to the loop around the roles", y.name));
    bool keys = y.key.size() == walk.loops.size();
    for (size_t i = 0; keys && i < y.key.size(); ++i) keys = is_name(y.key[i], walk.loops[i].var);
    check(keys, loc, fmt::format("the keys of `{}` are not the loops around the statement that fills it", y.name));
    check(extents_.emplace(y.name, extents_of(walk)).second, loc, fmt::format("`{}` is filled at two places", y.name));
    known(walk, loc);
}

/// Threads wait for a phase by its parity, so they must not fall two phases behind: a role reads every version, or holds a turn while it reads its own.
void Items::wait(const Sync& y, const Walk& walk, const std::string& role, Loc loc) {
    for (const Index& e : y.key)
        for (const Level& l : walk.loops) {
            const auto a = analysis::affine(e, l.var);
            const bool next = !analysis::mentions(e, l.var) || (a && is_const(a->coefficient, 1));
            check(next || takes_.contains(role), loc, fmt::format("`{}` skips versions of `{}`: it would not know which phase it waits for", role, y.name), "let the roles take turns: see ping_pong");
        }
}

std::vector<Index> Items::extents_of(const Walk& walk) {
    std::vector<Index> out;
    for (const Level& l : walk.loops) out.push_back(l.extent);
    return out;
}

Index Items::horner(const std::vector<Index>& key, const std::vector<Index>& extents) {
    Index n = constant(0);
    for (size_t i = 0; i < key.size(); ++i) n = i == 0 ? key[0] : n * extents[i] + key[i];
    return analysis::normal(n);
}

Index Items::number(const std::string& ring, const std::vector<Index>& key) const { return horner(key, extents_.at(ring)); }

Body Items::numbered_turns(const Body& body) const {
    Body out;
    for (const Stmt& s : body) out.push_back(numbered(s, {}));
    return out;
}

Stmt Items::numbered(const Stmt& s, const Walk& walk) const {
    const auto* y = std::get_if<Sync>(&s->node);
    if (y && y->op == SyncOp::Take) {
        std::vector<Index> key;
        for (const Level& l : walk.loops) key.push_back(name(l.var));
        return with_node(s, Sync{y->op, y->name, {horner(key, extents_of(walk))}});
    }
    const auto* l = std::get_if<Loop>(&s->node);
    const Walk below = l ? entered(walk, *l) : walk;
    return map_bodies(s, [&](const Body& body) {
        Body out;
        for (const Stmt& x : body) out.push_back(numbered(x, below));
        return out;
    });
}

}  // namespace acu::ir::lower
