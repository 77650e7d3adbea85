#include "tests/faults/faults.h"

namespace acu::faults {

using namespace ir;

static Scene on(Scene s, const std::string& target) { return s.target = target, s; }

/// A tile of 64 KiB and more a block.
static Scene large() {
    Scene s = product();
    s.steps = {R"({"pass": "fuse", "scope": ["y"], "params": {"over": {"m": 4}, "kind": "grid"}})", R"({"pass": "tile", "scope": ["y"], "params": {"axes": {"k": 4096}}})",
               R"({"pass": "stage", "scope": ["x"], "params": {"at": "k.o"}})"};
    s.dims = {{"M", 3}, {"N", 2}, {"K", 9}};
    s.target = "gfx90a";
    return s;
}

std::vector<Fault> lowering_faults() {
    return {
        {"place_barriers: one barrier less", product(), {"run.D5", Cause::Lowering, {4}, "place_barriers"}, {}, "place_barriers", [](const Program& p) { return without_sync(p, SyncOp::Barrier, 0); }},
        {"place_slots: the wrong modulus", product(), {"run.D5", Cause::Lowering, {5}, "place_slots"}, {}, "place_slots",
         [](const Program& p) { return exchange(p, constant(3), constant(2)); }},
        {"distribute_blocks: no guard of the threads", on(product(), "gfx90a"), {"run.D4", Cause::Lowering, {1}, "distribute_blocks"}, {}, "distribute_blocks",
         [](const Program& p) { return change_block(p, "y.store", [](Block& b) { b.guards.clear(); }); }},
        {"place_barriers: no wait for copies", asynchronous(), {"emu.missing-wait", Cause::Lowering, {6}, "place_barriers"}, {}, "place_barriers",
         [](const Program& p) { return without_sync(p, SyncOp::CopyWait, 0); }},
        {"check_resources: none", large(), {"emu.shared-limit", Cause::Lowering, {3}, "check_resources"}, {}, "check_resources", [](const Program& p) { return p; }},
    };
}

}  // namespace acu::faults
