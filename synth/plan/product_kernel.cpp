#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/microkernel.h"
#include "ir/pass/edit.h"
#include "synth/plan/kernels.h"
#include "synth/plan/products.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// The decisions for products that share their result's tile, and what is computed from it point by point.
class ProductKernel {
  public:
    ProductKernel(Draft d, const Group& g) : d_(std::move(d)), g_(g) {
        for (const std::string& label : g.labels)
            if (auto p = product_of(d_.program(), *block_named(d_.program(), label))) products_.push_back(std::move(*p));
    }

    std::optional<Draft> best() {
        if (products_.empty()) return {};
        for (const Instruction& i : instructions_for(d_.target(), products_[0])) {
            const bool makes = std::ranges::any_of(products_, [&](const Product& p) { return needs_making(p.a, i) || needs_making(p.b, i); });
            if (i.microkernel->group == ThreadGroup::Warpgroup && (makes || !rounded())) continue;
            if (auto out = in_slices(i)) return out;
            if (auto out = with(i)) return out;
        }
        return {};
    }

    /// By one instruction, whatever the number of slices.
    std::optional<Draft> with(const Instruction& i) {
        instruction_ = i;
        sizes_ = sizes();
        for (const ProductTile& t : tiles_for(sizes_))
            if (auto out = planned(t)) return out;
        return {};
    }

  private:
    const Axis& axis(const std::string& name) const { return *analysis::axis_of(*block_named(d_.program(), products_[0].label), name); }
    int64_t size(const std::string& name, int64_t likely) const { return size_of(d_.program(), axis(name).size).value_or(most_of(d_.program(), axis(name).size).value_or(likely)); }
    /// Of a factor as the instruction reads it.
    int64_t bytes() const {
        const auto of = [](DType t) { return static_cast<int64_t>(info(t).bytes); };
        return instruction_.type ? of(*instruction_.type) : std::max(of(products_[0].a.type), of(products_[0].b.type));
    }
    const Microkernel& microkernel() const { return *instruction_.microkernel; }
    bool uses_engine() const { return microkernel().group == ThreadGroup::Warpgroup; }

    /// Are factors that count as tf32 rounded where they were written? wgmma cuts off what lies below.
    bool rounded() const {
        if (products_[0].a.type != DType::Tf32) return true;
        const auto writes_rounded = [&](const ProductFactor& f) { return d_.program().find(f.load->name)->scope == Scope::Temp && is_rounded(f.load->name); };
        return writes_rounded(products_[0].a) && writes_rounded(products_[0].b);
    }

    /// What the last statement that writes the buffer says; a store from a tile says what wrote the tile.
    bool is_rounded(const std::string& buffer) const {
        Value value;
        for_each_block(d_.program().body, [&](const Block& b, Loc) {
            if (b.outs[0].tensor == buffer) value = b.vals[0];
        });
        if (value && value->op == Op::Load && value->name != buffer) return is_rounded(value->name);
        return value && value->op == Op::Cast && value->name == name_of(DType::Tf32);
    }

    ProductSizes sizes() const {
        int64_t batch = slices_, rows = size(products_[0].rows, 4096);
        for (const std::string& b : products_[0].batch) batch *= size(b, 16);
        if (const std::string& s = products_[0].segments; !s.empty()) {
            const int64_t groups = std::max<int64_t>(size_of(d_.program(), d_.program().find(s)->dims[0].size).value_or(9) - 1, 1);
            batch *= groups, rows = std::max<int64_t>((rows + groups - 1) / groups, 1);
        }
        return {rows, size(products_[0].columns, 4096), size(products_[0].terms, 4096), batch, static_cast<int64_t>(products_.size()), bytes(), operations()};
    }

    /// On each element of the tile between the products and memory.
    int64_t operations() const {
        constexpr int64_t of_call = 12;    // a polynomial, or a few instructions of a slow unit
        int64_t out = 0;
        for (const std::string& label : g_.labels) {
            const Block& b = *block_named(d_.program(), label);
            if (std::ranges::any_of(products_, [&](const Product& p) { return p.label == label; })) continue;
            for (const Value& v : b.vals) visit(v, [&](const ValueNode& n) { out += n.op == Op::Call ? of_call : n.op != Op::Load && n.op != Op::Const && n.op != Op::Cast; });
        }
        return out;
    }

