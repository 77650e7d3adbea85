#include "ir/lower/spread.h"

#include <algorithm>
#include <array>

#include "ir/analysis/affine.h"

namespace acu::ir::lower {

bool meets_in_block(const Block& b) { return b.via.starts_with("common.block_reduce") || b.via == "common.cluster_reduce" || is_collective_scan(b); }

bool is_matrix_product(const Block& b) {
    const size_t dot = b.via.find('.');
    return dot != std::string::npos && std::ranges::any_of(std::array{".mma_", ".wgmma_", ".mfma_"}, [&](const char* word) { return b.via.compare(dot, std::string_view(word).size(), word) == 0; });
}

bool moves_boxes(const Block& b) { return b.via == "sm90.tensor_copy" || is_multicast(b) || stores_boxes(b); }
bool stores_boxes(const Block& b) { return b.via == "sm90.tensor_store"; }
bool is_multicast(const Block& b) { return b.via == "sm90.tensor_multicast"; }

bool is_collective_scan(const Block& b) {
    return b.via == "common.block_scan" && b.outs.size() == 2 && std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; });
}

bool is_collective(const Block& b) {
    const bool reduces = std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Red; });
    return is_collective_scan(b) || (reduces && (meets_in_block(b) || b.via.starts_with("common.warp_reduce") || b.via == "common.lanes_reduce"));
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

std::optional<std::vector<int>> own_cell(const std::vector<Axis>& axes, const std::vector<Index>& subscripts, const Decl& d) {
    std::vector<int> dim_of(axes.size(), -1);
    if (subscripts.size() != d.dims.size()) return {};
    for (size_t k = 0; k < subscripts.size(); ++k) {
        const Index& s = subscripts[k];
        const auto a = std::ranges::find_if(axes, [&](const Axis& x) { return is_name(s, x.name); });
        if (a == axes.end()) {
            if (!is_const(analysis::normal(d.dims[k].size), 1)) return {};
            continue;
        }
        int& at = dim_of[static_cast<size_t>(a - axes.begin())];
        if (at >= 0 || !analysis::same(a->base, d.dims[k].origin) || !analysis::same(a->size, d.dims[k].size)) return {};
        at = static_cast<int>(k);
    }
    if (std::ranges::find(dim_of, -1) != dim_of.end()) return {};
    return dim_of;
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
