#include "ir/pass/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"

namespace acu::ir::pass {

static std::vector<std::string> role_names(const Program& p) {
    std::vector<std::string> out;
    for_each_place(p, [&](const Place& x) {
        if (const auto* r = std::get_if<Roles>(&x.stmt->node))
            for (const Role& role : r->roles) out.push_back(role.name);
    });
    return out;
}

RolePlace find_role(const Program& p, const std::string& name) {
    std::optional<RolePlace> found;
    for_each_place(p, [&](const Place& x) {
        const auto* r = std::get_if<Roles>(&x.stmt->node);
        for (size_t i = 0; r && !found && i < r->roles.size(); ++i)
            if (r->roles[i].name == name) found = RolePlace{x.stmt, x.above, i};
    });
    if (!found) refuse("site.unknown", fmt::format("no role is named `{}`", name), did_you_mean(name, role_names(p)));
    return *found;
}

std::string unique_role(const Program& p, const std::string& stem) {
    const std::vector<std::string> used = role_names(p);
    std::string name = stem;
    for (int i = 2; std::ranges::find(used, name) != used.end(); ++i) name = stem + std::to_string(i);
    return name;
}

std::set<std::string> rings_waited(const Body& body) {
    std::set<std::string> out;
    any_inside(body, [&](const Stmt& s) {
        if (const auto* y = std::get_if<Sync>(&s->node); y && (y->op == SyncOp::Wait || y->op == SyncOp::Release)) out.insert(y->name);
        return false;
    });
    return out;
}

RoleCopies::RoleCopies(const Program& p, const RolePlace& at, int64_t count, std::string code) : p_(p), at_(at), count_(count), code_(std::move(code)) {
    const Body& body = at.role().body;
    check(!at.above.empty(), ".place", fmt::format("the role `{}` stands in no loop", at.role().name));
    rings_ = rings_waited(body);
    any_inside(body, [&](const Stmt& s) {
        const auto* y = std::get_if<Sync>(&s->node);
        check(!y || y->op == SyncOp::Wait || y->op == SyncOp::Release, ".role", fmt::format("the role `{}` holds `{}`: it is no reader of rings alone", at.role().name, y ? name_of(y->op) : ""));
        check(!as_loop(s) || !is_parallel(as_loop(s)->kind), ".kind", fmt::format("the loop `{}` of `{}` runs its iterations together", as_loop(s) ? as_loop(s)->var : "", at.role().name));
        return false;
    });
    const std::set<std::string> made = written(body), around = local_buffers(at.above);
    std::set<std::string> loaded = control_reads(body);
    for_each_block(body, [&](const Block& b, Loc) {
        loaded.merge(tensors_read(b));
        check(!is_scatter(b), ".scatter", fmt::format("`{}` writes where the data say: its order would change", b.label));
    });
    for (const std::string& t : made) {
        if (around.contains(t)) own_.insert(t);
        const Decl* d = p.find(t);
        if (!d || around.contains(t)) continue;
        check(d->scope == Scope::Out, ".temp", fmt::format("`{}` writes the workspace `{}`", at.role().name, t), "keep it in the loop");
        check(!loaded.contains(t), ".output", fmt::format("`{}` reads the output `{}` that it writes", at.role().name, t), "keep it in the loop");
    }
    for_each_place(p, [&](const Place& x) {
        const Block* b = as_block(x.stmt);
        const bool inside = std::ranges::find(x.above, at.stmt) != x.above.end() && x.role == at.role().name;
        if (!b || inside || std::ranges::find(x.above, at.above.front()) == x.above.end()) return;
        for (const std::string& t : touched(x.stmt)) check(!own_.contains(t), ".shared", fmt::format("`{}` outside `{}` uses its buffer `{}`", b->label, at.role().name, t));
    });
}

std::map<std::string, std::string> RoleCopies::renames(int64_t w) const {
    std::map<std::string, std::string> out;
    for (const std::string& t : own_) out[t] = unique_name(p_, fmt::format("{}.{}", t, w));
    return out;
}

/// A loop around the roles: its buffers that are the role's own, one a copy; rings that all copies read are released by each.
Stmt RoleCopies::owner(const Stmt& s, const std::function<Decl(int64_t, const Decl&)>& shape, bool all_read) const {
    Loop n = *as_loop(s);
    std::vector<Decl> now;
    for (Decl d : n.allocs) {
        if (rings_.contains(d.name) && all_read) d.ring.readers += count_ - 1;
        if (!own_.contains(d.name)) {
            now.push_back(std::move(d));
            continue;
        }
        for (int64_t w = 0; w < count_; ++w) {
            now.push_back(shape(w, d));
            now.back().name = renames(w).at(d.name);
        }
    }
    n.allocs = std::move(now);
    return with_node(s, std::move(n));
}

Rewrite RoleCopies::build(const std::function<Body(int64_t)>& make, const std::function<Decl(int64_t, const Decl&)>& shape, const Body& before, bool all_read) const {
    Rewrite out;
    Roles roles = std::get<Roles>(at_.stmt->node);
    const Role old = at_.role();
    roles.roles.erase(roles.roles.begin() + static_cast<std::ptrdiff_t>(at_.index));
    for (int64_t w = 0; w < count_; ++w) {
        Role copy{unique_role(p_, fmt::format("{}.{}", old.name, w)), old.threads, old.registers, {}};
        for (const Stmt& s : make(w)) copy.body.push_back(rename_buffers(clone(p_, s, fmt::format(".{}", w), false, out.lineage), renames(w)));
        roles.roles.insert(roles.roles.begin() + static_cast<std::ptrdiff_t>(at_.index) + w, std::move(copy));
    }
    Body now = before;
    now.push_back(with_node(at_.stmt, std::move(roles)));
    const std::function<Body(const Body&)> inside = [&](const Body& body) {
        Body result;
        for (const Stmt& s : body) {
            if (s == at_.stmt) result.insert(result.end(), now.begin(), now.end());
            else if (std::ranges::find(at_.above, s) == at_.above.end()) result.push_back(s);
            else result.push_back(as_loop(s) ? owner(map_bodies(s, inside), shape, all_read) : map_bodies(s, inside));
        }
        return result;
    };
    out.program = p_;
    out.program.body = inside(p_.body);
    return out;
}

}  // namespace acu::ir::pass
