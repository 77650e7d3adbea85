#pragma once
#include "ir/pass/edit.h"

namespace acu::ir::pass {

/// Moves the statement and its fill into the loop, where they compute into a buffer of its iterations the box that one iteration reads. Refuses with codes `compute_at.*`.
Rewrite recompute(const Program& p, const std::string& label, const std::string& loop);

}  // namespace acu::ir::pass
