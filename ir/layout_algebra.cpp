#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/layout_bits.h"

namespace acu::ir {

static std::string text(const Coord& c) { return fmt::format("({})", fmt::join(c, ",")); }

namespace {

constexpr int64_t most_values = 1 << 16;

/// One digit of the inner layout seen through the outer one: of every value the xor part (`bits`) and the sum part (`sum`).
struct Piece {
    std::string input;
    Digit digit;
    std::vector<Coord> bits, sum;
    bool xored = false;
    int64_t radix() const { return digit.radix; }
};

void or_into(Coord& mask, const Coord& c) {
    for (size_t d = 0; d < c.size(); ++d) mask[d] |= c[d];
}

Coord or_of(const std::vector<Coord>& values, int rank) {
    Coord mask(rank, 0);
    for (const Coord& c : values) or_into(mask, c);
    return mask;
}

Coord plus(const Coord& a, const Coord& b) {
    Coord out = a;
    for (size_t d = 0; d < a.size(); ++d) out[d] += b[d];
    return out;
}

/// The outer layout along one of its inputs: `d<k>`.
struct OuterAxis {
    std::vector<Digit> digits;
    bool affine = true;      ///< value y adds y*unit
    Coord unit;
    int64_t low_size = 1;    ///< values of the atom's bits
};

OuterAxis axis_of(const Layout& outer, int k) {
    const std::string input = fmt::format("d{}", k);
    OuterAxis axis{digits_of(outer, input), true, Coord(outer.rank(), 0), 1};
    int64_t place = 1;
    for (size_t i = 0; i < axis.digits.size(); ++i) {
        const Digit& d = axis.digits[i];
        if (i == 0) axis.unit = d.step;
        if (d.step != scaled(axis.unit, place) || (d.bit && !is_free(outer, input, i))) axis.affine = false;
        if (d.bit) axis.low_size *= 2;
        place *= d.radix;
    }
    return axis;
}

class Composition {
  public:
    Composition(const Layout& outer, const Layout& inner) : outer_(outer.folded()), inner_(inner.folded()) {}

    Result<Layout> run() {
        for (const std::string& input : outer_.inputs())
            if (!is_coordinate(input)) return refused(fmt::format("input `{}` of the outer layout is no coordinate of the inner one", input));
        for (const Repeat& r : inner_.repeats())
            if (r.count > most_values) return refused(fmt::format("the repeat on `{}` is too long to look at", r.input));
        read_pieces();
        const Coord extent = inner_.extent();
        for (int k = 0; k < inner_.rank(); ++k) {
            const int64_t size = outer_.size(fmt::format("d{}", k));
            if (extent[k] > size) return refused(fmt::format("coordinate {} reaches {}, beyond the {} values of `d{}`", k, extent[k] - 1, size, k));
            OuterAxis axis = axis_of(outer_, k);
            axis.affine = axis.affine && adds_up(k);
            if (!axis.affine && !splits(axis, k)) return refused(fmt::format("the digits of coordinate {} carry into one another", k));
            for (Piece& p : pieces_) pass(axis, k, p);
        }
        return assembled();
    }

