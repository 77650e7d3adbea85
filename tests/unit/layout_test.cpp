#include "ir/layout_use.h"
#include "tests/unit/layout_random.h"

using namespace acu::ir;
using namespace acu::ir::test;

TEST_CASE("layout text: out equals in, and wrong text gets a reason") {
    const std::string acc = "{reg: (0,1) (8,0), lane: (0,2) (0,4) (1,0) (2,0) (4,0), warp: (16,0) (32,0), repeat reg x 22 step (0,8)}";
    CHECK(print(parsed(acc)) == acc);
    CHECK(parsed(acc) == wgmma_accumulator(176));
    CHECK(print(parsed("{rank 2}")) == "{rank 2}");
    CHECK(parsed("{warp: (8), reg: (1) (2), repeat lane x 3 step (4)}") == parsed("{ reg: (1) (2), warp: (8), repeat lane x 3 step (4) }"));
    SEEDED(r);
    for (int n = 0; n < 300; ++n) {
        const Layout l = any_layout(r, static_cast<int>(1 + r.below(3)));
        CHECK(parsed(print(l)) == (l.inputs().empty() ? Layout(l.rank()) : l));
        CHECK(print(parsed(print(l))) == print(l));
    }
    const auto code = [](const std::string& text) {
        const auto l = parse_layout(text);
        return l ? "" : l.why().code;
    };
    for (const char* text : {"", "{", "reg: (1)", "{reg (1)}", "{reg: }", "{reg: (1}", "{reg: (1) (2,3)}", "{repeat reg x step (1)}", "{reg: (1)} x", "{reg: (-1)}",
                             "{reg: (99999999999999999999)}", "{reg: (1),}"}) {
        INFO(text);
        CHECK(code(text) == "layout.syntax");
    }
    CHECK(code("{reg: (1), reg: (2)}") == "layout.input");
    CHECK(code("{repeat reg x 0 step (1)}") == "layout.count");
    CHECK(code("{repeat reg x 1000000000000 step (1000)}") == "layout.size");
    CHECK(code("{repeat reg x 1099511627776 step (0), repeat reg x 2 step (0)}") == "layout.size");
}

TEST_CASE("folding, splitting, joining and renaming keep the map") {
    SEEDED(r);
    for (int n = 0; n < 200; ++n) {
        const Layout l = any_layout(r, 2);
        CHECK(agree(l, l.folded()));
        CHECK(l.folded().folded() == l.folded());
        for (const Point& p : points(l))
            for (int d = 0; d < 2; ++d) CHECK(l.at(p)[d] < l.extent()[d]);
        const Layout transposed = l.projected({1, 0});
        for (const Point& p : points(l)) CHECK(transposed.at(p) == Coord{l.at(p)[1], l.at(p)[0]});
        for (int64_t cut = 1; cut <= l.size("reg"); ++cut) {
            const auto parts = l.split("reg", cut, "low", "high");
            if (!parts) continue;
            for (int64_t i = 0; i < l.size("reg"); ++i) CHECK(parts->at({{"low", i % cut}, {"high", i / cut}}) == l.at({{"reg", i}}));
            if (const auto again = parts->joined("low", "high", "reg")) CHECK(agree(l, *again));
        }
    }
    const Layout row = row_tile(256, 32, 8, 5);
    const auto thread = row.joined("lane", "warp", "thread");
    REQUIRE(thread);
    CHECK(thread->size("thread") == 256);
    CHECK(thread->at({{"thread", 77}}) == row.at({{"lane", 77 % 32}, {"warp", 77 / 32}}));
    CHECK(same(*thread->split("thread", 32, "lane", "warp"), row));
    CHECK_FALSE(row.split("reg", 16, "low", "high"));
    CHECK(row.without("warp").size("warp") == 1);
    CHECK(row.renamed("warp", "warpgroup").size("warpgroup") == 8);
}

TEST_CASE("invert(apply(x)) = x, and the inverse layout says the same") {
    SEEDED(r);
    int with_inverse = 0;
    for (int n = 0; n < 200; ++n) {
        Coord box;
        const Layout l = exact_layout(r, static_cast<int>(1 + r.below(3)), n % 2, box);
        INFO(print(l));
        CHECK(injective(l));
        CHECK(covers(l, box) == Cover::Exact);
        const auto back = inverse(l, hardware);
        with_inverse += bool(back);
        for (const Point& p : points(l)) {
            const auto found = invert(l, l.at(p));
            REQUIRE(found);
            for (const auto& [input, value] : p) CHECK((found->contains(input) ? found->at(input) : 0) == value);
            Coord point;
            for (const std::string& input : hardware) point.push_back(p.contains(input) ? p.at(input) : 0);
            if (back) CHECK(back->at(coordinates(l.at(p))) == point);
        }
        ++box[0];
        CHECK(covers(l, box) == Cover::No);
        CHECK_FALSE(invert(l, Coord(l.rank(), 1 << 20)));
    }
    CHECK(with_inverse > 100);
    CHECK_FALSE(invert(parsed("{reg: (1), lane: (1)}"), {1}));
    CHECK_FALSE(invert(parsed("{reg: (1), repeat lane x 3 step (0)}"), {1}));
    CHECK(inverse(parsed("{reg: (1) (8)}"), {"reg"}).why().code == "layout.inverse");
    // Four registers that stand three apart are no bits, and lie below a coordinate that two inputs xor.
    CHECK_FALSE(inverse(parsed("{lane: (0,4), warp: (0,12), repeat reg x 3 step (1,0), repeat reg x 4 step (0,1)}"), hardware));
}

