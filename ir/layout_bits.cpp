#include "ir/layout_bits.h"

#include <algorithm>
#include <bit>

namespace acu::ir {

Packing::Packing(std::initializer_list<const Layout*> layouts) {
    const int rank = (*layouts.begin())->rank();
    shift_.assign(rank + 1, 0);
    for (int d = 0; d < rank; ++d) {
        uint64_t most = 1;
        for (const Layout* l : layouts) {
            uint64_t reach = static_cast<uint64_t>(atom_mask(*l)[d]);
            for (const Repeat& r : l->repeats()) reach += static_cast<uint64_t>((r.count - 1) * r.step[d]);
            most = std::max(most, reach);
        }
        shift_[d + 1] = shift_[d] + std::bit_width(most);
        fits_ = fits_ && shift_[d + 1] < 64;
    }
}

uint64_t Packing::pack(const Coord& c) const {
    uint64_t word = 0;
    for (size_t d = 0; d < c.size(); ++d) word |= static_cast<uint64_t>(c[d]) << shift_[d];
    return word;
}

Coord Packing::unpack(uint64_t word) const {
    Coord c;
    for (size_t d = 0; d + 1 < shift_.size(); ++d) c.push_back(static_cast<int64_t>((word & field(static_cast<int>(d))) >> shift_[d]));
    return c;
}

int Packing::dim_of(uint64_t word) const {
    int d = 0;
    while ((word & field(d)) == 0) ++d;
    return d;
}

std::vector<Partial> table_of(const Layout& l, const Packing& packing, std::string_view input) {
    std::vector<Partial> out{{0, 0}};
    for (const Digit& digit : digits_of(l, input)) {
        const uint64_t step = packing.pack(digit.step);
        const size_t n = out.size();
        for (int64_t i = 1; i < digit.radix; ++i)
            for (size_t k = 0; k < n; ++k) out.push_back(out[k] + (digit.bit ? Partial{step, 0} : Partial{0, step * static_cast<uint64_t>(i)}));
    }
    return out;
}

std::vector<Partial> table_of(const Layout& l, const Packing& packing, const std::vector<std::string>& inputs) {
    std::vector<Partial> out{{0, 0}};
    for (const std::string& input : inputs) {
        std::vector<Partial> next;
        for (const Partial& high : table_of(l, packing, input))
            for (const Partial& low : out) next.push_back(low + high);
        out = std::move(next);
    }
    return out;
}

bool Echelon::add(uint64_t vector) {
    uint64_t combination = uint64_t{1} << added_++;
    for (size_t i = 0; i < rows_.size(); ++i)
        if ((vector ^ rows_[i]) < vector) vector ^= rows_[i], combination ^= combinations_[i];
    if (vector == 0) return false;
    const auto at = std::find_if(rows_.begin(), rows_.end(), [&](uint64_t r) { return r < vector; }) - rows_.begin();
    rows_.insert(rows_.begin() + at, vector);
    combinations_.insert(combinations_.begin() + at, combination);
    return true;
}

std::optional<uint64_t> Echelon::solve(uint64_t target) const {
    uint64_t combination = 0;
    for (size_t i = 0; i < rows_.size(); ++i)
        if ((target ^ rows_[i]) < target) target ^= rows_[i], combination ^= combinations_[i];
    if (target != 0) return {};
    return combination;
}

uint64_t Echelon::largest() const {
    uint64_t best = 0;
    for (const uint64_t row : rows_) best = std::max(best, best ^ row);
    return best;
}

std::vector<uint64_t> Echelon::reduced() const {
    std::vector<uint64_t> out = rows_;
    for (size_t i = out.size(); i-- > 0;)
        for (size_t k = 0; k < i; ++k)
            if (out[k] & std::bit_floor(out[i])) out[k] ^= out[i];
    return out;
}

std::vector<Digit> digits_of(const Layout& l, std::string_view input) {
    std::vector<Digit> out;
    for (const InputBits& b : l.atom())
        if (b.input == input)
            for (const Coord& image : b.images) out.push_back({2, image, true});
    for (const Repeat& r : l.repeats())
        if (r.input == input) out.push_back({r.count, r.step, false});
    return out;
}

Coord atom_mask(const Layout& l) {
    Coord mask(l.rank(), 0);
    for (const InputBits& b : l.atom())
        for (const Coord& image : b.images)
            for (int d = 0; d < l.rank(); ++d) mask[d] |= image[d];
    return mask;
}

bool disjoint(const Coord& a, const Coord& b) {
    for (size_t d = 0; d < a.size(); ++d)
        if (a[d] & b[d]) return false;
    return true;
}

bool is_free(const Layout& l, std::string_view input, size_t bit) {
    const auto own = std::ranges::find(l.atom(), input, &InputBits::input);
    for (const InputBits& b : l.atom())
        for (size_t k = 0; k < b.images.size(); ++k)
            if (!(b.input == input && k == bit) && !disjoint(b.images[k], own->images[bit])) return false;
    return true;
}

Coord scaled(const Coord& c, int64_t factor) {
    Coord out = c;
    for (int64_t& x : out) x *= factor;
    return out;
}

bool is_zero(const Coord& c) {
    return std::ranges::all_of(c, [](int64_t x) { return x == 0; });
}

std::vector<Repeat> merged(const std::vector<Repeat>& repeats) {
    std::vector<Repeat> out;
    for (const Repeat& r : repeats) {
        if (!out.empty() && out.back().input == r.input && r.step == scaled(out.back().step, out.back().count))
            out.back().count *= r.count;
        else
            out.push_back(r);
    }
    return out;
}

Diagnostic refusal(std::string code, std::string message, std::string help) {
    return {.code = std::move(code), .message = std::move(message), .help = std::move(help)};
}

}  // namespace acu::ir
