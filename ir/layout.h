#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace acu::ir {

struct Token;

using Coord = std::vector<int64_t>;                           ///< one number a tensor dimension
using Point = std::map<std::string, int64_t, std::less<>>;    ///< values of inputs; one that is not named is 0

struct InputBits {
    std::string input;
    std::vector<Coord> images;    ///< of bit 0, bit 1, …
    bool operator==(const InputBits&) const = default;
};
struct Repeat {
    std::string input;
    int64_t count;
    Coord step;
    bool operator==(const Repeat&) const = default;
};

/// A map from hardware inputs (`reg, lane, warp, warpgroup, block`; `offset` of shared memory; `d0, d1, …` of the coordinates of another
/// layout) to tensor coordinates: xor of the images of the set low bits of every input (the atom, linear over F2), plus digit*step for
/// every repeat, whose digits are taken in mixed radix above the atom's bits, the first repeat of an input lowest. A value: no operation
/// changes it. Inputs stand in the order above, then by name. Nothing is negative; an input has at most 2^40 values, a coordinate as many.
class Layout {
  public:
    explicit Layout(int rank = 0) : rank_(rank) {}
    static Result<Layout> make(int rank, std::vector<InputBits> atom, std::vector<Repeat> repeats = {});
    int rank() const { return rank_; }
    const std::vector<InputBits>& atom() const { return atom_; }
    const std::vector<Repeat>& repeats() const { return repeats_; }
    bool operator==(const Layout&) const = default;

    std::vector<std::string> inputs() const;
    int64_t size(std::string_view input) const;    ///< 2^bits * counts; 1 for an input that the layout does not know
    int64_t points() const;                        ///< product of the sizes; saturates at 2^62
    Coord at(const Point& p) const;                ///< a value beyond its input's size wraps around
    Coord extent() const;                          ///< 1 + the largest coordinate that occurs, a dimension

    /// One more repeat, above all that the input has. The step has `rank` numbers. A count of 1 changes nothing.
    Layout times(const std::string& input, int64_t count, const Coord& step) const;
    Layout times(const std::vector<Repeat>& repeats) const;
    /// The same map with as many repeats as possible written as bits (adding equals xor where no binary digit is shared): normal form.
    Layout folded() const;
    Layout without(std::string_view input) const;                                ///< the input held at 0
    Layout renamed(std::string_view input, const std::string& to) const;         ///< `to` must be free
    Layout projected(const std::vector<int>& dims) const;                        ///< only these coordinates, in this order
    /// `input` = low + low_size*high, as two inputs; refused where `low_size` cuts no digit. `joined` is the inverse.
    Result<Layout> split(std::string_view input, int64_t low_size, const std::string& low, const std::string& high) const;
    Result<Layout> joined(std::string_view low, std::string_view high, const std::string& input) const;

  private:
    int rank_;
    std::vector<InputBits> atom_;
    std::vector<Repeat> repeats_;
};

/// `{reg: (0,1) (8,0), lane: (0,2), repeat reg x 22 step (0,8)}`; `{rank 2}` where nothing is mapped. `parse_layout` is the inverse; the second form
/// reads from `tokens[at]` and leaves `at` behind the closing brace.
std::string print(const Layout& l);
Result<Layout> parse_layout(std::string_view text);
Result<Layout> parse_layout(const std::vector<Token>& tokens, size_t& at);

bool same(const Layout& a, const Layout& b);    ///< equal as maps: equal when folded
/// The one point with these coordinates (repeats by radix within bounds, the atom by Gaussian elimination); none if there is none or several.
std::optional<Point> invert(const Layout& l, const Coord& c);
/// The inverse as a layout: inputs `d0, d1, …`, one coordinate an input of `l`, in the given order. Refused where that has no such form.
Result<Layout> inverse(const Layout& l, const std::vector<std::string>& inputs);
enum class Cover { Exact, Overshoot, No };
/// Exact: a bijection onto the box. Overshoot: the box once each, other points outside (to be guarded). Undecided (more than 2^22 points of
/// an irregular layout) counts as No.
Cover covers(const Layout& l, const Coord& shape);
inline bool exact(const Layout& l, const Coord& shape) { return covers(l, shape) == Cover::Exact; }
bool injective(const Layout& l);
/// outer(inner(x)): input `d<k>` of `outer` takes coordinate k of `inner`. Refused where the composition is no layout.
Result<Layout> compose(const Layout& outer, const Layout& inner);
/// The repeats with `atom.times(quotient)` = `tile`: whether the tile is made of that instruction's fragments.
Result<std::vector<Repeat>> divide(const Layout& tile, const Layout& atom);
int f2_rank(std::vector<uint64_t> vectors);
/// Elements of one thread that lie side by side along `dim` and start at a multiple of their number: a power of two that divides `alignment`
/// (of row pitch and base, in elements; 0: as aligned as one likes).
int64_t width(const Layout& l, int dim, int64_t alignment = 0, std::string_view input = "reg");
/// Values (powers of two) of `input` that change no coordinate: the xor masks of lanes that hold the same element.
std::vector<int64_t> replicas(const Layout& l, std::string_view input);

/// Term of an index: (input / divisor % modulus) * stride; modulus 0 where nothing is cut off.
struct IndexTerm {
    std::string input;
    int64_t divisor, modulus, stride;
    bool operator==(const IndexTerm&) const = default;
};
/// Coordinate = xor over `parts` of their sums, plus the sum of `rest`. Affine: one part at most, so all terms add up.
struct IndexForm {
    std::vector<std::vector<IndexTerm>> parts;
    std::vector<IndexTerm> rest;
    bool affine() const { return parts.size() <= 1; }
    std::vector<IndexTerm> terms() const;    ///< of an affine form, neighbours of one input merged
    int64_t at(const Point& p) const;
};
IndexForm index_form(const Layout& l, int dim);

}  // namespace acu::ir
