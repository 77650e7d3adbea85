#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/layout_use.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

/// Tiles of at most so many cells are held by every thread, if each can compute them alone.
constexpr int64_t most_replicated = 8;
/// More registers of one tile than this do not stay registers.
constexpr int64_t most_registers = 128;

/// Cells of a thread in shared memory that no other thread uses.
constexpr int64_t most_of_own_memory = 512;

enum class Place { Replicated, Spread, Shared };

/// Owner computes: a thread runs the points of the cells that it owns. A tile stays in registers where every user finds its own cells in its own thread; a tile
/// about which users disagree goes through shared memory, where all see it.
class Inference {
  public:
    Inference(const Loop& kernel, const Target& target) : threads_(threads_of_tiles(kernel)), warp_(target.warp), cluster_(cluster_of(kernel) > 1) {
        Decls all;
        collect_decls(kernel.body, all);
        for (const Decl& d : kernel.allocs) all.insert_or_assign(d.name, d);
        for (const auto& [n, d] : all)
            if (d.scope == Scope::Register || (cluster_ && d.scope == Scope::Shared)) tiles_.emplace(n, d);
        gather(kernel.body);
        start();
        while (adopt_one()) {}
        while (demote_one()) {}
        for (auto& [n, d] : tiles_) settle(d);
    }

    Body body(const Body& stmts) const {
        Body out;
        for (const Stmt& s : stmts) out.push_back(statement(s));
        return out;
    }
    void allocs(std::vector<Decl>& list) const {
        for (Decl& d : list)
            if (const auto it = tiles_.find(d.name); it != tiles_.end()) d = it->second;
    }

  private:
    Stmt statement(const Stmt& s) const {
        const Stmt inner = map_bodies(s, [&](const Body& b) { return body(b); });
        const auto* l = std::get_if<Loop>(&inner->node);
        if (!l || l->allocs.empty()) return inner;
        Loop n = *l;
        allocs(n.allocs);
        return with_node(inner, std::move(n));
    }

    void gather(const Body& stmts) {
        for (const Stmt& s : stmts) {
            if (const auto* b = std::get_if<Block>(&s->node)) blocks_.push_back(b);
            if (const auto* i = std::get_if<If>(&s->node))
                analysis::for_each_load(i->condition, [&](const Value& v) { outside_.insert(v->name); });
            for (const Body* inner : bodies_of(s)) gather(*inner);
        }
    }

    void start() {
        for (const auto& [n, d] : tiles_) {
            const auto shape = constant_sizes(d.dims);
            int64_t count = 1;
            if (shape)
                for (const int64_t x : *shape) count *= x;
            if (d.layout) {    // a plan decided
                place_[n] = Place::Spread;
                continue;
            }
            const bool usable = shape && count > 0 && !outside_.contains(n) && d.ring.versions <= 1 && threads_of(n), single = alone(n);
            place_[n] = !usable || (count == 1 && !single) ? Place::Shared : count <= most_replicated && single ? Place::Replicated : Place::Spread;
        }
    }

    /// Can every thread compute the tile by itself (a collective gives its result to all)?
    bool alone(const std::string& tile) const {
        return std::ranges::all_of(blocks_, [&](const Block* b) {
            const bool writes = std::ranges::any_of(b->outs, [&](const Access& o) { return o.tensor == tile; });
            const bool plain = b->outs.size() == 1 && axes_of_kind(*b, false).empty();
            return !writes || is_collective(*b) || plain;
        });
    }

    bool is(const std::string& name, Place p) const {
        const auto it = place_.find(name);
        return it != place_.end() && it->second == p;
    }

    /// A tile that stands beside one whose layout a plan decided, cell by cell, takes that layout; false: none is left.
    bool adopt_one() {
        for (const Block* b : blocks_) {
            if (is_collective(*b)) continue;
            const std::vector<Axis> par = axes_of_kind(*b, true);
            const std::vector<analysis::Touch> all = analysis::touches(*b);
            for (const analysis::Touch& from : all) {
                if (!is(from.tensor, Place::Spread) || !decided(from.tensor)) continue;
                for (const analysis::Touch& to : all)
                    if (is(to.tensor, Place::Spread) && !decided(to.tensor) && alike(par, from, to)) {
                        tiles_.at(to.tensor).layout = tiles_.at(from.tensor).layout;
                        return true;
                    }
            }
        }
        return false;
    }

    bool alike(const std::vector<Axis>& par, const analysis::Touch& a, const analysis::Touch& b) const {
        const Decl &x = tiles_.at(a.tensor), &y = tiles_.at(b.tensor);
        const auto mine = own_cell(par, a.subscripts, x), other = own_cell(par, b.subscripts, y);
        return mine && other && *mine == *other && threads_of(a.tensor) == threads_of(b.tensor) && constant_sizes(x.dims) == constant_sizes(y.dims);
    }

    /// Moves the first tile that some block cannot use where it is; false: all can.
    bool demote_one() {
        for (const Block* b : blocks_) {
            const std::string tile = is_collective(*b) ? unfit_collective(*b) : unfit(*b);
            if (tile.empty()) continue;
            place_[tile] = Place::Shared;
            return true;
        }
        return false;
    }

