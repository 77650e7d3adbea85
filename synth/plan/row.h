#pragma once
#include "synth/plan/draft.h"
#include "synth/plan/groups.h"

// What plans for a group of rows ask about it.
namespace acu::synth::plan {

/// What the tables need to know of the rows of a group.
struct Row {
    std::optional<int64_t> points;    ///< of one row
    std::optional<int64_t> rows;
    int64_t width = 1;                ///< elements a thread takes together
    int64_t bytes = 0;                ///< of the widest input's row; 0: not known
    bool reread = false;              ///< an input or an intermediate row is used by more than one statement
    bool cluster = false;             ///< the threads are those of a cluster of blocks
    int64_t threads = 0;              ///< fewer than a warp, which has several rows, or more than a block; 0: as the length says
    int64_t vectors() const { return (*points + width - 1) / width; }
};

/// `lanes`: a part of a warp may have a row, if there are many and their sums are plain; else a warp at least.
Row row_of(const Draft& d, const Group& g, bool lanes);

/// Is the row of this buffer more than one cell: do its subscripts name an axis that is not one of the rows?
bool is_row_wide(const ir::Program& p, const Group& g, const std::string& tensor);
/// Has each row its own part of this input?
bool is_of_rows(const ir::Program& p, const Group& g, const std::string& tensor);
/// Statements of the group that load the buffer.
int readers_of(const ir::Program& p, const Group& g, const std::string& tensor);
/// Inputs of which a row reads more than one cell.
std::vector<std::string> inputs_of(const ir::Program& p, const Group& g);
/// Intermediate rows that are computed point by point, but those that others read again and again.
std::vector<std::string> wide_temporaries(const ir::Program& p, const Group& g);

}  // namespace acu::synth::plan
