#include <algorithm>

#include "ir/layout_bits.h"

namespace acu::ir {

int64_t width(const Layout& l, int dim, int64_t alignment, std::string_view input) {
    const Layout folded = l.folded();
    int64_t w = 1;
    size_t leading = 0;
    const std::vector<Digit> own = digits_of(folded, input);
    for (; leading < own.size() && own[leading].bit; ++leading, w *= 2) {
        Coord unit(l.rank(), 0);
        unit[dim] = w;
        if (own[leading].step != unit) break;
    }
    const auto limit = [&](int64_t step) {
        while (step % w != 0) w /= 2;
    };
    for (const std::string& other : folded.inputs()) {
        const std::vector<Digit> digits = digits_of(folded, other);
        for (size_t i = other == input ? leading : 0; i < digits.size(); ++i) limit(digits[i].step[dim]);
    }
    limit(alignment);
    return w;
}

namespace {

/// Adds a term, or lengthens the last one of the same input that it continues.
void add_term(std::vector<IndexTerm>& terms, const IndexTerm& t) {
    for (IndexTerm& last : terms) {
        if (last.input != t.input || last.modulus == 0 || last.divisor * last.modulus != t.divisor || last.stride * last.modulus != t.stride) continue;
        last.modulus *= t.modulus;
        return;
    }
    terms.push_back(t);
}

int64_t sum_of(const std::vector<IndexTerm>& terms, const Point& p) {
    int64_t sum = 0;
    for (const IndexTerm& t : terms) {
        const auto it = p.find(t.input);
        const int64_t digit = (it == p.end() ? 0 : it->second) / t.divisor;
        sum += (t.modulus == 0 ? digit : digit % t.modulus) * t.stride;
    }
    return sum;
}

/// Sums whose terms share no binary digit; xor of the sums is the part of the atom. First fit.
void add_bit(std::vector<std::vector<IndexTerm>>& parts, std::vector<int64_t>& masks, const IndexTerm& t) {
    size_t k = 0;
    while (k < parts.size() && (masks[k] & t.stride)) ++k;
    if (k == parts.size()) parts.emplace_back(), masks.push_back(0);
    add_term(parts[k], t);
    masks[k] |= t.stride;
}

}  // namespace

IndexForm index_form(const Layout& l, int dim) {
    IndexForm form;
    std::vector<int64_t> masks;
    for (const std::string& input : l.inputs()) {
        int64_t place = 1;
        for (const Digit& d : digits_of(l, input)) {
            const IndexTerm term{input, place, d.radix, d.step[dim]};
            if (d.step[dim] != 0 && d.bit) add_bit(form.parts, masks, term);
            if (d.step[dim] != 0 && !d.bit) add_term(form.rest, term);
            place *= d.radix;
        }
        const auto open = [&](std::vector<IndexTerm>& terms) {
            for (IndexTerm& t : terms)
                if (t.input == input && t.divisor * t.modulus == place) t.modulus = 0;
        };
        std::ranges::for_each(form.parts, open);
        open(form.rest);
    }
    return form;
}

std::vector<IndexTerm> IndexForm::terms() const {
    std::vector<IndexTerm> out = parts.empty() ? std::vector<IndexTerm>{} : parts[0];
    for (const IndexTerm& t : rest) {
        const auto low = std::ranges::find_if(out, [&](const IndexTerm& x) {
            return x.input == t.input && x.modulus != 0 && x.divisor * x.modulus == t.divisor && x.stride * x.modulus == t.stride;
        });
        if (low == out.end()) out.push_back(t);
        else low->modulus *= t.modulus;    // stays 0 where the upper one is open
    }
    return out;
}

int64_t IndexForm::at(const Point& p) const {
    int64_t bits = 0;
    for (const auto& part : parts) bits ^= sum_of(part, p);
    return bits + sum_of(rest, p);
}

}  // namespace acu::ir
