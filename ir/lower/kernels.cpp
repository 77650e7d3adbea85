#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {

// ---- known dimensions become numbers

Result<Program> fix_sizes(const Program& p, const Target&) {
    IndexMap known;
    for (const auto& [n, v] : known_dims(p)) known.emplace(n, constant(v));
    const auto index = [&](const Index& e) { return known.empty() ? e : analysis::normal(substitute(e, known)); };
    const auto value = [&](const Value& v) { return known.empty() ? v : substitute(v, known); };
    Program out = p;
    for (Stmt& s : out.body)
        if (std::holds_alternative<Loop>(s->node)) s = map_expressions(s, value, index);
    return out;
}

// ---- kernels

/// Loops below the grid run in their block: a cluster or warpgroup loop, and a grid loop that is not part of the nest at the top, take their iterations in turn.
static Stmt inside_block(const Stmt& s) {
    const Stmt inner = map_bodies(s, [](const Body& b) {
        Body out;
        for (const Stmt& x : b) out.push_back(inside_block(x));
        return out;
    });
    const auto* l = std::get_if<Loop>(&inner->node);
    if (!l || !is_parallel(l->kind)) return inner;
    Loop n = *l;
    n.kind = LoopKind::Serial;
    n.threads = 0, n.early = false;
    return with_node(inner, std::move(n));
}

static bool mentions_any(const Index& e, const Loop& l) {
    const auto names = analysis::names_in(e);
    return names.contains(l.var) || std::ranges::any_of(l.lets, [&](const Let& x) { return names.contains(x.name); });
}

/// Does a microkernel join the lanes of a warp? Roles have their own threads, so what they hold does not count.
static bool joins_lanes(const Body& body) {
    return !has_roles(body) && any_block(body, [](const Block& b) { return b.via.starts_with("common.warp_"); });
}

/// The threads of a kernel whose plan does not say: one warp where one joins its lanes.
static int64_t threads_for(const Loop& l, const Target& target) { return l.threads ? l.threads : joins_lanes(l.body) ? target.warp : default_threads; }

static Status check_lanes(const Stmt& s, const Target& target) {
    const auto& l = std::get<Loop>(s->node);
    if (l.threads == target.warp || !joins_lanes(l.body)) return ok();
    return Diagnostic{"lower.threads", s->loc, fmt::format("a microkernel joins the {} lanes of a warp, but the kernel of `{}` has {} threads", target.warp, l.var, l.threads), {}, "bind what joins a block, or give the kernel one warp"};
}

/// What stands in no grid loop runs in one block.
static Stmt one_block(const Program& p, const Stmt& s, const Target& target) {
    Loop one;
    one.var = unused_name(names_used(p, p.body), "one");
    one.kind = LoopKind::Grid;
    one.extent = constant(1);
    one.body = {inside_block(s)};
    if (const auto* l = std::get_if<Loop>(&s->node)) one.threads = l->threads;
    one.threads = threads_for(one, target);
    return make_stmt(s->loc, std::move(one));
}

/// Blocks of a cluster run side by side where they share what the copy engine brings; elsewhere one after another in one block.
static bool is_side_by_side(const Loop& l) {
    return l.kind == LoopKind::Cluster && is_const(analysis::normal(l.extent)) && any_block(l.body, is_multicast);
}

/// The outer loops of a kernel stay grid loops as far as they are a perfect nest whose extents do not depend on each other.
static Stmt grid_nest(const Stmt& s, const std::vector<const Loop*>& above, const Target& target) {
    const auto& l = std::get<Loop>(s->node);
    Loop n = l;
    if (above.empty()) n.threads = threads_for(l, target);    // what tells a planned kernel from one of one thread a cell
    std::vector<const Loop*> all = above;
    all.push_back(&l);
    const Loop* inner = l.body.size() == 1 ? std::get_if<Loop>(&l.body[0]->node) : nullptr;
    const bool nests = inner && l.kind == LoopKind::Grid && (inner->kind == LoopKind::Grid || is_side_by_side(*inner)) && l.allocs.empty() && std::ranges::none_of(all, [&](const Loop* a) { return mentions_any(inner->extent, *a); });
    n.body.clear();
    for (const Stmt& x : l.body) n.body.push_back(nests ? grid_nest(x, all, target) : inside_block(x));
    return with_node(s, std::move(n));
}

Result<Program> form_kernels(const Program& p, const Target& target) {
    Program q = p;
    for (Stmt& s : q.body) {
        if (std::holds_alternative<Block>(s->node)) continue;
        const auto* l = std::get_if<Loop>(&s->node);
        s = l && l->kind == LoopKind::Grid ? grid_nest(s, {}, target) : one_block(p, s, target);
        if (const Status lanes = check_lanes(s, target); !lanes) return lanes.why();
    }
    return fallback_plan(q);
}

static const Loop* next_of_nest(const Loop& l) {
    const Loop* inner = l.body.size() == 1 ? std::get_if<Loop>(&l.body[0]->node) : nullptr;
    return inner && (inner->kind == LoopKind::Grid || inner->kind == LoopKind::Cluster) ? inner : nullptr;
}

int64_t ranks_of(const Loop& kernel) {
    const Loop& last = *nest_of(kernel).back();
    return last.kind == LoopKind::Cluster ? last.extent->value : 1;
}

Loop map_block_body(const Loop& kernel, const std::function<Loop(const Loop&)>& f) {
    const Loop* inner = next_of_nest(kernel);
    if (!inner) return f(kernel);
    Loop n = kernel;
    n.body = {with_node(kernel.body[0], map_block_body(*inner, f))};
    return n;
}

std::vector<const Loop*> nest_of(const Loop& kernel) {
    std::vector<const Loop*> out{&kernel};
    while (const Loop* inner = next_of_nest(*out.back())) out.push_back(inner);
    return out;
}

int64_t cluster_of(const Loop& kernel) {
    constexpr int64_t most_threads = 1024;
    const bool joined = any_block(kernel.body, [](const Block& b) { return b.via == "common.cluster_reduce"; });
    int64_t blocks = 1;
    while ((joined || kernel.threads > most_threads) && kernel.threads > block_of_cluster * blocks) blocks *= 2;
    return blocks;
}

int64_t own_memory_stride(const Decl& tile) {
    const auto size = static_cast<int64_t>(info(tile.type).bytes), pieces = (tile.layout->size("reg") * size + 15) / 16;
    return (pieces | 1) * 16 / size;
}

int64_t threads_of(const Loop& kernel) { return kernel.threads ? kernel.threads : default_threads; }

}  // namespace acu::ir::lower
