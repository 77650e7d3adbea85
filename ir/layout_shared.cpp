#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "ir/layout_bits.h"
#include "ir/layout_use.h"

namespace acu::ir {

/// Lane masks that span one phase.
static std::vector<size_t> phase_of(int bytes, Phases phases) {
    if (phases == Phases::CdnaRead128) return {1, 2, 20};
    if (bytes > 8) return {1, 2, 4};
    if (bytes > 4) return {1, 2, 4, 8};
    return {1, 2, 4, 8, 16};
}

static std::vector<size_t> coset(size_t base, const std::vector<size_t>& masks) {
    std::vector<size_t> lanes{base};
    for (const size_t mask : masks)
        for (size_t i = 0, n = lanes.size(); i < n; ++i) lanes.push_back(lanes[i] ^ mask);
    return lanes;
}

int conflicts(const std::vector<int64_t>& addresses, int bytes, Phases phases) {
    const std::vector<size_t> masks = phase_of(bytes, phases);
    std::vector<bool> served(addresses.size(), false);
    size_t worst = 1;
    for (size_t base = 0; base < addresses.size(); ++base) {
        if (served[base]) continue;
        std::array<std::set<int64_t>, 32> words;
        for (const size_t lane : coset(base, masks)) {
            if (lane >= addresses.size()) continue;
            served[lane] = true;
            for (int64_t w = addresses[lane] / 4; w <= (addresses[lane] + bytes - 1) / 4; ++w) words[w % 32].insert(w);
        }
        for (const auto& bank : words) worst = std::max(worst, bank.size());
    }
    return static_cast<int>(worst);
}

int conflicts(const Layout& address, int unit, int bytes, int lanes, Phases phases) {
    const auto at = [&](size_t lane) { return address.at({{"lane", static_cast<int64_t>(lane)}})[0] * unit; };
    const std::vector<Digit> digits = digits_of(address, "lane");
    const bool powers = std::has_single_bit(static_cast<unsigned>(unit)) && std::has_single_bit(static_cast<unsigned>(bytes));
    const bool linear = powers && std::ranges::all_of(digits, [&](const Digit& d) { return d.bit && d.step[0] * unit % bytes == 0; });
    if (!linear || lanes < 32) {
        std::vector<int64_t> addresses;
        for (int lane = 0; lane < lanes; ++lane) addresses.push_back(at(lane));
        return conflicts(addresses, bytes, phases);
    }
    const auto word = static_cast<uint64_t>(std::max(bytes, 4));
    std::vector<uint64_t> all, banks;
    for (const size_t mask : phase_of(bytes, phases)) {
        all.push_back(static_cast<uint64_t>(at(mask)) & ~(word - 1));
        banks.push_back(all.back() & 127);
    }
    return 1 << (f2_rank(all) - f2_rank(banks));
}

/// The bits of a row that select the xor of its chunk: as many as there are chunks in `width`, the same pattern for every 128 bytes.
int64_t swizzle_chunk(int width, int64_t row, int64_t chunk) { return chunk ^ ((row * width / 128) & (width / 16 - 1)); }

int widest_swizzle(int64_t rows, int64_t row_bytes) {
    for (const int width : {128, 64, 32})
        if (rows % 8 == 0 && row_bytes % width == 0) return width;
    return 0;
}

static std::string fault_of(int64_t rows, int64_t columns, int element_bytes, int swizzle) {
    if (rows < 1 || columns < 1) return fmt::format("a tile of {} by {} is empty", rows, columns);
    if (swizzle == 0) return "";
    if (swizzle != 32 && swizzle != 64 && swizzle != 128) return fmt::format("there is no swizzle of {} bytes", swizzle);
    const bool divides = element_bytes <= 16 && std::has_single_bit(static_cast<unsigned>(element_bytes));
    if (!divides) return fmt::format("elements of {} bytes do not fill chunks of 16", element_bytes);
    if (rows % 8 != 0) return fmt::format("{} rows are no multiple of 8", rows);
    const int64_t bytes = columns * element_bytes;
    if (bytes % swizzle != 0) return fmt::format("rows of {} bytes are no multiple of the {} bytes of the swizzle", bytes, swizzle);
    return "";
}

Result<Layout> shared_tile(int64_t rows, int64_t columns, int element_bytes, int swizzle) {
    if (const std::string fault = fault_of(rows, columns, element_bytes, swizzle); !fault.empty())
        return refusal("layout.swizzle", fault, "take a smaller swizzle or pad the buffer");
    if (swizzle == 0) return Layout::make(2, {}, {{"offset", columns, {0, 1}}, {"offset", rows, {1, 0}}})->folded();
    InputBits offset{"offset", {}};
    const int64_t wide = swizzle / element_bytes;
    for (int64_t c = 1; c < wide; c *= 2) offset.images.push_back({0, c});
    for (int64_t r = 1; r < 8; r *= 2) offset.images.push_back({r, swizzle_chunk(swizzle, r, 0) * 16 / element_bytes});
    return Layout::make(2, {offset}, {{"offset", rows / 8, {8, 0}}, {"offset", columns / wide, {0, wide}}})->folded();
}

}  // namespace acu::ir
