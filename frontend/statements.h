#pragma once
#include "frontend/elaborate.h"

namespace acu::frontend {

/// Elaborates all statements of an operator's body into blocks of the program under construction.
void elaborate_body(Instance& instance);

/// Substitutes a call of an operator: `targets = op(args)`. Defined in calls.cpp.
void substitute_call(Instance& caller, const Statement& s, const OpDecl& op, const Module& home);

}  // namespace acu::frontend
