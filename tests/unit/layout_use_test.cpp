#include "ir/layout_use.h"

#include <set>

#include "tests/unit/layout_random.h"

using namespace acu::ir;
using namespace acu::ir::test;

namespace {

/// Executes a plan on registers that hold their coordinates; whether b's owners end up with what is theirs.
bool moves_everything(const Layout& a, const Layout& b, const Relayout& plan, int element_bytes, const Coord& shape) {
    std::map<int64_t, Coord> buffer;
    const auto offset = [&](const Coord& c) { return plan.address.at(coordinates(c))[0]; };
    if (plan.kind == Relayout::Shared) {
        for (const Point& p : points(a)) {
            const Coord c = a.at(p);
            if (offset(c) >= plan.elements || (buffer.contains(offset(c)) && buffer[offset(c)] != c)) return false;
            buffer[offset(c)] = c;
        }
        const auto worst = [&](const Layout& l, int64_t width) {
            std::vector<int64_t> addresses;
            for (int64_t lane = 0; lane < l.size("lane"); ++lane) addresses.push_back(offset(l.at({{"lane", lane}})) * element_bytes);
            return conflicts(addresses, static_cast<int>(width) * element_bytes);
        };
        if (worst(a, plan.store_width) != plan.store_ways || worst(b, plan.load_width) != plan.load_ways) return false;
        return std::ranges::all_of(points(b), [&](const Point& p) { return !within(b.at(p), shape) || buffer[offset(b.at(p))] == b.at(p); });
    }
    for (Point p : points(b.without("reg"))) {
        std::vector<Coord> held(b.size("reg"));
        const auto value = [&](int64_t reg, int64_t lane) {
            Point q = p;
            q["reg"] = reg, q["lane"] = lane;
            return a.at(q);
        };
        for (size_t r = 0; r < plan.registers.size(); ++r) held[r] = value(plan.registers[r], p["lane"]);
        for (const ShuffleRound& round : plan.rounds) {
            const size_t lane = p["lane"];
            if (round.to[lane] < 0) continue;
            if (round.local && round.lane[lane] != static_cast<int>(lane)) return false;
            held[round.to[lane]] = value(round.from[round.lane[lane]], round.lane[lane]);
        }
        for (size_t r = 0; r < held.size(); ++r) {
            p["reg"] = static_cast<int64_t>(r);
            if (held[r] != b.at(p)) return false;
        }
    }
    return true;
}

Relayout planned(const Layout& a, const Layout& b, int element_bytes = 2, const Coord& shape = {}) {
    const auto plan = relayout(a, b, element_bytes, shape);
    REQUIRE_MESSAGE(plan, plan.why().message);
    CHECK(moves_everything(a, b, *plan, element_bytes, shape));
    return *plan;
}

}  // namespace

TEST_CASE("an accumulator stored to a swizzled or a padded tile has an address layout") {
    const Layout acc = wgmma_accumulator(128);
    const Layout tile = *shared_tile(64, 128, 2, 128);
    const auto offset = inverse(tile, {"offset"});
    REQUIRE(offset);
    const auto address = compose(*offset, acc);
    REQUIRE(address);
    CHECK(agree(*address, *compose(*offset, acc.folded())));
    for (const Point& p : points(acc)) REQUIRE(tile.at({{"offset", address->at(p)[0]}}) == acc.at(p));
    CHECK(width(*address, 0) == 2);
    CHECK(conflicts(*address, 2, 4, 32) == 1);
    CHECK(conflicts(*compose(*inverse(*shared_tile(64, 128, 2, 0), {"offset"}), acc), 2, 4, 32) == 8);
    const Layout padded = parsed("{repeat d0 x 64 step (184), repeat d1 x 176 step (1)}");
    const auto rows = compose(padded, wgmma_accumulator(176));
    REQUIRE(rows);
    for (const Point& p : points(wgmma_accumulator(176))) REQUIRE(rows->at(p) == padded.at(coordinates(wgmma_accumulator(176).at(p))));
    CHECK(conflicts(*rows, 2, 4, 32) == 1);
}

