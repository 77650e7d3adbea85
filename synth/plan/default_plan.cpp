#include "synth/plan/default_plan.h"

#include "synth/plan/align_names.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

std::vector<ir::pass::Step> default_steps(const ir::Program& loops, const Target& target) {
    if (target.platform == Platform::Cpu) return {};
    Draft draft(loops, target);
    align_names(draft);
    bool any = false;    // names alone are no plan
    for (const Group& g : groups_of(draft.program()))
        if (auto better = kernel_for(draft, g)) draft = std::move(*better), any = true;
    return any ? draft.steps() : std::vector<ir::pass::Step>{};
}

}  // namespace acu::synth::plan
