#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/analysis/facts.h"
#include "ir/layout_use.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

using analysis::below;
using analysis::normal;

/// A loop with that many trips at most is written out; with more of them only where registers need constant indices.
constexpr int64_t most_unrolled = 8, most_indexed = 256;

class Distribution {
  public:
    Distribution(const Program& p, const Loop& kernel, const Loop& outermost, const Target& target) : p_(p), threads_(outermost.threads), warp_(target.warp), threads_of_(threads_of_tiles(outermost)) {
        collect_decls(kernel.body, decls_);
        for (const Decl& d : kernel.allocs) decls_.insert_or_assign(d.name, d);
        taken_ = names_used(p, {make_stmt({}, outermost)});
    }

    Loop kernel(const Loop& l) {
        Loop n = l;
        n.body = body(l.body);
        n.allocs = per_thread(n.allocs);
        n.allocs.insert(n.allocs.begin(), made_.begin(), made_.end());
        return n;
    }

  private:
    // ---- names

    std::string fresh(const std::string& stem) { return *taken_.insert(unused_name(taken_, stem)).first; }

    // ---- buffers

    /// Registers get the thread as their first dimension; the rest are the registers of a thread, or the logical window where every thread holds it whole.
    std::vector<Decl> per_thread(std::vector<Decl> list) const {
        for (Decl& d : list)
            if (d.layout) d.dims = thread_dims(d);
        return list;
    }
    std::vector<Window> thread_dims(const Decl& d) const {
        std::vector<Window> dims{{constant(0), constant(threads_of_.at(d.name))}};
        if (is_replicated(*d.layout) && d.layout->rank() > 0) dims.insert(dims.end(), d.dims.begin(), d.dims.end());
        else if (!is_replicated(*d.layout)) dims.push_back({constant(0), constant(d.layout->size("reg"))});
        return dims;
    }

    /// Where a thread's loads and stores of register tiles go: `slot` is the register of the point's own cell, of points that lie as `points` says over `axes`.
    struct Mine {
        std::string thread;
        Index slot;
        const Layout* points = nullptr;
        const std::vector<Axis>* axes = nullptr;
    };
    std::optional<std::vector<Index>> registers(const std::string& tile, const std::vector<Index>& subscripts, const std::vector<Index>& version, const Mine& m) const {
        const auto it = decls_.find(tile);
        if (it == decls_.end() || !it->second.layout) return {};
        std::vector<Index> out{ir::name(m.thread)};
        if (is_replicated(*it->second.layout)) out.insert(out.end(), subscripts.begin(), subscripts.end());
        else if (const auto cell = m.points ? shared_cell(*m.axes, subscripts, it->second, version) : std::nullopt; cell && std::ranges::find(*cell, -1) != cell->end())
            out.push_back(kept_register(*m.points, axes_by_dim(*cell, subscripts.size()), m.slot));
        else if (m.points && !cell) return owner(it->second, subscripts, version);
        else out.push_back(m.slot);
        return out;
    }

    /// Thread and register of a cell whatever the thread that runs the point: the factor of a matrix product.
    static std::vector<Index> owner(const Decl& ring, const std::vector<Index>& subscripts, const std::vector<Index>& version) {
        const Decl d = at_version(ring, version);
        const Layout back = *inverse(*d.layout, {"lane", "warp", "reg"});
        std::map<std::string, Index> inputs;
        for (size_t i = 0; i < subscripts.size(); ++i) inputs.emplace(fmt::format("d{}", i), normal(subscripts[i] - d.dims[i].origin));
        std::vector<Index> at;
        for (int k = 0; k < 3; ++k) {
            Index sum = constant(0);
            for (const IndexTerm& x : index_form(back, k).terms()) sum = sum + term(x, inputs);
            at.push_back(normal(sum));
        }
        return {normal(at[1] * constant(d.layout->size("lane")) + at[0]), at[2]};
    }