TEST_CASE("plans of random relayouts move every element to its place") {
    SEEDED(r);
    std::map<std::string_view, int> kinds;
    for (int n = 0; n < 60; ++n) {
        std::vector<Coord> images;
        for (int64_t k = 0; k < 10; ++k) images.push_back(k < 5 ? Coord{int64_t{1} << k, 0} : Coord{0, int64_t{1} << (k - 5)});
        r.shuffle(images);
        const auto made = [&](std::vector<Coord> v) {
            for (int64_t k = r.below(3); k > 0; --k) {    // inside the part that this relayout may mix
                const int64_t from = r.below(n % 3 == 0 ? 3 : n % 3 == 1 ? 8 : 10), to = r.below(n % 3 == 0 ? 3 : n % 3 == 1 ? 8 : 10);
                for (int d = 0; from != to && d < 2; ++d) v[to][d] ^= v[from][d];
            }
            const InputBits reg{"reg", {v.begin(), v.begin() + 3}}, lane{"lane", {v.begin() + 3, v.begin() + 8}}, warp{"warp", {v.begin() + 8, v.end()}};
            return Layout::make(2, {reg, lane, warp})->times("reg", 3, {0, 32});
        };
        const Layout a = made(images);
        std::shuffle(images.begin(), images.begin() + (n % 3 == 0 ? 3 : n % 3 == 1 ? 8 : 10), r.engine);
        const Layout b = made(images);
        INFO(print(a) << " to " << print(b));
        const Relayout plan = planned(a, b);
        ++kinds[name_of(plan.kind)];
        if (n % 3 == 0) CHECK(plan.kind <= Relayout::Rename);
        if (n % 3 == 1) CHECK(plan.kind <= Relayout::Shuffle);
        if (n % 3 == 1) CHECK(plan.rounds.size() <= 24);
        for (const ShuffleRound& round : plan.rounds) CHECK((xor_form(round.from) && xor_form(round.lane) && xor_form(round.to)));
    }
    CHECK(kinds["registers renamed"] > 5);
    CHECK(kinds["shuffle"] > 10);
    CHECK(kinds["shared memory"] > 10);
}

