#include "synth/plan/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/microkernel.h"
#include "ir/pass/edit.h"
#include "microkernels/catalogue.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// A load, perhaps widened or rounded to tf32.
struct Factor {
    Value load;
    bool tf32 = false;
};
std::optional<Factor> factor_of(const Value& v) {
    Factor f{v};
    while (f.load->op == Op::Cast) f.tf32 |= f.load->name == name_of(DType::Tf32), f.load = f.load->args[0];
    if (f.load->op != Op::Load || !f.load->args.empty()) return {};
    return f;
}

std::set<std::string> axes_read(const Block& b, const Value& load) {
    std::set<std::string> out;
    for (const Axis& a : b.axes)
        for (const Index& s : load->subscripts)
            if (analysis::mentions(s, a.name)) out.insert(a.name);
    return out;
}

/// Each subscript is an axis, or the same for all points.
bool plain_subscripts(const Block& b, const Value& load) {
    return std::ranges::all_of(load->subscripts, [&](const Index& s) {
        return std::ranges::none_of(b.axes, [&](const Axis& a) { return analysis::mentions(s, a.name) && !is_name(s, a.name); }) && !mentions_load(s);
    });
}

}  // namespace

std::optional<Product> product_of(const Program& p, const Block& b) {
    if (b.monoid != Monoid::Sum || b.outs.size() != 1 || b.vals.size() != 1 || !b.guards.empty() || is_scatter(b) || b.vals[0]->op != Op::Mul) return {};
    const auto x = factor_of(b.vals[0]->args[0]), y = factor_of(b.vals[0]->args[1]);
    const std::vector<Axis> reduced = axes_of_kind(b, false);
    if (!x || !y || reduced.size() != 1 || reduced[0].kind != AxisKind::Red || !plain_subscripts(b, x->load) || !plain_subscripts(b, y->load)) return {};
    const Decl *dx = p.find(x->load->name), *dy = p.find(y->load->name);
    if (!dx || !dy || dx->strided || dy->strided || x->tf32 != y->tf32) return {};
    const bool mixed = dx->type != dy->type, floats = is_float(b.vals[0]->type);
    if (mixed && (!floats || x->tf32)) return {};
    Product out{b.label, {}, {}, reduced[0].name, {}, x->load, y->load, x->tf32 ? DType::Tf32 : dx->type, mixed};
    const auto of_x = axes_read(b, x->load), of_y = axes_read(b, y->load);
    if (!of_x.contains(out.terms) || !of_y.contains(out.terms)) return {};
    bool swapped = false;
    for (const Axis& a : axes_of_kind(b, true)) {
        const bool in_x = of_x.contains(a.name), in_y = of_y.contains(a.name);
        if (in_x && in_y) {
            out.batch.push_back(a.name);
            continue;
        }
        if (!in_x && !in_y) return {};
        if (out.rows.empty()) out.rows = a.name, swapped = in_y;
        else if (out.columns.empty() && in_x == swapped) out.columns = a.name;
        else return {};
    }
    if (out.columns.empty()) return {};
    if (swapped) std::swap(out.a, out.b);
    return out;
}

std::vector<std::string> matrix_microkernels(const Target& target, const Product& p) {
    std::vector<const Microkernel*> found;
    for (const Microkernel& m : microkernels::catalogue())
        if (m.kind == MicrokernelKind::Mma && m.on(target.name) && (target.mbarrier || m.group != ThreadGroup::Warpgroup) && std::ranges::find(m.types, p.type) != m.types.end() && (m.matrix.mixed || !p.mixed)) found.push_back(&m);
    std::ranges::stable_sort(found, {}, [](const Microkernel* m) { return std::pair(-m->most_threads, -m->matrix.rows * m->matrix.columns); });
    std::vector<std::string> out;
    for (const Microkernel* m : found) out.push_back(m->id);
    return out;
}

