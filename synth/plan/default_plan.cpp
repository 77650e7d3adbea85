#include "synth/plan/default_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "synth/plan/align_names.h"
#include "synth/plan/chains.h"
#include "synth/plan/kernels.h"
#include "synth/plan/products.h"
#include "synth/plan/size_classes.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Axes as long as a bounded dimension are taken to be as long as the bound: those along a row, and the sides of what is read across.
void cap_axes(Draft& d, const Group& g, const SizeClass& c) {
    if (g.kind == GroupKind::Products || g.kind == GroupKind::Chain || (g.kind == GroupKind::Points && !is_crossed(d.program(), g))) return;
    for (const std::string& label : g.labels) {
        const Block b = *block_named(d.program(), label);
        for (const Axis& a : b.axes)
            for (const auto& [dim, most] : c.most)
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

/// Statements that matrix instructions of the target can compute.
std::function<bool(const Block&)> products_of(const Program& p, const Target& target) {
    return [&p, &target](const Block& b) {
        const auto x = product_of(p, b);
        return x && !instructions_for(target, *x).empty();
    };
}

/// How much of the structure is looked at: what cannot be planned as what it is, is planned as less.
enum class Depth { Loops, Products, Chains };

Structure structure_of(const Draft& d, Depth depth) {
    Structure s;
    if (depth >= Depth::Products) s.is_product = products_of(d.program(), d.target());
    if (depth == Depth::Chains)
        s.chain = [&d](const Block& b) {
            auto c = chain_from(d.program(), b.label);
            return c ? std::move(c->labels) : std::vector<std::string>{};
        };
    return s;
}

/// Nothing where a product or a chain cannot be planned as one.
std::optional<Draft> kernels_for(const Draft& start, const SizeClass& c, Depth depth, bool& any) {
    Draft draft = start;
    if (depth == Depth::Products) prepare_factors(draft);
    const std::vector<Group> groups = groups_of(draft.program(), structure_of(draft, depth));
    if (depth == Depth::Chains && std::ranges::none_of(groups, [](const Group& g) { return g.kind == GroupKind::Chain; })) return {};
    for (const Group& g : groups) {
        Draft capped = draft;
        cap_axes(capped, g, c);
        auto better = kernel_for(capped, g);
        if (!better && (g.kind == GroupKind::Products || g.kind == GroupKind::Chain)) return {};
        if (better) draft = std::move(*better), any = true;
    }
    return draft;
}

std::vector<pass::Step> steps_for(const Program& loops, const Target& target, const SizeClass& c) {
    Draft draft(assuming(loops, c), target);
    align_names(draft);
    bool any = false;    // names alone are no plan
    std::optional<Draft> planned;
    for (const Depth depth : {Depth::Chains, Depth::Products, Depth::Loops})
        if (!planned) any = false, planned = kernels_for(draft, c, depth, any);
    draft = std::move(*planned);
    if (!any) return {};
    if (target.early_launch) start_early(draft);
    return draft.steps();
}

bool same_choices(const std::vector<pass::Step>& a, const std::vector<pass::Step>& b) {
    return std::ranges::equal(a, b, [](const pass::Step& x, const pass::Step& y) { return x.pass == y.pass && x.sites == y.sites && x.args == y.args; });
}

/// The first of the alternatives from `from` on that admits the sizes.
const Alternative& first_for(const std::vector<Alternative>& all, const Env& sizes, size_t from) {
    return *std::find_if(all.begin() + static_cast<std::ptrdiff_t>(from), all.end(), [&](const Alternative& a) { return admits(a.bounds, sizes); });
}

/// Sizes of every kind that the alternatives tell apart: each bound, and one more than all of them.
std::vector<Env> sizes_told_apart(const std::vector<Alternative>& all) {
    std::map<std::string, std::set<int64_t>> values;
    for (const Alternative& a : all)
        for (const Env* all_of_one : {&a.bounds.most, &a.bounds.multiple})
            for (const auto& [dim, n] : *all_of_one) values[dim].insert(n);
    std::vector<Env> out{{}};
    for (auto& [dim, list] : values) {
        list.insert(*list.rbegin() + 1);
        std::vector<Env> next;
        for (const Env& s : out)
            for (const int64_t v : list) next.push_back(s), next.back().emplace(dim, v);
        out = std::move(next);
    }
    return out;
}

/// Without those behind which the same choices stand for all sizes that reach them.
std::vector<Alternative> without_repeats(std::vector<Alternative> all) {
    const std::vector<Env> sizes = sizes_told_apart(all);
    for (size_t i = all.size() - 1; i-- > 0;) {
        const bool repeats = std::ranges::all_of(sizes, [&](const Env& s) {
            return &first_for(all, s, 0) != &all[i] || same_choices(first_for(all, s, i + 1).steps, all[i].steps);
        });
        if (repeats) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return all;
}

}  // namespace

std::vector<Alternative> default_plan(const Program& loops, const Target& target) {
    if (target.platform == Platform::Cpu) return {{}};
    std::vector<Alternative> out;
    for (const SizeClass& c : size_classes(loops, target, products_of(loops, target))) {
        Alternative one{c, steps_for(loops, target, c)};
        if (c.empty() || !one.steps.empty()) out.push_back(std::move(one));
    }
    return without_repeats(std::move(out));
}

}  // namespace acu::synth::plan
