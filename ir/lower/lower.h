#pragma once
#include <functional>

#include "ir/program.h"
#include "target/target.h"

namespace acu::ir::lower {

/// Tensor level to loop level: every reduction inside a value becomes a fill and an accumulation into a buffer of its own. Terms that are absent
/// (docs/language.md, "Masks and -inf") become guards.
///   y[m] = (sum(n in N) x[m, n])/N   ->   y.acc[m] = 0;  y.acc[m] += x[m, n] over m, n!;  y[m] = y.acc[m]/N
Program lower_reductions(const Program& tensor);

/// The plan for any legal operator: each block with its fill is one kernel of one thread a cell; reductions run inside the thread, sums of floats in f64. What
/// stands in loops already stays.
///   acc.init; acc   ->   for u in M*N grid, m = …, n = … { acc.r: register f64[]; acc.r[] = 0; acc.r[] += …; acc[m, n] = acc.r[] }
Program fallback_plan(const Program& loops);

/// The same program in f64: floats are computed and stored in f64 and casts between floats do nothing, so only the rounding of f64 is left. Inputs keep their types.
Program in_float64(const Program& p);

// ---- the fixed lowering of a scheduled program to kernels: no choices, small steps, each of which answers a program that still runs

/// Threads of a block whose plan does not say.
inline constexpr int64_t default_threads = 256;

struct LoweringStep {
    std::string_view name, doc;
    bool ordered;    ///< what it answers has all its barriers (before that, threads have no order)
    Result<Program> (*run)(const Program& p, const Target& target);
};
/// In order. Codes `lower.*`: what a target cannot hold (`lower.shared`, `lower.threads`, `lower.window`), with the numbers.
const std::vector<LoweringStep>& lowering_steps();

/// All steps; `after` sees the program that each answers.
Result<Program> schedule_to_kernels(const Program& scheduled, const Target& target, const std::function<void(const LoweringStep&, const Program&)>& after = {});

Result<Program> fix_sizes(const Program& p, const Target& target);
Result<Program> split_roles(const Program& p, const Target& target);
Result<Program> form_kernels(const Program& p, const Target& target);
Result<Program> infer_layouts(const Program& p, const Target& target);
Result<Program> distribute_blocks(const Program& p, const Target& target);
Result<Program> place_slots(const Program& p, const Target& target);
Result<Program> place_barriers(const Program& p, const Target& target);
Result<Program> check_resources(const Program& p, const Target& target);

/// A kernel as it is emitted: versions of rings between roles have become slots, a first dimension; waiting and releasing still names them by number.
Stmt with_ring_slots(const Stmt& kernel);

/// Rebuilds a kernel around the loop that holds what one block does: the innermost of its nest of grid loops.
Loop map_block_body(const Loop& kernel, const std::function<Loop(const Loop&)>& f);
/// That nest, outermost first.
std::vector<const Loop*> nest_of(const Loop& kernel);
/// Threads of a kernel's block.
int64_t threads_of(const Loop& kernel);
/// How many blocks share the threads of an iteration: one, or, where `common.cluster_reduce` joins them or there are more than 1024, a cluster of as few as keep a block at 512.
int64_t cluster_of(const Loop& kernel);
/// Blocks of a cluster that take the iterations of the innermost loop of its nest side by side; 1: none do.
int64_t ranks_of(const Loop& kernel);
/// Elements from the cells of one thread to those of the next, of a tile in shared memory of which each thread has its own: an odd number of 16 bytes, so that neighbours find theirs in
/// other banks.
int64_t own_memory_stride(const Decl& tile);

}  // namespace acu::ir::lower
