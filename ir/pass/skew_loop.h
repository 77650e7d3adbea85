#pragma once
#include "ir/pass/edit.h"

namespace acu::ir::pass {

/// What `skew`, `pipeline`, `overlap` and `prefetch` ask for: for t in T { A; B; C }  ->  A(0..by-1) B(0); for t in T { if t+by < T { A(t+by) }; C(t); if t+1 < T { B(t+1) } }
/// with A = `ahead`, C from the first of `behind` on, B all between (where `behind` is empty: C is all but A).
struct SkewRequest {
    std::string loop;
    std::vector<std::string> ahead, behind = {};
    int64_t by = 1;
    int64_t spare = 0;    ///< further versions of the rings between A and C, for readers that end later than they return
};
/// Moves statements of later iterations ahead. Codes `CODE.*`.
Rewrite skew_loop(const Program& p, const SkewRequest& request, const std::string& code);

}  // namespace acu::ir::pass
