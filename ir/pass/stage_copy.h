#pragma once
#include "ir/pass/stage_source.h"

namespace acu::ir::pass {

/// The copy that `stage` adds, and the words by which readers find a cell in it.
struct Staged {
    Block copy;
    std::vector<Index> words;
    bool widens = false;    ///< it may read what no reader reads
};

/// One cell a point of the readers' axes.
Staged staged_by_axes(const StageSource& s, const std::string& new_name);
/// One cell an element of the smallest box around all that is read.
Staged staged_by_box(const StageSource& s, const std::string& new_name);
/// What no reader reads must be there all the same.
void check_copy_bounds(const StageSource& s, const Staged& x);

}  // namespace acu::ir::pass
