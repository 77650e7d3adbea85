#include <fmt/format.h>

#include <algorithm>

#include "frontend/elaborate.h"

namespace acu::frontend {

using namespace ir;

Index Elaborator::index_name(const Expr& e, Names& names) {
    if (const auto it = names.indices.find(e.text); it != names.indices.end()) return it->second;
    if (const auto it = names.values.find(e.text); it != names.values.end()) {
        if (it->second->op == Op::OfIndex) return it->second->subscripts[0];
        if (it->second->op == Op::Const && is_int(it->second->type)) return constant(it->second->integer);
    }
    if (const auto it = in_.values.find(e.text); it != in_.values.end() && !it->second.second) return constant(it->second.first);
    if (const auto it = in_.dims.find(e.text); it != in_.dims.end()) return it->second;
    if (const auto it = in_.tensors.find(e.text); it != in_.tensors.end() && it->second.sizes.empty() && is_int(it->second.type)) return load_index(it->second.ir_name, {});
    const bool known = in_.scalars.contains(e.text) || in_.values.contains(e.text) || in_.tensors.contains(e.text) || names.values.contains(e.text);
    if (known) in_.report("type.index", e.loc, fmt::format("`{}` is not an index", e.text), "subscripts are made of index variables, dimensions, integers and integer tensors");
    else unknown_name(e, names);
    return nullptr;
}

Index Elaborator::index_access(const Expr& e, Names& names) {
    const auto it = in_.tensors.find(e.text);
    if (it == in_.tensors.end()) return unknown_name(e, names), nullptr;
    if (!is_int(it->second.type)) {
        in_.report("type.index", e.loc, fmt::format("`{}` holds {}, which cannot subscript a tensor", e.text, name_of(it->second.type)), "subscripts are integers");
        return nullptr;
    }
    std::vector<Index> at = subscripts(e, it->second, names, true);
    return at.size() == it->second.sizes.size() ? load_index(it->second.ir_name, std::move(at)) : nullptr;
}

Index Elaborator::index_segment(const Expr& e, Names& names) {
    const auto it = e.args.empty() ? in_.tensors.end() : in_.tensors.find(e.args[0]->text);
    if (e.args.size() != 2 || e.args[0]->kind != Expr::Name || it == in_.tensors.end() || it->second.sizes.size() != 1 || !is_int(it->second.type)) {
        in_.report("call.segment", e.loc, "`segment` takes an integer tensor of offsets with one dimension and a position", "as in `segment(offsets, t)`");
        return nullptr;
    }
    const Index position = index(*e.args[1], names);
    return position ? segment(it->second.ir_name, position) : nullptr;
}

Index Elaborator::index(const Expr& e, Names& names) {
    switch (e.kind) {
        case Expr::Integer: return constant(e.integer);
        case Expr::Name: return index_name(e, names);
        case Expr::Access: return index_access(e, names);
        case Expr::Unary: {
            const Index a = e.text == "-" ? index(*e.args[0], names) : nullptr;
            if (a) return constant(0) - a;
            break;
        }
        case Expr::Infix: {
            static const std::map<std::string, IndexOp> ops{{"+", IndexOp::Add}, {"-", IndexOp::Sub}, {"*", IndexOp::Mul}, {"/", IndexOp::Div}, {"%", IndexOp::Mod}};
            const auto op = ops.find(e.text);
            if (op == ops.end()) break;
            const Index a = index(*e.args[0], names), b = index(*e.args[1], names);
            return a && b ? ir::binary(op->second, a, b) : nullptr;
        }
        case Expr::Call: {
            if (e.text == "segment") return index_segment(e, names);
            if ((e.text != "min" && e.text != "max") || e.args.size() != 2) break;
            const Index a = index(*e.args[0], names), b = index(*e.args[1], names);
            return a && b ? ir::binary(e.text == "min" ? IndexOp::Min : IndexOp::Max, a, b) : nullptr;
        }
        default: break;
    }
    if (e.kind != Expr::Unary || e.text != "-")
        in_.report("type.index", e.loc, "this is not an index expression", "subscripts are made of index variables, dimensions and integers with + - * / % min max, and integer tensors");
    return nullptr;
}

Index Elaborator::dimension(const Expr& e) {
    Names none;
    const Index i = index(e, none);
    if (i && mentions_load(i)) {
        in_.report("type.index", e.loc, "a size cannot be read from a tensor");
        return nullptr;
    }
    return i;
}

/// Collects the dimensions that `name` alone subscripts. Those inside an `or` or an `if` are soft: they give a range, but no conflict.
void Elaborator::extents(const std::string& name, const Expr& e, bool soft, std::vector<std::tuple<Index, Loc, std::string, bool>>& out) const {
    if (e.kind == Expr::Access) {
        const auto it = in_.tensors.find(e.text);
        size_t dim = 0;
        for (const ExprPtr& s : e.args) {
            if (s->pack) {
                const auto pack = in_.packs.find(s->text);
                size_t width = 1;
                if (it != in_.tensors.end()) width = it->second.sizes.size() + 1 - std::min(it->second.sizes.size() + 1, e.args.size());
                if (pack != in_.packs.end()) width = pack->second.size();
                dim += width;
                continue;
            }
            if (s->kind == Expr::Name && s->text == name && it != in_.tensors.end() && dim < it->second.sizes.size())
                out.emplace_back(it->second.sizes[dim], s->loc, e.text, soft);
            ++dim;
        }
    }
    const bool softer = soft || e.kind == Expr::Or || e.kind == Expr::If;
    for (const ExprPtr& a : e.args) extents(name, *a, softer, out);
    for (const AxisSpec& a : e.axes)
        if (a.extent) extents(name, *a.extent, softer, out);
}

Index Elaborator::inferred_extent(const std::string& name, const Expr& e, Loc loc) {
    std::vector<std::tuple<Index, Loc, std::string, bool>> all;
    extents(name, e, false, all);
    if (all.empty()) return nullptr;
    const auto first = std::ranges::find_if(all, [](const auto& x) { return !std::get<3>(x); });
    if (first == all.end()) return std::get<0>(all[0]);
    const auto& [size, place, tensor, soft] = *first;
    for (const auto& [other, where, who, is_soft] : all) {
        if (is_soft || facts_.equal(size, other)) continue;
        in_.report("range.conflict", loc, fmt::format("`{}` ranges over {} in `{}` but over {} in `{}`", name, print(size), tensor, print(other), who),
                   fmt::format("if the sizes are always equal, say so: `where {} == {}`", print(size), print(other)), {{place, "here"}, {where, "and here"}});
        return size;
    }
    return size;
}

std::string Elaborator::fresh_axis(const std::string& name, const Names& around) const {
    const auto taken = [&](const std::string& s) {
        return std::ranges::any_of(in_.build.program.dims, [&](const Dim& d) { return d.name == s; }) ||
               std::ranges::any_of(around.indices, [&](const auto& i) { return is_name(i.second, s); });
    };
    std::string s = name;
    while (taken(s)) s += "_";
    return s;
}

}  // namespace acu::frontend
