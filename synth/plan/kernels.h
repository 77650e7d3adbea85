#pragma once
#include "synth/plan/draft.h"
#include "synth/plan/groups.h"

// Decision tables, one a kind of group: each answers the draft with the group as one or two kernels, or nothing where its means do not suffice.
// Numbers come from measurements on an H200 of hand-written kernels of these shapes (bytes on their way for each multiprocessor, threads for each row).
namespace acu::synth::plan {

/// What it answers can be lowered.
std::optional<Draft> kernel_for(const Draft& draft, const Group& g);

/// Does a statement read across the direction in which it writes?
bool is_crossed(const ir::Program& p, const Group& g);
std::optional<Draft> points_kernel(Draft draft, const Group& g);     ///< tiles of the output, a vector of neighbours a thread
std::optional<Draft> rows_kernel(const Draft& draft, const Group& g);      ///< a block a row: kept in registers or shared memory, or read again; the first that can be lowered
/// Softmax-like rows too long for a block: slices with maxima and sums of their own, a join, and what uses both. `width`: elements a thread takes together.
std::optional<Draft> sliced_rows(Draft draft, Group g, int64_t points, int64_t width);
/// Rows too long for a block of which a sum and the squared differences from its mean are wanted. `bytes`: of a row.
std::optional<Draft> sliced_moments(Draft draft, const Group& g, int64_t bytes, int64_t width);
/// Few long rows of which running values are wanted: slices, what stands before each, and both together. `points`: of a row, where it is known.
std::optional<Draft> sliced_scans(Draft draft, const Group& g, std::optional<int64_t> points, int64_t width);
/// Few long rows of which one thing is wanted, a sum or the best: slices, and a join.
std::optional<Draft> sliced_sums(Draft draft, Group g, int64_t points, int64_t width);
std::optional<Draft> chain_kernel(Draft draft, const Group& g);      ///< tiles of both products, the scores between them in registers
std::optional<Draft> product_kernel(Draft draft, const Group& g);    ///< tiles of the result by matrix instructions
std::optional<Draft> columns_kernel(Draft draft, const Group& g);    ///< slices of rows added up apart, then joined in order
std::optional<Draft> whole_kernel(Draft draft, const Group& g);      ///< slices, then one block

// ---- what they share

using ir::pass::Arguments;

/// Elements of 16 bytes of the largest tensor that the statements touch in memory, as far as `size` is a multiple of it.
int64_t vector_width(const Draft& d, const std::vector<std::string>& labels, std::optional<int64_t> size);
/// Tiles of one for the rows of a group, of `size` for this one of them; empty: none.
ir::pass::Sizes tiles_of_rows(const Group& g, const std::string& axis = {}, int64_t size = 1);
/// The innermost loop around a statement; empty: none.
std::string loop_around(const ir::Program& p, const std::string& label);
/// Statements inside the loop, fills too.
std::vector<std::string> labels_inside(const ir::Program& p, const std::string& loop);
/// Neighbours that the copy of a tile moves together: as many as fit into 16 bytes.
void vectorize_copy(Draft& d, const std::string& copy);
/// Buffers that the statements write and that live in memory, in the order of their first write.
std::vector<std::string> results_of(const ir::Program& p, const std::vector<std::string>& labels);
/// Every statement inside the loop takes `width` neighbours of what has `size` points; the first says the threads. False: the first was refused.
bool vectorize_inside(Draft& d, const std::string& loop, int64_t width, int64_t threads, const std::string& why);
/// Reductions inside the loop whose results are in registers join the threads of the block.
/// `cluster`: those of the blocks of a cluster.
void bind_reductions(Draft& d, const std::string& loop, int64_t threads, bool cluster = false);

/// Where all that the statements inside the loop write, or all that they read, has 16 bits or fewer, functions whose error stays far below its rounding are taken from the hardware.
void approximate_calls(Draft& d, const std::string& loop);

}  // namespace acu::synth::plan
