#include "ir/pass/slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {

Block Slices::cut(Block b) const {
    const auto a = std::ranges::find(b.axes, axis, &Axis::name);
    if (a == b.axes.end()) return b;
    a->base = normal(base + length * name(var));
    a->size = length;
    const Value guard = below(name(axis), normal(base + size));
    if (!even && !contains(b.guards, guard)) add_guard(b, guard);
    return b;
}

Slices slices_of(const Program& p, const Place& at, const Axis& a, const SliceRequest& r, const std::string& code) {
    const std::vector<Stmt> loops = loops_of(at.above);
    need(at.role.empty(), (code + ".place").c_str(), fmt::format("`{}` stands in a role", block_of(at).label), "split before the roles are made", at.stmt->loc);
    need(r.kind != LoopKind::Grid || loops.empty(), (code + ".place").c_str(), fmt::format("slices of kind grid inside the loop `{}` have no memory in common", loops.empty() ? "" : as_loop(loops.front())->var),
         "split before the loops are made, or with kind = cluster", at.stmt->loc);
    const Loop* inner = r.kind == LoopKind::Cluster && !loops.empty() && as_loop(loops.back())->kind != LoopKind::Grid ? as_loop(loops.back()) : nullptr;
    need(!inner, (code + ".place").c_str(), fmt::format("slices of kind cluster inside the loop `{}`, which is not a grid", inner ? inner->var : ""), "split before the loops are made", at.stmt->loc);
    const bool even = divides(p, a.size, r.count * r.align);
    const Index length = normal(ceil_div(ceil_div(a.size, constant(r.align)), constant(r.count)) * constant(r.align));
    return {a.name, unique_name(p, a.name + ".s"), unique_name(p, a.name + ".j"), a.base, a.size, length, r.count, r.kind, even};
}

std::vector<Value> Partial::values_at(const Index& slice) const {
    std::vector<Index> at = block.outs[0].subscripts;
    at[0] = slice;
    std::vector<Value> out;
    for (const Decl& d : decls) out.push_back(load(d.name, d.type, at));
    return out;
}

Partial partial_of(const Program& p, const Block& b, const Slices& s, const std::vector<DType>& types) {
    const std::vector<Axis> pars = axes_of_kind(b, true);
    Partial w;
    w.block = b;
    w.block.outs.clear(), w.block.via.clear();
    for (const DType type : types) {
        const bool position = !w.decls.empty();
        Decl d{unique_name(p, b.label + (position ? ".w.at" : ".w")), Scope::Temp, type, windows_of(pars)};
        d.dims.insert(d.dims.begin(), {constant(0), constant(s.count)});
        Access out{d.name, names_of(pars)};
        out.subscripts.insert(out.subscripts.begin(), name(s.var));
        w.inits.push_back({unique_name(p, d.name + ".init"), pars, {out}, Monoid::None, {position ? integer(0, widened(type)) : identity(b.monoid, widened(type))}});
        w.block.outs.push_back(std::move(out));
        w.decls.push_back(std::move(d));
    }
    w.block.label = w.decls[0].name;
    return w;
}

Block joined(Block b, const Slices& s, std::vector<Value> vals) {
    b.guards = without(b.guards, reduced_names(b));
    b.axes = axes_of_kind(b, true);
    b.axes.push_back({s.join, AxisKind::Red, constant(0), constant(s.count)});
    b.vals = std::move(vals);
    return b;
}

Program declare_slices(Program p, const std::vector<Stmt>& above, std::vector<Decl> decls, const Slices& s) {
    return declare(std::move(p), above, std::move(decls), s.kind == LoopKind::Cluster ? Scope::Cluster : Scope::Register);
}

}  // namespace acu::ir::pass