    /// Tiles by their cost, the cheapest first; a few of them.
    std::vector<ProductTile> tiles_for(const ProductSizes& s) const {
        const Microkernel& m = microkernel();
        std::vector<ProductTile> all = uses_engine() ? warpgroup_tiles() : warp_tiles();
        for (ProductTile& t : all) t.depth = within_run(t.depth);
        std::erase_if(all, [&](const ProductTile& t) {
            const int64_t along = t.swapped ? t.columns : t.rows, across = t.swapped ? t.rows : t.columns, threads = t.groups_of_rows * t.groups_of_columns * m.most_threads;
            const bool whole = along % (t.groups_of_rows * m.matrix.rows) == 0 && across % (t.groups_of_columns * m.matrix.columns) == 0;
            if (!products_[0].segments.empty() && t.cluster > 1) return true;
            return !whole || t.depth % m.matrix.depth != 0 || (t.swapped && s.products > 1) || sums_of(t) > most_sums(t, s) * threads;
        });
        std::ranges::stable_sort(all, {}, [&](const ProductTile& t) { return cycles_of(t, s, d_.target()); });
        if (all.size() > 3) all.resize(3);
        return all;
    }

    /// Does each call of the microkernel sum up in registers of its own first?
    bool promotes() const { return microkernel().function == "warpgroup_promoted_tile"; }

    /// Of a thread: the rest of its registers is for addresses, and for what a tile ends with.
    static int64_t most_sums(const ProductTile& t, const ProductSizes& s) { return t.turns > 1 && s.operations <= 8 ? 160 : 128; }

    /// Registers for the sums of a tile, of all its threads.
    int64_t sums_of(const ProductTile& t) const {
        return t.rows * t.columns * static_cast<int64_t>(products_.size()) * (promotes() ? 2 : 1) * (scaled() ? 2 : 1);
    }

    /// Other factors are constant over the terms of a tile.
    bool scaled() const { return products_[0].run > 0; }
    int64_t within_run(int64_t depth) const {
        while (scaled() && products_[0].run % depth != 0 && depth > 1) depth /= 2;
        return depth;
    }

    /// Few tiles of many terms: the terms are cut into slices whose sums go through memory, where that costs less than idle multiprocessors.
    std::optional<Draft> in_slices(const Instruction& i) {
        instruction_ = i;
        const Product& p = products_[0];
        const auto terms = size_of(d_.program(), axis(p.terms).size);
        const ProductSizes whole = sizes_ = sizes();
        const auto tiles = tiles_for(whole);
        if (!terms || products_.size() > 1 || tiles.empty() || slices_ > 1) return {};
        std::pair<double, int64_t> least{cycles_of(tiles[0], whole, d_.target()), 1};
        for (int64_t n = 2; n <= 64; ++n) {
            const int64_t depth = std::max<int64_t>(128 / bytes(), scaled() && p.run < *terms ? p.run : 1);
            if (*terms % (n * depth) != 0 || *terms / n < 4 * depth) continue;
            ProductSizes part = whole;
            part.terms /= n, part.batch *= n;
            const auto t = tiles_for(part);
            const double sums = static_cast<double>(n * whole.batch * whole.rows * whole.columns * 8) / (19.0 * static_cast<double>(d_.target().multiprocessors)) + 4000;    // written, and read by a second kernel
            if (!t.empty()) least = std::min(least, {cycles_of(t[0], part, d_.target()) + sums, n});
        }
        if (least.second < 2) return {};
        Draft cut = d_;
        if (!cut.step("split_reduction", {p.label}, {{"axis", p.terms}, {"count", least.second}, {"align", std::max<int64_t>(128 / bytes(), scaled() && p.run < *terms ? p.run : 1)}, {"kind", "grid"}}, fmt::format("too few tiles for the multiprocessors: {} slices of terms, added in order", least.second))) return {};
        const std::string part = p.label + ".w";
        const Block* b = block_named(cut.program(), part);
        if (!b || !product_of(cut.program(), *b)) return {};
        const Group sums{GroupKind::Products, {part}, g_.rows, g_.inner};
        const auto join = joined(std::move(cut), p.columns);    // before roles, past which nothing moves
        if (!join) return {};
        ProductKernel first(*join, sums);
        first.slices_ = least.second;
        return first.with(i);
    }

