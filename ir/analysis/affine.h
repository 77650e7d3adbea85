#pragma once
#include <optional>

#include "ir/value.h"

namespace acu::ir::analysis {

/// `e` as a sum of products of atoms (names, and what is not linear) with integer coefficients, in a fixed order: equal sums become equal expressions.
/// Uses `(c*x + r)/c = x + r/c` and `(c*x + r)%c = r%c` for constants c > 0, which hold for floor division.
Index normal(const Index& e);
/// Equal in every environment, by normal form (`false`: not known).
bool same(const Index& a, const Index& b);
bool same(const std::vector<Index>& a, const std::vector<Index>& b);

/// e = coefficient*name + rest, where neither mentions the name.
struct Affine {
    Index coefficient, rest;
};
std::optional<Affine> affine(const Index& e, const std::string& name);

std::set<std::string> names_in(const Index& e);
std::set<std::string> names_in(const Value& v);
bool mentions(const Index& e, const std::string& name);
bool mentions(const Value& v, const std::string& name);
bool meet(const std::set<std::string>& a, const std::set<std::string>& b);

/// A condition `a < b` on index expressions, for guards.
Value below(const Index& a, const Index& b);
/// The two sides where `v` is a comparison `a < b` of index expressions.
struct Below {
    Index left, right;
};
std::optional<Below> as_below(const Value& v);

}  // namespace acu::ir::analysis