    Block in_thread(Block b, const Mine& m) const {
        for (Access& o : b.outs)
            if (auto at = registers(o.tensor, o.subscripts, o.version, m)) o.subscripts = std::move(*at);
        const auto load = [&](const Value& v) -> Value {
            const auto at = v->op == Op::Load ? registers(v->name, v->subscripts, v->version, m) : std::nullopt;
            return at ? with_source(v, v->name, *at) : nullptr;
        };
        for (Value& v : b.vals) v = replace(v, load);
        for (Value& v : b.guards) v = replace(v, load);
        return b;
    }

    // ---- statements

    Body body(const Body& stmts) {
        Body out;
        for (const Stmt& s : stmts) {
            if (const auto* b = std::get_if<Block>(&s->node)) {
                const Body now = block(s, *b);
                out.insert(out.end(), now.begin(), now.end());
                continue;
            }
            if (const auto* r = std::get_if<Roles>(&s->node)) {
                out.push_back(with_node(s, roles(*r)));
                continue;
            }
            const Stmt inner = map_bodies(s, [&](const Body& x) { return body(x); });
            const auto* l = std::get_if<Loop>(&inner->node);
            if (!l || l->allocs.empty()) {
                out.push_back(inner);
                continue;
            }
            Loop n = *l;
            n.allocs = per_thread(n.allocs);
            out.push_back(with_node(inner, std::move(n)));
        }
        return out;
    }

    /// The blocks of a role are spread over its threads, which count from 0.
    Roles roles(const Roles& r) {
        Roles n = r;
        const int64_t all = threads_;
        for (Role& role : n.roles) {
            threads_ = role.threads;
            role.body = body(role.body);
        }
        threads_ = all;
        return n;
    }

    Body block(const Stmt& s, const Block& b) {
        if (is_collective(b)) return collective(s, b);
        if (moves_boxes(b)) return {by_one_thread(s, b)};
        const bool each = std::ranges::any_of(b.outs, [&](const Access& o) { return layout(o.tensor) && is_replicated(*layout(o.tensor)); });
        if (each) return {by_every_thread(s, b)};
        return {spread(s, b, axes_of_kind(b, true), axes_of_kind(b, false))};
    }
    const Layout* layout(const std::string& tile) const {
        const auto it = decls_.find(tile);
        return it == decls_.end() || !it->second.layout ? nullptr : &*it->second.layout;
    }

    Loop thread_loop(int64_t extent) {
        Loop t;
        t.var = fresh("t");
        t.kind = LoopKind::Thread;
        t.extent = constant(extent);
        return t;
    }

    /// A box that the copy engine moves as a whole.
    Stmt by_one_thread(const Stmt& s, const Block& b) {
        Loop t = thread_loop(1);
        t.body = {with_node(s, b)};
        return with_node(s, std::move(t));
    }

    Stmt by_every_thread(const Stmt& s, const Block& b) {
        Loop t = thread_loop(threads_);
        t.body = {with_node(s, in_thread(b, {t.var, nullptr}))};
        return with_node(s, std::move(t));
    }

    // ---- points over threads

    /// The layout of the block's points: that of the register tiles that it touches, else one made for its box.
    std::optional<Layout> points_layout(const Block& b, const std::vector<Axis>& axes) const {
        for (const analysis::Touch& t : analysis::touches(b)) {
            const Layout* l = layout(t.tensor);
            if (!l || is_replicated(*l)) continue;
            if (const auto dims = own_cell(axes, t.subscripts, decls_.at(t.tensor), t.version)) return l->projected(*dims);
        }
        const auto shape = constant_sizes(axes);
        if (shape && !axes.empty() && reads_own_copy(b, axes, *shape)) return replicated_layout(*shape);
        if (!shape || axes.empty()) return axes.empty() ? std::optional(Layout(0)) : std::nullopt;
        int axis = static_cast<int>(axes.size()) - 1;
        int64_t vector = 1;
        for (size_t k = 0; k < axes.size(); ++k)
            if (axes[k].vector > vector && (*shape)[k] % axes[k].vector == 0) vector = axes[k].vector, axis = static_cast<int>(k);
        if (std::ranges::find(*shape, 0) != shape->end()) return {};
        const auto found = distribute(*shape, threads_, warp_, axis, vector);
        return found ? std::optional(found->layout) : std::nullopt;
    }

