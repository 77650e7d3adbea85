#include "target/target.h"

#include <algorithm>

namespace acu {

const std::vector<Target>& targets() {
    static const std::vector<Target> table{
        {"sm_70", "V100", Platform::Cuda, 32, 2147483647, 98304, 80, false, false, 1, false, false, false},
        {"sm_80", "A100", Platform::Cuda, 32, 2147483647, 166912, 108, true, false, 1, false, true, false},
        {"sm_90a", "H100, H200", Platform::Cuda, 32, 2147483647, 232448, 132, true, true, 8, true, true, true},
        {"gfx90a", "MI210, MI250", Platform::Hip, 64, 16777215, 65536, 104, true, false, 1, false, false, false},
        {"cpu", "this machine", Platform::Cpu, 1, 1, 0, 1, false, false, 1, false, false, false},
    };
    return table;
}

const Target* target_named(std::string_view name) {
    const auto it = std::ranges::find(targets(), name, &Target::name);
    return it == targets().end() ? nullptr : &*it;
}

}  // namespace acu
