#include "codegen/jit_order.h"

#include <algorithm>

namespace acu::codegen::jit {

using namespace ir;

/// `axis` stands, in the values and guards, in last subscripts only, so that its neighbours lie side by side.
static bool contiguous(const Block& block, const std::string& axis) {
    bool so = true;
    const auto mentions = [&](const Index& e) {
        std::set<std::string> names;
        free_names(e, names);
        return names.contains(axis);
    };
    const auto look = [&](const Value& v) {
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load && !n.subscripts.empty()) so = so && std::none_of(n.subscripts.begin(), n.subscripts.end() - 1, mentions);
        });
    };
    std::ranges::for_each(block.vals, look);
    std::ranges::for_each(block.guards, look);
    return so;
}

static bool boxed_by_data(const Block& block) {
    return std::ranges::any_of(block.axes, [](const Axis& a) { return mentions_load(a.base) || mentions_load(a.size); });
}

ir::Block ordered(const Block& block) {
    const bool accumulates = block.monoid != Monoid::None && !is_pair(block.monoid) && block.outs.size() == 1;
    if (!accumulates || block.axes.empty() || block.axes.back().kind != AxisKind::Red || block.outs[0].subscripts.empty()) return block;
    const Index& last = block.outs[0].subscripts.back();
    const auto axis = std::ranges::find_if(block.axes, [&](const Axis& a) { return is_name(last, a.name); });
    if (axis == block.axes.end() || !contiguous(block, axis->name)) return block;
    if (boxed_by_data(block) || tensors_read(block).contains(block.outs[0].tensor)) return block;
    Block moved = block;
    const auto from = moved.axes.begin() + (axis - block.axes.begin());
    std::rotate(from, from + 1, moved.axes.end());
    return moved;
}

}  // namespace acu::codegen::jit
