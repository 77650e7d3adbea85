#pragma once
#include "ir/pass/edit.h"

namespace acu::ir::pass {

/// How `fuse` and `tile` make a loop of an axis.
struct FuseRequest {
    std::vector<std::string> labels;
    std::string axis;
    int64_t tile = 1;
    LoopKind kind = LoopKind::Serial;
    std::string into = {};
};
/// Runs the statements in one loop over tiles of the axis. Refuses with codes `CODE.*`.
Rewrite fuse_over(const Program& p, const FuseRequest& request, const std::string& code);

}  // namespace acu::ir::pass
