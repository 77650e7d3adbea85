#pragma once
#include "ir/pass/window.h"

namespace acu::ir::pass {

/// When a reduction has a term.
struct Terms {
    bool known = true;                  ///< false: a guard is no bound of one reduced axis
    std::vector<Value> of_sizes = {};    ///< its ranges are not empty
    std::vector<Value> of_guards = {};   ///< nor do its guards leave nothing
};
/// Conditions over the names that are not reduced, as far as the facts do not prove them: each guard bounds one reduced axis, and the largest lower bound lies below the
/// smallest upper one.
Terms some_term(const Block& b, const Facts& facts);

/// The names of the axes that are not parallel.
std::set<std::string> reduced_names(const Block& b);
/// Subscripts into a buffer by the axes.
std::vector<Index> names_of(const std::vector<Axis>& axes);
std::vector<Window> windows_of(const std::vector<Axis>& axes);

}  // namespace acu::ir::pass
