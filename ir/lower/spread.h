#pragma once
#include "ir/lower/lower.h"

/// How blocks and register tiles of a kernel are spread over its threads: questions that layout inference and distribution share.
namespace acu::ir::lower {

/// A collective reduction: bound to a microkernel that a whole warp or block runs together.
bool is_collective(const Block& b);
/// A scan whose running values the threads of a block join.
bool is_collective_scan(const Block& b);
/// A product that matrix instructions compute: the microkernel's name says so (`sm80.mma_f16`).
bool is_matrix_product(const Block& b);
/// A copy of a box by the copy engine.
bool moves_boxes(const Block& b);
/// From a tensor to shared memory; the same of all blocks of a cluster; the other way.
bool brings_boxes(const Block& b);
bool is_multicast(const Block& b);
bool stores_boxes(const Block& b);
/// One that holds barriers of the block.
bool meets_in_block(const Block& b);
/// A reduction of rows of a tile: each thread reduces what it has of them, and lanes that share a row join.
bool reduces_rows(const Block& b);

/// Sizes of windows and boxes where all are constants.
std::optional<Coord> constant_sizes(const std::vector<Window>& dims);
std::optional<Coord> constant_sizes(const std::vector<Axis>& axes);

/// All registers: every thread holds the whole tile.
Layout replicated_layout(const Coord& shape);
bool is_replicated(const Layout& l);

/// The window of a version of a ring.
Decl at_version(const Decl& ring, const std::vector<Index>& version);

/// Is this access that of a point's own cell: each subscript a different axis among `axes` with exactly the window as its range, or a dimension of size 1, and every axis
/// used? Answers, for each axis, the dimension that it subscripts. `version`: of a ring, whose window moves with its keys.
std::optional<std::vector<int>> own_cell(const std::vector<Axis>& axes, const std::vector<Index>& subscripts, const Decl& d, const std::vector<Index>& version = {});
/// The same where some axes may be left out (-1), one at least being used: points that differ in these alone share a cell.
std::optional<std::vector<int>> shared_cell(const std::vector<Axis>& axes, const std::vector<Index>& subscripts, const Decl& d, const std::vector<Index>& version = {});

/// How a tile of `dims` coordinates of the points lies where each thread holds what its points have: registers whose points differ in the others alone are one. Threads may hold the same cell.
Layout kept_coordinates(const Layout& points, const std::vector<int>& dims);
/// The register of such a tile for the point in register `reg`.
Index kept_register(const Layout& points, const std::vector<int>& dims, const Index& reg);
/// Axes of the points by the dimension of the tile that they subscript, as `shared_cell` answered.
std::vector<int> axes_by_dim(const std::vector<int>& cell, size_t rank);

/// Dimensions, and the loops, derived names and axes of a body: what a new name must not be.
std::set<std::string> names_used(const Program& p, const Body& body);
/// The stem, or the stem with the first number from 2 on that makes it new.
std::string unused_name(const std::set<std::string>& used, const std::string& stem);

bool has_roles(const Body& body);

/// Register tiles and other buffers of a kernel by name.
using Decls = std::map<std::string, Decl, std::less<>>;
void collect_decls(const Body& body, Decls& out);

/// Rings that one role fills and others read.
std::set<std::string> rings_between_roles(const Body& body);

/// The threads by which each buffer is used: those of a role, else those of the block; 0: of several, which meet in no register.
std::map<std::string, int64_t> threads_of_tiles(const Loop& kernel);
/// Those that stand in the block for a role: whole warpgroups where it says its registers.
int64_t threads_taken(const Role& r);
/// Of a buffer in shared memory, with the barriers of a ring; nothing where its size is no constant.
std::optional<int64_t> bytes_on_chip(const Decl& d);

}  // namespace acu::ir::lower