TEST_CASE("accumulator to operand: identity for P V, rename for fp8, one exchange on sm_70") {
    const Layout p = wgmma_accumulator(176), a = fragment_named("wgmma.A16")->times("reg", 11, {0, 16});
    CHECK(same(p, a));
    CHECK(planned(p, a).kind == Relayout::Identity);
    CHECK(planned(fragment_named("mma.m16n8.C")->times("reg", 2, {0, 8}), *fragment_named("mma.m16n8k16.A")).kind == Relayout::Identity);
    // fp8: columns 8 of a register move to bit 1 of k, as B's rows are stored (microkernel-facts, check_chains.py).
    const Layout permuted = parsed("{reg: (0,1) (0,2) (8,0) (0,16), lane: (0,4) (0,8) (1,0) (2,0) (4,0), warp: (16,0) (32,0)}");
    CHECK(permuted == *fragment_named("wgmma.A8"));
    const Layout k_order = parsed("{d0: (1,0) (2,0) (4,0) (8,0) (16,0) (32,0), d1: (0,1) (0,4) (0,8) (0,2) (0,16)}");
    const Relayout renamed = planned(*compose(k_order, wgmma_accumulator(32)), permuted, 1);
    CHECK(renamed.kind == Relayout::Rename);
    CHECK(renamed.registers == std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
    // m8n8k4: register bit 1 and lane bit 1 change places: half the registers, lanes 2 apart.
    const Layout c32 = *fragment_named("m8n8k4.C.f32"), row = fragment_named("m8n8k4.A.row")->times("reg", 2, {0, 4, 0});
    const Relayout exchange = planned(c32, row);
    CHECK(exchange.kind == Relayout::Shuffle);
    CHECK(exchange.shuffles() == 4);
    CHECK(exchange.rounds.size() == 8);
    for (const ShuffleRound& round : exchange.rounds)
        CHECK((*xor_form(round.lane) == (round.local ? std::vector<int>{0, 1, 2, 4, 8, 16} : std::vector<int>{2, 1, 2, 4, 8, 16})));
    CHECK(planned(*fragment_named("m8n8k4.C.f16"), row).kind == Relayout::Identity);
    CHECK(planned(*fragment_named("mfma.32x32.D"), fragment_named("mfma.32x32x8.B")->times("reg", 4, {8, 0})).kind == Relayout::Identity);
    CHECK(planned(*fragment_named("mfma.16x16.D"), *fragment_named("mfma.16x16x16.B")).kind == Relayout::Identity);
}

TEST_CASE("exchanges: the fewest where lanes can stay, and any order of counted digits") {
    const Relayout half = planned(parsed("{reg: (1), lane: (2) (4) (8) (16) (32)}"), parsed("{reg: (2), lane: (3) (6) (8) (16) (32)}"));
    CHECK(half.kind == Relayout::Shuffle);
    CHECK(half.shuffles() == 1);
    std::vector<Layout> orders;
    std::vector<size_t> order{0, 1, 2, 3};
    do {
        const std::vector<Repeat> digits{{"lane", 3, {}}, {"lane", 2, {}}, {"reg", 3, {}}, {"reg", 2, {}}};
        std::vector<Repeat> placed = digits;
        int64_t step = 1;
        for (const size_t k : order) placed[k].step = {step}, step *= digits[k].count;
        orders.push_back(Layout(1).times(placed));
    } while (std::ranges::next_permutation(order).found);
    for (const Layout& a : orders)
        for (const Layout& b : orders) CHECK(planned(a, b).kind <= Relayout::Shuffle);
}

TEST_CASE("relayouts that are not bijections, and those that leave the warp") {
    // One value a row in lane 0 of each group of four goes to all four lanes: one shuffle.
    const Layout spread = parsed("{lane: (0) (0) (1) (2) (4)}"), owner = parsed("{lane: (8) (16) (1) (2) (4)}");
    const Relayout broadcast = planned(owner, spread, 4);
    CHECK(broadcast.kind == Relayout::Shuffle);
    CHECK(broadcast.shuffles() == 1);
    CHECK(replicas(spread, "lane") == std::vector<int64_t>{1, 2});
    CHECK(planned(spread, spread).kind == Relayout::Identity);
    CHECK(replicas(wgmma_accumulator(64).projected({0}), "lane") == std::vector<int64_t>{1, 2});
    const Layout thirds = parsed("{repeat lane x 3 step (1), repeat reg x 4 step (3)}"), blocks = parsed("{repeat reg x 4 step (1), repeat lane x 3 step (4)}");
    CHECK(planned(thirds, blocks).kind == Relayout::Shuffle);
    const Relayout shared = planned(*fragment_named("wgmma.D"), distribute({64, 8}, 128, 32, 1, 2)->layout);
    CHECK(shared.kind == Relayout::Shared);
    CHECK(shared.store_width == 2);
    const Relayout big = planned(wgmma_accumulator(128), distribute({64, 128}, 128, 32, 1, 8)->layout);
    CHECK(big.kind == Relayout::Shared);
    CHECK(big.load_width == 8);
    CHECK(big.load_ways == 1);
    CHECK(big.store_ways == 1);
    const Layout rows = distribute({64, 176}, 128, 32, 1, 8)->layout;
    CHECK(covers(rows, {64, 176}) == Cover::Overshoot);
    CHECK_FALSE(relayout(wgmma_accumulator(176), rows, 2));
    CHECK(planned(wgmma_accumulator(176), rows, 2, {64, 176}).load_width == 8);
    const Relayout narrow = planned(wgmma_accumulator(48),
                                    parsed("{reg: (0,1) (0,2) (0,4), lane: (1,0) (2,0) (4,0) (8,0) (16,0), warp: (32,0), repeat reg x 6 step (0,8)}"));
    CHECK(narrow.load_ways == 1);
    CHECK(narrow.store_ways == 1);
    CHECK(planned(parsed("{lane: (1) (2) (4) (8) (16), warp: (32) (64)}"), parsed("{lane: (2) (1) (4) (8) (16), warp: (64) (32)}")).kind == Relayout::Shared);
    CHECK(relayout(wgmma_accumulator(16), wgmma_accumulator(24), 2).why().message.find("element (0,16) has no owner") != std::string::npos);
    CHECK(relayout(spread, *fragment_named("wgmma.D"), 2).why().code == "layout.relayout");
}

TEST_CASE("bank conflicts: the rank formula against counting") {
    SEEDED(r);
    const auto addresses_of = [](const Layout& l, int unit, int lanes) {
        std::vector<int64_t> out;
        for (int64_t lane = 0; lane < lanes; ++lane) out.push_back(l.at({{"lane", lane}})[0] * unit);
        return out;
    };
    const auto counted = [](const std::vector<int64_t>& addresses, int bytes, size_t phase) {
        size_t worst = 0;
        for (size_t first = 0; first < addresses.size(); first += phase) {
            std::map<int64_t, std::set<int64_t>> words;    // of every bank
            for (size_t lane = first; lane < first + phase; ++lane)
                for (int64_t a = addresses[lane]; a < addresses[lane] + bytes; ++a) words[a / 4 % 32].insert(a / 4);
            for (const auto& [bank, of_bank] : words) worst = std::max(worst, of_bank.size());
        }
        return static_cast<int>(worst);
    };
    std::set<int> degrees;
    for (int n = 0; n < 400; ++n) {
        const int bytes = 1 << r.below(5), unit = 1 << r.below(2), lanes = n % 2 ? 32 : 64;
        InputBits lane{"lane", {}};
        for (int bit = 0; bit < 6; ++bit) lane.images.push_back({r.below(3) ? r.below(1 << 11) & -bytes : 128 * r.below(16)});
        const Layout l = *Layout::make(1, {lane});
        INFO(print(l) << " unit " << unit << " bytes " << bytes);
        const int ways = conflicts(l, unit, bytes, lanes);
        degrees.insert(ways);
        const std::vector<int64_t> addresses = addresses_of(l, unit, lanes);
        CHECK(ways == counted(addresses, bytes, bytes == 16 ? 8 : bytes == 8 ? 16 : 32));
        CHECK(ways == conflicts(addresses, bytes));
        if (bytes == 16) CHECK(conflicts(l, unit, 16, lanes, Phases::CdnaRead128) == conflicts(addresses, 16, Phases::CdnaRead128));
    }
    CHECK(degrees.size() >= 4);
    for (const int64_t pitch : {12, 36, 132, 256}) {
        const Layout l = Layout(1).times("lane", 32, {pitch});
        CHECK(conflicts(l, 1, 4, 32) == counted(addresses_of(l, 1, 32), 4, 32));
    }
    CHECK(f2_rank({3, 5, 6, 0}) == 2);
}

TEST_CASE("swizzles: the TMA maps, conflict-free for eight rows, refused where they do not fit") {
    for (const int mode : {32, 64, 128}) {
        const Layout tile = *shared_tile(16, 256, 2, mode);
        CHECK(exact(tile, {16, 256}));
        const Layout offset = *inverse(tile, {"offset"});
        for (int64_t row = 0; row < 16; ++row)
            for (int64_t chunk = 0; chunk < mode / 16; ++chunk) {
                const int64_t plain = row * mode + chunk * 16, expected = plain ^ ((plain >> 7 & (mode / 16 - 1)) << 4);    // layout_facts, check_desc.py
                CHECK(row * mode + 16 * swizzle_chunk(mode, row, chunk) == expected);
                CHECK(offset.at({{"d0", row}, {"d1", chunk * 8}})[0] * 2 == expected);
            }
        const auto eight_rows = [](const Layout& l) {
            std::vector<int64_t> addresses;
            for (int64_t row = 0; row < 8; ++row) addresses.push_back(l.at({{"d0", row}})[0] * 2);
            return conflicts(addresses, 16);
        };
        CHECK(eight_rows(offset) == 1);
        CHECK(eight_rows(*inverse(*shared_tile(8, mode / 2, 2, 0), {"offset"})) == mode / 16);
    }
    const auto message = [](int64_t rows, int64_t columns, int bytes, int mode) { return shared_tile(rows, columns, bytes, mode).why().message; };
    CHECK(message(12, 64, 2, 128) == "12 rows are no multiple of 8");
    CHECK(message(64, 48, 2, 64) == "rows of 96 bytes are no multiple of the 64 bytes of the swizzle");
    CHECK(message(64, 64, 2, 48) == "there is no swizzle of 48 bytes");
    CHECK(widest_swizzle(64, 96) == 32);
    CHECK(widest_swizzle(64, 192) == 64);
    CHECK(widest_swizzle(64, 256) == 128);
    CHECK(widest_swizzle(12, 128) == 0);
    CHECK(exact(*shared_tile(12, 20, 2, 0), {12, 20}));
    // ds_read_b128 of MFMA operands, 128-byte rows: conflict-free under both groupings of lanes (microkernel-facts 4.6).
    const Layout reads = *compose(*inverse(*shared_tile(32, 64, 2, 128), {"offset"}), parsed("{lane: (1,0) (2,0) (4,0) (8,0) (16,0) (0,8)}"));
    CHECK(conflicts(reads, 2, 16, 64) == 1);
    CHECK(conflicts(reads, 2, 16, 64, Phases::CdnaRead128) == 1);
}

TEST_CASE("distribute covers any shape once, as compact as its rule says") {
    SEEDED(r);
    for (int n = 0; n < 200; ++n) {
        Coord shape;
        for (int64_t d = 1 + r.below(3); d > 0; --d) shape.push_back(1 + r.below(n % 2 ? 12 : 40));
        const int64_t warp = r.below(2) ? 32 : 64, threads = warp * (1 + r.below(4));
        const int axis = static_cast<int>(r.below(static_cast<int64_t>(shape.size())));
        const auto d = distribute(shape, threads, warp, axis, int64_t{1} << r.below(4));
        REQUIRE(d);
        INFO(print(d->layout));
        CHECK(covers(d->layout, d->covered) == Cover::Exact);
        CHECK(covers(d->layout, shape) == (d->exact ? Cover::Exact : Cover::Overshoot));
        CHECK(d->exact == (d->covered == shape));
        CHECK(d->layout.size("lane") * d->layout.size("warp") == threads);
    }
    const auto exactly = distribute({64, 128}, 128, 32, 1, 8);
    CHECK(exactly->exact);
    CHECK(print(exactly->layout) == "{reg: (0,1) (0,2) (0,4) (8,0) (16,0) (32,0), lane: (0,8) (0,16) (0,32) (0,64) (1,0), warp: (2,0) (4,0)}");
    CHECK(same(distribute({5120}, 128, 32, 0, 8)->layout, row_tile(128, 32, 8, 5)));
    CHECK(distribute({7168}, 256, 32, 0, 8)->covered == Coord{8192});
    CHECK(distribute({64, 40}, 128, 32, 1, 8)->covered == Coord{64, 64});
    CHECK(distribute({2, 3}, 128, 32, 1, 1)->covered == Coord{32, 4});
    CHECK(distribute({1, 2}, 128, 32, 1, 1)->covered == Coord{1, 128});    // a user may leave out a dimension of one cell, and no thread stands beyond it
    CHECK_FALSE(distribute({64}, 48, 32, 0, 8));
    CHECK_FALSE(distribute({64}, 64, 32, 1, 8));
}

TEST_CASE("fragments are bijections and have the published maps") {
    CHECK(fragments().size() >= 20);
    for (const Fragment& f : fragments()) {
        INFO(f.name);
        CHECK(exact(f.layout, f.shape));
    }
    // The formulas of sketch/layout_facts/layouts.json ("row", "col", "blk" of sm70.*, sm80.*, sm90.wgmma.*, gfx90a.*), g = l >> 2, t = l & 3.
    using Formula = Coord (*)(int64_t r, int64_t l, int64_t w);
    const std::vector<std::pair<std::string_view, Formula>> published{
        {"m8n8k4.A.row", [](int64_t r, int64_t l, int64_t) { return Coord{(l & 3) + 4 * (l >> 4), r, (l >> 2) & 3}; }},
        {"m8n8k4.A.col", [](int64_t r, int64_t l, int64_t) { return Coord{r + 4 * (l >> 4), l & 3, (l >> 2) & 3}; }},
        {"m8n8k4.B.row", [](int64_t r, int64_t l, int64_t) { return Coord{l & 3, r + 4 * (l >> 4), (l >> 2) & 3}; }},
        {"m8n8k4.B.col", [](int64_t r, int64_t l, int64_t) { return Coord{r, (l & 3) + 4 * (l >> 4), (l >> 2) & 3}; }},
        {"m8n8k4.C.f16", [](int64_t r, int64_t l, int64_t) { return Coord{(l & 3) + 4 * (l >> 4), r, (l >> 2) & 3}; }},
        {"m8n8k4.C.f32", [](int64_t r, int64_t l, int64_t) { return Coord{(l & 1) + (r & 2) + 4 * (l >> 4), (r & 4) + (l & 2) + (r & 1), (l >> 2) & 3}; }},
        {"m8n8k4.16x16.C", [](int64_t r, int64_t l, int64_t) { return Coord{(l & 1) + (r & 2) + 4 * ((l >> 2) & 1) + 8 * (l >> 4), (r & 1) + (l & 2) + 4 * ((l >> 3) & 1) + 2 * (r & 4)}; }},
        {"lanes.16x32", [](int64_t r, int64_t l, int64_t) { return Coord{4 * (l >> 3) + (r >> 2), 4 * (l & 7) + (r & 3)}; }},
        {"mma.m16n8.C", [](int64_t r, int64_t l, int64_t) { return Coord{(l >> 2) + 8 * (r >> 1), 2 * (l & 3) + (r & 1)}; }},
        {"mma.m16n8k16.A", [](int64_t r, int64_t l, int64_t) { return Coord{(l >> 2) + 8 * ((r >> 1) & 1), 2 * (l & 3) + (r & 1) + 8 * (r >> 2)}; }},
        {"mma.m16n8k16.B", [](int64_t r, int64_t l, int64_t) { return Coord{2 * (l & 3) + (r & 1) + 8 * (r >> 1), l >> 2}; }},
        {"mma.m16n8k8.tf32.A", [](int64_t r, int64_t l, int64_t) { return Coord{(l >> 2) + 8 * (r & 1), (l & 3) + 4 * (r >> 1)}; }},
        {"mma.m16n8k8.tf32.B", [](int64_t r, int64_t l, int64_t) { return Coord{(l & 3) + 4 * r, l >> 2}; }},
        {"mma.m16n8k32.s8.A", [](int64_t r, int64_t l, int64_t) { return Coord{(l >> 2) + 8 * ((r >> 2) & 1), 4 * (l & 3) + (r & 3) + 16 * (r >> 3)}; }},
        {"mma.m16n8k32.s8.B", [](int64_t r, int64_t l, int64_t) { return Coord{4 * (l & 3) + (r & 3) + 16 * (r >> 2), l >> 2}; }},
        {"wgmma.D", [](int64_t r, int64_t l, int64_t w) { return Coord{16 * w + (l >> 2) + 8 * ((r >> 1) & 1), 8 * (r >> 2) + 2 * (l & 3) + (r & 1)}; }},
        {"wgmma.A16", [](int64_t r, int64_t l, int64_t w) { return Coord{16 * w + (l >> 2) + 8 * ((r >> 1) & 1), 2 * (l & 3) + (r & 1) + 8 * (r >> 2)}; }},
        {"wgmma.A.tf32", [](int64_t r, int64_t l, int64_t w) { return Coord{16 * w + (l >> 2) + 8 * (r & 1), (l & 3) + 4 * (r >> 1)}; }},
        {"wgmma.A8", [](int64_t r, int64_t l, int64_t w) { return Coord{16 * w + (l >> 2) + 8 * ((r >> 2) & 1), 4 * (l & 3) + (r & 3) + 16 * (r >> 3)}; }},
        {"mfma.32x32.D", [](int64_t r, int64_t l, int64_t) { return Coord{8 * (r >> 2) + 4 * (l >> 5) + (r & 3), l & 31}; }},
        {"mfma.32x32x8.A", [](int64_t r, int64_t l, int64_t) { return Coord{l & 31, r + 4 * (l >> 5)}; }},
        {"mfma.32x32x8.B", [](int64_t r, int64_t l, int64_t) { return Coord{r + 4 * (l >> 5), l & 31}; }},
        {"mfma.16x16.D", [](int64_t r, int64_t l, int64_t) { return Coord{4 * (l >> 4) + r, l & 15}; }},
        {"mfma.16x16x16.A", [](int64_t r, int64_t l, int64_t) { return Coord{l & 15, r + 4 * (l >> 4)}; }},
        {"mfma.16x16x16.B", [](int64_t r, int64_t l, int64_t) { return Coord{r + 4 * (l >> 4), l & 15}; }},
    };
    CHECK(published.size() == fragments().size());
    for (const auto& [name, formula] : published) {
        INFO(name);
        const Layout* l = fragment_named(name);
        REQUIRE(l);
        for (const Point& p : points(*l)) REQUIRE(l->at(p) == formula(p.at("reg"), p.at("lane"), p.contains("warp") ? p.at("warp") : 0));
    }
    // sm90.wgmma.m64n256.D: images of `reg` as the file has them.
    CHECK(wgmma_accumulator(256).folded().atom()[0].images == std::vector<Coord>{{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}, {0, 128}});
    CHECK(fragment_named("wgmma.X") == nullptr);
}
