#pragma once
#include <algorithm>
#include <functional>
#include <vector>

namespace acu::synth::blame {

/// A part of `items` that still fails, and of which no item can be left out: delta debugging by complements, halves first. `fails(items)` holds.
template <class T>
std::vector<T> minimal(std::vector<T> items, const std::function<bool(const std::vector<T>&)>& fails) {
    if (items.empty() || fails({})) return {};
    size_t parts = 2;
    while (items.size() > 1) {
        const size_t n = items.size();
        parts = std::min(parts, n);
        bool smaller = false;
        for (size_t i = 0; i < parts && !smaller; ++i) {
            std::vector<T> rest = items;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i * n / parts), rest.begin() + static_cast<std::ptrdiff_t>((i + 1) * n / parts));
            if (!fails(rest)) continue;
            items = std::move(rest);
            parts = std::max<size_t>(2, parts - 1);
            smaller = true;
        }
        if (!smaller && parts == n) break;
        if (!smaller) parts *= 2;
    }
    return items;
}

}  // namespace acu::synth::blame
