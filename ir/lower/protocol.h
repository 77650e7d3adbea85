#pragma once
#include "ir/program.h"
#include "support/result.h"

namespace acu::ir::lower {

/// Plays the waits and releases of pipelined loops and of roles, before anything is emitted: for 0 to 2*versions + 1 trips of the loops around each ring, and for the second iteration of a block that
/// takes several tiles. Sizes that the plan fixed are varied, too. Code `protocol.*`, with the last events of each role: a version that is read before it is there, or after its slot was given back or
/// filled again; versions out of order; a role that waits for ever; copies that nobody waits for.
Status check_protocol(const Program& scheduled);

}  // namespace acu::ir::lower
