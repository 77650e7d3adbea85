#pragma once
#include "ir/pass/online_chain.h"
#include "ir/pass/slices.h"

namespace acu::ir::pass {

/// The chain in slices of its axis, each against its own maximum, and a join that corrects them. Refuses with codes `split_online.*`.
Rewrite online_in_slices(const Program& p, OnlineChain chain, const SliceRequest& r);

}  // namespace acu::ir::pass
