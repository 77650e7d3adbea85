#pragma once
#include "ir/program.h"

namespace acu::ir::lower {

/// Tensor level to loop level: every reduction inside a value becomes a fill and an accumulation into a buffer of its own. Terms that are absent
/// (docs/language.md, "Masks and -inf") become guards.
///   y[m] = (sum(n in N) x[m, n])/N   ->   y.acc[m] = 0;  y.acc[m] += x[m, n] over m, n!;  y[m] = y.acc[m]/N
Program lower_reductions(const Program& tensor);

/// The plan for any legal operator: each block with its fill is one kernel of one thread a cell; reductions run inside the thread, sums of floats in f64.
///   acc.init; acc   ->   for u in M*N grid, m = …, n = … { acc.r: register f64[]; acc.r[] = 0; acc.r[] += …; acc[m, n] = acc.r[] }
Program fallback_plan(const Program& loops);

/// The same program in f64: floats are computed and stored in f64 and casts between floats do nothing, so only the rounding of f64 is left. Inputs keep their types.
Program in_float64(const Program& p);

}  // namespace acu::ir::lower
