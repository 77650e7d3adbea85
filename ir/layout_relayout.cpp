#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/layout_bits.h"
#include "ir/layout_rounds.h"
#include "ir/layout_use.h"

namespace acu::ir {

std::string_view name_of(Relayout::Kind kind) {
    switch (kind) {
        case Relayout::Identity: return "identity";
        case Relayout::Rename: return "registers renamed";
        case Relayout::Shuffle: return "shuffle";
        case Relayout::Shared: return "shared memory";
    }
    return "";
}

int Relayout::shuffles() const {
    return static_cast<int>(std::ranges::count(rounds, false, &ShuffleRound::local));
}

namespace {

constexpr int64_t most_points = int64_t{1} << 22;

/// A layout as tables: its coordinates at (register, lane, everything else).
struct Side {
    std::vector<Partial> reg, lane, rest;

    Side(const Layout& l, const Packing& packing, const std::vector<std::string>& others)
        : reg(table_of(l, packing, "reg")), lane(table_of(l, packing, "lane")), rest(table_of(l, packing, others)) {}
    uint64_t at(size_t r, size_t l, size_t w) const { return (reg[r] + lane[l] + rest[w]).value(); }
};

class Move {
  public:
    Move(const Layout& a, const Layout& b, const Packing& packing) : packing_(packing), others_(others(a, b)), a_(a, packing, others_), b_(b, packing, others_) {
        threads_agree_ = a.size("lane") == b.size("lane");
        for (const std::string& input : others_) threads_agree_ = threads_agree_ && a.size(input) == b.size(input);
    }

    /// Register of a that holds register r of b in every thread.
    std::optional<Relayout> renamed() const {
        if (!threads_agree_) return {};
        std::unordered_multimap<uint64_t, size_t> where;
        for (size_t r = 0; r < a_.reg.size(); ++r) where.emplace(a_.at(r, 0, 0), r);
        Relayout plan{Relayout::Rename};
        bool identity = a_.reg.size() == b_.reg.size();
        for (size_t r = 0; r < b_.reg.size(); ++r) {
            const auto [first, last] = where.equal_range(b_.at(r, 0, 0));
            const auto found = std::find_if(first, last, [&](const auto& entry) { return agree_everywhere(entry.second, r); });
            if (found == last) return {};
            plan.registers.push_back(static_cast<int64_t>(found->second));
            identity = identity && found->second == r;
        }
        if (identity) plan.kind = Relayout::Identity;
        return plan;
    }

    /// Within each warp, and in each warp alike.
    std::optional<Relayout> shuffled() const {
        if (!threads_agree_) return {};
        std::unordered_multimap<uint64_t, Source> where;
        for (size_t l = 0; l < a_.lane.size(); ++l)
            for (size_t r = 0; r < a_.reg.size(); ++r) where.emplace(a_.at(r, l, 0), Source{static_cast<int>(r), static_cast<int>(l)});
        Demands demands(b_.lane.size(), b_.reg.size());
        for (size_t l = 0; l < b_.lane.size(); ++l)
            for (size_t r = 0; r < b_.reg.size(); ++r) {
                const auto [first, last] = where.equal_range(b_.at(r, l, 0));
                if (first == last) return {};
                const auto own = std::find_if(first, last, [&](const auto& entry) { return entry.second.lane == static_cast<int>(l); });
                const Source s = own == last ? first->second : own->second;
                for (size_t w = 0; w < b_.rest.size(); ++w)
                    if (a_.at(s.reg, s.lane, w) != b_.at(r, l, w)) return {};
                demands.at(l, r) = s;
            }
        Relayout plan{Relayout::Shuffle};
        plan.rounds = rounds_of(demands, a_.reg.size());
        return plan;
    }

    /// An element of the shape that b wants and a lacks.
    std::optional<Coord> lacking(const Coord& shape) const {
        std::vector<uint64_t> held = values(a_);
        std::ranges::sort(held);
        for (const uint64_t v : values(b_))
            if (!std::ranges::binary_search(held, v) && counts(packing_.unpack(v), shape)) return packing_.unpack(v);
        return {};
    }

  private:
    static std::vector<std::string> others(const Layout& a, const Layout& b) {
        std::vector<std::string> out = a.inputs();
        for (const std::string& input : b.inputs())
            if (std::ranges::find(out, input) == out.end()) out.push_back(input);
        std::erase_if(out, [](const std::string& input) { return input == "reg" || input == "lane"; });
        return out;
    }
    static bool counts(const Coord& c, const Coord& shape) {
        for (size_t d = 0; d < shape.size(); ++d)
            if (c[d] >= shape[d]) return false;
        return true;
    }
    bool agree_everywhere(size_t r, size_t q) const {
        for (size_t w = 0; w < b_.rest.size(); ++w)
            for (size_t l = 0; l < b_.lane.size(); ++l)
                if (a_.at(r, l, w) != b_.at(q, l, w)) return false;
        return true;
    }
    static std::vector<uint64_t> values(const Side& s) {
        std::vector<uint64_t> out;
        for (size_t w = 0; w < s.rest.size(); ++w)
            for (size_t l = 0; l < s.lane.size(); ++l)
                for (size_t r = 0; r < s.reg.size(); ++r) out.push_back(s.at(r, l, w));
        return out;
    }

    const Packing& packing_;
    std::vector<std::string> others_;
    Side a_, b_;
    bool threads_agree_ = true;
};

}  // namespace

Result<Relayout> relayout(const Layout& a, const Layout& b, int element_bytes, const Coord& shape) {
    const auto refused = [](const std::string& why) { return refusal("layout.relayout", "there is no way from one layout to the other: " + why); };
    if (a.rank() != b.rank()) return refused(fmt::format("{} coordinates against {}", a.rank(), b.rank()));
    if (a.points() > most_points || b.points() > most_points) return refused("they have more than 2^22 points");
    const Packing packing({&a, &b});
    if (!packing.fits()) return refused("their coordinates are too large");
    const Move move(a, b, packing);
    if (auto plan = move.renamed()) return *plan;
    if (auto plan = move.shuffled()) return *plan;
    if (const auto c = move.lacking(shape)) return refused(fmt::format("element ({}) has no owner in the first", fmt::join(*c, ",")));
    return through_shared(a, b, element_bytes);
}

}  // namespace acu::ir