    /// The sums of the slices added up, and what follows for the same cells.
    std::optional<Draft> joined(Draft d, const std::string& inner) const {
        const int64_t points = std::min<int64_t>(sizes_.columns, 1024);
        if (!d.step("fuse", g_.labels, {{"over", tiles_of_rows(g_, inner, points)}, {"kind", "grid"}}, "a block adds up what the slices found for neighbouring cells")) return {};
        const std::string loop = loop_around(d.program(), g_.labels[0]);
        for (const std::string& t : results_of(d.program(), g_.labels)) {
            const Decl* x = d.program().find(t);
            const bool sum = std::ranges::any_of(products_, [&](const Product& y) { return block_named(d.program(), y.label)->outs[0].tensor == t; });
            if (sum || (x && x->scope == Scope::Temp)) d.step("keep", {t}, {{"at", loop}}, "the sums stay in registers");
        }
        return vectorize_inside(d, loop, 4, 256, "each thread has 4 neighbours") && d.lowers() ? std::optional(std::move(d)) : std::nullopt;
    }

    /// Lines of a pattern of 128 bytes. Each warpgroup has 64 rows of the instruction.
    std::vector<ProductTile> warpgroup_tiles() const {
        const int64_t depth = (promotes() && !scaled() ? 256 : 128) / bytes(), products = static_cast<int64_t>(products_.size());    // fewer additions of sums to sums
        std::vector<ProductTile> out;
        for (const int64_t cluster : {1, 2})
            for (const int64_t columns : {256, 192, 160, 128, 96, 64})
                if (columns % (8 * products) == 0) out.push_back({128, columns / products, depth, 2, 1, false, cluster});
        for (const int64_t columns : {64, 96, 128, 160})
            if (products == 1 && !promotes()) out.push_back({128, columns, depth, 1, 1, false, 1, 2});    // ptxas finds no registers for the sums of several
        for (const int64_t columns : {128, 192}) out.push_back({256, columns, depth, 2, 1});
        for (const int64_t columns : {256, 128, 64, 32}) out.push_back({64, columns, depth, 1, 1});
        for (const int64_t few : {16, 32, 64, 128})
            for (const int64_t groups : {1, 2}) out.push_back({few, 64 * groups, depth, groups, 1, true});
        return out;
    }
    std::vector<ProductTile> warp_tiles() const {
        const int64_t depth = (microkernel().matrix.mixed ? 128 : 64) / bytes(), far = 256 / bytes();    // few rows: memory counts, of which more is on its way
        return {{128, 128, depth, 2, 2}, {128, 64, depth, 2, 2}, {64, 128, depth, 2, 2}, {64, 64, depth, 2, 2}, {32, 64, far, 2, 2}, {16, 128, far, 1, 4}, {16, 64, far, 1, 4}, {32, 32, far, 2, 2}};
    }

    /// What the products read in memory by axes.
    struct Source {
        Value load;
        std::vector<std::string> readers;
    };
    std::vector<Source> sources() const {
        std::vector<Source> out;
        for (const Product& p : products_)
            for (const ProductFactor* f : {&p.a, &p.b}) {
                if (!f->plain) continue;
                const auto at = std::ranges::find_if(out, [&](const Source& s) { return equal(s.load, f->load); });
                if (at == out.end()) out.push_back({f->load, {p.label}});
                else at->readers.push_back(p.label);
            }
        return out;
    }

    bool step(std::string pass, std::vector<std::string> sites, Arguments args, std::string why) { return d_.step(std::move(pass), std::move(sites), std::move(args), std::move(why)); }

    std::optional<Draft> planned(const ProductTile& t) {
        const Draft before = d_;
        std::optional<Draft> out;
        if (build(t) && d_.lowers()) out = d_;
        d_ = before;
        return out;
    }

