#include "synth/plan/default_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "synth/plan/align_names.h"
#include "synth/plan/kernels.h"
#include "synth/plan/size_classes.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Axes as long as a bounded dimension are taken to be as long as the bound: those along a row, and the sides of what is read across.
void cap_axes(Draft& d, const Group& g, const SizeClass& c) {
    if (g.kind == GroupKind::Points && !is_crossed(d.program(), g)) return;
    for (const std::string& label : g.labels) {
        const Block b = *block_named(d.program(), label);
        for (const Axis& a : b.axes)
            for (const auto& [dim, most] : c)
                if (is_name(a.size, dim) && (g.kind == GroupKind::Points || std::ranges::find(g.rows, a.name) == g.rows.end())) d.step("cap", {label}, {{"axis", a.name}, {"at", most}}, fmt::format("{} points or fewer: a number of threads and registers that fits", most));
    }
}

bool scatters(const Loop& l) {
    return any_inside(l.body, [](const Stmt& s) {
        const auto* b = std::get_if<Block>(&s->node);
        return b && is_scatter(*b);
    });
}

/// But those that scatter: their atomic operations gain nothing.
void start_early(Draft& d) {
    const Body kernels = d.program().body;
    for (size_t i = 1; i < kernels.size(); ++i)
        if (const auto* l = std::get_if<Loop>(&kernels[i]->node); l && l->kind == LoopKind::Grid && !scatters(*l)) d.step("pdl", {l->var}, {}, "its blocks start while the last ones of the kernel before it run");
}

std::vector<pass::Step> steps_for(const Program& loops, const Target& target, const SizeClass& c) {
    Draft draft(assuming(loops, c), target);
    align_names(draft);
    bool any = false;    // names alone are no plan
    for (const Group& g : groups_of(draft.program())) {
        Draft capped = draft;
        cap_axes(capped, g, c);
        if (auto better = kernel_for(capped, g)) draft = std::move(*better), any = true;
    }
    if (!any) return {};
    if (target.early_launch) start_early(draft);
    return draft.steps();
}

bool same_choices(const std::vector<pass::Step>& a, const std::vector<pass::Step>& b) {
    return std::ranges::equal(a, b, [](const pass::Step& x, const pass::Step& y) { return x.pass == y.pass && x.sites == y.sites && x.args == y.args; });
}

}  // namespace

std::vector<Alternative> default_plan(const Program& loops, const Target& target) {
    if (target.platform == Platform::Cpu) return {{}};
    std::vector<Alternative> out;
    for (const SizeClass& c : size_classes(loops, target)) {
        Alternative one{c, steps_for(loops, target, c)};
        if (!out.empty() && same_choices(out.back().steps, one.steps)) out.pop_back();    // a wider condition behind it says the same
        if (c.empty() || !one.steps.empty()) out.push_back(std::move(one));
    }
    return out;
}

}  // namespace acu::synth::plan