TEST_CASE("injective and covers agree with counting on layouts of any kind") {
    SEEDED(r);
    int injective_ones = 0, covering = 0;
    for (int n = 0; n < 1500; ++n) {
        const int rank = static_cast<int>(1 + r.below(2));
        const Layout l = any_layout(r, rank, 6);
        INFO(print(l));
        std::map<Coord, int> seen;
        for (const Point& p : points(l)) ++seen[l.at(p)];
        const bool once = std::ranges::all_of(seen, [](const auto& e) { return e.second == 1; });
        CHECK(injective(l) == once);
        injective_ones += once && l.points() > 1;
        Coord shape;
        for (int d = 0; d < rank; ++d) shape.push_back(n % 2 ? 1 + r.below(l.extent()[d]) : l.extent()[d]);
        int64_t hits = 0, volume = 1;
        bool twice = false;
        for (const auto& [c, times] : seen) {
            const bool inside = within(c, shape);
            hits += inside, twice = twice || (inside && times > 1);
        }
        for (const int64_t s : shape) volume *= s;
        const Cover expected = hits != volume || twice ? Cover::No : l.points() == volume ? Cover::Exact : Cover::Overshoot;
        covering += expected != Cover::No;
        CHECK(covers(l, shape) == expected);
        for (const auto& [c, times] : seen) CHECK(bool(invert(l, c)) == (times == 1));
    }
    CHECK(injective_ones > 50);
    CHECK(covering > 20);
}

TEST_CASE("composition agrees with composing point by point, and is associative") {
    SEEDED(r);
    int composed = 0, triples = 0;
    for (int n = 0; n < 1500; ++n) {
        Coord box, middle;
        const Layout a = n % 4 == 3 ? any_layout(r, 2, 6) : exact_layout(r, 2, n % 3 == 1, box);
        const Layout b = exact_layout(r, 2, n % 3 == 2, middle, {"d0", "d1"});
        const auto ba = compose(b, a);
        INFO(print(b) << " after " << print(a));
        const Coord reach = a.extent();
        if (reach[0] > b.size("d0") || reach[1] > b.size("d1")) {
            CHECK_FALSE(ba);
            continue;
        }
        if (!ba) continue;
        ++composed;
        for (const Point& p : points(a)) REQUIRE(ba->at(p) == b.at(coordinates(a.at(p))));
        const Layout c = parsed("{d0: (8) (16) (33), d1: (1) (2) (4), repeat d0 x 99 step (64), repeat d1 x 99 step (8000)}");
        const auto cb = compose(c, b);
        const auto left = compose(c, *ba);
        if (!cb || !left) continue;
        const auto right = compose(*cb, a);
        if (!right) continue;
        ++triples;
        CHECK(same(*left, *right));
    }
    CHECK(composed > 100);
    CHECK(triples > 20);
    CHECK(compose(parsed("{x: (1)}"), parsed("{reg: (1)}")).why().code == "layout.compose");
}