void repack_factors(Draft& d) {
    constexpr int64_t least = 256;    // of each side: a copy costs little beside the product then
    std::vector<std::string> labels;
    for_each_block(d.program().body, [&](const Block& b, Loc) { labels.push_back(b.label); });
    for (const std::string& label : labels) {
        const auto p = product_of(d.program(), *block_named(d.program(), label));
        const auto all = p ? matrix_microkernels(d.target(), *p) : std::vector<std::string>{};
        const Microkernel* m = all.empty() ? nullptr : microkernels::find(all[0]);
        if (!m || m->group != ThreadGroup::Warpgroup) continue;
        const Block& b = *block_named(d.program(), label);
        const bool large = std::ranges::all_of(std::array{p->rows, p->columns, p->terms}, [&](const std::string& n) { return size_of(d.program(), analysis::axis_of(b, n)->size).value_or(0) >= least; });
        if (!large) continue;
        for (const auto& [load, along] : {std::pair{p->a, p->rows}, {p->b, p->columns}}) {
            const Decl& x = *d.program().find(load->name);
            const int64_t unit = 16 / static_cast<int64_t>(info(x.type).bytes);
            const bool rounds = p->type == DType::Tf32;    // which wgmma does not
            const bool deep = is_name(load->subscripts.back(), p->terms), whole = size_of(d.program(), x.dims.back().size).value_or(1) % unit == 0;
            if ((deep || m->matrix.across) && whole && !rounds) continue;
            std::vector<std::string> order = p->batch;
            order.insert(order.end(), {along, p->terms});
            d.step("repack", {label, load->name}, {{"order", order}, {"align", unit}}, !whole ? "the copy engine wants lines of whole 16 bytes" : !deep ? "the tensor cores want neighbours along the terms" : "the copy is rounded to tf32, which wgmma would cut off");
        }
    }
}

double cycles_of(const ProductTile& t, const ProductSizes& s, const Target& target) {
    // Of an H200: multiplications of 16-bit factors a cycle and multiprocessor; bytes from the L2 cache and from memory; what the end of a tile of 128 x 256 leaves exposed.
    // Hand-written kernels: 1024 cycles for 128 x 256 x 64, 2200 for its end.
    constexpr double products_a_cycle = 2048, l2_bytes = 48, memory_bytes = 19, end_of_tile = 2200.0 / (128 * 256), each_tile = 1500, start = 1500;
    const auto ceil = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const int64_t tiles = ceil(s.rows, t.rows * t.cluster) * t.cluster * ceil(s.columns, t.columns) * s.batch, blocks = std::min<int64_t>(tiles, target.multiprocessors), rounds = ceil(tiles, target.multiprocessors);
    const double steps = static_cast<double>(ceil(s.terms, t.depth)), area = static_cast<double>(t.rows * t.columns * s.products), edges = static_cast<double>((t.rows + t.columns * s.products / t.cluster) * t.depth * s.bytes);
    const double padded = static_cast<double>(std::max<int64_t>(t.swapped ? t.columns : t.rows, 64)) / static_cast<double>(t.swapped ? t.columns : t.rows);    // the instruction has 64 rows
    const double narrow = 1 + 8.0 / static_cast<double>(t.swapped ? t.rows : t.columns);    // factors are read again for each instruction
    const double step = std::max(area * padded * narrow * static_cast<double>(t.depth * s.bytes) / 2 / products_a_cycle, edges / l2_bytes);
    const double all_bytes = static_cast<double>(s.batch * (s.rows * s.terms + s.columns * s.products * s.terms) * s.bytes);
    const double memory = all_bytes / (memory_bytes * static_cast<double>(std::max<int64_t>(blocks, 1))) * (blocks < target.multiprocessors ? 0.75 : 1.0);
    const double work = static_cast<double>(rounds) * (steps * step + each_tile + area * end_of_tile);
    return start + std::max(work, memory) + 0.2 * std::min(work, memory);
}

namespace {

/// The decisions for products that share their result's tile, and what is computed from it point by point.
class ProductKernel {
  public:
    ProductKernel(Draft d, const Group& g) : d_(std::move(d)), g_(g) {
        for (const std::string& label : g.labels)
            if (auto p = product_of(d_.program(), *block_named(d_.program(), label))) products_.push_back(std::move(*p));
        if (!products_.empty()) sizes_ = sizes();
    }

    std::optional<Draft> best() {
        if (products_.empty()) return {};
        for (const std::string& via : matrix_microkernels(d_.target(), products_[0])) {
            const Microkernel& m = *microkernels::find(via);
            if (m.group == ThreadGroup::Warpgroup && !rounded()) continue;
            if (auto out = in_slices(m)) return out;
            for (const ProductTile& t : tiles_for(m, sizes_))
                if (auto out = planned(m, t)) return out;
        }
        return {};
    }

    /// By one instruction, whatever the number of slices.
    std::optional<Draft> with(const Microkernel& m) {
        for (const ProductTile& t : tiles_for(m, sizes_))
            if (auto out = planned(m, t)) return out;
        return {};
    }

