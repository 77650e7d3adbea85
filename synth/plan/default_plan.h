#pragma once
#include "ir/pass/pass.h"
#include "synth/plan/size_classes.h"

namespace acu::synth::plan {

/// Decisions for sizes in these bounds; none: for every size.
struct Alternative {
    SizeClass bounds;
    std::vector<ir::pass::Step> steps;
};

/// Decisions for an operator about which no plan speaks, by rules about bytes, threads and loads on their way: no measurement, milliseconds. `loops`: after `lower_reductions`.
/// The first whose bounds hold is meant; the last, and where all sizes that matter are fixed the only one, has none. Each step says why. No steps: nothing better than one thread a
/// cell is known. What comes out lowers for the target.
std::vector<Alternative> default_plan(const ir::Program& loops, const Target& target);

}  // namespace acu::synth::plan
