#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/layout_bits.h"
#include "ir/layout_rounds.h"

namespace acu::ir {

namespace {

enum class Style { Plain, Padded, Swizzled };

/// Coordinates -> offset in elements for a box whose dimensions are laid out in `order`, the first fastest.
std::optional<Layout> address_of(const Coord& box, const std::vector<int>& order, Style style, int element_bytes) {
    const int64_t inner = box[order[0]], chunk = std::max(16 / element_bytes, 1);
    const auto input = [](int dim) { return fmt::format("d{}", dim); };
    Layout out(1);
    int64_t pitch = 1;
    if (style == Style::Swizzled) {
        const int64_t bytes = inner * element_bytes;
        if (box.size() < 2 || bytes < 32 || !std::has_single_bit(static_cast<uint64_t>(bytes)) || element_bytes > 16) return {};
        const int mode = static_cast<int>(std::min<int64_t>(bytes, 128));
        InputBits row{input(order[1]), {}};
        for (int64_t r = 1; r < 8; r *= 2) row.images.push_back({r * inner + swizzle_chunk(mode, r, 0) * chunk});
        InputBits column{input(order[0]), {}};
        for (int64_t c = 1; c < inner; c *= 2) column.images.push_back({c});
        const int64_t blocks = (box[order[1]] + 7) / 8;
        out = *Layout::make(1, {row, column}, {{row.input, blocks, {8 * inner}}});
        pitch = 8 * inner * blocks;
    }
    for (size_t k = style == Style::Swizzled ? 2 : 0; k < order.size(); ++k) {
        out = out.times(input(order[k]), box[order[k]], {pitch});
        pitch *= box[order[k]];
        if (k == 0 && style == Style::Padded) pitch = ((pitch + chunk - 1) / chunk | 1) * chunk;    // an odd number of 16-byte chunks
    }
    return out;
}

struct Access {
    int64_t width;
    int ways;
    int64_t cost;
};

Access access_of(const Layout& address, const Layout& owners, int element_bytes) {
    Access a{1, 1, 0};
    if (const auto whole = compose(address, owners)) a.width = std::min<int64_t>(width(*whole, 0), std::max(16 / element_bytes, 1));
    std::vector<int64_t> addresses;
    for (int64_t lane = 0; lane < owners.size("lane"); ++lane) {
        const Coord c = owners.at({{"lane", lane}});
        Point at;
        for (size_t d = 0; d < c.size(); ++d) at[fmt::format("d{}", d)] = c[d];
        addresses.push_back(address.at(at)[0] * element_bytes);
    }
    a.ways = conflicts(addresses, static_cast<int>(std::min<int64_t>(a.width * element_bytes, 16)));
    // A wave's access of 16 bytes a lane takes as many cycles as four of 4 bytes.
    a.cost = owners.size("reg") / a.width * std::max<int64_t>(a.width * element_bytes, 4) * a.ways;
    return a;
}

}  // namespace

Relayout through_shared(const Layout& a, const Layout& b, int element_bytes) {
    Coord box = a.extent();
    for (int d = 0; d < a.rank(); ++d) box[d] = std::max(box[d], b.extent()[d]);
    std::vector<int> order;
    for (int d = a.rank(); d-- > 0;) order.push_back(d);
    Relayout best{Relayout::Shared};
    int64_t least = INT64_MAX;
    for (int turn = 0; turn < 2; ++turn, std::ranges::reverse(order)) {
        for (const Style style : {Style::Plain, Style::Swizzled, Style::Padded}) {
            const auto address = address_of(box, order, style, element_bytes);
            if (!address) continue;
            const Access store = access_of(*address, a, element_bytes), load = access_of(*address, b, element_bytes);
            if (store.cost + load.cost >= least) continue;
            least = store.cost + load.cost;
            best.address = *address, best.elements = address->extent()[0];
            best.store_width = store.width, best.load_width = load.width;
            best.store_ways = store.ways, best.load_ways = load.ways;
        }
    }
    return best;
}

}  // namespace acu::ir
