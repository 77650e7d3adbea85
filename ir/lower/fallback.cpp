#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/lower/lower.h"

namespace acu::ir::lower {
namespace {

/// `u` counts the cells of the box, the last axis fastest.
Loop cell_loop(const std::vector<Axis>& axes, const std::set<std::string>& taken) {
    Loop l;
    l.var = "u";
    while (taken.contains(l.var)) l.var += "u";
    l.kind = LoopKind::Grid;
    l.extent = constant(1);
    for (const Axis& a : axes) l.extent = l.extent * a.size;
    Index inner = constant(1);
    for (size_t i = axes.size(); i-- > 0;) {
        Index at = div(ir::name(l.var), inner);
        if (i > 0) at = mod(at, axes[i].size);
        l.lets.insert(l.lets.begin(), {axes[i].name, axes[i].base + at});
        inner = inner * axes[i].size;
    }
    return l;
}

std::set<std::string> names_of(const Program& p, const Block& b) {
    std::set<std::string> out;
    for (const Dim& d : p.dims) out.insert(d.name);
    for (const Decl& d : p.decls) out.insert(d.name);
    for (const Axis& a : b.axes) out.insert(a.name);
    return out;
}

class Fallback {
  public:
    explicit Fallback(const Program& loops) : in_(loops), out_(loops) {
        out_.body.clear();
        for (size_t i = 0; i < in_.body.size();) i = step(i);
    }
    Program result() { return std::move(out_); }

  private:
    const Block& block(size_t i) const { return std::get<Block>(in_.body[i]->node); }

    /// The fills in front of an accumulation go into its kernel.
    size_t step(size_t i) {
        if (!std::holds_alternative<Block>(in_.body[i]->node)) {
            out_.body.push_back(in_.body[i]);
            return i + 1;
        }
        for (const size_t fills : {2, 1})
            if (blocks_only(i, fills + 1) && accumulates(block(i + fills)) && filled_by(block(i + fills), i, fills)) return accumulation(i, fills);
        single(i);
        return i + 1;
    }

    bool blocks_only(size_t first, size_t count) const {
        return first + count <= in_.body.size() && std::all_of(in_.body.begin() + static_cast<std::ptrdiff_t>(first), in_.body.begin() + static_cast<std::ptrdiff_t>(first + count),
                                                               [](const Stmt& s) { return std::holds_alternative<Block>(s->node); });
    }

    static bool accumulates(const Block& b) { return b.monoid != Monoid::None && !is_scatter(b); }

    bool filled_by(const Block& b, size_t first, size_t fills) const {
        const size_t states = is_pair(b.monoid) ? 2 : 1;
        if (fills != states) return false;
        for (size_t k = 0; k < states; ++k)
            if (block(first + k).vals[0]->op != Op::Const || !same_cells(block(first + k), b.outs[k])) return false;
        return true;
    }

    /// The fill calls the cells by the same words (a top-k block leaves out the last of them).
    static bool same_cells(const Block& fill, const Access& o) {
        std::vector<Index> words = fill.outs[0].subscripts;
        words.resize(std::min(words.size(), o.subscripts.size()));
        return fill.outs[0].tensor == o.tensor && analysis::same(words, o.subscripts);
    }

    void single(size_t i) {
        Block b = block(i);
        Loop l = cell_loop(axes_of_kind(b, true), names_of(in_, b));
        b.axes = axes_of_kind(b, false);
        l.body = {make_stmt(in_.body[i]->loc, std::move(b))};
        out_.body.push_back(make_stmt(in_.body[i]->loc, std::move(l)));
    }

    DType register_type(const Block& b, DType state) const {
        const bool adds = b.monoid == Monoid::Sum || b.monoid == Monoid::Prod;
        return adds && is_float(state) ? DType::F64 : state;
    }

    size_t accumulation(size_t first, size_t fills) {
        const Loc loc = in_.body[first + fills]->loc;
        Block b = block(first + fills);
        Loop l = cell_loop(axes_of_kind(b, true), names_of(in_, b));
        b.axes = axes_of_kind(b, false);
        const bool scans = std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; });
        Body stores;
        for (size_t k = 0; k < fills; ++k) {
            const Access target = b.outs[k];
            const Decl& decl = *in_.find(target.tensor);
            Decl reg{target.tensor + ".r", Scope::Register, register_type(b, decl.type), {}};
            Block fill{reg.name + ".init", {}, {{reg.name, {}}}, Monoid::None, {cast(widened(reg.type), block(first + k).vals[0])}};
            Block store{target.tensor + ".store", {}, {target}, Monoid::None, {}, block(first + k).guards};
            std::vector<Index> at;
            if (b.monoid == Monoid::TopK) {
                const Axis j{"j_", AxisKind::Par, constant(0), constant(b.k)};
                reg.dims = {{constant(0), constant(b.k)}};
                at = {ir::name(j.name)};
                fill.axes = store.axes = {j};
                fill.outs[0].subscripts = at;
                store.outs[0].subscripts.push_back(at[0]);
            }
            store.vals = {cast(widened(decl.type), load(reg.name, reg.type, at))};
            b.outs[k] = {reg.name, {}};
            if (k == 0) b.vals[0] = cast(reg.type, b.vals[0]);
            l.body.push_back(make_stmt(loc, std::move(fill)));
            if (!scans) stores.push_back(make_stmt(loc, std::move(store)));
            l.allocs.push_back(std::move(reg));
        }
        l.body.push_back(make_stmt(loc, std::move(b)));
        l.body.insert(l.body.end(), stores.begin(), stores.end());
        out_.body.push_back(make_stmt(loc, std::move(l)));
        return first + fills + 1;
    }

    const Program& in_;
    Program out_;
};

/// Buffers that no block touches any more (a running value that became a register).
void drop_unused(Program& p) {
    std::set<std::string> used;
    for_each_block(p.body, [&](const Block& b, Loc) {
        used.merge(tensors_read(b));
        for (const Access& o : b.outs) used.insert(o.tensor);
    });
    std::erase_if(p.decls, [&](const Decl& d) { return d.scope == Scope::Temp && !used.contains(d.name); });
}

}  // namespace

Program fallback_plan(const Program& loops) {
    Program p = Fallback(loops).result();
    drop_unused(p);
    return p;
}

}  // namespace acu::ir::lower
