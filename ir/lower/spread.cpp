#include "ir/lower/spread.h"

#include <algorithm>
#include <array>

#include "ir/analysis/affine.h"
#include "ir/layout_bits.h"

namespace acu::ir::lower {

bool meets_in_block(const Block& b) { return b.via.starts_with("common.block_reduce") || b.via == "common.cluster_reduce" || is_collective_scan(b); }

bool reduces_rows(const Block& b) { return b.via == "common.rows_reduce"; }

bool is_matrix_product(const Block& b) {
    const size_t dot = b.via.find('.');
    return dot != std::string::npos && std::ranges::any_of(std::array{".mma_", ".wgmma_", ".mfma_"}, [&](const char* word) { return b.via.compare(dot, std::string_view(word).size(), word) == 0; });
}

bool moves_boxes(const Block& b) { return brings_boxes(b) || stores_boxes(b); }
bool brings_boxes(const Block& b) { return b.via == "sm90.tensor_copy" || is_multicast(b); }
bool is_multicast(const Block& b) { return b.via == "sm90.tensor_multicast"; }
bool stores_boxes(const Block& b) { return b.via == "sm90.tensor_store"; }

bool is_collective_scan(const Block& b) {
    return b.via == "common.block_scan" && b.outs.size() == 2 && std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; });
}

bool is_collective(const Block& b) {
    const bool reduces = std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Red; });
    return is_collective_scan(b) || (reduces && (meets_in_block(b) || b.via.starts_with("common.warp_reduce") || b.via == "common.lanes_reduce" || reduces_rows(b)));
}

template <class List, class F>
static std::optional<Coord> constants(const List& list, F size) {
    Coord out;
    for (const auto& x : list) {
        const Index n = analysis::normal(size(x));
        if (!is_const(n)) return {};
        out.push_back(std::max<int64_t>(0, n->value));
    }
    return out;
}
std::optional<Coord> constant_sizes(const std::vector<Window>& dims) {
    return constants(dims, [](const Window& w) { return w.size; });
}
std::optional<Coord> constant_sizes(const std::vector<Axis>& axes) {
    return constants(axes, [](const Axis& a) { return a.size; });
}

Layout replicated_layout(const Coord& shape) {
    Layout l(static_cast<int>(shape.size()));
    for (size_t d = shape.size(); d-- > 0;) {
        Coord step(shape.size(), 0);
        step[d] = 1;
        l = l.times("reg", shape[d], step);
    }
    return l;
}
bool is_replicated(const Layout& l) {
    return std::ranges::all_of(l.inputs(), [](const std::string& n) { return n == "reg"; });
}

Decl at_version(const Decl& d, const std::vector<Index>& version) {
    IndexMap keys;
    for (size_t i = 0; i < version.size() && i < d.ring.keys.size(); ++i) keys.emplace(d.ring.keys[i], version[i]);
    return keys.empty() ? d : map_decl(d, [&](const Index& e) { return substitute(e, keys); });
}

std::optional<std::vector<int>> shared_cell(const std::vector<Axis>& axes, const std::vector<Index>& subscripts, const Decl& ring, const std::vector<Index>& version) {
    const Decl d = at_version(ring, version);
    std::vector<int> dim_of(axes.size(), -1);
    if (subscripts.size() != d.dims.size()) return {};
    bool any = false;
    for (size_t k = 0; k < subscripts.size(); ++k) {
        const Index& s = subscripts[k];
        const auto a = std::ranges::find_if(axes, [&](const Axis& x) { return is_name(s, x.name); });
        if (a == axes.end()) {
            if (!is_const(analysis::normal(d.dims[k].size), 1)) return {};
            continue;
        }
        int& at = dim_of[static_cast<size_t>(a - axes.begin())];
        if (at >= 0 || !analysis::same(a->base, d.dims[k].origin) || !analysis::same(a->size, d.dims[k].size)) return {};
        at = static_cast<int>(k), any = true;
    }
    return any || axes.empty() ? std::optional(dim_of) : std::nullopt;
}

