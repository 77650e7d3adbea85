#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/value.h"

namespace acu::ir::analysis {

/// A product of atoms (names and opaque subexpressions, by their text), sorted; empty for the constant.
using Monomial = std::vector<std::string>;
/// A sum of products with integer coefficients.
using Linear = std::map<Monomial, int64_t>;

/// What is known about index expressions at one place: ranges of names, conditions. Answers questions by Fourier-Motzkin elimination over
/// products of atoms, with the laws of floor division. Everything is integer; an answer `true` is a proof, `false` means unknown.
class Facts {
  public:
    /// `known`: dimensions whose size is fixed. `size_of(tensor, dim)`: for `segment`, whose value is below the size of its offsets less one.
    explicit Facts(Env known = {}, std::function<Index(const std::string&)> offsets_size = {});

    void add_dim(const std::string& name);                                          ///< name >= 0
    void add_range(const std::string& name, const Index& base, const Index& size);    ///< base <= name < base + size
    void add_nonnegative(const Index& e);                                           ///< e >= 0
    void define(const std::string& name, const Index& e);                           ///< name == e
    void add(const Value& condition);                                               ///< conjunctions of comparisons of index expressions; others are skipped
    void add_negation(const Value& condition);

    bool nonnegative(const Index& e) const;
    /// By the signs of its parts alone, which costs little.
    bool obviously_nonnegative(const Index& e) const;
    /// A name below the end of its own range.
    bool obviously_less(const Index& a, const Index& b) const;
    bool less(const Index& a, const Index& b) const;
    bool equal(const Index& a, const Index& b) const { return nonnegative(a - b) && nonnegative(b - a); }
    /// What a name was defined as; null: nothing.
    Index definition(const std::string& name) const;
    /// A constant the expression always equals.
    std::optional<int64_t> value(const Index& e) const;

    /// Largest value that `e` takes when its names run through their ranges, as an expression of dimensions, where `e` is affine in them.
    std::optional<Index> upper_bound(const Index& e) const;
    std::optional<Index> lower_bound(const Index& e) const;

  private:
    struct Range {
        Index base, size;
    };
    Linear linear(const Index& e) const;
    Linear atom(const Index& e) const;
    Linear quotient(const Index& a, const Index& b) const;
    void define(const std::string& atom, std::vector<Linear>& out) const;
    void multiply_bounds(std::vector<Linear>& constraints, const Linear& negated_goal) const;
    bool nonnegative_atom(const std::string& atom) const;
    std::optional<Index> bound(const Index& e, bool upper) const;

    Env known_;
    std::function<Index(const std::string&)> offsets_size_;
    std::map<std::string, Range> ranges_;
    std::map<std::string, Index> definitions_;
    std::vector<Linear> facts_;
    mutable std::map<std::string, Index> atoms_;    ///< what each opaque atom stands for
    mutable std::map<std::string, bool> positive_;  ///< divisors that were proven to be at least 1
};

}  // namespace acu::ir::analysis