    /// Reads cells of a tile that every thread holds, another one at each point: one thread does, for registers have no computed numbers.
    bool reads_own_copy(const Block& b, const std::vector<Axis>& axes, const Coord& shape) const {
        int64_t points = 1;
        for (const int64_t n : shape) points *= n;
        return points > 0 && std::ranges::any_of(analysis::touches(b), [&](const analysis::Touch& t) {
            const Layout* l = layout(t.tensor);
            const bool moves = std::ranges::any_of(t.subscripts, [&](const Index& i) { return std::ranges::any_of(axes, [&](const Axis& a) { return analysis::mentions(i, a.name); }); });
            return l && !t.write && is_replicated(*l) && l->size("reg") > 1 && points <= l->size("reg") && moves;
        });
    }

    /// Spreads the points of `axes` over the threads; `rest` run inside each.
    Stmt spread(const Stmt& s, const Block& b, const std::vector<Axis>& axes, const std::vector<Axis>& rest) {
        const auto l = points_layout(b, axes);
        return l ? by_layout(s, b, *l, axes, rest) : by_number(s, b, axes, rest);
    }

    /// Points next to each other in registers along one axis, which stays an axis of the block.
    struct Chunk {
        int axis = -1;
        int64_t size = 1;
    };
    static Chunk chunk_of(const Layout& l, const std::vector<Axis>& axes) {
        for (size_t k = 0; k < axes.size(); ++k)
            if (const int64_t w = std::min(axes[k].vector, width(l, static_cast<int>(k))); w > 1) return {static_cast<int>(k), w};
        return {};
    }

    /// A point is one before guards that read memory are asked.
    static void add_first(Block& b, Value guard) { b.guards.insert(b.guards.begin(), std::move(guard)); }

    /// Does the block touch a tile that is spread over registers?
    bool has_own_registers(const Block& b) const {
        return std::ranges::any_of(analysis::touches(b), [&](const analysis::Touch& t) { return layout(t.tensor) && !is_replicated(*layout(t.tensor)) && decls_.find(t.tensor)->second.scope == Scope::Register; });
    }

    /// The terms of a sum in which a name stands, and the others.
    static void split_terms(const Index& e, int64_t factor, const std::string& name, Index& with, Index& without) {
        if (e->op == IndexOp::Add || e->op == IndexOp::Sub) {
            split_terms(e->args[0], factor, name, with, without);
            return split_terms(e->args[1], e->op == IndexOp::Add ? factor : -factor, name, with, without);
        }
        if (e->op == IndexOp::Mul && is_const(e->args[0])) return split_terms(e->args[1], factor * e->args[0]->value, name, with, without);
        Index& to = analysis::mentions(e, name) ? with : without;
        to = to + constant(factor) * e;
    }

    /// i < j  ->  (what of i - j the register's number says) < (the rest): a constant against a number that the thread computes once, which nobody keeps for each register.
    static void compare_by_register(Block& b, const Loop& r) {
        IndexMap points;
        for (const Let& x : r.lets) points.emplace(x.name, x.value);
        const std::function<Value(const Value&)> rewrite = [&](const Value& v) -> Value {
            const bool compares = v->op >= Op::Lt && v->op <= Op::Ge && v->args[0]->op == Op::OfIndex && v->args[1]->op == Op::OfIndex;
            if (!compares) return nullptr;
            const Index difference = normal(substitute(v->args[0]->subscripts[0] - v->args[1]->subscripts[0], points));
            if (!analysis::mentions(difference, r.var) || mentions_load(difference)) return nullptr;
            Index with = constant(0), without = constant(0);
            split_terms(difference, 1, r.var, with, without);
            return binary(v->op, of_index(normal(with)), of_index(normal(constant(0) - without)));
        };
        for (Value& v : b.vals) v = replace(v, rewrite);
    }

    /// Does the block write only registers?
    bool has_own_registers_written(const Block& b) const {
        return std::ranges::all_of(b.outs, [&](const Access& o) { return layout(o.tensor) != nullptr; });
    }

