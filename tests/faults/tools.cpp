#include <fmt/format.h>

#include "synth/blame/minimal.h"
#include "tests/faults/faults.h"

namespace acu::faults {

static int check(bool holds, const char* what) {
    if (!holds) fmt::print("FAILED {}\n", what);
    return holds ? 0 : 1;
}

/// The least part of 0 .. n - 1 that holds all of `culprits`, and how often that was tried.
static std::pair<std::vector<int>, int> least(int n, const std::vector<int>& culprits) {
    std::vector<int> all;
    for (int i = 0; i < n; ++i) all.push_back(i);
    int tries = 0;
    auto found = synth::blame::minimal<int>(all, [&](const std::vector<int>& part) {
        ++tries;
        return std::ranges::all_of(culprits, [&](int c) { return std::ranges::find(part, c) != part.end(); });
    });
    return {found, tries};
}

static int check_minimal() {
    int failed = 0;
    for (const std::vector<int>& culprits : {std::vector<int>{}, {0}, {6}, {3, 7}, {0, 15}, {7, 8}, {1, 2, 14}})
        failed += check(least(16, culprits).first == culprits, "delta debugging finds what is needed, and only that");
    failed += check(least(16, {}).second == 1, "what fails without anything is tried once");
    failed += check(least(16, {5}).second < 16, "one culprit takes fewer tries than there are items");
    failed += check(least(1, {0}).first == std::vector<int>{0} && least(0, {}).first.empty(), "short lists");
    return failed;
}

static int check_sizes() {
    int failed = 0;
    const ir::Env full{{"M", 4096}, {"N", 1000}, {"K", 3}, {"Z", 0}};
    const auto sizes = synth::blame::small_sizes(full);
    for (const ir::Env& e : sizes) {
        failed += check(e.at("K") == 3 && e.at("Z") == 0, "small sizes stay");
        failed += check(e.at("M") % 16 == 0 && e.at("N") % 8 == 0 && e.at("N") % 16 == 8, "remainders stay");
    }
    failed += check(sizes.front().at("M") == 16 && sizes.back() == full, "from small to full");
    return failed;
}

int check_tools() { return check_minimal() + check_sizes(); }

}  // namespace acu::faults
