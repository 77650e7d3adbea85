#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/layout_bits.h"

namespace acu::ir {

namespace {

/// A digit of one coordinate: `radix` steps of `step`, and what each adds to (xor: changes in) the inputs.
struct AxisDigit {
    int64_t step, radix;
    Coord image;
    bool bit;    ///< of the part that only xor describes
};

/// The digits of every coordinate, lowest first; none where some digit moves two coordinates at once.
std::optional<std::vector<std::vector<AxisDigit>>> axis_digits(const Layout& l, const std::vector<std::string>& inputs, const Packing& packing) {
    std::vector<std::vector<AxisDigit>> axes(l.rank());
    Echelon span;
    std::vector<Coord> unit;    // of every vector of the span
    for (size_t k = 0; k < inputs.size(); ++k) {
        int64_t place = 1;
        const std::vector<Digit> digits = digits_of(l, inputs[k]);
        for (size_t i = 0; i < digits.size(); place *= digits[i++].radix) {
            Coord image(inputs.size(), 0);
            image[k] = place;
            const Digit& d = digits[i];
            const int dims = static_cast<int>(d.step.size() - std::ranges::count(d.step, 0));
            if (dims == 1 && (!d.bit || is_free(l, inputs[k], i))) {
                const auto dim = std::ranges::find_if(d.step, [](int64_t s) { return s != 0; }) - d.step.begin();
                axes[dim].push_back({d.step[dim], d.radix, image, false});
            } else if (!d.bit || !span.add(packing.pack(d.step))) {
                return {};
            } else {
                unit.push_back(image);
            }
        }
    }
    for (const uint64_t vector : span.reduced()) {
        if (!std::has_single_bit(vector)) return {};
        Coord image(inputs.size(), 0);
        for (size_t i = 0; i < unit.size(); ++i)
            if (*span.solve(vector) >> i & 1) for (size_t k = 0; k < image.size(); ++k) image[k] ^= unit[i][k];
        const int dim = packing.dim_of(vector);
        axes[dim].push_back({packing.unpack(vector)[dim], 2, image, true});
    }
    for (auto& axis : axes) std::ranges::sort(axis, {}, &AxisDigit::step);
    return axes;
}

enum class Fit { Box, Gaps, Unknown };

/// Whether the digits of an axis count 0, 1, 2, …; `end` is then how far.
Fit fit_of(const std::vector<AxisDigit>& axis, int64_t& end) {
    Fit fit = Fit::Box;
    end = 1;
    for (const AxisDigit& d : axis) {
        if (d.step < end) return Fit::Unknown;
        if (d.step > end) fit = Fit::Gaps;
        end += (d.radix - 1) * d.step;
    }
    return fit;
}

constexpr int64_t most_points = int64_t{1} << 22;

std::vector<uint64_t> all_values(const Layout& l, const Packing& packing) {
    std::vector<uint64_t> out;
    for (const Partial& p : table_of(l, packing, l.inputs())) out.push_back(p.value());
    std::ranges::sort(out);
    return out;
}

bool inside(const Coord& c, const Coord& shape) {
    for (size_t d = 0; d < c.size(); ++d)
        if (c[d] >= shape[d]) return false;
    return true;
}

Cover counted_cover(const Layout& l, const Packing& packing, const Coord& shape) {
    if (l.points() > most_points) return Cover::No;
    int64_t volume = 1, hits = 0;
    for (const int64_t s : shape) volume *= s;
    const std::vector<uint64_t> values = all_values(l, packing);
    for (size_t i = 0; i < values.size(); ++i) {
        if (!inside(packing.unpack(values[i]), shape)) continue;
        if (i > 0 && values[i] == values[i - 1]) return Cover::No;
        ++hits;
    }
    if (hits != volume) return Cover::No;
    return l.points() == volume ? Cover::Exact : Cover::Overshoot;
}

/// Depth-first over the digits of the repeats, each bounded by what the later ones can still add; the atom is solved at the leaves.
class Search {
  public:
    Search(const Layout& l, const Packing& packing) : l_(l), packing_(packing) {
        for (const std::string& input : l.inputs()) {
            int64_t place = 1;
            for (const Digit& d : digits_of(l, input)) {
                if (!d.bit) repeats_.push_back({input, place, d});
                else if (span_.add(packing.pack(d.step))) bits_.push_back({input, place, d});
                else unique_ = false;
                place *= d.radix;
            }
        }
        std::ranges::sort(repeats_, [](const Place& a, const Place& b) { return a.digit.step > b.digit.step; });
        bounds_.assign(repeats_.size() + 1, atom_mask(l));
        for (size_t k = repeats_.size(); k-- > 0;)
            for (int d = 0; d < l.rank(); ++d) bounds_[k][d] = bounds_[k + 1][d] + (repeats_[k].digit.radix - 1) * repeats_[k].digit.step[d];
    }
    std::optional<Point> find(const Coord& c) {
        if (unique_) visit(0, c);
        return found_ == 1 ? std::optional(answer_) : std::nullopt;
    }

  private:
    struct Place {
        std::string input;
        int64_t place;
        Digit digit;
    };

