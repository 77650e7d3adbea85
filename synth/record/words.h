#pragma once
#include "synth/record/plan.h"

// A plan as a schedule block, and back, without loss. What the language has no words for stands in documentation comments, one tag a line:
//   /// @definition 0123456789abcdef
//   schedule linear for sm_80 when M >= 512 {
//     /// @by search
//     /// the reason, in words
//     tile(acc, k = 64)
//   }
namespace acu::synth::record {

/// Codes `schedule.tag` (a comment that starts with `@` and is no tag, or its value is wrong), at the block or step.
Plan plan_of(const frontend::ScheduleDecl& block, std::vector<Diagnostic>& found);

std::string print_schedule(const Plan& p);

}  // namespace acu::synth::record