  private:
    Diagnostic refused(const std::string& why) const {
        return refusal("layout.compose", "the composition is no layout: " + why, "evaluate both layouts at each register instead");
    }
    bool is_coordinate(const std::string& input) const {
        for (int k = 0; k < inner_.rank(); ++k)
            if (input == fmt::format("d{}", k)) return true;
        return false;
    }
    void read_pieces() {
        for (const std::string& input : inner_.inputs())
            for (const Digit& d : digits_of(inner_, input)) {
                const std::vector<Coord> zeros(d.radix, Coord(outer_.rank(), 0));
                pieces_.push_back({input, d, zeros, zeros});
            }
    }
    /// Coordinate k is the plain sum of its digits: no two xor-ed bits meet.
    bool adds_up(int k) const {
        int64_t seen = 0;
        for (const Piece& p : pieces_) {
            if (!p.digit.bit) continue;
            if (seen & p.digit.step[k]) return false;
            seen |= p.digit.step[k];
        }
        return true;
    }
    /// No carry from the bits of the outer atom into its repeats, and none between the repeats: y -> (low bits, digits) acts digit by digit.
    bool splits(const OuterAxis& axis, int k) const {
        int64_t low_bits = 0, low_counted = 0, high_bits = 0;
        std::vector<int64_t> most(axis.digits.size(), 0);
        for (const Piece& p : pieces_) {
            int64_t low = 0;
            std::vector<int64_t> own(axis.digits.size(), 0);
            for (int64_t v = 0; v < p.radix(); ++v) {
                const int64_t y = v * p.digit.step[k];
                low |= y % axis.low_size;
                int64_t high = y / axis.low_size;
                if (p.digit.bit && v == 1 && (high & high_bits)) return false;
                if (p.digit.bit && v == 1) high_bits |= high;
                for (size_t i = 0; i < axis.digits.size(); ++i) {
                    if (axis.digits[i].bit) continue;
                    own[i] = std::max(own[i], high % axis.digits[i].radix);
                    high /= axis.digits[i].radix;
                }
            }
            if ((low & low_counted) || (!p.digit.bit && (low & low_bits))) return false;
            (p.digit.bit ? low_bits : low_counted) |= low;
            for (size_t i = 0; i < most.size(); ++i) most[i] += own[i];
        }
        for (size_t i = 0; i < most.size(); ++i)
            if (most[i] >= axis.digits[i].radix) return false;
        return true;
    }
    void pass(const OuterAxis& axis, int k, Piece& p) const {
        for (int64_t v = 0; v < p.radix(); ++v) {
            int64_t y = v * p.digit.step[k];
            if (axis.affine) {
                p.sum[v] = plus(p.sum[v], scaled(axis.unit, y));
                continue;
            }
            for (const Digit& d : axis.digits) {
                const int64_t i = y % d.radix;
                y /= d.radix;
                if (!d.bit) p.sum[v] = plus(p.sum[v], scaled(d.step, i));
                else if (i == 1) for (int c = 0; c < outer_.rank(); ++c) p.bits[v][c] ^= d.step[c];
            }
        }
    }
    /// Chooses which bits stay xor-ed: those whose sum part meets nothing; from the first other digit of an input on, digits are added.
    void choose() {
        Coord bits(outer_.rank(), 0), sum = bits;
        std::string closed;
        for (Piece& p : pieces_) {
            if (p.input == closed || !p.digit.bit) {
                closed = p.input;
                continue;
            }
            const Coord &b = p.bits[1], &s = p.sum[1];
            p.xored = disjoint(s, bits) && disjoint(s, sum) && disjoint(b, sum) && disjoint(b, s);
            if (!p.xored) closed = p.input;
            else or_into(bits, b), or_into(sum, s);
        }
    }
    bool adds(size_t n) const {
        const Piece& p = pieces_[n];
        const Coord mask = or_of(p.bits, outer_.rank());
        for (size_t i = 0; i < pieces_.size(); ++i)
            if (i != n && !disjoint(mask, or_of(pieces_[i].bits, outer_.rank()))) return false;
        for (int64_t v = 0; v < p.radix(); ++v)
            if (plus(p.bits[v], p.sum[v]) != scaled(plus(p.bits[1], p.sum[1]), v)) return false;
        return true;
    }
    Result<Layout> assembled() {
        choose();
        std::vector<InputBits> atom;
        std::vector<Repeat> repeats;
        for (size_t n = 0; n < pieces_.size(); ++n) {
            const Piece& p = pieces_[n];
            const Coord image = plus(p.bits[1], p.sum[1]);
            if (!p.xored && !adds(n)) return refused(fmt::format("a digit of `{}` neither adds nor is xor-ed", p.input));
            if (!p.xored) {
                repeats.push_back({p.input, p.radix(), image});
                continue;
            }
            if (atom.empty() || atom.back().input != p.input) atom.push_back({p.input, {}});
            atom.back().images.push_back(image);
        }
        auto made = Layout::make(outer_.rank(), std::move(atom), std::move(repeats));
        return made ? Result<Layout>(made->folded()) : made;
    }

