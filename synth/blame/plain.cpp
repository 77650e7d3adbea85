#include <algorithm>
#include <set>

#include "synth/blame/bench.h"

// Programs that compute the same more plainly: what is right without a part was wrong with it.
namespace acu::synth::blame {

using namespace ir;

static Stmt unbound(const Stmt& s, const std::string& id) {
    if (const auto* b = std::get_if<Block>(&s->node)) {
        if (b->via != id) return s;
        Block n = *b;
        n.via.clear();
        return with_node(s, std::move(n));
    }
    return map_bodies(s, [&](const Body& body) {
        Body out;
        for (const Stmt& x : body) out.push_back(unbound(x, id));
        return out;
    });
}

Program without_microkernel(const Program& scheduled, const std::string& id) {
    Program p = scheduled;
    for (Stmt& s : p.body) s = unbound(s, id);
    return p;
}

std::vector<std::string> microkernels_in(const Program& scheduled) {
    std::set<std::string> ids;
    for_each_block(scheduled.body, [&](const Block& b, Loc) {
        if (!b.via.empty()) ids.insert(b.via);
    });
    return {ids.begin(), ids.end()};
}

// ---- in lockstep

static bool copies_later(const Program& p) {
    const auto ids = microkernels_in(p);
    return std::ranges::find(ids, "common.copy_async") != ids.end();
}

static void meet(Body& out, Loc loc, bool copies) {
    if (copies) {
        out.push_back(make_stmt(loc, Sync{SyncOp::CopyCommit}));
        out.push_back(make_stmt(loc, Sync{SyncOp::CopyWait, {}, {constant(0)}}));
    }
    out.push_back(make_stmt(loc, Sync{SyncOp::Barrier}));
}

/// Of statements that all threads reach together.
static Body met(const Body& stmts, bool copies) {
    Body out;
    for (const Stmt& s : stmts) {
        meet(out, s->loc, copies);
        const auto* l = std::get_if<Loop>(&s->node);
        const bool together = (l && l->kind != LoopKind::Thread) || std::holds_alternative<If>(s->node) || std::holds_alternative<Roles>(s->node);
        out.push_back(together ? map_bodies(s, [&](const Body& b) { return met(b, copies); }) : s);
    }
    if (!stmts.empty()) meet(out, stmts.back()->loc, copies);
    return out;
}

Program in_lockstep(const Program& kernels) {
    Program p = kernels;
    const bool copies = copies_later(p);
    for (Stmt& s : p.body) {
        const auto* kernel = std::get_if<Loop>(&s->node);
        if (!kernel || kernel->threads == 0) continue;
        s = with_node(s, lower::map_block_body(*kernel, [&](const Loop& inner) {
            Loop n = inner;
            n.body = met(inner.body, copies);
            return n;
        }));
    }
    return p;
}

}  // namespace acu::synth::blame
