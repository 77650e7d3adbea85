#include "ir/pass/bind_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"

namespace acu::ir::pass {

template <class List>
static std::string listed(const List& list) {
    std::string s;
    for (const auto& x : list) s += (s.empty() ? "" : ", ") + std::string(name_of(x));
    return s;
}

const Microkernel& microkernel_for(const Context& context, const std::string& id, MicrokernelKind kind) {
    const Microkernel* m = context.microkernel ? context.microkernel(id) : nullptr;
    if (!m) refuse("bind.unknown", fmt::format("no microkernel is named `{}`", id), "see `acuc microkernels list`");
    need(m->kind == kind, "bind.kind", fmt::format("`{}` is a microkernel for a {}, not a {}", id, name_of(m->kind), name_of(kind)), "see `acuc microkernels list`");
    if (!context.target) return *m;
    std::vector<std::string> targets;
    for (const MicrokernelTarget& t : m->targets) targets.push_back(t.name);
    need(m->on(context.target->name), "bind.target", fmt::format("`{}` is not for {}, but for {}", id, context.target->name, fmt::join(targets, ", ")), "leave the statement unbound there");
    need(context.stamped && context.stamped(*m, *context.target), "bind.stamp", fmt::format("`{}` has no valid stamp for {}: nobody compared it with its reference", id, context.target->name), "run `acuc microkernels validate`");
    return *m;
}

void check_type(const Microkernel& m, const Block& b, const Decl& d, Loc loc) {
    need(std::ranges::find(m.types, d.type) != m.types.end(), "bind.type", fmt::format("`{}` of `{}` holds {}, but `{}` takes {}", d.name, b.label, name_of(d.type), m.id, listed(m.types)), "", loc);
}

void check_monoid(const Microkernel& m, const Block& b, Loc loc) {
    std::string all;
    for (const Monoid x : m.monoids) all += (all.empty() ? "" : ", ") + std::string(info(x).name);
    need(std::ranges::find(m.monoids, b.monoid) != m.monoids.end(), "bind.kind", fmt::format("`{}` combines by {}, but `{}` by {}", b.label, b.monoid == Monoid::None ? "nothing" : info(b.monoid).name, m.id, all), "", loc);
}

bool may_lie(const MicrokernelOperand& operand, const Decl& d) { return std::ranges::find(operand.scopes, d.scope) != operand.scopes.end(); }

void check_scope(const Microkernel& m, const MicrokernelOperand& operand, const Block& b, const Decl& d, Loc loc) {
    need(may_lie(operand, d), "bind.scope", fmt::format("`{}` of `{}` is {}, but `{}` takes its `{}` from {}", d.name, b.label, name_of(d.scope), m.id, operand.name, listed(operand.scopes)), "keep or stage it there first", loc);
}

static int64_t threads_of(const Place& at) {
    for (const Stmt& s : loops_of(at.above))
        if (as_loop(s)->threads) return as_loop(s)->threads;
    return 0;
}

void check_group(const Microkernel& m, const Place& at, const Context& context) {
    const std::string& label = block_of(at).label;
    const int warp = context.target ? context.target->warp : 32;
    const int64_t threads = threads_of(at);
    const bool whole = m.group < ThreadGroup::Block || at.role.empty();
    need(whole, "bind.shape", fmt::format("`{}` stands in the role `{}`, but all threads of a {} call `{}` together", label, at.role, name_of(m.group), m.id), "bind one for a warp there", at.stmt->loc);
    const bool few = threads > 1 && threads < warp && warp % threads == 0;
    need(m.group != ThreadGroup::Lanes || few, "bind.shape", fmt::format("`{}` runs on {} threads, but `{}` joins 2, 4 or more lanes, fewer than the {} of a warp", label, threads, m.id, warp), "bind what joins a warp or a block", at.stmt->loc);
    need(m.group <= ThreadGroup::Lanes || threads % warp == 0, "bind.shape", fmt::format("the {} threads of `{}` are no whole warps of {}", threads, label, warp), "", at.stmt->loc);
    need(m.group != ThreadGroup::Warp || threads == 0 || threads == warp || !at.role.empty(), "bind.shape", fmt::format("`{}` runs on {} threads, but `{}` joins one warp of {}", label, threads, m.id, warp),
         "bind what joins a block, or give the kernel one warp", at.stmt->loc);
    need(m.group != ThreadGroup::Block || threads <= m.most_threads, "bind.shape", fmt::format("`{}` runs on {} threads, but `{}` on at most {}", label, threads, m.id, m.most_threads), "", at.stmt->loc);
    const bool cluster = threads > block_of_cluster && threads <= m.most_threads;
    need(m.group != ThreadGroup::Cluster || cluster, "bind.shape", fmt::format("`{}` has {} threads, but `{}` joins those of a cluster, more than {} and at most {}", label, threads, m.id, block_of_cluster, m.most_threads), "say so with `vectorize(…, threads = 2048)`", at.stmt->loc);
}

Rewrite bind_statements(const Program& p, const std::vector<std::string>& names, const Microkernel& m, const std::function<void(const Place&)>& check) {
    Rewrite out{p, {}};
    for (const std::string& name : names)
        for (const Place& at : family(out.program, name)) {
            check(at);
            Block b = block_of(at);
            b.via = m.id;
            out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, std::move(b))});
        }
    return out;
}

}  // namespace acu::ir::pass
