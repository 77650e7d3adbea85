#include <algorithm>
#include <functional>
#include <numeric>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/layout_use.h"
#include "ir/lower/spread.h"
#include "microkernels/catalogue.h"

namespace acu::codegen {

using namespace ir;

namespace {

/// The names of loops over threads and registers as 0, and what is derived from them: the first point of a tile.
IndexMap first_point(const Loop& l) {
    IndexMap out{{l.var, constant(0)}};
    for (const Loop* x = &l; x; x = x->body.size() == 1 ? std::get_if<Loop>(&x->body[0]->node) : nullptr) {
        out.insert_or_assign(x->var, constant(0));
        for (const Let& y : x->lets) out.insert_or_assign(y.name, analysis::normal(substitute(y.value, out)));
    }
    return out;
}

/// How the sums lie: along two of the dimensions of their tile, the others being 1.
MatrixTiles tiles_of(const Layout& l, const MatrixShape& x) {
    const Layout& fragment = *fragment_named(x.accumulator);
    for (int rows = 0; rows < l.rank(); ++rows)
        for (int columns = 0; columns < l.rank(); ++columns)
            if (const auto t = rows == columns ? std::nullopt : matrix_tiles(l.projected({rows, columns}), fragment, {x.rows, x.columns})) return *t;
    return {};
}

const Value& load_inside(const Value& v) { return v->op == Op::Cast ? load_inside(v->args[0]) : v; }

}  // namespace

/// Operand<f16, true, 128, 64, 128>
std::string KernelWriter::operand(const Value& load, const Axis& terms) const {
    const Decl& d = writer_.decl(load->name);
    const bool deep = analysis::mentions(load->subscripts.back(), terms.name);
    int64_t lines = 1;
    const size_t first = d.ring.versions || d.dims.size() > load->subscripts.size() ? 1 : 0;
    for (size_t i = first; i + 1 < d.dims.size(); ++i) lines *= analysis::normal(d.dims[i].size)->value;
    std::string text = fmt::format("Operand<{}, {}, {}, {}", element_type(d.type), deep, lines, analysis::normal(d.dims.back().size)->value);
    if (d.swizzle) text += fmt::format(", {}, {}, {}", d.swizzle, d.swizzle_rows, d.panels);
    return text + ">";
}

/// mma_tile<Operand<…>, Operand<…>, 4, 4, 64, 2>(acc_t, x_t + …, w_t + …, (int)thread);
/// warpgroup_rows<Operand<…>, 1, 16, 128, 1>(o_t, e_t, v_t + …, (int)thread);
void KernelWriter::matrix_product(const Loop& l, const Block& b) {
    const Microkernel& m = *microkernels::find(b.via);
    for (const std::string& h : m.headers) headers_.insert(h);
    multiplies_ = true;
    const Decl& sums = writer_.decl(b.outs[0].tensor);
    const MatrixTiles t = tiles_of(*sums.layout, m.matrix);
    const Axis& terms = b.axes.back();
    IndexMap start = first_point(l);
    start.insert_or_assign(terms.name, terms.base);
    std::string types, places;
    for (const Value& v : b.vals[0]->args) {
        const Value& load = load_inside(v);
        if (m.matrix.rows_in_registers && &v == &b.vals[0]->args[0]) {
            places += ", " + names_.buffer(load->name);
            continue;
        }
        std::vector<Index> at = load->subscripts;
        for (Index& i : at) i = analysis::normal(substitute(i, start));
        types += operand(load, terms) + ", ";
        places += ", " + writer_.address(load->name, at);
    }
    if (b.pending == until_needed) start_flight(b);
    else if (b.pending) in_flight_.insert(names_.buffer(sums.name));
    std::string pending = b.pending == until_needed ? fmt::format(", {}", flights_.size()) : b.pending ? fmt::format(", {}", b.pending) : "";
    if (fresh_.contains(&b)) pending = (pending.empty() ? ", 0" : pending) + ", true";
    line("{}<{}{}, {}, {}, {}{}>({}{}, (int){});", m.function, types, t.deep, t.wide, analysis::normal(terms.size)->value, t.columns, pending, names_.buffer(sums.name), places, thread_name);
}

const Block* only_block(const Body& stmts) {
    if (stmts.size() != 1) return nullptr;
    const auto* l = std::get_if<Loop>(&stmts[0]->node);
    return l ? only_block(l->body) : std::get_if<Block>(&stmts[0]->node);
}

/// Zeros to which the next statement that touches the tile adds a product of warpgroups, which can begin without them.
bool KernelWriter::is_overwritten(const Body& stmts, size_t fill) {
    const Block* b = threads_ && !in_threads_ ? only_block({stmts[fill]}) : nullptr;
    if (!b || b->monoid != Monoid::None || !b->guards.empty() || b->vals[0]->op != Op::Const || b->vals[0]->number != 0 || b->outs.size() != 1) return false;
    const std::string& tile = b->outs[0].tensor;
    if (const Decl& d = writer_.decl(tile); d.scope != Scope::Register || !d.layout) return false;
    for (size_t i = fill + 1; i < stmts.size(); ++i) {
        const bool touches = any_block({stmts[i]}, [&](const Block& x) { return x.outs[0].tensor == tile || tensors_read(x).contains(tile); });
        if (!touches) continue;
        const auto* spread = std::get_if<Loop>(&stmts[i]->node);
        const Block* x = spread && spread->kind == LoopKind::Thread ? only_block(spread->body) : nullptr;
        const Microkernel* m = x && lower::is_matrix_product(*x) && x->outs[0].tensor == tile ? microkernels::find(x->via) : nullptr;
        if (!m || m->function != "warpgroup_tile") return false;
        fresh_.insert(x);
        return true;
    }
    return false;
}

/// p_t[i] = Pair<f16>::of(e_t[2 * i], e_t[2 * i + 1]);
bool KernelWriter::packs_pairs(const Block& b) {
    const std::string& tile = b.outs[0].tensor;
    if (!paired_.contains(tile)) return false;
    const Decl& to = writer_.decl(tile);
    const Value& from = load_inside(b.vals[0]);
    const Decl* d = b.monoid == Monoid::None && b.guards.empty() && from->op == Op::Load ? &writer_.decl(from->name) : nullptr;
    if (!d || d->type != DType::F32 || !d->layout || !same(*d->layout, *to.layout)) throw std::logic_error(fmt::format("`{}` packs what lies otherwise", b.label));
    headers_.insert("pairs");
    pragma(whole);
    line("for (int i = 0; i < {0}; ++i) {1}[i] = Pair<{2}>::of({3}[2 * i], {3}[2 * i + 1]);", to.layout->size("reg") / 2, names_.buffer(tile), element_type(to.type), names_.buffer(d->name));
    return true;
}

/// The name of the map through which a kernel copies such boxes of a tensor.
std::string KernelWriter::map_of(const std::string& tensor, TensorBox box) {
    const auto it = std::ranges::find_if(maps_, [&](const KernelArgument& a) { return a.name == tensor && a.box == box; });
    const size_t number = static_cast<size_t>(it - maps_.begin());
    if (it == maps_.end()) maps_.push_back({KernelArgument::Map, tensor, number, std::move(box)});
    return names_.buffer(fmt::format("{}.map{}", tensor, number));
}

/// What of a tensor a tile holds, in pieces that the copy engine moves at once: as wide as the pattern of the tile's swizzle, at most 256 elements along each dimension.
struct KernelWriter::Boxes {
    struct Piece {
        Index offset;             ///< in the tile, in elements
        std::vector<Index> at;    ///< in the tensor, innermost first
    };
    TensorBox box;
    int64_t bytes;    ///< of all pieces
    std::vector<Piece> pieces;
};

/// `blocks` of a cluster move a part each.
KernelWriter::Boxes KernelWriter::boxes_of(const Block& b, const Decl& tile, const std::vector<Index>& in_tensor, int64_t blocks) const {
    constexpr int64_t most = 256;    // elements of a box along a dimension: CUDA driver API, cuTensorMapEncodeTiled
    const int64_t bytes = static_cast<int64_t>(info(tile.type).bytes);
    IndexMap start;
    for (const Axis& a : b.axes) start.insert_or_assign(a.name, a.base);
    TensorBox box{{}, tile.swizzle};
    std::vector<Index> at;    // innermost first
    for (size_t i = in_tensor.size(); i-- > 0;) {
        const auto axis = std::ranges::find_if(b.axes, [&](const Axis& a) { return analysis::mentions(in_tensor[i], a.name); });
        box.sizes.push_back(axis == b.axes.end() ? 1 : analysis::normal(axis->size)->value);
        at.push_back(analysis::normal(substitute(in_tensor[i], start)));
    }
    int64_t all = bytes;
    for (const int64_t n : box.sizes) all *= n;
    const int64_t line_size = box.sizes[0], wide = tile.swizzle ? std::min(line_size, tile.swizzle / bytes) : line_size, lines = all / bytes / line_size;
    box.sizes[0] = wide;
    const auto cut = std::find_if(box.sizes.begin() + 1, box.sizes.end(), [&](int64_t n) { return n > most; });
    const auto outer = cut != box.sizes.end() ? cut : std::find_if(box.sizes.begin() + 1, box.sizes.end(), [](int64_t n) { return n > 1; });    // the long one, else the innermost of the others
    const int64_t deep = outer == box.sizes.end() ? 1 : *outer, mine = deep / blocks, piece = mine > most ? most : mine;
    if (outer != box.sizes.end()) *outer = piece;
    const int64_t step = std::accumulate(box.sizes.begin() + 1, box.sizes.begin() + static_cast<std::ptrdiff_t>(outer - box.sizes.begin()), wide, std::multiplies<>());    // elements from one of its points to the next
    const Index rank = blocks > 1 ? ir::name(lower::nest_of(loop_).back()->var) : constant(0);
    const size_t outer_at = static_cast<size_t>(outer - box.sizes.begin());
    Boxes out{std::move(box), all, {}};
    for (int64_t p = 0; p < line_size / wide; ++p)
        for (int64_t q = 0; q < mine / piece; ++q) {
            std::vector<Index> place = at;
            place[0] = place[0] + constant(p * wide);
            if (outer_at < place.size()) place[outer_at] = place[outer_at] + constant(q * piece) + rank * constant(mine);
            for (Index& x : place) x = analysis::normal(x);
            out.pieces.push_back({analysis::normal(constant(p * wide * lines + q * piece * step) + rank * constant(mine * step)), std::move(place)});
        }
    return out;
}

std::string KernelWriter::numbers(const std::vector<Index>& at) {
    std::string out;
    for (const Index& x : at) out += fmt::format(", (int)({})", writer_.index(x));
    return out;
}

/// if (thread == 0) { ring_expect(x_t_full[…], 16384); tensor_copy(x_t + …, x_map0, x_t_full[…], 64 * k_o, 128 * m_o); }
/// if (thread == 0) { tensor_store(y_t, y_map2, 256 * n_o, 128 * m_o); tensor_stores_commit(); }
void KernelWriter::box_copy(const Block& b) {
    for (const std::string& h : microkernels::find(b.via)->headers) headers_.insert(h);
    const bool stores = lower::stores_boxes(b), all_blocks = lower::is_multicast(b);
    const Value& load = b.vals[0];
    const std::string &tensor = stores ? b.outs[0].tensor : load->name, &name = stores ? load->name : b.outs[0].tensor;
    const Decl& tile = writer_.decl(name);
    const Boxes boxes = boxes_of(b, tile, stores ? b.outs[0].subscripts : load->subscripts, all_blocks ? ranks_ : 1);
    std::vector<Index> place = stores ? load->subscripts : b.outs[0].subscripts;    // the whole of a tile, or of a version of a ring
    for (size_t i = stores ? 0 : 1; i < place.size(); ++i) place[i] = tile.dims[i].origin;
    const std::string map = map_of(tensor, boxes.box), barrier = stores ? "" : fmt::format("{}[{}]", names_.buffer(barriers_of(name) + ".full"), writer_.index(b.outs[0].subscripts[0]));
    if (!stores) line("ring_expect({}, {});", barrier, boxes.bytes);
    for (const Boxes::Piece& x : boxes.pieces) {
        const std::string in_tile = writer_.address(name, place) + (is_const(x.offset, 0) ? "" : fmt::format(" + {}", writer_.index(x.offset)));
        if (stores) line("tensor_store({}, {}{});", in_tile, map, numbers(x.at));
        else if (all_blocks) line("tensor_multicast({}, {}, {}, {}{});", in_tile, map, barrier, (1 << ranks_) - 1, numbers(x.at));
        else line("tensor_copy({}, {}, {}{});", in_tile, map, barrier, numbers(x.at));
    }
    if (stores) line("tensor_stores_commit();");
}

}  // namespace acu::codegen