    bool build(const ProductTile& t) {
        const Product& p = products_[0];
        pass::Sizes over;
        const bool segments = !p.segments.empty();
        if (segments && !step("segment_tiles", g_.labels, {{"axis", p.rows}, {"tile", t.rows}}, "tiles of rows that belong together")) return false;
        for (const std::string& r : g_.rows)
            if (!segments || r != p.rows) over.emplace_back(r, r == p.rows ? t.rows * t.cluster : r == p.columns ? t.columns : 1);
        if (!step("fuse", g_.labels, {{"over", over}, {"kind", "grid"}}, fmt::format("tiles of {} x {}: fewest cycles by rounds of tiles and bytes a multiplication", t.rows, t.columns))) return false;
        const pass::Sizes blocks{{p.rows, t.rows}};
        if (t.cluster > 1 && !step("fuse", g_.labels, {{"over", blocks}, {"kind", "cluster"}}, fmt::format("{} blocks of a cluster share what they read of the columns", t.cluster))) return false;
        const std::string home = loop_around(d_.program(), p.label);
        keep_results(home);
        std::vector<std::string> labels;
        for (const Product& x : products_) labels.push_back(x.label);
        const pass::Sizes terms{{p.terms, t.depth}};
        const std::string slices = fmt::format("{} terms at a time", t.depth);
        if (labels.size() > 1 ? !step("fuse", labels, {{"over", terms}}, slices) : !step("tile", labels, {{"axes", terms}}, slices)) return false;
        const std::string loop = loop_around(d_.program(), p.label);
        std::vector<std::string> copies;
        for (const Source& s : sources()) {
            copies.push_back(pass::unique_name(d_.program(), s.load->name + ".t"));
            if (!step("stage", {s.load->name}, {{"at", loop}, {"in", "shared"}, {"readers", s.readers}}, "each element is read once from memory for the tile")) return false;
        }
        for (const std::string& c : copies) step("pad", {c}, {}, "whole tiles, with zeros beyond the edges");
        std::vector<std::string> made;
        for (std::string& l : labels)
            if (!prepared(l, made)) return false;
        for (const std::string& c : factors(labels))
            if (!swizzled(c, labels[0])) return false;
        for (const std::string& l : labels) {
            Arguments args{{"via", microkernel().id}, {"rows", t.groups_of_rows}, {"columns", t.groups_of_columns}};
            if (t.swapped) args.emplace("along", p.columns);
            if (!step("bind_mma", {l}, args, microkernel().doc)) return false;
        }
        const std::vector<std::string> results = finish(home, t);
        return uses_engine() ? by_roles(copies, results, t) : by_threads(loop, copies, made);
    }

    /// The tiles of the sums, and of what is only used in the kernel, stay in registers.
    void keep_results(const std::string& home) {
        for (const std::string& r : results_of(d_.program(), g_.labels)) {
            const Decl* d = d_.program().find(r);
            const bool sum = std::ranges::any_of(products_, [&](const Product& x) { return block_named(d_.program(), x.label)->outs[0].tensor == r; });
            if (sum || (d && d->scope == Scope::Temp)) step("keep", {r}, {{"at", home}, {"in", "register"}}, "the tile stays in registers");
        }
    }

    /// The sum of two buffers' products that stands for the statement in the end: factors of other types and those that are computed have tiles of their own, those that are constant over the tile's
    /// terms multiply its sum.
    bool prepared(std::string& label, std::vector<std::string>& made) {
        if (scaled()) {
            if (!step("hoist", {label}, {}, "factors that are constant over the terms of a tile multiply its sum")) return false;
            label += ".w";
        }
        for (const bool first : {true, false}) {
            const auto p = product_in(label);
            if (!p) return false;
            const ProductFactor& f = first ? p->a : p->b;
            if (!needs_making(f, instruction_)) continue;
            const std::string into = pass::unique_name(d_.program(), label + (first ? ".a" : ".b"));
            Arguments args{{"reads", f.load->name}, {"into", into}, {"in", "shared"}};
            if (instruction_.type && *instruction_.type != f.type) args.emplace("as", std::string(name_of(*instruction_.type)));
            if (!step("outline", {label}, args, "computed once for the tile")) return false;
            step("pad", {into}, {}, "whole tiles, with zeros beyond the edges");
            made.push_back(into);
        }
        step("relax", {label}, {}, "zeros add nothing");
        return true;
    }

    /// The product that a statement is by now, its guards aside.
    std::optional<Product> product_in(const std::string& label) const {
        const auto at = pass::try_block(d_.program(), label);
        if (!at) return {};
        Block b = pass::block_of(*at);
        b.guards.clear();
        Program seen = d_.program();
        for (const Stmt& l : pass::loops_of(at->above)) seen.decls.insert(seen.decls.end(), pass::as_loop(l)->allocs.begin(), pass::as_loop(l)->allocs.end());
        return product_of(seen, b);
    }

    /// The tiles that the instruction reads.
    std::vector<std::string> factors(const std::vector<std::string>& labels) const {
        std::vector<std::string> out;
        for (const std::string& l : labels)
            if (const auto p = product_in(l))
                for (const ProductFactor* f : {&p->a, &p->b})
                    if (std::ranges::find(out, f->load->name) == out.end()) out.push_back(f->load->name);
        return out;
    }

