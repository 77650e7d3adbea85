#include "synth/plan/default_plan.h"

#include "synth/plan/align_names.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

std::vector<ir::pass::Step> default_steps(const ir::Program& loops, const Target& target) {
    if (target.platform == Platform::Cpu) return {};
    Draft draft(loops, target);
    align_names(draft);
    const size_t names_only = draft.steps().size();
    for (const Group& g : groups_of(draft.program()))
        if (auto better = kernel_for(draft, g)) draft = std::move(*better);
    if (draft.steps().size() == names_only || !draft.lowers()) return {};
    return draft.steps();
}

}  // namespace acu::synth::plan
