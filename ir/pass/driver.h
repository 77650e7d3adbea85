#pragma once
#include "ir/pass/pass.h"

namespace acu::ir::pass {

struct Applied {
    Program program;
    std::vector<Lineage> lineage;
    bool effect = true;    ///< false: the step changed nothing
};

/// Looks at a step while it is applied: for dumps, traces and timing.
struct Observer {
    virtual ~Observer() = default;
    virtual void before(int, const Step&, const Program&) {}
    virtual void after(int, const Step&, const Program&, double /*seconds*/) {}
};

/// Applies step number `id` to a loop-level program: resolves its sites, reads its parameters, runs the pass, verifies the result and stamps the id on every
/// statement that is new or changed. The only place where a pass runs. `pass`: instead of the registered one of that name (a test's, that is broken on purpose).
/// Failure codes: `pass.unknown`, `site.*`, `param.*`, those of the pass, `verify.*`.
std::variant<Applied, Failure> apply_step(const Program& p, int id, const Step& step, const Context& context, Observer* observer = nullptr, const Pass* pass = nullptr);

/// All steps in order, from step number `first`; stops at the first failure.
struct Replayed {
    Program program;
    std::vector<Applied> steps;    ///< those that were applied
    std::optional<Failure> failure;
    size_t failed_at = 0;          ///< index of the step that failed
};
Replayed replay(const Program& start, const std::vector<Step>& steps, const Context& context, Observer* observer = nullptr);

}  // namespace acu::ir::pass
