#include "ir/layout_rounds.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ir/layout_bits.h"

namespace acu::ir {

namespace {

ShuffleRound idle_round(size_t lanes, bool local) {
    ShuffleRound round{std::vector<int>(lanes, 0), std::vector<int>(lanes), std::vector<int>(lanes, -1), local};
    std::iota(round.lane.begin(), round.lane.end(), 0);
    return round;
}

/// A linear bijection of (register bits, lane bits): the images of their bits as register and lane.
struct LinearMap {
    int reg_bits, lane_bits;
    std::vector<Source> image;    // register bits, then lane bits

    Source at(int reg, int lane) const {
        Source s{0, 0};
        for (int i = 0; i < reg_bits + lane_bits; ++i)
            if ((i < reg_bits ? reg >> i : lane >> (i - reg_bits)) & 1) s.reg ^= image[i].reg, s.lane ^= image[i].lane;
        return s;
    }
};

/// The demands as a linear map of the low register bits, repeated for the odd part of the register count; none where they are not of that kind.
std::optional<LinearMap> linear_map(const Demands& d, size_t source_registers) {
    if (d.registers != source_registers || !std::has_single_bit(d.lanes)) return {};
    const int reg_bits = std::countr_zero(d.registers), lane_bits = std::countr_zero(d.lanes);
    LinearMap map{reg_bits, lane_bits, {}};
    for (int i = 0; i < reg_bits; ++i) map.image.push_back(d.at(0, size_t{1} << i));
    for (int i = 0; i < lane_bits; ++i) map.image.push_back(d.at(size_t{1} << i, 0));
    const int block = 1 << reg_bits;
    Echelon span;
    for (const Source& s : map.image)
        if (s.reg >= block || !span.add(static_cast<uint64_t>(s.reg) | static_cast<uint64_t>(s.lane) << reg_bits)) return {};
    for (size_t l = 0; l < d.lanes; ++l)
        for (size_t r = 0; r < d.registers; ++r) {
            const int low = static_cast<int>(r) % block;
            Source s = map.at(low, static_cast<int>(l));
            s.reg += static_cast<int>(r) - low;
            if (s != d.at(l, r)) return {};
        }
    return map;
}

/// With source lane = P*lane + Q*reg and the register chosen as reg = t + S*lane, round t reads lane (P + QS)*lane + Q*t. S is chosen so that
/// P + QS is the identity (a round is then one xor of lanes, and nothing where Q*t = 0), or else invertible, so that no lane is asked twice.
/// Some S always serves: the columns of P and Q together span all lanes.
std::vector<int> register_shifts(const LinearMap& m) {
    Echelon q;
    for (int i = 0; i < m.reg_bits; ++i) q.add(static_cast<uint64_t>(m.image[i].lane));
    std::vector<int> shifts;
    for (int j = 0; j < m.lane_bits; ++j)
        if (const auto s = q.solve(static_cast<uint64_t>(m.image[m.reg_bits + j].lane ^ (1 << j)))) shifts.push_back(static_cast<int>(*s));
    if (static_cast<int>(shifts.size()) == m.lane_bits) return shifts;
    shifts.clear();
    Echelon columns;
    for (int j = 0; j < m.lane_bits; ++j) {
        const auto p = static_cast<uint64_t>(m.image[m.reg_bits + j].lane);
        int shift = 0;
        if (columns.solve(p)) {
            int i = 0;
            while (columns.solve(static_cast<uint64_t>(m.image[i].lane))) ++i;
            shift = 1 << i;
        }
        columns.add(p ^ (shift ? static_cast<uint64_t>(m.image[std::countr_zero(static_cast<unsigned>(shift))].lane) : 0));
        shifts.push_back(shift);
    }
    return shifts;
}

std::vector<ShuffleRound> linear_rounds(const LinearMap& m, const Demands& d) {
    const std::vector<int> shifts = register_shifts(m);
    const int block = 1 << m.reg_bits;
    std::vector<ShuffleRound> out;
    for (size_t t = 0; t < d.registers; ++t) {
        ShuffleRound round = idle_round(d.lanes, true);
        for (size_t l = 0; l < d.lanes; ++l) {
            int reg = static_cast<int>(t) % block;
            for (int j = 0; j < m.lane_bits; ++j)
                if (l >> j & 1) reg ^= shifts[j];
            const int base = static_cast<int>(t) / block * block;
            const Source s = m.at(reg, static_cast<int>(l));
            round.to[l] = base + reg;
            round.lane[l] = s.lane;
            round.from[s.lane] = base + s.reg;
            round.local = round.local && s.lane == static_cast<int>(l);
        }
        out.push_back(std::move(round));
    }
    return out;
}

/// First fit: a round takes a demand while the lane takes nothing else and the source gives nothing else.
std::vector<ShuffleRound> fitted_rounds(const Demands& d) {
    std::vector<ShuffleRound> out;
    std::vector<std::vector<bool>> gives;
    const auto fits = [&](size_t k, size_t l, const Source& s) {
        const bool local = s.lane == static_cast<int>(l);
        return out[k].local == local && out[k].to[l] < 0 && (!gives[k][s.lane] || out[k].from[s.lane] == s.reg);
    };
    for (size_t r = 0; r < d.registers; ++r)
        for (size_t l = 0; l < d.lanes; ++l) {
            const Source s = d.at(l, r);
            size_t k = 0;
            while (k < out.size() && !fits(k, l, s)) ++k;
            if (k == out.size()) out.push_back(idle_round(d.lanes, s.lane == static_cast<int>(l))), gives.emplace_back(d.lanes, false);
            out[k].to[l] = static_cast<int>(r);
            out[k].lane[l] = s.lane;
            out[k].from[s.lane] = s.reg;
            gives[k][s.lane] = true;
        }
    return out;
}

}  // namespace

std::vector<ShuffleRound> rounds_of(const Demands& demands, size_t source_registers) {
    const auto map = linear_map(demands, source_registers);
    return map ? linear_rounds(*map, demands) : fitted_rounds(demands);
}

std::optional<std::vector<int>> xor_form(const std::vector<int>& table) {
    if (!std::has_single_bit(table.size())) return {};
    std::vector<int> out{table[0]};
    for (size_t bit = 1; bit < table.size(); bit *= 2) out.push_back(table[bit] ^ table[0]);
    for (size_t l = 0; l < table.size(); ++l) {
        int value = out[0];
        for (size_t i = 0; i + 1 < out.size(); ++i)
            if (l >> i & 1) value ^= out[i + 1];
        if (value != table[l]) return {};
    }
    return out;
}

}  // namespace acu::ir