    void visit(size_t k, const Coord& rest) {
        for (int d = 0; d < l_.rank(); ++d)
            if (rest[d] < 0 || rest[d] > bounds_[k][d]) return;
        if (k == repeats_.size()) return leaf(rest);
        const Place& r = repeats_[k];
        int64_t low = 0, high = r.digit.radix - 1;
        for (int d = 0; d < l_.rank(); ++d) {
            if (const int64_t s = r.digit.step[d]; s > 0) {
                high = std::min(high, rest[d] / s);
                low = std::max(low, (rest[d] - bounds_[k + 1][d] + s - 1) / s);
            }
        }
        for (int64_t i = low; i <= high && found_ < 2; ++i) {
            Coord next = rest;
            for (int d = 0; d < l_.rank(); ++d) next[d] -= i * r.digit.step[d];
            current_[r.input] += i * r.place;
            visit(k + 1, next);
            current_[r.input] -= i * r.place;
        }
    }
    void leaf(const Coord& rest) {
        const auto bits = span_.solve(packing_.pack(rest));
        if (!bits) return;
        ++found_;
        answer_ = current_;
        for (size_t i = 0; i < bits_.size(); ++i) answer_[bits_[i].input] += (*bits >> i & 1) ? bits_[i].place : 0;
    }

    const Layout& l_;
    const Packing& packing_;
    std::vector<Place> repeats_, bits_;
    std::vector<Coord> bounds_;
    Echelon span_;
    Point current_, answer_;
    int found_ = 0;
    bool unique_ = true;
};

}  // namespace

std::optional<Point> invert(const Layout& l, const Coord& c) {
    const Packing packing({&l});
    if (!packing.fits() || c.size() != static_cast<size_t>(l.rank())) return {};
    return Search(l, packing).find(c);
}

bool injective(const Layout& l) {
    const Packing packing({&l});
    if (!packing.fits()) return false;
    if (const auto axes = axis_digits(l, l.inputs(), packing)) {
        int64_t end = 0;
        if (std::ranges::all_of(*axes, [&](const auto& axis) { return fit_of(axis, end) != Fit::Unknown; })) return true;
    }
    if (l.points() > most_points) return false;
    const std::vector<uint64_t> values = all_values(l, packing);
    return std::ranges::adjacent_find(values) == values.end();
}

Cover covers(const Layout& l, const Coord& shape) {
    const Packing packing({&l});
    if (!packing.fits() || shape.size() != static_cast<size_t>(l.rank())) return Cover::No;
    const auto axes = axis_digits(l, l.inputs(), packing);
    if (!axes) return counted_cover(l, packing, shape);
    Coord ends(shape.size());
    for (size_t d = 0; d < shape.size(); ++d)
        if (fit_of((*axes)[d], ends[d]) != Fit::Box) return counted_cover(l, packing, shape);
    if (ends == shape) return Cover::Exact;
    for (size_t d = 0; d < shape.size(); ++d)
        if (ends[d] < shape[d]) return Cover::No;
    return Cover::Overshoot;
}

/// Digits of one axis as bits (lowest) and repeats of input `d<k>`. A counted digit below an xor-ed one must be a power of two at such a place.
static bool add_axis(const std::vector<AxisDigit>& axis, InputBits& bits, std::vector<Repeat>& repeats) {
    const auto last = std::find_if(axis.rbegin(), axis.rend(), [](const AxisDigit& d) { return d.bit; });
    const size_t xored = static_cast<size_t>(axis.rend() - last);
    for (size_t i = 0; i < axis.size(); ++i) {
        const AxisDigit& d = axis[i];
        if (i >= xored) {
            repeats.push_back({bits.input, d.radix, d.image});
            continue;
        }
        const bool binary = std::ranges::all_of(d.image, [](int64_t x) { return x == 0 || std::has_single_bit(static_cast<uint64_t>(x)); });
        if (!d.bit && !(binary && std::has_single_bit(static_cast<uint64_t>(d.radix)))) return false;
        for (int64_t n = 1; n < d.radix; n *= 2) bits.images.push_back(scaled(d.image, n));
    }
    return true;
}

Result<Layout> inverse(const Layout& l, const std::vector<std::string>& inputs) {
    const auto refused = [&](const std::string& why) { return refusal("layout.inverse", fmt::format("`{}` has no inverse layout: {}", print(l), why)); };
    for (const std::string& input : l.inputs())
        if (std::ranges::find(inputs, input) == inputs.end()) return refused(fmt::format("input `{}` is not asked for", input));
    const Packing packing({&l});
    const auto axes = packing.fits() ? axis_digits(l, inputs, packing) : std::nullopt;
    if (!axes) return refused("some of its digits move several coordinates, or none");
    std::vector<InputBits> atom;
    std::vector<Repeat> repeats;
    for (int d = 0; d < l.rank(); ++d) {
        int64_t end = 0;
        if (fit_of((*axes)[d], end) != Fit::Box) return refused(fmt::format("coordinate {} does not count without gaps", d));
        InputBits bits{fmt::format("d{}", d), {}};
        if (!add_axis((*axes)[d], bits, repeats)) return refused(fmt::format("coordinate {} has a counted digit below an xor-ed one", d));
        atom.push_back(std::move(bits));
    }
    auto made = Layout::make(static_cast<int>(inputs.size()), std::move(atom), std::move(repeats));
    return made ? Result<Layout>(made->folded()) : made;
}

}  // namespace acu::ir