    const Layout outer_, inner_;
    std::vector<Piece> pieces_;
};

}  // namespace

Result<Layout> compose(const Layout& outer, const Layout& inner) { return Composition(outer, inner).run(); }

namespace {

/// A run of digits that continue one another, or one bit that cannot be added instead of xor-ed.
struct Run {
    int64_t radix;
    Coord step;
    bool adds;
};

/// The digits of one input, consumed from below.
struct Cursor {
    std::vector<Run> runs;
    size_t at = 0;

    Cursor(const Layout& l, const std::string& input) {
        const std::vector<Digit> digits = digits_of(l, input);
        for (size_t i = 0; i < digits.size(); ++i) {
            const Digit& d = digits[i];
            const Run next{d.radix, d.step, !d.bit || is_free(l, input, i)};
            const bool continues = !runs.empty() && runs.back().adds && next.adds && next.step == scaled(runs.back().step, runs.back().radix);
            if (continues) runs.back().radix *= next.radix;
            else runs.push_back(next);
        }
    }
    bool done() const { return at == runs.size(); }
    const Run& run() const { return runs[at]; }
    void take(int64_t n) {
        Run& r = runs[at];
        r.step = scaled(r.step, n), r.radix /= n;
        if (r.radix == 1) ++at;
    }
};

std::string match(const std::string& input, Cursor& tile, Cursor atom) {
    while (!atom.done()) {
        if (tile.done()) return fmt::format("the tile has too few values of `{}`", input);
        const Run &t = tile.run(), &a = atom.run();
        if (t.step != a.step) return fmt::format("`{}` moves by {} in the tile and by {} in the fragment", input, text(t.step), text(a.step));
        if (t.adds != a.adds) return fmt::format("`{}` is xor-ed on one side and added on the other", input);
        const int64_t n = std::min(t.radix, a.radix);
        if (t.radix % n != 0 || a.radix % n != 0) return fmt::format("{} repeats of `{}` are no multiple of {}", std::max(t.radix, a.radix), input, n);
        tile.take(n);
        atom.take(n);
    }
    return "";
}

}  // namespace

Result<std::vector<Repeat>> divide(const Layout& tile, const Layout& atom) {
    const auto refused = [](const std::string& why) { return refusal("layout.divide", "the tile is not made of these fragments: " + why); };
    if (tile.rank() != atom.rank()) return refused(fmt::format("{} coordinates against {}", tile.rank(), atom.rank()));
    const Layout whole = *Layout::make(tile.rank(), tile.atom(), merged(tile.repeats()));
    const Layout part = *Layout::make(atom.rank(), atom.atom(), merged(atom.repeats()));
    std::vector<std::string> inputs = whole.inputs();
    for (const std::string& input : part.inputs())
        if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    std::vector<Repeat> out;
    for (const std::string& input : inputs) {
        Cursor rest(whole, input);
        if (const std::string why = match(input, rest, Cursor(part, input)); !why.empty()) return refused(why);
        for (; !rest.done(); ++rest.at) {
            if (!rest.run().adds) return refused(fmt::format("a bit of `{}` beyond the fragment is xor-ed with others", input));
            out.push_back({input, rest.run().radix, rest.run().step});
        }
    }
    return merged(out);
}

int f2_rank(std::vector<uint64_t> vectors) {
    Echelon e;
    for (const uint64_t v : vectors) e.add(v);
    return static_cast<int>(e.rank());
}

}  // namespace acu::ir