  private:
    const Axis& axis(const std::string& name) const { return *analysis::axis_of(*block_named(d_.program(), products_[0].label), name); }
    int64_t size(const std::string& name, int64_t likely) const { return size_of(d_.program(), axis(name).size).value_or(most_of(d_.program(), axis(name).size).value_or(likely)); }
    int64_t bytes() const { return static_cast<int64_t>(info(products_[0].type == DType::Tf32 ? DType::F32 : products_[0].type).bytes); }

    /// Are factors that count as tf32 rounded where they were written? wgmma cuts off what lies below.
    bool rounded() const {
        if (products_[0].type != DType::Tf32) return true;
        const auto writes_rounded = [&](const Value& load) { return d_.program().find(load->name)->scope == Scope::Temp && is_rounded(load->name); };
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
        int64_t batch = slices_;
        for (const std::string& b : products_[0].batch) batch *= size(b, 16);
        return {size(products_[0].rows, 4096), size(products_[0].columns, 4096), size(products_[0].terms, 4096), batch, static_cast<int64_t>(products_.size()), bytes()};
    }

    /// Tiles by their cost, the cheapest first; a few of them.
    std::vector<ProductTile> tiles_for(const Microkernel& m, const ProductSizes& s) const {
        const bool warpgroup = m.group == ThreadGroup::Warpgroup;
        std::vector<ProductTile> all = warpgroup ? warpgroup_tiles() : warp_tiles();
        const bool promoted = m.function == "warpgroup_promoted_tile";    // a second set of registers
        std::erase_if(all, [&](const ProductTile& t) {
            const int64_t along = t.swapped ? t.columns : t.rows, across = t.swapped ? t.rows : t.columns, threads = t.groups_of_rows * t.groups_of_columns * m.most_threads;
            const bool whole = along % (t.groups_of_rows * m.matrix.rows) == 0 && across % (t.groups_of_columns * m.matrix.columns) == 0;
            return !whole || (t.swapped && s.products > 1) || t.rows * t.columns * s.products * (promoted ? 2 : 1) > 128 * threads;
        });
        std::ranges::stable_sort(all, {}, [&](const ProductTile& t) { return cycles_of(t, s, d_.target()); });
        if (all.size() > 3) all.resize(3);
        return all;
    }

    /// Few tiles of many terms: the terms are cut into slices whose sums go through memory, where that costs less than idle multiprocessors.
    std::optional<Draft> in_slices(const Microkernel& m) const {
        const Product& p = products_[0];
        const auto terms = size_of(d_.program(), axis(p.terms).size);
        const ProductSizes whole = sizes_;
        const auto tiles = tiles_for(m, whole);
        if (!terms || products_.size() > 1 || tiles.empty() || slices_ > 1) return {};
        std::pair<double, int64_t> least{cycles_of(tiles[0], whole, d_.target()), 1};
        for (int64_t n = 2; n <= 64; ++n) {
            const int64_t depth = 128 / bytes();
            if (*terms % (n * depth) != 0 || *terms / n < 4 * depth) continue;
            ProductSizes part = whole;
            part.terms /= n, part.batch *= n;
            const auto t = tiles_for(m, part);
            const double sums = static_cast<double>(n * whole.batch * whole.rows * whole.columns * 8) / (19.0 * static_cast<double>(d_.target().multiprocessors)) + 4000;    // written, and read by a second kernel
            if (!t.empty()) least = std::min(least, {cycles_of(t[0], part, d_.target()) + sums, n});
        }
        if (least.second < 2) return {};
        Draft cut = d_;
        if (!cut.step("split_reduction", {p.label}, {{"axis", p.terms}, {"count", least.second}, {"align", 128 / bytes()}, {"kind", "grid"}}, fmt::format("too few tiles for the multiprocessors: {} slices of terms, added in order", least.second))) return {};
        const std::string part = p.label + ".w";
        const Block* b = block_named(cut.program(), part);
        if (!b || !product_of(cut.program(), *b)) return {};
        const Group sums{GroupKind::Products, {part}, g_.rows, g_.inner};
        const auto join = joined(std::move(cut), p.columns);    // before roles, past which nothing moves
        if (!join) return {};
        ProductKernel first(*join, sums);
        first.slices_ = least.second, first.sizes_ = first.sizes();
        return first.with(m);
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
        const int64_t depth = 128 / bytes(), products = static_cast<int64_t>(products_.size());
        std::vector<ProductTile> out;
        for (const int64_t cluster : {1, 2})
            for (const int64_t columns : {256, 192, 160, 128, 96, 64})
                if (columns % (8 * products) == 0) out.push_back({128, columns / products, depth, 2, 1, false, cluster});
        for (const int64_t columns : {128, 192}) out.push_back({256, columns, depth, 2, 1});
        for (const int64_t columns : {256, 128, 64, 32}) out.push_back({64, columns, depth, 1, 1});
        for (const int64_t few : {16, 32, 64, 128})
            for (const int64_t groups : {1, 2}) out.push_back({few, 64 * groups, depth, groups, 1, true});
        return out;
    }
    std::vector<ProductTile> warp_tiles() const {
        const int64_t depth = 64 / bytes();
        return {{128, 128, depth, 2, 2}, {128, 64, depth, 2, 2}, {64, 128, depth, 2, 2}, {64, 64, depth, 2, 2}, {32, 64, depth, 2, 2}, {16, 128, depth, 1, 4}, {32, 32, depth, 2, 2}};
    }