TEST_CASE("divide: atom times quotient is the tile") {
    SEEDED(r);
    for (int n = 0; n < 300; ++n) {
        Coord box;
        const Layout atom = exact_layout(r, 2, n % 2, box);
        Layout tile = atom;
        for (int64_t k = r.below(4); k > 0; --k) {
            const int64_t dim = r.below(2), count = 2 + r.below(5);
            Coord step(2, 0);
            step[dim] = box[dim];
            box[dim] *= count;
            tile = tile.times(r.below(2) ? "reg" : "warpgroup", count, step);
        }
        INFO(print(tile) << " by " << print(atom));
        for (const Layout& whole : {tile, tile.folded()}) {
            const auto quotient = divide(whole, atom);
            REQUIRE(quotient);
            CHECK(same(atom.times(*quotient), whole));
        }
        CHECK(divide(tile, tile)->empty());
    }
    const auto reason = [](const Layout& tile, const std::string& atom) { return divide(tile, *fragment_named(atom)).why().message; };
    CHECK(*divide(wgmma_accumulator(176), *fragment_named("wgmma.A16")) == std::vector<Repeat>{{"reg", 11, {0, 16}}});
    CHECK(*divide(wgmma_accumulator(24), *fragment_named("wgmma.D")) == std::vector<Repeat>{{"reg", 3, {0, 8}}});
    CHECK(reason(wgmma_accumulator(24), "wgmma.A16").find("3 repeats of `reg` are no multiple of 2") != std::string::npos);
    CHECK(reason(wgmma_accumulator(32), "mma.m16n8k16.B").find("`reg` moves by (0,1) in the tile and by (1,0) in the fragment") != std::string::npos);
    CHECK_FALSE(divide(parsed("{reg: (1), lane: (1)}"), parsed("{repeat reg x 2 step (1), repeat lane x 2 step (1)}")));    // 1 xor 1 is not 1 + 1
    CHECK(reason(*fragment_named("mma.m16n8.C"), "mma.m16n8k16.A").find("too few values of `reg`") != std::string::npos);
    CHECK(*divide(wgmma_accumulator(16), *fragment_named("mma.m16n8.C")) == std::vector<Repeat>{{"reg", 2, {0, 8}}, {"warp", 4, {16, 0}}});
}

TEST_CASE("counted repeats: N = 176, a row of 5120, a row of 7168 under a guard, three warpgroups") {
    const Layout acc = wgmma_accumulator(176);
    CHECK(acc.repeats() == std::vector<Repeat>{{"reg", 22, {0, 8}}});
    CHECK(acc.size("reg") == 88);
    CHECK(exact(acc, {64, 176}));
    CHECK(covers(acc, {64, 170}) == Cover::Overshoot);
    CHECK(exact(acc.times("warpgroup", 3, {64, 0}), {192, 176}));
    CHECK(*invert(acc, {63, 175}) == Point{{"reg", 87}, {"lane", 31}, {"warp", 3}});
    CHECK(width(acc, 1) == 2);
    CHECK(width(acc, 1, 1) == 1);
    const Layout row = row_tile(128, 32, 8, 5);
    CHECK(print(row) == "{reg: (1) (2) (4), lane: (8) (16) (32) (64) (128), warp: (256) (512), repeat reg x 5 step (1024)}");
    CHECK(exact(row, {5120}));
    CHECK(width(row, 0) == 8);
    CHECK(width(row, 0, 5120 + 4) == 4);
    const Layout ragged = row_tile(256, 32, 8, 4);
    CHECK(ragged.extent() == Coord{8192});
    CHECK(covers(ragged, {7168}) == Cover::Overshoot);
    CHECK_FALSE(exact(ragged, {7168}));
    std::vector<int> hits(7168, 0);
    for (const Point& p : points(ragged))
        if (const int64_t n = ragged.at(p)[0]; n < 7168) ++hits[n];
    CHECK(std::ranges::all_of(hits, [](int h) { return h == 1; }));
}

TEST_CASE("index forms say what the layout says") {
    SEEDED(r);
    int affine = 0;
    for (int n = 0; n < 300; ++n) {
        Coord box;
        const Layout l = n % 3 ? any_layout(r, 2) : exact_layout(r, 2, n % 2, box);
        INFO(print(l));
        for (int dim = 0; dim < 2; ++dim) {
            const IndexForm form = index_form(l, dim);
            affine += form.affine();
            const IndexForm flat{{}, form.affine() ? form.terms() : std::vector<IndexTerm>{}};
            for (const Point& p : points(l)) {
                REQUIRE(form.at(p) == l.at(p)[dim]);
                if (form.affine()) REQUIRE(flat.at(p) == l.at(p)[dim]);
            }
        }
    }
    CHECK(affine > 50);
    const Layout acc = wgmma_accumulator(176);
    CHECK(index_form(acc, 1).terms() == std::vector<IndexTerm>{{"reg", 1, 2, 1}, {"lane", 1, 4, 2}, {"reg", 4, 0, 8}});
    CHECK(index_form(acc, 0).terms() == std::vector<IndexTerm>{{"reg", 2, 2, 8}, {"lane", 4, 0, 1}, {"warp", 1, 0, 16}});
    CHECK(index_form(row_tile(256, 32, 8, 4), 0).terms() == std::vector<IndexTerm>{{"reg", 1, 8, 1}, {"reg", 8, 0, 2048}, {"lane", 1, 0, 8}, {"warp", 1, 0, 256}});
    const IndexForm swizzled = index_form(*inverse(*shared_tile(64, 64, 2, 128), {"offset"}), 0);
    CHECK_FALSE(swizzled.affine());
    CHECK(swizzled.parts.size() == 2);
}
