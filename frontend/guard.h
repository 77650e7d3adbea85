#pragma once
#include "frontend/instantiate.h"

// The condition on sizes under which a plan may be used: the expression after `when`, or the same as text in a plan file.
namespace acu::frontend {

/// The condition as the language writes it, on one line.
std::string condition_text(const Expr& e);

/// Reads what `condition_text` writes. Code `plan.when`.
Result<ExprPtr> parse_condition(const std::string& text);

/// What must hold, in the order in which it can be evaluated: that divisors are not 0, then each part of the conjunction. Codes `name.*`, `type.*`, `where.condition`, `schedule.when`.
std::vector<ir::Value> guard_of(const Module& home, const OpDecl& op, const Bindings& bindings, const ExprPtr& when, std::vector<Diagnostic>& found);

}  // namespace acu::frontend
