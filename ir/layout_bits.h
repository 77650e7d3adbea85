#pragma once
#include "ir/layout.h"

namespace acu::ir {

/// Coordinates packed into one word, a field a dimension, wide enough for every sum that the given layouts can form: xor and + of packed
/// coordinates act on each field alone.
class Packing {
  public:
    explicit Packing(std::initializer_list<const Layout*> layouts);
    bool fits() const { return fits_; }
    uint64_t pack(const Coord& c) const;
    Coord unpack(uint64_t word) const;
    uint64_t field(int dim) const { return ((uint64_t{1} << (shift_[dim + 1] - shift_[dim])) - 1) << shift_[dim]; }
    int dim_of(uint64_t word) const;    ///< of the lowest set bit

  private:
    std::vector<int> shift_;
    bool fits_ = true;
};

/// What a value of some inputs contributes: the xor part and the sum part of a packed coordinate.
struct Partial {
    uint64_t bits, sum;
    uint64_t value() const { return bits + sum; }
};
inline Partial operator+(Partial a, Partial b) { return {a.bits ^ b.bits, a.sum + b.sum}; }

/// Contribution of every value of one input; of every point of several inputs, the first fastest.
std::vector<Partial> table_of(const Layout& l, const Packing& packing, std::string_view input);
std::vector<Partial> table_of(const Layout& l, const Packing& packing, const std::vector<std::string>& inputs);

/// Gaussian elimination over F2, a vector at a time.
class Echelon {
  public:
    bool add(uint64_t vector);                             ///< false where it depends on those before
    std::optional<uint64_t> solve(uint64_t target) const;  ///< which of the added vectors give the target by xor
    uint64_t largest() const;                              ///< element of the span
    std::vector<uint64_t> reduced() const;                 ///< basis in which no leading bit occurs twice
    size_t rank() const { return rows_.size(); }

  private:
    std::vector<uint64_t> rows_, combinations_;
    int added_ = 0;
};

/// A digit of an input: 0 … radix-1 times step; `bit` where it is one of the atom.
struct Digit {
    int64_t radix;
    Coord step;
    bool bit;
};
std::vector<Digit> digits_of(const Layout& l, std::string_view input);
/// Or of all images of the atom, a dimension.
Coord atom_mask(const Layout& l);
bool disjoint(const Coord& a, const Coord& b);
/// Bit `bit` of an input of the atom: whether no other image of the atom shares a binary digit with it, so that adding it is the same.
bool is_free(const Layout& l, std::string_view input, size_t bit);
Coord scaled(const Coord& c, int64_t factor);
bool is_zero(const Coord& c);

/// Merges repeats of one input that continue each other: (n, s), (m, n*s) -> (n*m, s).
std::vector<Repeat> merged(const std::vector<Repeat>& repeats);

Diagnostic refusal(std::string code, std::string message, std::string help = {});

}  // namespace acu::ir
