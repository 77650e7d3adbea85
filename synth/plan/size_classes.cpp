#include "synth/plan/size_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "microkernels/catalogue.h"
#include "synth/plan/kernels.h"
#include "synth/plan/products.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// And whether few rows of up to so many points have plans of their own: with more threads, or several blocks a row.
struct Length {
    int64_t points;
    bool few;
};
constexpr Length lengths[] = {{64, false}, {512, false}, {1024, true}, {2048, false}, {4096, true}, {8192, false}, {12288, false}, {16384, true}, {32768, true}, {51200, true}, {65536, false}, {131072, true}};
constexpr int64_t least_of_clusters = 51200;
constexpr int64_t sides[] = {1, 8};

/// Open dimensions that are sizes of axes of the group: of those that are rows, or of the others.
std::set<std::string> open_dims(const Program& p, const Group& g, bool of_rows) {
    std::set<std::string> out;
    for (const std::string& label : g.labels)
        for (const Axis& a : block_named(p, label)->axes)
            if ((std::ranges::find(g.rows, a.name) != g.rows.end()) == of_rows)
                for (const std::string& n : analysis::names_in(a.size))
                    if (!known_dims(p).contains(n)) out.insert(n);
    return out;
}

/// Of all groups of rows.
std::set<std::string> dims_of_rows(const Program& p, const std::vector<Group>& groups, bool of_rows) {
    std::set<std::string> all;
    for (const Group& g : groups)
        if (g.kind == GroupKind::Rows) all.merge(open_dims(p, g, of_rows));
    return all;
}

std::vector<SizeClass> row_classes(const std::string& length, const std::string& rows, const Target& target) {
    std::vector<SizeClass> out;
    const auto few = [&](SizeClass c, int64_t most) {
        c.most.emplace(rows, most);
        out.push_back(std::move(c));
    };
    if (!length.empty())
        for (const auto& [points, has_few] : lengths) {
            if (!rows.empty() && points >= least_of_clusters && target.most_cluster > 1) few({{{length, points}}, {}}, target.multiprocessors / target.most_cluster);
            if (!rows.empty() && has_few) few({{{length, points}}, {}}, target.multiprocessors - 1);
            out.push_back({{{length, points}}, {}});
        }
    if (!rows.empty()) few({}, target.multiprocessors - 1);
    out.emplace_back();
    return out;
}

std::vector<SizeClass> side_classes(const std::set<std::string>& dims) {
    std::vector<SizeClass> out;
    for (const int64_t n : sides)
        for (const std::string& d : dims) out.push_back({{{d, n}}, {}});
    out.emplace_back();
    return out;
}

}  // namespace

std::string words_of(const SizeClass& c) {
    std::string s;
    for (const auto& [dim, most] : c.most) s += fmt::format("{}{} <= {}", s.empty() ? "" : " && ", dim, most);
    for (const auto& [dim, n] : c.multiple) s += fmt::format("{}{} % {} == 0", s.empty() ? "" : " && ", dim, n);
    return s;
}

bool admits(const SizeClass& c, const Env& sizes) {
    return std::ranges::all_of(c.most, [&](const auto& b) { return sizes.at(b.first) <= b.second; }) && std::ranges::all_of(c.multiple, [&](const auto& b) { return sizes.at(b.first) % b.second == 0; });
}

Program assuming(Program p, const SizeClass& c) {
    for (const auto& [dim, most] : c.most) p.facts.push_back(binary(Op::Le, of_index(name(dim)), of_index(constant(most))));
    for (const auto& [dim, n] : c.multiple) p.facts.push_back(binary(Op::Eq, of_index(mod(name(dim), constant(n))), of_index(constant(0))));
    return p;
}

/// Open dimensions that are the lengths of lines of the factors, with the elements of 16 bytes; and those of the rows.
static std::vector<SizeClass> product_classes(const Program& loops, const Target& target, const std::function<bool(const Block&)>& is_product) {
    constexpr int64_t few_rows[] = {32, 128};
    SizeClass lines;
    std::string rows;
    for_each_block(loops.body, [&](const Block& b, Loc) {
        const auto p = is_product(b) ? product_of(loops, b) : std::nullopt;
        const auto all = p ? instructions_for(target, *p) : std::vector<Instruction>{};
        if (all.empty() || all[0].microkernel->group != ThreadGroup::Warpgroup) return;
        for (const ProductFactor& f : {p->a, p->b}) {
            if (!f.plain) continue;
            const Value& load = f.load;
            const Decl& d = *loops.find(load->name);
            const Index& size = d.dims.back().size;
            if (size->op == IndexOp::Name && !known_dims(loops).contains(size->name)) lines.multiple[size->name] = std::max<int64_t>(lines.multiple[size->name], 16 / static_cast<int64_t>(info(d.type).bytes));
        }
        const Index& m = analysis::axis_of(b, p->rows)->size;
        if (m->op == IndexOp::Name && !known_dims(loops).contains(m->name)) rows = m->name;
    });
    std::vector<SizeClass> out;
    for (const int64_t n : few_rows)
        if (!rows.empty() && !lines.multiple.contains(rows)) out.push_back({{{rows, n}}, lines.multiple});
    if (!lines.empty()) out.push_back(lines);
    out.emplace_back();
    return out;
}

std::vector<SizeClass> size_classes(const Program& loops, const Target& target, const std::function<bool(const Block&)>& is_product) {
    const std::vector<Group> groups = groups_of(loops, {is_product});
    if (std::ranges::any_of(groups, [](const Group& g) { return g.kind == GroupKind::Products; })) return product_classes(loops, target, is_product);
    const std::set<std::string> length = dims_of_rows(loops, groups, false), rows = dims_of_rows(loops, groups, true);
    const bool any_rows = std::ranges::any_of(groups, [](const Group& g) { return g.kind == GroupKind::Rows; });
    if (any_rows && length.size() <= 1) return row_classes(length.empty() ? "" : *length.begin(), rows.size() == 1 ? *rows.begin() : "", target);
    std::set<std::string> crossed;
    for (const Group& g : groups)
        if (g.kind == GroupKind::Points && is_crossed(loops, g)) crossed.merge(open_dims(loops, g, true));
    return side_classes(crossed);
}

}  // namespace acu::synth::plan