    /// Of the threads that have the same points, one is enough for what all see.
    static void each_cell_once(Block& b, const Layout& l, const std::map<std::string, Index>& inputs) {
        for (const char* input : {"warp", "lane"})
            for (const int64_t bit : replicas(l, input)) add_first(b, binary(Op::Eq, of_index(mod(div(inputs.at(input), constant(bit)), constant(2))), integer(0, DType::I64)));
    }

    static Index term(const IndexTerm& t, const std::map<std::string, Index>& inputs) {
        Index e = div(inputs.at(t.input), constant(t.divisor));
        if (t.modulus) e = mod(e, constant(t.modulus));
        return e * constant(t.stride);
    }

    Stmt by_layout(const Stmt& s, const Block& b, const Layout& l, const std::vector<Axis>& axes, const std::vector<Axis>& rest) {
        const int64_t lanes = l.size("lane"), warps = l.size("warp"), regs = l.size("reg");
        const Chunk chunk = chunk_of(l, axes);
        Loop t = thread_loop(warps > 1 ? warps * warp_ : lanes);
        Loop r;
        r.var = fresh("r");
        r.extent = constant(regs / chunk.size);
        r.kind = regs / chunk.size <= (has_own_registers(b) ? most_indexed : most_unrolled) ? LoopKind::Unroll : LoopKind::Vector;
        const bool once = regs == chunk.size;
        const Index first = once ? constant(0) : ir::name(r.var) * constant(chunk.size);
        const Index thread = ir::name(t.var);
        const std::map<std::string, Index> inputs{{"reg", first}, {"lane", warps > 1 ? mod(thread, constant(warp_)) : thread}, {"warp", div(thread, constant(warp_))}};
        Block n = b;
        n.axes = rest;
        Index slot = first;
        const Coord reach = l.extent();
        for (size_t k = 0; k < axes.size(); ++k) {
            Index at = axes[k].base;
            for (const IndexTerm& x : index_form(l, static_cast<int>(k)).terms()) at = at + term(x, inputs);
            const auto size = constant_sizes(std::vector<Axis>{axes[k]});
            if (reach[k] > (*size)[0]) add_first(n, below(ir::name(axes[k].name), normal(axes[k].base + axes[k].size)));
            if (static_cast<int>(k) != chunk.axis) {
                r.lets.push_back({axes[k].name, normal(at)});
                continue;
            }
            const std::string start = fresh(axes[k].name + ".c");
            r.lets.push_back({start, normal(at)});
            n.axes.insert(n.axes.begin(), {axes[k].name, AxisKind::Par, ir::name(start), constant(chunk.size), chunk.size});
            slot = first + ir::name(axes[k].name) - ir::name(start);
        }
        if (warps > 1 && lanes < warp_) add_first(n, below(mod(thread, constant(warp_)), constant(lanes)));
        if (r.kind == LoopKind::Unroll) compare_by_register(n, r);
        if (!has_own_registers_written(b)) each_cell_once(n, l, inputs);
        const Stmt inside = with_node(s, in_thread(std::move(n), {t.var, slot, &l, &axes}));
        if (once) t.lets = r.lets, t.body = {inside};
        else r.body = {inside}, t.body = {with_node(s, std::move(r))};
        return with_node(s, std::move(t));
    }

    /// A box whose size is not known: point number r*threads + t, the last axis (or the vectorised one) fastest.
    Stmt by_number(const Stmt& s, const Block& b, const std::vector<Axis>& axes, const std::vector<Axis>& rest) {
        Loop t = thread_loop(threads_);
        Loop r;
        r.var = fresh("r");
        Block n = b;
        n.axes = rest;
        Index total = constant(1);
        const std::string c = fresh("c");
        std::vector<Let> lets;
        for (size_t k = axes.size(); k-- > 0;) {
            const Axis& a = axes[k];
            const Index size = binary(IndexOp::Max, constant(0), a.size), count = a.vector > 1 ? ceil_div(size, constant(a.vector)) : size;
            const Index digit = k == 0 ? div(ir::name(c), total) : mod(div(ir::name(c), total), count);
            if (a.vector > 1) {
                const std::string start = fresh(a.name + ".c");
                lets.push_back({start, a.base + constant(a.vector) * digit});
                n.axes.insert(n.axes.begin(), {a.name, AxisKind::Par, ir::name(start), constant(a.vector), a.vector});
                add_first(n, below(ir::name(a.name), a.base + a.size));
            } else lets.push_back({a.name, a.base + digit});
            total = total * count;
        }
        r.kind = LoopKind::Vector;
        r.extent = div(total - ir::name(t.var) + constant(threads_ - 1), constant(threads_));
        r.lets.push_back({c, ir::name(r.var) * constant(threads_) + ir::name(t.var)});
        r.lets.insert(r.lets.end(), lets.begin(), lets.end());
        r.body = {with_node(s, in_thread(std::move(n), {t.var, nullptr}))};
        t.body = {with_node(s, std::move(r))};
        return with_node(s, std::move(t));
    }