    /// Against bank conflicts; lines longer than the pattern in panels where the tensor cores read them, else permuted alike.
    bool swizzled(const std::string& copy, const std::string& label) {
        const Decl& d = pass::find_buffer(d_.program(), copy);
        const auto line = size_of(d_.program(), d.dims.back().size);
        if (!line) return false;
        const bool lanes = microkernel().matrix.mixed, deep = same_axis(copy, label);
        if (lanes && !deep) return true;    // lanes read neighbours
        const int64_t all = *line * static_cast<int64_t>(info(d.type).bytes);
        for (const int64_t pattern : {128, 64, 32}) {
            if (all % pattern) continue;
            Arguments args{{"pattern", std::to_string(pattern)}};
            if (all > pattern && uses_engine()) args.emplace("panels", "yes");
            int64_t alike = std::min<int64_t>((lanes ? 4 : 1) * std::max<int64_t>(all / 128, 1), 16);    // a lane reads four lines
            while (alike > 1 && bytes_of({copy}) % (8 * pattern * alike) != 0) alike /= 2;
            if (alike > 1 && !uses_engine()) args.emplace("rows", alike);
            if (step("swizzle", {copy}, args, "lines of a matrix lie in different banks")) return true;
        }
        return !uses_engine();
    }

    /// Do the terms run along the lines of the buffer?
    bool same_axis(const std::string& copy, const std::string& label) const {
        const auto p = product_in(label);
        if (!p) return false;
        const ProductFactor& f = p->a.load->name == copy ? p->a : p->b;
        return f.load->name == copy && is_name(f.load->subscripts.back(), p->terms);
    }

    /// What is stored from the sums: neighbours that a thread has. Answers the tiles in shared memory from which the copy engine stores.
    std::vector<std::string> finish(const std::string& home, const ProductTile& t) {
        std::vector<std::string> stores, tiles;
        pass::for_each_place(d_.program(), [&](const pass::Place& x) {
            const Block* b = pass::as_block(x.stmt);
            const bool made = b && b->monoid == Monoid::None && std::ranges::none_of(b->axes, [](const Axis& a) { return a.vector > 1; }) && std::ranges::any_of(tensors_read(*b), [&](const std::string& t) { return t.ends_with(".t"); });
            if (made && d_.program().find(b->outs[0].tensor)) stores.push_back(b->label);
        });
        for (const std::string& s : stores) {
            if (const std::string tile = t.turns == 1 ? through_shared(s, home, t) : ""; !tile.empty()) tiles.push_back(tile);    // with turns, the other role multiplies meanwhile
            const Block& b = *block_named(d_.program(), s);
            const std::string n = neighbours(b.outs[0].subscripts, b);
            if (!n.empty()) step("vectorize", {s, n}, {{"width", int64_t{microkernel().matrix.mixed ? 4 : 2}}}, "neighbours of a fragment are stored together");
        }
        approximate_calls(d_, home);
        return tiles;
    }

    /// A result of 16 bits goes through shared memory to the copy engine, which stores it while the next tile is multiplied. Answers the tile there; empty: it goes straight to memory.
    std::string through_shared(const std::string& label, const std::string& home, const ProductTile& t) {
        const std::string result = block_named(d_.program(), label)->outs[0].tensor;
        if (!uses_engine() || info(d_.program().find(result)->type).bytes != 2 || d_.program().find(result)->scope == Scope::Temp) return {};
        const Draft before = d_;
        const std::string tile = pass::unique_name(d_.program(), result + ".t"), store = pass::unique_name(d_.program(), result + ".store");
        const bool kept = step("keep", {result}, {{"at", home}, {"in", std::string("shared")}}, "the tile is stored from shared memory") && swizzled(tile, label);
        constexpr int64_t stages = 5, few_terms = 2;    // that the tiles of the factors need to be there in time
        const bool fits = kept && (sizes_.terms <= few_terms * t.depth || (shared_for_tiles() - bytes_of({tile})) / stage_bytes(t) >= stages);
        if (fits && step("bind_copy", {store}, {{"via", std::string("sm90.tensor_store")}}, "the copy engine stores boxes while the next tile is multiplied")) return tile;
        d_ = before;
        return {};
    }

