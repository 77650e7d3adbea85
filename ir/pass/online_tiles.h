#pragma once
#include "ir/pass/online_chain.h"

namespace acu::ir::pass {

/// The chain in one loop over tiles of its axis. `threshold`: how far a term may exceed the reference before that moves (0: it is the maximum so far). Refuses with codes `online.*`.
Rewrite online_in_tiles(const Program& p, OnlineChain chain, int64_t tile, int64_t threshold);

}  // namespace acu::ir::pass
