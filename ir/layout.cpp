#include "ir/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/layout_bits.h"

namespace acu::ir {

static constexpr int64_t largest = int64_t{1} << 40;

static size_t order_of(std::string_view input) {
    static constexpr std::array<std::string_view, 6> hardware{"reg", "lane", "warp", "warpgroup", "block", "offset"};
    return std::ranges::find(hardware, input) - hardware.begin();
}

static bool stands_before(std::string_view a, std::string_view b) {
    const size_t x = order_of(a), y = order_of(b);
    return x != y ? x < y : x == 6 && a < b;
}

static bool stands_before_of(const InputBits& a, const InputBits& b) { return stands_before(a.input, b.input); }
static bool repeats_before(const Repeat& a, const Repeat& b) { return stands_before(a.input, b.input); }

static std::string fault_of(const Layout& l) {
    Coord reach = atom_mask(l);
    for (const std::string& input : l.inputs()) {
        int64_t size = 1;
        for (const Digit& d : digits_of(l, input)) {
            if (d.radix > largest || size > largest / d.radix) return fmt::format("input `{}` has more than 2^40 values", input);
            size *= d.radix;
            for (int k = 0; k < l.rank(); ++k) {
                if (d.step[k] < 0) return fmt::format("a step of `{}` is negative", input);
                const bool beyond = !d.bit && d.step[k] > 0 && d.radix - 1 > (largest - reach[k]) / d.step[k];
                if (d.step[k] > largest || beyond) return fmt::format("a coordinate of `{}` is beyond 2^40", input);
                if (!d.bit) reach[k] += (d.radix - 1) * d.step[k];
            }
        }
    }
    return "";
}

Result<Layout> Layout::make(int rank, std::vector<InputBits> atom, std::vector<Repeat> repeats) {
    const auto wrong = [&](const Coord& c) { return c.size() != static_cast<size_t>(rank); };
    std::erase_if(atom, [](const InputBits& b) { return b.images.empty(); });
    std::ranges::sort(atom, stands_before_of);
    std::ranges::stable_sort(repeats, repeats_before);
    for (const InputBits& b : atom)
        if (std::ranges::any_of(b.images, wrong)) return refusal("layout.rank", fmt::format("an image of `{}` does not have {} numbers", b.input, rank));
    for (const Repeat& r : repeats) {
        if (wrong(r.step)) return refusal("layout.rank", fmt::format("the step of the repeat on `{}` does not have {} numbers", r.input, rank));
        if (r.count < 1) return refusal("layout.count", fmt::format("the repeat on `{}` has count {}", r.input, r.count), "write a count of 1 or more");
    }
    const auto twice = std::ranges::adjacent_find(atom, {}, &InputBits::input);
    if (twice != atom.end()) return refusal("layout.input", fmt::format("input `{}` has two lists of images", twice->input));
    std::erase_if(repeats, [](const Repeat& r) { return r.count == 1; });
    Layout l(rank);
    l.atom_ = std::move(atom), l.repeats_ = std::move(repeats);
    if (const std::string fault = fault_of(l); !fault.empty()) return refusal("layout.size", fault);
    return l;
}

std::vector<std::string> Layout::inputs() const {
    std::vector<std::string> out;
    for (const InputBits& b : atom_) out.push_back(b.input);
    for (const Repeat& r : repeats_)
        if (std::ranges::find(out, r.input) == out.end()) out.push_back(r.input);
    std::ranges::sort(out, stands_before);
    return out;
}

int64_t Layout::size(std::string_view input) const {
    int64_t n = 1;
    for (const Digit& d : digits_of(*this, input)) n *= d.radix;
    return n;
}

int64_t Layout::points() const {
    constexpr int64_t most = int64_t{1} << 62;
    int64_t n = 1;
    for (const std::string& input : inputs()) n = n > most / size(input) ? most : n * size(input);
    return n;
}

Coord Layout::at(const Point& p) const {
    const auto value = [&](const std::string& input) {
        const auto it = p.find(input);
        return it == p.end() ? 0 : it->second;
    };
    Coord out(rank_, 0);
    for (const InputBits& b : atom_) {
        const int64_t v = value(b.input);
        for (size_t k = 0; k < b.images.size(); ++k)
            if (v >> k & 1)
                for (int d = 0; d < rank_; ++d) out[d] ^= b.images[k][d];
    }
    int64_t rest = 0;
    for (size_t i = 0; i < repeats_.size(); ++i) {
        const Repeat& r = repeats_[i];
        if (i == 0 || repeats_[i - 1].input != r.input) {
            const auto own = std::ranges::find(atom_, r.input, &InputBits::input);
            rest = value(r.input) >> (own == atom_.end() ? 0 : own->images.size());
        }
        for (int d = 0; d < rank_; ++d) out[d] += rest % r.count * r.step[d];
        rest /= r.count;
    }
    return out;
}

Coord Layout::extent() const {
    Coord out(rank_, 1);
    for (int d = 0; d < rank_; ++d) {
        Echelon span;
        for (const InputBits& b : atom_)
            for (const Coord& image : b.images)
                if (image[d] != 0) span.add(static_cast<uint64_t>(image[d]));
        out[d] += static_cast<int64_t>(span.largest());
        for (const Repeat& r : repeats_) out[d] += (r.count - 1) * r.step[d];
    }
    return out;
}

static void append(std::vector<InputBits>& atom, std::vector<Repeat>& repeats, const std::string& input, const std::vector<Digit>& digits) {
    InputBits own{input, {}};
    for (const Digit& d : digits) {
        if (d.bit) own.images.push_back(d.step);
        else repeats.push_back({input, d.radix, d.step});
    }
    atom.push_back(std::move(own));
}

/// `l` with its inputs `dropped` replaced by the given digits; they form a layout because they come from one.
static Layout with_digits(const Layout& l, const std::vector<std::string_view>& dropped, const std::vector<std::pair<std::string, std::vector<Digit>>>& added) {
    std::vector<InputBits> atom = l.atom();
    std::vector<Repeat> repeats = l.repeats();
    const auto gone = [&](const auto& x) { return std::ranges::find(dropped, x.input) != dropped.end(); };
    std::erase_if(atom, gone);
    std::erase_if(repeats, gone);
    for (const auto& [input, digits] : added) append(atom, repeats, input, digits);
    return *Layout::make(l.rank(), std::move(atom), std::move(repeats));
}

Layout Layout::times(const std::string& input, int64_t count, const Coord& step) const { return times({{input, count, step}}); }

Layout Layout::times(const std::vector<Repeat>& repeats) const {
    std::vector<Repeat> all = repeats_;
    all.insert(all.end(), repeats.begin(), repeats.end());
    return *make(rank_, atom_, std::move(all));
}

/// Bits for the even part of the lowest repeats of `input`, as long as they stay disjoint from `mask`, which grows by them.
static std::vector<Digit> folded_digits(const Layout& l, const std::string& input, Coord& mask) {
    std::vector<Digit> out;
    bool open = true;
    for (Digit d : digits_of(l, input)) {
        while (!d.bit && open && d.radix % 2 == 0 && disjoint(mask, d.step)) {
            out.push_back({2, d.step, true});
            for (int k = 0; k < l.rank(); ++k) mask[k] |= d.step[k];
            d = {d.radix / 2, scaled(d.step, 2), false};
        }
        if (!d.bit && d.radix > 1) open = false;
        if (d.radix > 1) out.push_back(d);
    }
    return out;
}

Layout Layout::folded() const {
    Layout out = *make(rank_, atom_, merged(repeats_));
    Coord mask = atom_mask(out);
    for (const std::string& input : out.inputs()) out = with_digits(out, {input}, {{input, folded_digits(out, input, mask)}});
    return out;
}

Layout Layout::without(std::string_view input) const { return with_digits(*this, {input}, {}); }

Layout Layout::renamed(std::string_view input, const std::string& to) const { return with_digits(*this, {input}, {{to, digits_of(*this, input)}}); }

Layout Layout::projected(const std::vector<int>& dims) const {
    const auto kept = [&](const Coord& c) {
        Coord out;
        for (const int d : dims) out.push_back(c[d]);
        return out;
    };
    std::vector<InputBits> atom = atom_;
    std::vector<Repeat> repeats = repeats_;
    for (InputBits& b : atom) std::ranges::transform(b.images, b.images.begin(), kept);
    for (Repeat& r : repeats) r.step = kept(r.step);
    return *make(static_cast<int>(dims.size()), std::move(atom), std::move(repeats));
}

Result<Layout> Layout::split(std::string_view input, int64_t low_size, const std::string& low, const std::string& high) const {
    std::vector<Digit> below, above;
    int64_t place = 1;
    for (const Digit& d : digits_of(*this, input)) {
        const int64_t cut = low_size > place ? std::min(low_size / place, d.radix) : 1;
        const bool whole = low_size <= place || low_size % (place * cut) == 0;
        if (!whole || d.radix % cut != 0) return refusal("layout.split", fmt::format("{} does not cut `{}` between its digits", low_size, input));
        if (cut > 1) below.push_back({cut, d.step, d.bit});
        if (cut < d.radix) above.push_back({d.radix / cut, scaled(d.step, cut), d.bit});
        place *= d.radix;
    }
    if (low_size > place) return refusal("layout.split", fmt::format("`{}` has {} values, fewer than {}", input, place, low_size));
    return with_digits(*this, {input}, {{low, below}, {high, above}});
}

Result<Layout> Layout::joined(std::string_view low, std::string_view high, const std::string& input) const {
    std::vector<Digit> digits = digits_of(*this, low);
    const bool counted = std::ranges::any_of(digits, [](const Digit& d) { return !d.bit; });
    const std::vector<Digit> above = digits_of(*this, high);
    for (size_t k = 0; k < above.size(); ++k) {
        Digit d = above[k];
        if (d.bit && counted && !is_free(*this, high, k))
            return refusal("layout.join", fmt::format("`{}` has counted repeats, so xor-ed bits of `{}` cannot stand above them", low, high));
        d.bit = d.bit && !counted;
        digits.push_back(d);
    }
    return with_digits(*this, {low, high}, {{input, digits}});
}

bool same(const Layout& a, const Layout& b) { return a == b || a.folded() == b.folded(); }

std::vector<int64_t> replicas(const Layout& l, std::string_view input) {
    std::vector<int64_t> out;
    const Layout folded = l.folded();
    int64_t place = 1;
    for (const Digit& d : digits_of(folded, input)) {
        if (d.bit && is_zero(d.step)) out.push_back(place);
        place *= d.radix;
    }
    return out;
}

}  // namespace acu::ir
