#include <algorithm>

#include "synth/blame/blame.h"

namespace acu::synth::blame {

std::vector<ir::Env> small_sizes(const ir::Env& dims) {
    std::vector<ir::Env> out;
    const auto add = [&](int64_t period, int64_t times) {
        ir::Env e;
        for (const auto& [name, size] : dims) e[name] = size <= 0 ? size : std::min(size, (size - 1) % period + 1 + (times - 1) * period);
        if (std::ranges::find(out, e) == out.end()) out.push_back(std::move(e));
    };
    for (const int64_t period : {16, 64, 256}) add(period, 1), add(period, 2);
    if (std::ranges::find(out, dims) == out.end()) out.push_back(dims);
    return out;
}

}  // namespace acu::synth::blame
