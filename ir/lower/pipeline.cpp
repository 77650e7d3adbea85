#include "ir/lower/lower.h"

namespace acu::ir::lower {

const std::vector<LoweringStep>& lowering_steps() {
    static const std::vector<LoweringStep> steps{
        {"fix_sizes", "known dimensions become numbers", true, &fix_sizes},
        {"split_roles", "each role gets whole warps of the block and buffers of its own; turns are counted", true, &split_roles},
        {"form_kernels", "every top-level statement becomes a grid loop; what no plan spoke of runs one thread a cell", true, &form_kernels},
        {"infer_layouts", "every register tile gets a layout, or a place in shared memory where its users do not agree on one", true, &infer_layouts},
        {"distribute_blocks", "blocks become loops over threads; bound reductions become partial results and a collective", false, &distribute_blocks},
        {"place_barriers", "asynchronous copies get their groups; waits and barriers stand before the first statement that depends on another thread", true, &place_barriers},
        {"place_slots", "versions of rings become slots", true, &place_slots},
        {"check_resources", "shared bytes and threads against the target", true, &check_resources},
    };
    return steps;
}

Result<Program> schedule_to_kernels(const Program& scheduled, const Target& target, const std::function<void(const LoweringStep&, const Program&)>& after) {
    Program p = scheduled;
    for (const LoweringStep& step : lowering_steps()) {
        auto next = step.run(p, target);
        if (!next) return next.why();
        p = std::move(*next);
        if (after) after(step, p);
    }
    return p;
}

}  // namespace acu::ir::lower
