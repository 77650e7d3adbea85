#include "tests/faults/faults.h"

namespace acu::faults {

using namespace ir;

static Scene on(Scene s, const std::string& target) { return s.target = target, s; }

/// A tile of 128 KiB.
static Scene large() {
    Scene s = product();
    s.steps = {R"({"pass": "fuse", "scope": ["y"], "params": {"over": {"m": 8}, "kind": "grid"}})", R"({"pass": "tile", "scope": ["y"], "params": {"axes": {"k": 4096}}})",
               R"({"pass": "stage", "scope": ["x"], "params": {"at": "k.o"}})"};
    s.dims = {{"M", 3}, {"N", 2}, {"K", 9}};
    s.target = "gfx90a";
    return s;
}

/// x % 3   ->   x % 2
static Index other_slot(const Index& e) { return e->op == IndexOp::Mod && is_const(e->args[1], 3) ? mod(e->args[0], constant(2)) : nullptr; }

/// m < 4*m.o + 4, which is for threads beyond the tile
static Program without_tile_guards(const Program& p) {
    return rebuilt(p, [](const Stmt& s) -> Body {
        const auto* b = std::get_if<Block>(&s->node);
        if (!b) return {s};
        Block n = *b;
        std::erase_if(n.guards, [](const Value& g) { return describe(g).find(".o") != std::string::npos; });
        return {with_node(s, std::move(n))};
    });
}

std::vector<Fault> lowering_faults() {
    return {
        {"place_barriers: one barrier less", lifted(), {"run.D5", Cause::Lowering, {3}, "place_barriers"}, {}, "place_barriers", [](const Program& p) { return without_sync_before(p, SyncOp::Barrier, "y"); }},
        {"place_barriers: one barrier less in a ring", product(), {"run.D5", Cause::Lowering, {4}, "place_barriers"}, {}, "place_barriers", [](const Program& p) { return without_sync_before(p, SyncOp::Barrier, "y"); }},
        {"place_slots: the wrong modulus", product(), {"run.D2", Cause::Lowering, {5}, "place_slots"}, {}, "place_slots", [](const Program& p) { return change_index(p, other_slot); }},
        {"distribute_blocks: no guard of the threads", on(product(), "gfx90a"), {"run.D1", Cause::Lowering, {1}, "distribute_blocks"}, {}, "distribute_blocks", without_tile_guards},
        {"place_barriers: no wait for copies", asynchronous(), {"emu.missing-wait", Cause::Lowering, {6}, "place_barriers"}, {}, "place_barriers",
         [](const Program& p) { return without_sync_before(p, SyncOp::CopyWait, "y"); }},
        {"split_roles: a ring is not released", roles(), {"run.D7", Cause::Lowering, {5}, "split_roles"}, {}, "split_roles", [](const Program& p) { return without_sync_of(p, SyncOp::Release, "w.t"); }},
        {"place_slots: a ring is not waited for", roles(), {"run.D6", Cause::Lowering, {5}, "place_slots"}, {}, "place_slots", [](const Program& p) { return without_sync_of(p, SyncOp::Wait, "w.t"); }},
        {"check_resources: none", large(), {"emu.shared-limit", Cause::Lowering, {1, 3}, "check_resources"}, {}, "check_resources", [](const Program& p) { return p; }},
    };
}

}  // namespace acu::faults