    /// A collective reads tiles of its reduced axes, one of its rows at a time, and gives its result to every thread.
    std::string unfit_collective(const Block& b) const {
        const std::vector<Axis> reduced = axes_of_kind(b, false);
        for (const analysis::Touch& t : analysis::touches(b))    // a scan goes through its terms in the order of the threads: what it touches lies where all see it
            if (is_collective_scan(b) && (is(t.tensor, Place::Spread) || is(t.tensor, Place::Replicated))) return t.tensor;
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (t.write && is(t.tensor, Place::Spread)) return t.tensor;
            if (!t.write && is(t.tensor, Place::Spread) && !own_cell(reduced, t.subscripts, tiles_.at(t.tensor))) return t.tensor;
        }
        for (const Access& o : b.outs)    // value and position go to the same threads
            if (is(o.tensor, Place::Replicated) && std::ranges::any_of(b.outs, [&](const Access& x) { return is(x.tensor, Place::Shared); })) return o.tensor;
        return disagree(b, reduced);
    }

    std::string unfit(const Block& b) const {
        const std::vector<Axis> par = axes_of_kind(b, true);
        const bool each = std::ranges::any_of(b.outs, [&](const Access& o) { return is(o.tensor, Place::Replicated); });
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (each && is(t.tensor, Place::Spread)) return b.outs[0].tensor;    // the result is needed by all: it goes where all see it
            if (each && t.write && !is(t.tensor, Place::Replicated)) return b.outs[0].tensor;
            if (is(t.tensor, Place::Spread) && !own_cell(par, t.subscripts, tiles_.at(t.tensor))) return t.tensor;
        }
        return each ? "" : disagree(b, par);
    }

    bool decided(const std::string& tile) const { return tiles_.at(tile).layout.has_value(); }

    /// A tile of this block whose layout differs from that of another one, seen along the block's axes; not one whose layout a plan decided.
    std::string disagree(const Block& b, const std::vector<Axis>& axes) const {
        std::optional<std::pair<std::string, Layout>> first;
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (!is(t.tensor, Place::Spread)) continue;
            const auto l = layout_of(tiles_.at(t.tensor));
            const auto dims = own_cell(axes, t.subscripts, tiles_.at(t.tensor));
            if (!l || !dims) return t.tensor;
            Layout seen = l->projected(*dims);
            if (first && !same(first->second, seen)) return decided(t.tensor) ? first->first : t.tensor;
            if (!first || decided(t.tensor)) first = {t.tensor, std::move(seen)};
        }
        return {};
    }

    /// Along the dimension that some user vectorises, in chunks of that many cells.
    std::optional<Layout> layout_of(const Decl& d) const {
        if (d.layout) return d.layout;
        const auto shape = constant_sizes(d.dims);
        if (!shape) return {};
        int axis = static_cast<int>(d.dims.size()) - 1;
        int64_t vector = 1;
        for (const Block* b : blocks_)
            for (const analysis::Touch& t : analysis::touches(*b)) {
                if (t.tensor != d.name) continue;
                for (size_t k = 0; k < t.subscripts.size(); ++k)
                    for (const Axis& a : b->axes)
                        if (a.vector > vector && is_name(t.subscripts[k], a.name) && (*shape)[k] % a.vector == 0) vector = a.vector, axis = static_cast<int>(k);
            }
        if (shape->empty()) return Layout(0);
        const auto found = distribute(*shape, threads_of(d.name), warp_, axis, vector);
        if (!found || found->layout.size("reg") > (d.scope == Scope::Shared ? most_of_own_memory : most_registers)) return {};
        return found->layout;
    }

    void settle(Decl& d) {
        const Place where = place_.at(d.name);
        if (where == Place::Shared) d.scope = Scope::Shared;
        if (where == Place::Replicated) d.scope = Scope::Register;
        if (where != Place::Shared) d.layout = where == Place::Replicated ? replicated_layout(*constant_sizes(d.dims)) : layout_of(d);
    }

    int64_t threads_of(const std::string& tile) const {
        const auto it = threads_.find(tile);
        return it == threads_.end() ? 0 : it->second;
    }

    std::map<std::string, int64_t> threads_;    ///< by tile
    int64_t warp_;
    bool cluster_;    ///< its blocks share no memory: of shared memory, too, each thread has its own cells
    Decls tiles_;
    std::vector<const Block*> blocks_;
    std::set<std::string> outside_;    ///< read by conditions
    std::map<std::string, Place, std::less<>> place_;
};

}  // namespace

Result<Program> infer_layouts(const Program& p, const Target& target) {
    Program out = p;
    for (Stmt& s : out.body) {
        auto* l = std::get_if<Loop>(&s->node);
        if (!l || !l->threads) continue;
        const Inference found(*l, target);
        Loop n = *l;
        found.allocs(n.allocs);
        n.body = found.body(n.body);
        s = with_node(s, std::move(n));
    }
    return out;
}

}  // namespace acu::ir::lower