    // ---- collectives

    /// out[i] op= v over k!   ->   part[t] = id;  for t { part[t] op= v over my k };  out[i] op= part[j] over j! in threads      (i: one after another)
    /// Of a pair the second part holds positions; -1 where a thread found none.
    Body collective(const Stmt& s, const Block& b) {
        if (is_collective_scan(b)) return one_row_after_another(s, b, {scan(s, b)});
        if (reduces_rows(b)) return rows(s, b);
        std::vector<Decl> parts;
        for (const Access& o : b.outs) {
            const DType type = find(o.tensor).type;
            parts.push_back(own_register(b.label + (parts.empty() ? ".part" : ".place"), parts.empty() ? widened(type) : type, b.k));
        }
        return one_row_after_another(s, b, {fill(s, parts, b), partial(s, parts, b), combine(s, parts, b)});
    }

    /// out[i] op= v[i, j] over i, j!   ->   part[i] = id;  part[i] op= v[i, j] over my i, j;  row[i] = id;  row[i] op= part[i] of all lanes that share i;  out[i] op= row[i]
    Body rows(const Stmt& s, const Block& b) {
        std::vector<Axis> all = b.axes;
        for (Axis& a : all) a.kind = AxisKind::Par;
        const std::vector<Axis> kept = axes_of_kind(b, true);
        std::vector<int> dims;
        std::vector<Window> windows;
        std::vector<Index> cell;
        for (const Axis& a : kept) dims.push_back(static_cast<int>(std::ranges::find(all, a.name, &Axis::name) - all.begin())), windows.push_back({a.base, a.size}), cell.push_back(ir::name(a.name));
        const Layout of_rows = kept_coordinates(*points_layout(b, all), dims);
        const DType type = widened(find(b.outs[0].tensor).type);
        const auto tile = [&](const char* ending) {
            Decl d{fresh_buffer(b.label + ending), Scope::Register, type, windows};
            d.layout = of_rows;
            decls_.insert_or_assign(d.name, d), threads_of_.insert_or_assign(d.name, threads_);
            Decl made = d;
            made.dims = thread_dims(d);
            made_.push_back(std::move(made));
            return d.name;
        };
        const std::string part = tile(".part"), row = tile(".row");
        const auto block = [&](const std::string& label, const std::vector<Axis>& axes, const Access& out, Monoid monoid, const Value& value) {
            Block n{label, axes, {out}, monoid, {value}};
            return spread(with_node(s, n), n, axes, {});
        };
        Block own = b;
        own.label = part, own.axes = all, own.outs = {{part, cell}}, own.via.clear();
        return {block(part + ".init", kept, {part, cell}, Monoid::None, identity(b.monoid, type)), spread(with_node(s, own), own, all, {}), block(row + ".init", kept, {row, cell}, Monoid::None, identity(b.monoid, type)),
                joined_rows(s, b, part, row, of_rows), block(b.label, kept, b.outs[0], b.monoid, load(row, type, cell))};
    }

