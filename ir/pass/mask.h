#pragma once
#include "ir/pass/edit.h"

/// The truth of index conditions over a whole box, from its corners.
namespace acu::ir::pass {

/// What a name runs through.
struct Span {
    std::string name;
    Index base, size;
};
/// The axes of a block and, innermost first, the loops around it up to `up_to`, which is left out (null: no loops).
std::vector<Span> box_of(const Place& at, const StmtNode* up_to);
/// Derived names of the loops around a place up to and with `up_to`, in words of what is known outside that loop and its variable.
IndexMap derived_names(const Place& at, const StmtNode* up_to);

/// Least and greatest value of an expression over a box; none where it is not affine in a name of the box, or its slope there has no known sign.
std::optional<Index> least(const Index& e, const std::vector<Span>& box);
std::optional<Index> greatest(const Index& e, const std::vector<Span>& box);

/// `left < right`, where a condition says that of indices or elements of integer inputs.
std::optional<Below> comparison(const Value& v);

/// A condition on the names outside the box under which `c` holds at every point (`everywhere`) or at none; null: none is known. Sufficient, not always necessary.
Value everywhere(const Value& c, const std::vector<Span>& box);
Value nowhere(const Value& c, const std::vector<Span>& box);

/// May the elements of tensors in an expression be read outside the guards of the block (all but `own`, which asks for them itself)? They must be of inputs, and no
/// guard that names the same indices may be what keeps them inside.
bool may_read_outside(const Program& p, const Block& b, const Index& e, const Value& own = nullptr);
bool may_read_outside(const Program& p, const Block& b, const Value& c, const Value& own = nullptr);

/// Conjunction and disjunction, with constants folded.
Value both(const Value& a, const Value& b);
Value either(const Value& a, const Value& b);
std::optional<bool> constant_truth(const Value& c);

}  // namespace acu::ir::pass