std::optional<std::vector<int>> own_cell(const std::vector<Axis>& axes, const std::vector<Index>& subscripts, const Decl& d, const std::vector<Index>& version) {
    const auto cell = shared_cell(axes, subscripts, d, version);
    return cell && std::ranges::find(*cell, -1) == cell->end() ? cell : std::nullopt;
}

std::vector<int> axes_by_dim(const std::vector<int>& cell, size_t rank) {
    std::vector<int> out(rank, -1);
    for (size_t k = 0; k < cell.size(); ++k)
        if (cell[k] >= 0) out[static_cast<size_t>(cell[k])] = static_cast<int>(k);
    return out;
}

/// Of a point, those coordinates; -1: always 0.
static Coord kept(const Coord& c, const std::vector<int>& dims) {
    Coord out;
    for (const int d : dims) out.push_back(d < 0 ? 0 : c[static_cast<size_t>(d)]);
    return out;
}

Layout kept_coordinates(const Layout& points, const std::vector<int>& dims) {
    std::vector<InputBits> atom;
    for (const InputBits& b : points.atom()) {
        InputBits n{b.input, {}};
        for (const Coord& c : b.images)
            if (const Coord k = kept(c, dims); b.input != "reg" || !is_zero(k)) n.images.push_back(k);
        if (!n.images.empty()) atom.push_back(std::move(n));
    }
    std::vector<Repeat> repeats;
    for (const Repeat& r : points.repeats())
        if (const Coord k = kept(r.step, dims); r.input != "reg" || !is_zero(k)) repeats.push_back({r.input, r.count, k});
    return *Layout::make(static_cast<int>(dims.size()), std::move(atom), std::move(repeats));
}

Index kept_register(const Layout& points, const std::vector<int>& dims, const Index& reg) {
    Index out = constant(0);
    int64_t place = 1, kept_place = 1;
    const std::vector<Digit> digits = digits_of(points, "reg");
    for (size_t i = 0; i < digits.size(); ++i) {
        const Digit& d = digits[i];
        if (!is_zero(kept(d.step, dims))) {
            const Index up = div(reg, constant(place));
            out = out + constant(kept_place) * (i + 1 < digits.size() ? mod(up, constant(d.radix)) : up);
            kept_place *= d.radix;
        }
        place *= d.radix;
    }
    return analysis::normal(out);
}

std::set<std::string> rings_between_roles(const Body& body) {
    std::set<std::string> out;
    any_inside(body, [&](const Stmt& s) {
        if (const auto* y = std::get_if<Sync>(&s->node); y && y->op <= SyncOp::Release) out.insert(y->name);
        return false;
    });
    return out;
}

void collect_decls(const Body& body, Decls& out) {
    for (const Stmt& s : body) {
        if (const auto* l = std::get_if<Loop>(&s->node))
            for (const Decl& d : l->allocs) out.insert_or_assign(d.name, d);
        for (const Body* inner : bodies_of(s)) collect_decls(*inner, out);
    }
}

bool has_roles(const Body& body) {
    return any_inside(body, [](const Stmt& s) { return std::holds_alternative<Roles>(s->node); });
}

std::string unused_name(const std::set<std::string>& used, const std::string& stem) {
    std::string s = stem;
    for (int i = 2; used.contains(s); ++i) s = stem + std::to_string(i);
    return s;
}

std::set<std::string> names_used(const Program& p, const Body& body) {
    std::set<std::string> used;
    for (const Dim& d : p.dims) used.insert(d.name);
    any_inside(body, [&](const Stmt& s) {
        if (const auto* l = std::get_if<Loop>(&s->node)) {
            used.insert(l->var);
            for (const Let& x : l->lets) used.insert(x.name);
        }
        if (const auto* b = std::get_if<Block>(&s->node))
            for (const Axis& a : b->axes) used.insert(a.name);
        return false;
    });
    return used;
}

}  // namespace acu::ir::lower