    /// row[t, r] op= part[u, r] over t, r, j!: thread u has the number of t but for the bits that lanes of a row differ in, which are those of j.
    Stmt joined_rows(const Stmt& s, const Block& b, const std::string& part, const std::string& row, const Layout& of_rows) {
        const std::string t = fresh("t"), r = fresh("r"), j = fresh("j");
        Index other = ir::name(t);
        int64_t bit = 1;
        for (const int64_t mask : replicas(of_rows, "lane")) {
            const auto digit = [](const std::string& n, int64_t place) { return mod(div(ir::name(n), constant(place)), constant(2)); };
            other = other + constant(mask) * (digit(j, bit) - digit(t, mask));
            bit *= 2;
        }
        Block n{row, {{t, AxisKind::Par, constant(0), constant(threads_)}, {r, AxisKind::Par, constant(0), constant(of_rows.size("reg"))}, {j, AxisKind::Red, constant(0), constant(bit)}}, {{row, {ir::name(t), ir::name(r)}}}, b.monoid,
                {load(part, find(part).type, {normal(other), ir::name(r)})}};
        n.via = b.via;
        return with_node(s, std::move(n));
    }

    /// One register of each thread; of the best of several, one each.
    Decl own_register(const std::string& stem, DType type, int64_t several = 0) {
        Decl d{fresh_buffer(stem), Scope::Register, type, {}};
        d.layout = several ? replicated_layout({several}) : Layout(0);
        if (several) d.dims = {{constant(0), constant(several)}};
        made_.push_back(with_threads(d));
        decls_.insert_or_assign(d.name, d);
        return d;
    }

    Body one_row_after_another(const Stmt& s, const Block& b, Body rows) {
        for (const Axis& a : axes_of_kind(b, true)) {
            Loop l;
            l.var = fresh(a.name + ".r");
            l.extent = a.size;
            l.lets = {{a.name, a.base + ir::name(l.var)}};
            l.body = std::move(rows);
            rows = {with_node(s, std::move(l))};
        }
        return rows;
    }

    const Decl& find(const std::string& buffer) const {
        const auto it = decls_.find(buffer);
        return it == decls_.end() ? *p_.find(buffer) : it->second;
    }
    std::string fresh_buffer(const std::string& stem) const {
        std::string s = stem;
        for (int i = 2; decls_.contains(s) || p_.find(s); ++i) s = stem + std::to_string(i);
        return s;
    }
    Decl with_threads(Decl d) const {
        d.dims.insert(d.dims.begin(), {constant(0), constant(threads_)});
        return d;
    }

    Stmt fill(const Stmt& s, const std::vector<Decl>& parts, const Block& b) {
        Loop t = thread_loop(threads_);
        for (const Decl& part : parts) {
            const Value empty = &part == &parts[0] ? identity(b.monoid, part.type) : integer(-1, part.type);
            Block init{part.name + ".init", {}, {{part.name, {ir::name(t.var)}}}, Monoid::None, {empty}};
            if (b.k) init.axes = {{fresh("k"), AxisKind::Par, constant(0), constant(b.k)}}, init.outs[0].subscripts.push_back(ir::name(init.axes[0].name));
            t.body.push_back(with_node(s, std::move(init)));
        }
        return with_node(s, std::move(t));
    }

    Stmt partial(const Stmt& s, const std::vector<Decl>& parts, Block b) {
        std::vector<Axis> reduced = axes_of_kind(b, false);
        for (Axis& a : reduced) a.kind = AxisKind::Par;    // spread like points; the state is the thread's own
        b.label = parts[0].name;
        b.via.clear();
        b.outs.clear();
        for (const Decl& part : parts) b.outs.push_back({part.name, {}});
        Stmt out = spread(with_node(s, b), b, reduced, {});
        return out;
    }