    /// The buffers that the products multiply.
    std::vector<std::string> factors(const std::vector<std::string>& labels) const {
        std::vector<std::string> out;
        for (const std::string& l : labels)
            for (const Value& v : block_named(d_.program(), l)->vals[0]->args)
                if (const auto f = factor_of(v); f && std::ranges::find(out, f->load->name) == out.end()) out.push_back(f->load->name);
        return out;
    }

    bool step(std::string pass, std::vector<std::string> sites, Arguments args, std::string why) { return d_.step(std::move(pass), std::move(sites), std::move(args), std::move(why)); }

    std::optional<Draft> planned(const Microkernel& m, const ProductTile& t) {
        const Draft before = d_;
        std::optional<Draft> out;
        if (build(m, t) && d_.lowers()) out = d_;
        d_ = before;
        return out;
    }

    bool build(const Microkernel& m, const ProductTile& t) {
        const Product& p = products_[0];
        pass::Sizes over;
        for (const std::string& r : g_.rows) over.emplace_back(r, r == p.rows ? t.rows * t.cluster : r == p.columns ? t.columns : 1);
        if (!step("fuse", g_.labels, {{"over", over}, {"kind", "grid"}}, fmt::format("tiles of {} x {}: fewest cycles by rounds of tiles and bytes a multiplication", t.rows, t.columns))) return false;
        const pass::Sizes blocks{{p.rows, t.rows}};
        if (t.cluster > 1 && !step("fuse", g_.labels, {{"over", blocks}, {"kind", "cluster"}}, fmt::format("{} blocks of a cluster share what they read of the columns", t.cluster))) return false;
        const std::string home = loop_around(d_.program(), p.label);
        for (const std::string& r : results_of(d_.program(), g_.labels)) {
            const Decl* d = d_.program().find(r);
            const bool sum = std::ranges::any_of(products_, [&](const Product& x) { return block_named(d_.program(), x.label)->outs[0].tensor == r; });
            if (sum || (d && d->scope == Scope::Temp)) step("keep", {r}, {{"at", home}, {"in", "register"}}, "the tile stays in registers");
        }
        std::vector<std::string> labels;
        for (const Product& x : products_) labels.push_back(x.label);
        const pass::Sizes terms{{p.terms, t.depth}};
        const std::string slices = fmt::format("{} terms at a time", t.depth);
        if (labels.size() > 1 ? !step("fuse", labels, {{"over", terms}}, slices) : !step("tile", labels, {{"axes", terms}}, slices)) return false;
        const std::string loop = loop_around(d_.program(), p.label);
        for (const std::string& s : factors(labels))
            if (!step("stage", {s}, {{"at", loop}, {"in", "shared"}}, "each element is read once from memory for the tile")) return false;
        const std::vector<std::string> copies = factors(labels);
        for (const std::string& c : copies) step("pad", {c}, {}, "whole tiles, with zeros beyond the edges");
        for (const std::string& l : labels) step("relax", {l}, {}, "zeros add nothing");
        const bool engine = m.group == ThreadGroup::Warpgroup;
        for (const std::string& c : copies)
            if (!swizzled(c, engine)) return false;
        for (const std::string& l : labels) {
            Arguments args{{"via", m.id}, {"rows", t.groups_of_rows}, {"columns", t.groups_of_columns}};
            if (t.swapped) args.emplace("along", p.columns);
            if (!step("bind_mma", {l}, args, m.doc)) return false;
        }
        finish(home);
        return engine ? by_roles(home, copies, t) : by_threads(loop, copies);
    }

