#include "synth/plan/row.h"

#include <algorithm>
#include <bit>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

bool is_wide(const Block& b, const Group& g) {
    return std::ranges::any_of(b.axes, [&](const Axis& a) { return std::ranges::find(g.rows, a.name) == g.rows.end(); });
}

}  // namespace

bool is_row_wide(const Program& p, const Group& g, const std::string& tensor) {
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        for (const analysis::Touch& t : analysis::touches(b))
            if (t.tensor == tensor)
                for (const Index& i : t.subscripts)
                    for (const std::string& n : analysis::names_in(i))
                        if (analysis::axis_of(b, n) && std::ranges::find(g.rows, n) == g.rows.end()) return true;
    }
    return false;
}

int readers_of(const Program& p, const Group& g, const std::string& tensor) {
    int n = 0;
    for (const std::string& label : g.labels) n += !analysis::loads_of(*block_named(p, label), tensor).empty();
    return n;
}

std::vector<std::string> inputs_of(const Program& p, const Group& g) {
    std::vector<std::string> out;
    for (const std::string& label : g.labels)
        for (const analysis::Touch& t : analysis::touches(*block_named(p, label)))
            if (const Decl* d = p.find(t.tensor); d && d->scope == Scope::In && !t.write && is_row_wide(p, g, t.tensor) && std::ranges::find(out, t.tensor) == out.end()) out.push_back(t.tensor);
    return out;
}

bool is_of_rows(const Program& p, const Group& g, const std::string& tensor) {
    for (const std::string& label : g.labels)
        for (const Value& v : analysis::loads_of(*block_named(p, label), tensor)) {
            std::set<std::string> names;
            for (const Index& i : v->subscripts) names.merge(analysis::names_in(i));
            if (std::ranges::any_of(g.rows, [&](const std::string& r) { return names.contains(r); })) return true;
        }
    return false;
}

/// A lane takes about so much of a row that lanes share.
constexpr int64_t bytes_of_lane = 16;
/// Fewer rows would not fill the device.
constexpr int64_t least_for_lanes = 32 * 1024;

/// Sums, maxima and the like of one value, over whole axes.
static bool has_plain_sums(const Program& p, const Group& g) {
    return std::ranges::all_of(g.labels, [&](const std::string& l) {
        const Block& b = *block_named(p, l);
        return !is_pair(b.monoid) && !is_scatter(b) && std::ranges::none_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; });
    });
}

/// Of an element of what the first sum goes over; 0: of nothing in memory.
static int64_t bytes_summed(const Program& p, const Group& g) {
    for (const std::string& l : g.labels) {
        const Block& b = *block_named(p, l);
        const auto x = b.monoid == Monoid::None ? std::nullopt : main_load(p, b);
        if (x) return static_cast<int64_t>(info(p.find((*x)->name)->type).bytes);
    }
    return 0;
}

Row row_of(const Draft& d, const Group& g, bool lanes) {
    const Program& p = d.program();
    Row r;
    int64_t points = 1;
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        int64_t mine = 1;
        bool known = true;
        for (const Axis& a : b.axes) {
            if (std::ranges::find(g.rows, a.name) != g.rows.end()) continue;
            const auto n = size_of(p, a.size);
            known &= n.has_value();
            mine *= n.value_or(1);
        }
        if (!known) points = 0;
        if (points) points = std::max(points, mine);
    }
    if (points) r.points = points;
    int64_t rows = 1;
    for (const std::string& a : g.rows) rows *= most_of(p, analysis::axis_of(*block_named(p, g.labels[0]), a)->size).value_or(0);
    if (rows) r.rows = rows;
    std::vector<std::string> wide;
    std::optional<int64_t> inner;
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        if (is_wide(b, g)) wide.push_back(label);
        if (const Axis* a = analysis::axis_of(b, g.inner); a && !inner) inner = size_of(p, a->size);
    }
    for (const std::string& t : inputs_of(p, g)) {
        if (!is_of_rows(p, g, t)) continue;
        if (r.points) r.bytes = std::max(r.bytes, *r.points * static_cast<int64_t>(info(p.find(t)->type).bytes));
        r.reread |= readers_of(p, g, t) > 1;
    }
    for (const std::string& t : results_of(p, g.labels)) r.reread |= is_row_wide(p, g, t) && readers_of(p, g, t) > 0;
    const int64_t bytes = r.points.value_or(0) * bytes_summed(p, g), mine = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2, (bytes + bytes_of_lane - 1) / bytes_of_lane)));
    if (lanes && bytes && r.rows && *r.rows >= least_for_lanes && mine < d.target().warp && has_plain_sums(p, g)) r.threads = mine;
    r.width = vector_width(d, wide, inner);
    while (r.points && r.width > (r.threads ? 1 : 2) && r.width * (r.threads ? r.threads : d.target().warp) > *r.points) r.width /= 2;    // narrower, so that every lane has some
    return r;
}

/// Does a statement outside the group read each cell for many of its own?
static bool is_read_often_elsewhere(const Program& p, const Group& g, const std::string& tensor) {
    bool often = false;
    for_each_block(p.body, [&](const Block& b, Loc) {
        if (std::ranges::find(g.labels, b.label) != g.labels.end()) return;
        for (const Value& load : analysis::loads_of(b, tensor))
            often |= std::ranges::any_of(axes_of_kind(b, true), [&](const Axis& a) { return std::ranges::none_of(load->subscripts, [&](const Index& s) { return analysis::mentions(s, a.name); }); });
    });
    return often;
}

std::vector<std::string> wide_temporaries(const Program& p, const Group& g) {
    std::vector<std::string> out;
    for (const std::string& t : results_of(p, g.labels))
        if (p.find(t)->scope == Scope::Temp && is_row_wide(p, g, t) && block_named(p, t) && block_named(p, t)->monoid == Monoid::None && !is_read_often_elsewhere(p, g, t)) out.push_back(t);
    return out;
}

}  // namespace acu::synth::plan
