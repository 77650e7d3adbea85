#pragma once
#include "ir/pass/edit.h"

namespace acu::ir::pass {

/// Copies of one loop inside the loop `at` that a role of their own makes, `stages` iterations ahead at most.
struct ProducerRequest {
    std::string at;
    std::vector<std::string> copies;
    int64_t stages = 2, threads = 32;
    int64_t lag = 0;    ///< iterations whose products stay in flight while the next begins
};
/// Splits the loop into the roles `producer` and `consumer`. Codes `warp_specialize.*`.
Rewrite split_producer(const Program& p, const ProducerRequest& request);

}  // namespace acu::ir::pass