    Stmt combine(const Stmt& s, const std::vector<Decl>& parts, const Block& b) {
        const std::string j = fresh("j"), t = fresh("t");
        Block n{b.label, {}, b.outs, b.monoid, {}};
        n.k = b.k;
        std::vector<Index> at{ir::name(j)};
        if (b.k) at.push_back(ir::name(fresh("k")));
        for (const Decl& part : parts) n.vals.push_back(load(part.name, part.type, at));
        for (const Value& g : b.guards)
            if (!analysis::meet(analysis::names_in(g), reduced_names(b))) n.guards.push_back(g);
        if (parts.size() > 1) n.guards.push_back(binary(Op::Ge, n.vals[1], integer(0, parts[1].type)));
        if (layout(b.outs[0].tensor)) {
            n.axes.push_back({t, AxisKind::Par, constant(0), constant(threads_)});
            for (Access& o : n.outs) o.subscripts.insert(o.subscripts.begin(), ir::name(t));
        }
        n.axes.push_back({j, AxisKind::Red, constant(0), constant(threads_)});
        if (b.k) n.axes.push_back({at[1]->name, AxisKind::Red, constant(0), constant(b.k)});
        n.via = b.via;
        return with_node(s, std::move(n));
    }
    /// r, y[n] op= x[n] over n^   ->   for i { part[t] = id;  part[t] op= x[n] over my chunk n;  r, mine[t] exclusive op= part[t] over t^;  mine[t], y[n] op= x[n] over my chunk n^ }
    Stmt scan(const Stmt& s, const Block& b) {
        const Axis n = axes_of_kind(b, false)[0];
        const DType type = widened(find(b.outs[0].tensor).type);
        const Decl part = own_register(b.label + ".part", type), mine = own_register(b.label + ".mine", type);
        const int64_t step = threads_ * n.vector;
        Loop i;
        i.var = fresh("i");
        i.order = AxisKind::Scan;
        i.extent = normal(ceil_div(n.size, constant(step)));
        i.body = {fill(s, {part}, b), chunk_sum(s, b, n, part, i.var), joined_scan(s, b, part, mine), chunk_scan(s, b, n, mine, i.var)};
        return with_node(s, std::move(i));
    }

    /// The chunk of a thread in pass `i` over the axis, as the one axis of a statement.
    Block chunk(Block b, const Axis& n, const std::string& i, const Loop& t, AxisKind kind) {
        const Index start = normal(n.base + constant(threads_ * n.vector) * ir::name(i) + constant(n.vector) * ir::name(t.var));
        b.axes = {{n.name, kind, start, constant(n.vector), n.vector}};
        b.via.clear();
        add_first(b, below(ir::name(n.name), normal(n.base + n.size)));
        return b;
    }

    Stmt chunk_sum(const Stmt& s, const Block& b, const Axis& n, const Decl& part, const std::string& i) {
        Loop t = thread_loop(threads_);
        Block own = chunk(b, n, i, t, AxisKind::Par);
        own.label = part.name;
        own.exclusive = false;
        own.outs = {{part.name, {ir::name(t.var)}}};
        t.body = {with_node(s, std::move(own))};
        return with_node(s, std::move(t));
    }

    Stmt joined_scan(const Stmt& s, const Block& b, const Decl& part, const Decl& mine) {
        const std::string t = fresh("t");
        Block n{b.label, {{t, AxisKind::Scan, constant(0), constant(threads_)}}, {b.outs[0], {mine.name, {ir::name(t)}}}, b.monoid, {load(part.name, part.type, {ir::name(t)})}};
        n.exclusive = true;
        n.via = b.via;
        return with_node(s, std::move(n));
    }

    Stmt chunk_scan(const Stmt& s, const Block& b, const Axis& n, const Decl& mine, const std::string& i) {
        Loop t = thread_loop(threads_);
        Block own = chunk(b, n, i, t, AxisKind::Scan);
        own.label = mine.name;
        own.outs[0] = {mine.name, {ir::name(t.var)}};
        t.body = {with_node(s, std::move(own))};
        return with_node(s, std::move(t));
    }

    static std::set<std::string> reduced_names(const Block& b) {
        std::set<std::string> out;
        for (const Axis& a : axes_of_kind(b, false)) out.insert(a.name);
        return out;
    }

    const Program& p_;
    int64_t threads_, warp_;    ///< of the block, or of the role
    std::map<std::string, int64_t> threads_of_;    ///< by tile
    Decls decls_;
    std::set<std::string> taken_;
    std::vector<Decl> made_;
};

}  // namespace

Result<Program> distribute_blocks(const Program& p, const Target& target) {
    Program out = p;
    for (Stmt& s : out.body)
        if (const auto* l = std::get_if<Loop>(&s->node); l && l->threads)
            s = with_node(s, map_block_body(*l, [&](const Loop& inner) { return Distribution(p, inner, *l, target).kernel(inner); }));
    return out;
}

}  // namespace acu::ir::lower