    /// Against bank conflicts; lines longer than the pattern in panels where the tensor cores read them, else permuted alike.
    bool swizzled(const std::string& copy, bool engine) {
        const Decl& d = pass::find_buffer(d_.program(), copy);
        const auto line = size_of(d_.program(), d.dims.back().size);
        if (!line) return false;
        const int64_t all = *line * static_cast<int64_t>(info(d.type).bytes);
        for (const int64_t pattern : {128, 64, 32}) {
            if (all % pattern) continue;
            Arguments args{{"pattern", std::to_string(pattern)}};
            if (all > pattern && engine) args.emplace("panels", "yes");
            if (all > 128 && !engine) args.emplace("rows", all / 128);
            if (step("swizzle", {copy}, args, "lines of a matrix lie in different banks")) return true;
        }
        return !engine;
    }

    /// What is stored from the sums: neighbours that a thread has.
    void finish(const std::string& home) {
        std::vector<std::string> stores;
        pass::for_each_place(d_.program(), [&](const pass::Place& x) {
            const Block* b = pass::as_block(x.stmt);
            const bool made = b && b->monoid == Monoid::None && std::ranges::none_of(b->axes, [](const Axis& a) { return a.vector > 1; }) && std::ranges::any_of(tensors_read(*b), [&](const std::string& t) { return t.ends_with(".t"); });
            if (made && d_.program().find(b->outs[0].tensor)) stores.push_back(b->label);
        });
        for (const std::string& s : stores) {
            const Block& b = *block_named(d_.program(), s);
            const std::string n = neighbours(b.outs[0].subscripts, b);
            if (!n.empty()) step("vectorize", {s, n}, {{"width", int64_t{2}}}, "neighbours of a fragment are stored together");
        }
        approximate_calls(d_, home);
    }

    /// A warp asks the copy engine for tiles ahead of the warpgroups that multiply.
    bool by_roles(const std::string&, const std::vector<std::string>& copies, const ProductTile& t) {
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
        const int64_t stage = (t.rows + t.columns * static_cast<int64_t>(products_.size())) * t.depth * bytes(), all = d_.target().shared_bytes - 4096;
        const int64_t together = t.rows * t.columns * static_cast<int64_t>(products_.size()) <= 64 * 128 && 8 * stage <= all ? 2 : 1;    // small tiles: memory counts, and another block loads while one ends
        if (!step("persist", {grid}, {{"ctas", together * d_.target().multiprocessors / t.cluster}}, together > 1 ? "two blocks a multiprocessor, each of which loads the next tile while it ends the last" : "one block a multiprocessor, which loads the next tile while it ends the last")) return false;
        const int64_t stages = std::clamp<int64_t>(all / together / stage, 2, 8);
        std::string around;    // the loop of a block
        for (const Stmt& s : pass::loops_of(pass::try_block(d_.program(), p.label)->above))
            if (is_parallel(pass::as_loop(s)->kind)) around = pass::as_loop(s)->var;
        return step("warp_specialize", {around}, {{"copies", copies}, {"stages", stages}, {"lag", int64_t{1}}}, fmt::format("{} tiles on their way", stages - 1));
    }

    /// All threads start asynchronous copies ahead; where those cannot be aligned, they copy through registers.
    bool by_threads(const std::string& loop, const std::vector<std::string>& copies) {
        bool asynchronous = d_.target().name != "sm_70" && d_.target().platform == Platform::Cuda;
        for (const std::string& c : copies) {
            const Block& b = *block_named(d_.program(), c);
            const std::string n = neighbours(b.outs[0].subscripts, b);
            bool done = false;
            for (int64_t w = 16 / static_cast<int64_t>(info(pass::find_buffer(d_.program(), c).type).bytes); !done && w > 1; w /= 2) done = step("vectorize", {c, n}, {{"width", w}}, "16 bytes at once");
        }
        if (asynchronous && step("bind_copy", copies, {{"via", "common.copy_async"}}, "copies that pass the registers by")) step("pipeline", {loop}, {{"stages", int64_t{3}}}, "two tiles on their way");
        return true;
    }

    Draft d_;
    const Group& g_;
    std::vector<Product> products_;
    ProductSizes sizes_{};
    int64_t slices_ = 1;    ///< that the terms were cut into
};

}  // namespace

std::optional<Draft> product_kernel(Draft d, const Group& g) { return ProductKernel(std::move(d), g).best(); }

}  // namespace acu::synth::plan
