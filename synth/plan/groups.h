#pragma once
#include <functional>

#include "ir/program.h"

// Which statements may become one kernel, by the structure of their axes alone.
namespace acu::synth::plan {

/// `Points`: no sums, or such over small windows. `Rows`: sums along what lies next to each other in memory. `Columns`: sums across it. `Whole`: everything to one cell. `Products`: sums of products of two
/// matrices, and what is computed from them point by point. `Chain`: two of these with exponentials between.
enum class GroupKind { Points, Rows, Columns, Whole, Products, Chain };

/// Neighbouring statements of one kind. `rows`: the axes that all of them have, outermost first (of `Points`: all axes). `inner`: the axis of neighbours in memory, empty where there is none.
struct Group {
    GroupKind kind;
    std::vector<std::string> labels;    ///< without the fills of reductions
    std::vector<std::string> rows;
    std::string inner;
};
/// What else is known of statements: which are such products, and the chain that one begins; none without.
struct Structure {
    std::function<bool(const ir::Block&)> is_product = {};
    std::function<std::vector<std::string>(const ir::Block&)> chain = {};    ///< its statements; empty: none begins
};
std::vector<Group> groups_of(const ir::Program& loops, const Structure& structure = {});

/// The block of this label; null where there is none.
const ir::Block* block_named(const ir::Program& p, const std::string& label);
/// Is this the fill of a reduction? It goes where the reduction goes.
bool is_fill(const ir::Program& p, const std::string& label);
/// A size where the dimensions fix it.
std::optional<int64_t> size_of(const ir::Program& p, const ir::Index& size);
/// What a size is at most, where the dimensions fix it or the facts of the program bound them.
std::optional<int64_t> most_of(const ir::Program& p, const ir::Index& size);
/// The axis along which an access runs through neighbours: its last subscript is the axis, plus what does not mention it. Empty: none.
std::string neighbours(const std::vector<ir::Index>& subscripts, const ir::Block& b);
/// The widest tensor that a block loads from memory, by the number of its dimensions, then by that of the axes along which it is read.
std::optional<ir::Value> main_load(const ir::Program& p, const ir::Block& b);

}  // namespace acu::synth::plan
