#include "ir/pass/stage_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::ir::pass {

StageSource::StageSource(const Program& p, std::string name, const StageRequest& r) : program(p), buffer(std::move(name)), home(find_loop(p, r.at)) {
    const std::vector<Stmt> around = above();
    decl = buffer_at(p, {home.stmt, around, home.role}, buffer);
    need(decl, "stage.buffer", fmt::format("`{}` is not alive in the loop `{}`", buffer, r.at), "stage it at the loop that owns it or inside");
    need(decl->ring.versions == 0, "stage.ring", fmt::format("`{}` is a ring", buffer), "stage it before the loop is pipelined");
    inner = names_made_in(loop_of(home).body);
    find_readers(r);
    find_load();
    find_place(r);
}

std::vector<Stmt> StageSource::above() const {
    std::vector<Stmt> out = home.above;
    out.push_back(home.stmt);
    return out;
}

static void loads_in_values(const Block& b, const std::string& buffer, std::vector<Value>& out) {
    for (const Value& v : b.vals)
        for_each_load(v, [&](const Value& l) {
            if (l->name == buffer && std::ranges::none_of(out, [&](const Value& x) { return same(x->subscripts, l->subscripts) && x->args.size() == l->args.size() && (l->args.empty() || equal(x->args[0], l->args[0])); })) out.push_back(l);
        });
}

void StageSource::find_readers(const StageRequest& r) {
    for_each_place(program, [&](const Place& x) {
        const Block* b = as_block(x.stmt);
        if (!b || std::ranges::find(x.above, home.stmt) == x.above.end()) return;
        std::vector<Value> loads;
        loads_in_values(*b, buffer, loads);
        const bool named = std::ranges::find(r.readers, b->label) != r.readers.end();
        need(!named || !loads.empty(), "stage.access", fmt::format("`{}` does not read `{}`", b->label, buffer), {}, x.stmt->loc);
        if (!loads.empty() && (r.readers.empty() || named)) readers.push_back(x);
    });
    need(!readers.empty(), "stage.place", fmt::format("no statement in the loop `{}` reads `{}`", r.at, buffer));
    for (const std::string& label : r.readers) {
        const bool found = std::ranges::any_of(readers, [&](const Place& x) { return block_of(x).label == label; });
        need(found, "stage.place", fmt::format("`{}` is not in the loop `{}`", label, r.at));
    }
}

/// Is a load of the buffer reached only under a condition in the value?
static bool under_condition(const Value& v, const std::string& buffer, bool under) {
    if (v->op == Op::Load && v->name == buffer && under) return true;
    const bool lazy = v->op == Op::Select || v->op == Op::And || v->op == Op::Or || v->op == Op::Load;
    for (size_t i = 0; i < v->args.size(); ++i)
        if (under_condition(v->args[i], buffer, under || (lazy && (i > 0 || v->op == Op::Load)))) return true;
    return false;
}

void StageSource::find_load() {
    std::vector<Value> loads;
    for (const Place& x : readers) {
        loads_in_values(block_of(x), buffer, loads);
        conditional |= std::ranges::any_of(block_of(x).vals, [&](const Value& v) { return under_condition(v, buffer, false); });
        conditional |= std::any_of(x.above.begin() + static_cast<std::ptrdiff_t>(home.above.size()), x.above.end(), [](const Stmt& s) { return std::holds_alternative<If>(s->node); });
        need(std::none_of(x.above.begin() + static_cast<std::ptrdiff_t>(home.above.size()), x.above.end(), [](const Stmt& s) { return std::holds_alternative<Roles>(s->node); }), "stage.role",
             fmt::format("`{}` runs in a role inside the loop", block_of(x).label), "stage before the roles are made, or at a loop in the role", x.stmt->loc);
    }
    need(loads.size() == 1, "stage.access", fmt::format("`{}` is read in {} ways", buffer, loads.size()), "name the statements that read it alike, in `readers`");
    load = loads[0];
}

void StageSource::find_place(const StageRequest& r) {
    const Body& body = loop_of(home).body;
    std::set<std::string> wanted, sources{buffer};
    for (const Place& x : readers) {
        wanted.insert(block_of(x).label);
        const Loop* apart = divides_scope(loops_of_reader(x), r.scope);
        need(!apart, "stage.scope", fmt::format("`{}` runs in the {} loop `{}`, whose iterations do not share {} memory", block_of(x).label, apart ? name_of(apart->kind) : "", apart ? apart->var : "", name_of(r.scope)),
             "stage it at that loop", x.stmt->loc);
        for (const Value& g : block_of(x).guards) for_each_load(g, [&](const Value& v) { sources.insert(v->name); });
    }
    for (const Index& e : load->subscripts) loaded_tensors(e, sources);
    while (!meet(labels_in(body[first]), wanted)) ++first;
    const std::set<std::string> later = written(Body(body.begin() + static_cast<std::ptrdiff_t>(first), body.end()));
    for (const std::string& s : sources) need(!later.contains(s), "stage.stale", fmt::format("`{}` changes in the loop `{}` after the copy", s, r.at), "stage it at a loop inside, after the change");
}

}  // namespace acu::ir::pass
