#pragma once
#include "ir/layout_use.h"

namespace acu::ir {

/// Where a value comes from.
struct Source {
    int reg, lane;
    bool operator==(const Source&) const = default;
};

/// What every lane wants in every register.
struct Demands {
    size_t lanes, registers;
    std::vector<Source> sources;

    Demands(size_t l, size_t r) : lanes(l), registers(r), sources(l * r) {}
    Source& at(size_t lane, size_t reg) { return sources[lane * registers + reg]; }
    const Source& at(size_t lane, size_t reg) const { return sources[lane * registers + reg]; }
};

/// Exchanges that satisfy the demands. Linear bijections: one round a register, none of them wasted on values that stay in their lane where the
/// masks allow it. Others: first fit, at most twice the fewest.
std::vector<ShuffleRound> rounds_of(const Demands& demands, size_t source_registers);

/// A relayout by way of a buffer: the row- or column-major address map, plain, padded or swizzled, with the least cost of accesses times conflicts.
Relayout through_shared(const Layout& a, const Layout& b, int element_bytes);

}  // namespace acu::ir