    /// A warp asks the copy engine for tiles ahead of the warpgroups that multiply.
    bool by_roles(const std::vector<std::string>& copies, const std::vector<std::string>& results, const ProductTile& t) {
        const Product& p = products_[0];
        for (const std::string& c : copies) {
            const bool shared = t.cluster > 1 && !analysis::axis_of(*block_named(d_.program(), c), p.rows);
            if (!step("bind_copy", {c}, {{"via", shared ? "sm90.tensor_multicast" : "sm90.tensor_copy"}}, shared ? "the copy engine brings boxes to all blocks of the cluster" : "the copy engine brings boxes")) return false;
        }
        std::vector<std::string> nest;
        const auto at = pass::try_block(d_.program(), p.label);
        for (const Stmt& s : pass::loops_of(at->above))
            if (pass::as_loop(s)->kind == LoopKind::Grid) nest.push_back(pass::as_loop(s)->var);
        const std::string flat = pass::unique_name(d_.program(), "u");
        if (nest.size() > 1 && !step("flatten", nest, {{"into", flat}}, "tiles one after another")) return false;
        const std::string grid = nest.size() > 1 ? flat : nest[0];
        if (nest.size() == 2) step("rasterize", {grid}, {{"group", int64_t{8}}}, "blocks that run together share rows and columns in the L2 cache");
        const int64_t stage = stage_bytes(t), all = shared_for_tiles() - bytes_of(results);
        const int64_t together = t.turns == 1 && sums_of(t) <= 64 * 128 && 8 * stage <= all ? 2 : 1;    // small tiles: memory counts, and another block loads while one ends
        if (!step("persist", {grid}, {{"ctas", together * d_.target().multiprocessors / t.cluster}}, together > 1 ? "two blocks a multiprocessor, each of which loads the next tile while it ends the last" : "one block a multiprocessor, which loads the next tile while it ends the last")) return false;
        const int64_t stages = std::clamp<int64_t>(all / together / stage, 2, 8);
        std::string around;    // the loop of a block
        for (const Stmt& s : pass::loops_of(pass::try_block(d_.program(), p.label)->above))
            if (is_parallel(pass::as_loop(s)->kind)) around = pass::as_loop(s)->var;
        if (!step("warp_specialize", {around}, {{"copies", copies}, {"stages", stages}, {"lag", int64_t{scaled() ? 0 : 1}}}, fmt::format("{} tiles on their way", stages - 1))) return false;
        return t.turns == 1 || step("ping_pong", {"consumer", grid + ".t"}, {{"count", t.turns}}, "one warpgroup ends its tile while the other multiplies");
    }

    /// All threads start asynchronous copies ahead; where those cannot be aligned, they copy through registers.
    bool by_threads(const std::string& loop, const std::vector<std::string>& copies, const std::vector<std::string>& made) {
        bool asynchronous = d_.target().name != "sm_70" && d_.target().platform == Platform::Cuda;
        for (const std::vector<std::string>* some : {&copies, &made})
            for (const std::string& c : *some) vectorize_copy(d_, c);
        if (asynchronous && !copies.empty() && step("bind_copy", copies, {{"via", "common.copy_async"}}, "copies that pass the registers by")) {
            const int64_t stages = std::clamp<int64_t>((shared_for_copies - bytes_of(made)) / bytes_of(copies), 2, 4);
            step("pipeline", {loop}, {{"stages", stages}}, fmt::format("{} tiles on their way", stages - 1));
        }
        return true;
    }

    int64_t shared_for_tiles() const { return d_.target().shared_bytes - 4096; }    // the rest: barriers, and gaps between tiles
    /// Of the factors' tiles.
    int64_t stage_bytes(const ProductTile& t) const { return (t.rows + t.columns * static_cast<int64_t>(products_.size())) * t.depth * bytes(); }

    static constexpr int64_t shared_for_copies = 100 << 10;    // two blocks share a multiprocessor of sm_80 and later

    int64_t bytes_of(const std::vector<std::string>& tiles) const {
        int64_t all = 0;
        for (const std::string& t : tiles) {
            const Decl& d = pass::find_buffer(d_.program(), t);
            int64_t n = static_cast<int64_t>(info(d.type).bytes);
            for (const Window& w : d.dims) n *= size_of(d_.program(), w.size).value_or(1);
            all += n;
        }
        return all;
    }

    Draft d_;
    const Group& g_;
    std::vector<Product> products_;
    Instruction instruction_{};
    ProductSizes sizes_{};
    int64_t slices_ = 1;    ///< that the terms were cut into
};

}  // namespace

std::optional<Draft> product_kernel(Draft d, const Group& g) { return ProductKernel(std::move(d), g).best(); }

}  // namespace acu::synth::plan
