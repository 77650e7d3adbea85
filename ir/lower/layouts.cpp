#include <fmt/format.h>

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

    /// Why the kernel cannot be spread: a tile whose layout the plan decided, but which some statement needs elsewhere, or rows that no lanes of one warp share.
    std::optional<Diagnostic> fault() const {
        for (const std::string& t : planned_)
            if (place_.at(t) == Place::Shared && tiles_.at(t).scope == Scope::Shared) return Diagnostic{"lower.layouts", tiles_.at(t).loc, fmt::format("`{}` lies in registers as its matrix instructions want it, but a statement needs it otherwise", t), {}, "keep a copy of it in shared memory"};
        for (const Block* b : blocks_) {
            if (!reduces_rows(*b)) continue;
            const auto points = points_of(*b);
            const std::vector<Axis> axes = spread_axes(*b), rows = axes_of_kind(*b, true);
            std::vector<int> dims;
            for (const Axis& a : rows) dims.push_back(static_cast<int>(std::ranges::find(axes, a.name, &Axis::name) - axes.begin()));
            if (!points) return Diagnostic{"lower.rows", {}, fmt::format("`{}` reduces rows of no tile that lies in registers", b->label), {}, "bind it to common.block_reduce, or leave it to each thread"};
            if (!replicas(kept_coordinates(*points, dims), "warp").empty()) return Diagnostic{"lower.rows", {}, fmt::format("`{}` reduces rows that several warps share", b->label), {}, "give each warp whole rows: bind_mma(…, columns = 1)"};
        }
        return {};
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
                planned_.insert(n);
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

    /// Axes of the points that a block spreads over threads: where it reduces rows of a tile, also those that are reduced.
    static std::vector<Axis> spread_axes(const Block& b) { return reduces_rows(b) ? b.axes : axes_of_kind(b, true); }

    /// How the points of a block lie: as in a tile that is decided, of which each point has a cell of its own.
    std::optional<Layout> decided_points(const Block& b) const { return points_as_in(b, true); }
    /// As in such a tile, else as in another.
    std::optional<Layout> points_of(const Block& b) const {
        auto l = decided_points(b);
        return l ? l : points_as_in(b, false);
    }
    std::optional<Layout> points_as_in(const Block& b, bool is_decided) const {
        const std::vector<Axis> axes = spread_axes(b);
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (!is(t.tensor, Place::Spread) || decided(t.tensor) != is_decided) continue;
            const auto dims = own_cell(axes, t.subscripts, tiles_.at(t.tensor), t.version);
            if (const auto l = dims ? layout_of(tiles_.at(t.tensor)) : std::nullopt) return l->projected(*dims);
        }
        return {};
    }

    /// How a tile lies whose cells the points of a block have or share; nothing where they have none.
    std::optional<Layout> seen_from(const Block& b, const Layout& points, const analysis::Touch& t) const {
        const Decl& d = tiles_.at(t.tensor);
        const auto cell = shared_cell(spread_axes(b), t.subscripts, d, t.version);
        return cell ? std::optional(kept_coordinates(points, axes_by_dim(*cell, d.dims.size()))) : std::nullopt;
    }

    /// A tile that stands beside one whose layout is decided takes that layout, or what it says of the coordinates that both have; false: none is left.
    bool adopt_one() {
        for (const Block* b : blocks_) {
            if ((is_collective(*b) && !reduces_rows(*b)) || is_matrix_product(*b)) continue;
            const auto points = decided_points(*b);
            if (!points) continue;
            for (const analysis::Touch& t : analysis::touches(*b)) {
                if (!is(t.tensor, Place::Spread) || decided(t.tensor) || threads_of(t.tensor) != points->size("lane") * points->size("warp")) continue;
                if (auto l = seen_from(*b, *points, t)) {
                    tiles_.at(t.tensor).layout = std::move(*l);
                    return true;
                }
            }
        }
        return false;
    }

    /// Moves the first tile that some block cannot use where it is; false: all can.
    bool demote_one() {
        for (const Block* b : blocks_) {
            const std::string tile = reduces_rows(*b) ? unfit_rows(*b) : is_collective(*b) ? unfit_collective(*b) : unfit(*b);
            if (tile.empty()) continue;
            place_[tile] = Place::Shared;
            if (!planned_.contains(tile)) tiles_.at(tile).layout.reset();
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
            if (!t.write && is(t.tensor, Place::Spread) && !own_cell(reduced, t.subscripts, tiles_.at(t.tensor), t.version)) return t.tensor;
        }
        for (const Access& o : b.outs)    // value and position go to the same threads
            if (is(o.tensor, Place::Replicated) && std::ranges::any_of(b.outs, [&](const Access& x) { return is(x.tensor, Place::Shared); })) return o.tensor;
        return disagree(b, reduced);
    }

    std::string unfit(const Block& b) const {
        const bool each = std::ranges::any_of(b.outs, [&](const Access& o) { return is(o.tensor, Place::Replicated); });
        const auto points = each || is_matrix_product(b) ? std::nullopt : points_of(b);
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (each && is(t.tensor, Place::Spread)) return b.outs[0].tensor;    // the result is needed by all: it goes where all see it
            if (each && t.write && !is(t.tensor, Place::Replicated)) return b.outs[0].tensor;
            if (!is(t.tensor, Place::Spread) || is_factor(b, t)) continue;
            const Decl& d = tiles_.at(t.tensor);
            if (own_cell(axes_of_kind(b, true), t.subscripts, d, t.version)) continue;
            const auto wanted = points ? seen_from(b, *points, t) : std::nullopt;
            const auto l = wanted ? layout_of(d) : std::nullopt;
            if (!l || !same(*l, *wanted)) return t.tensor;
        }
        return each ? "" : disagree(b, axes_of_kind(b, true));
    }

    /// A factor of a matrix product that its instruction takes from registers.
    bool is_factor(const Block& b, const analysis::Touch& t) const { return is_matrix_product(b) && !t.write && decided(t.tensor) && t.tensor != b.outs[0].tensor; }

    /// Each thread has its part of the rows, and the result where it has a part of the row.
    std::string unfit_rows(const Block& b) const {
        const auto points = points_of(b);
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (!is(t.tensor, Place::Spread)) continue;
            const auto wanted = points ? seen_from(b, *points, t) : std::nullopt;
            const auto l = wanted ? layout_of(tiles_.at(t.tensor)) : std::nullopt;
            if (!l || !same(*l, *wanted)) return t.tensor;
        }
        return {};
    }

    bool decided(const std::string& tile) const { return tiles_.at(tile).layout.has_value(); }

    /// A tile of this block whose layout differs from that of another one, seen along the block's axes; not one whose layout a plan decided.
    std::string disagree(const Block& b, const std::vector<Axis>& axes) const {
        std::optional<std::pair<std::string, Layout>> first;
        for (const analysis::Touch& t : analysis::touches(b)) {
            if (!is(t.tensor, Place::Spread) || is_factor(b, t)) continue;
            const auto dims = own_cell(axes, t.subscripts, tiles_.at(t.tensor), t.version);
            if (!dims && shared_cell(axes, t.subscripts, tiles_.at(t.tensor), t.version)) continue;    // seen to already
            const auto l = layout_of(tiles_.at(t.tensor));
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
    std::set<std::string> planned_;    ///< tiles whose layout a plan decided
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
        if (auto why = found.fault()) return std::move(*why);
        Loop n = *l;
        found.allocs(n.allocs);
        n.body = found.body(n.body);
        s = with_node(s, std::move(n));
    }
    return out;
}

}  // namespace acu::ir::lower
