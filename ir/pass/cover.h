#pragma once
#include "ir/pass/window.h"

namespace acu::ir::pass {

/// Is every cell that `user` names by `subscripts` written by `fill` before, at the same iteration of all loops around both? `fill` writes it by `=`. Answers why that
/// is not known; empty: it is proven.
std::string uncovered(const Program& p, const Place& fill, const Access& filled, const Place& user, const std::vector<Index>& subscripts);

}  // namespace acu::ir::pass
