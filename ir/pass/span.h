#pragma once
#include "ir/pass/edit.h"

/// Which cells the statements inside a loop touch in one of its iterations.
namespace acu::ir::pass {

/// Least and greatest value, both taken at most.
struct Interval {
    Index low, high;
};
/// The loops between `outer` (not included) and a block, outermost first.
struct Inside {
    Stmt block;
    std::vector<Stmt> loops;
};
std::vector<Inside> blocks_inside(const Loop& outer);

/// What `e`, an index expression of the block, runs through in one iteration of `outer`: bounds in terms of what is in scope in its body. Empty: not known.
std::optional<Interval> interval_of(const Index& e, const Inside& at, const Facts& facts);

/// The buffer in which two iterations of the loop at `place` may meet, one of them writing; empty: they never do, so they may run in any order or together. Buffers that the
/// loop or one inside owns are each iteration's own.
std::string shared_by_iterations(const Program& p, const Place& place);

/// The number of iterations or points: an extent below zero, which means none, must not enter a product or a remainder.
Index count_of(const Index& extent, const Facts& facts);
/// A condition on axes goes before guards that read memory: where it does not hold, their subscripts may lie outside.
void add_guard(Block& b, const Value& guard);
/// `at` lies in the box, dimension by dimension, as one condition.
Value in_box(const std::vector<Index>& at, const std::vector<Window>& box);
/// The statements inside, of any kind, hold a role or a signal.
bool holds_sync(const Stmt& s);
/// Buffers that an index expression of the program loads (subscripts, ranges, extents, windows).
std::set<std::string> index_loaded(const Program& p);

/// All that `v` reads at this place exists and is written wherever the facts hold, whether the statement there has a point or not.
bool readable(const Program& p, const Place& at, const Value& v, const Facts& facts);
/// Values or conditions inside load the buffer.
bool loads(const Stmt& s, const std::string& buffer);
/// Without the declaration, wherever it stands.
Program without_buffer(Program p, const std::string& name);

}  // namespace acu::ir::pass
