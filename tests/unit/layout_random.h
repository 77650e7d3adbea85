#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "ir/layout.h"

/// Random layouts for the tests of layouts, and their definition by enumeration.
namespace acu::ir::test {

/// Another seed: ACU_SEED in the environment. A failure prints it.
inline unsigned seed() {
    const char* text = std::getenv("ACU_SEED");
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 20u;
}

struct Random {
    std::mt19937 engine{seed()};
    int64_t below(int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); }
    template <class T>
    void shuffle(std::vector<T>& v) {
        std::shuffle(v.begin(), v.end(), engine);
    }
};

#define SEEDED(r) \
    Random r;     \
    INFO("ACU_SEED=" << seed())

inline Layout parsed(const std::string& text) {
    auto l = parse_layout(text);
    REQUIRE_MESSAGE(l, text << ": " << l.why().message);
    return *l;
}

inline std::vector<Point> points(const Layout& l) {
    std::vector<Point> out{{}};
    for (const std::string& input : l.inputs()) {
        std::vector<Point> next;
        for (int64_t i = 0; i < l.size(input); ++i)
            for (Point p : out) p[input] = i, next.push_back(p);
        out = std::move(next);
    }
    return out;
}

inline const std::vector<std::string> hardware{"reg", "lane", "warp"};

/// Anything: images and steps at random, mostly neither injective nor regular.
inline Layout any_layout(Random& r, int rank, int64_t most = 12) {
    std::vector<InputBits> atom;
    std::vector<Repeat> repeats;
    const auto coord = [&] {
        Coord c;
        for (int d = 0; d < rank; ++d) c.push_back(r.below(2) ? r.below(most) : 0);
        return c;
    };
    for (const std::string& input : hardware) {
        InputBits b{input, {}};
        for (int64_t n = r.below(3); n > 0; --n) b.images.push_back(coord());
        atom.push_back(b);
        for (int64_t n = r.below(2); n > 0; --n) repeats.push_back({input, 1 + r.below(4), coord()});
    }
    return *Layout::make(rank, atom, repeats);
}

/// A bijection onto a box: digits of random radix over random inputs; then, where `mixed`, images of the atom are xor-ed into one another.
inline Layout exact_layout(Random& r, int rank, bool mixed, Coord& box, const std::vector<std::string>& inputs = hardware) {
    box.assign(rank, 1);
    Layout l(rank);
    for (int64_t n = 3 + r.below(5); n > 0; --n) {
        const int64_t dim = r.below(rank), count = r.below(3) ? 2 : 3 + r.below(3);
        Coord step(rank, 0);
        step[dim] = box[dim];
        box[dim] *= count;
        l = l.times(inputs[r.below(static_cast<int64_t>(inputs.size()))], count, step);
    }
    l = l.folded();
    if (!mixed) return l;
    std::vector<InputBits> atom = l.atom();
    std::vector<Coord*> images;
    for (InputBits& b : atom)
        for (Coord& c : b.images) images.push_back(&c);
    for (size_t n = 0; n < 2 * images.size() && images.size() > 1; ++n) {
        const int64_t i = r.below(static_cast<int64_t>(images.size())), k = r.below(static_cast<int64_t>(images.size()));
        for (int d = 0; i != k && d < rank; ++d) (*images[i])[d] ^= (*images[k])[d];
    }
    return *Layout::make(rank, atom, l.repeats());
}

inline Point coordinates(const Coord& c) {
    Point p;
    for (size_t d = 0; d < c.size(); ++d) p["d" + std::to_string(d)] = c[d];
    return p;
}

inline bool agree(const Layout& a, const Layout& b) {
    for (const Point& p : points(a))
        if (a.at(p) != b.at(p)) return false;
    return a.points() == b.points();
}

inline bool within(const Coord& c, const Coord& shape) {
    for (size_t d = 0; d < shape.size(); ++d)
        if (c[d] >= shape[d]) return false;
    return true;
}

}  // namespace acu::ir::test
