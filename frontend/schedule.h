#pragma once
#include "frontend/instantiate.h"

namespace acu::frontend {

/// Checks a schedule block as a plan: its target, its condition, that each pass exists and takes what it is given, and that what it names exists
/// or can come from an earlier step. Codes `schedule.*`.
void check_schedule(const ScheduleDecl& s, const OpDecl& op, const Operator& instance, std::vector<Diagnostic>& found);

}  // namespace acu::frontend
