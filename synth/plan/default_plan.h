#pragma once
#include "ir/pass/pass.h"

namespace acu::synth::plan {

/// Decisions for an operator about which no plan speaks, by rules about bytes, threads and loads on their way: no measurement, milliseconds. `loops`: after `lower_reductions`.
/// Each step says why. Empty: nothing better than one thread a cell is known. What comes out lowers for the target.
std::vector<ir::pass::Step> default_steps(const ir::Program& loops, const Target& target);

}  // namespace acu::synth::plan
