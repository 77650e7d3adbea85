#pragma once
#include "ir/pass/window.h"

namespace acu::ir::pass {

/// Gives a temporary or an output a window of its own in each iteration of the loop `at` (empty: the innermost one that holds all uses). Refuses with codes `keep.*`.
Rewrite keep_buffer(const Program& p, const std::string& buffer, const std::string& at, Scope scope);

}  // namespace acu::ir::pass
