#include <algorithm>

#include "synth/blame/blame.h"

namespace acu::synth::blame {

/// The least size with the same remainder, and `more` periods; none that is larger than it is.
static int64_t like(int64_t size, int64_t period, int64_t more) { return size <= 0 ? size : std::min(size, (size - 1) % period + 1 + more * period); }

std::vector<ir::Env> small_sizes(const ir::Env& dims) {
    std::vector<ir::Env> out;
    const auto add = [&](int64_t period, int64_t more, const std::string& longest) {
        ir::Env e;
        for (const auto& [name, size] : dims) e[name] = like(size, period, name == longest ? 2 : more);
        if (std::ranges::find(out, e) == out.end()) out.push_back(std::move(e));
    };
    for (const int64_t period : {16, 64, 256}) {
        add(period, 0, "");
        for (const auto& [name, size] : dims) add(period, 0, name);
        add(period, 1, "");
    }
    if (std::ranges::find(out, dims) == out.end()) out.push_back(dims);
    return out;
}

}  // namespace acu::synth::blame
