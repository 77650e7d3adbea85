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
        std::vector<Index> at = load->subscripts;
        for (Index& i : at) i = analysis::normal(substitute(i, start));
        types += operand(load, terms) + ", ";
        places += ", " + writer_.address(load->name, at);
    }
    const std::string pending = b.pending ? fmt::format(", {}", b.pending) : "";
    if (b.pending) in_flight_.insert(names_.buffer(sums.name));
    line("{}<{}{}, {}, {}, {}{}>({}{}, (int){});", m.function, types, t.deep, t.wide, analysis::normal(terms.size)->value, t.columns, pending, names_.buffer(sums.name), places, thread_name);
}

/// The name of the map through which a kernel copies such boxes of a tensor.
std::string KernelWriter::map_of(const std::string& tensor, TensorBox box) {
    const auto it = std::ranges::find_if(maps_, [&](const KernelArgument& a) { return a.name == tensor && a.box == box; });
    const size_t number = static_cast<size_t>(it - maps_.begin());
    if (it == maps_.end()) maps_.push_back({KernelArgument::Map, tensor, number, std::move(box)});
    return names_.buffer(fmt::format("{}.map{}", tensor, number));
}

/// if (thread == 0) { ring_expect(x_t_full[…], 16384); tensor_copy(x_t + …, x_map0, x_t_full[…], 64 * k_o, 128 * m_o); }
void KernelWriter::box_copy(const Block& b) {
    constexpr int64_t most = 256;    // elements of a box along a dimension: CUDA driver API, cuTensorMapEncodeTiled
    for (const std::string& h : microkernels::find(b.via)->headers) headers_.insert(h);
    const Value& load = b.vals[0];
    const Decl &from = writer_.decl(load->name), &to = writer_.decl(b.outs[0].tensor);
    const int64_t bytes = static_cast<int64_t>(info(from.type).bytes);
    IndexMap start;
    for (const Axis& a : b.axes) start.insert_or_assign(a.name, a.base);
    TensorBox box{{}, to.swizzle};
    std::vector<Index> at;    // innermost first
    for (size_t i = load->subscripts.size(); i-- > 0;) {
        const auto axis = std::ranges::find_if(b.axes, [&](const Axis& a) { return analysis::mentions(load->subscripts[i], a.name); });
        box.sizes.push_back(axis == b.axes.end() ? 1 : analysis::normal(axis->size)->value);
        at.push_back(analysis::normal(substitute(load->subscripts[i], start)));
    }
    std::vector<Index> place = b.outs[0].subscripts;    // a box fills the whole of a version
    for (size_t i = 1; i < place.size(); ++i) place[i] = to.dims[i].origin;
    int64_t all = bytes;
    for (const int64_t n : box.sizes) all *= n;
    const int64_t line_size = box.sizes[0], wide = to.swizzle ? std::min(line_size, to.swizzle / bytes) : line_size, lines = all / bytes / line_size;
    box.sizes[0] = wide;
    const auto cut = std::find_if(box.sizes.begin() + 1, box.sizes.end(), [&](int64_t n) { return n > most; });
    const auto outer = cut != box.sizes.end() ? cut : std::find_if(box.sizes.begin() + 1, box.sizes.end(), [](int64_t n) { return n > 1; });    // the long one, else the innermost of the others
    const bool all_blocks = lower::is_multicast(b);    // each asks for its part of the lines
    const int64_t deep = outer == box.sizes.end() ? 1 : *outer, mine = all_blocks ? deep / ranks_ : deep, piece = mine > most ? most : mine;
    if (outer != box.sizes.end()) *outer = piece;
    const int64_t step = std::accumulate(box.sizes.begin() + 1, box.sizes.begin() + static_cast<std::ptrdiff_t>(outer - box.sizes.begin()), wide, std::multiplies<>());    // elements from one of its points to the next
    const std::string rank = lower::nest_of(loop_).back()->var;
    const size_t outer_at = static_cast<size_t>(outer - box.sizes.begin());
    const std::string map = map_of(from.name, box), barrier = fmt::format("{}[{}]", names_.buffer(barriers_of(to.name) + ".full"), writer_.index(b.outs[0].subscripts[0]));
    line("ring_expect({}, {});", barrier, all);
    for (int64_t p = 0; p < line_size / wide; ++p)
        for (int64_t q = 0; q < mine / piece; ++q) {
            std::string coordinates = all_blocks ? fmt::format(", {}", (1 << ranks_) - 1) : "";
            for (size_t i = 0; i < at.size(); ++i) {
                Index c = at[i];
                if (i == 0) c = c + constant(p * wide);
                if (i == outer_at) c = c + constant(q * piece) + (all_blocks ? ir::name(rank) * constant(mine) : constant(0));
                coordinates += fmt::format(", (int)({})", writer_.index(analysis::normal(c)));
            }
            const Index offset = analysis::normal(constant(p * wide * lines + q * piece * step) + (all_blocks ? ir::name(rank) * constant(mine * step) : constant(0)));
            line("{}({}{}, {}, {}{});", all_blocks ? "tensor_multicast" : "tensor_copy", writer_.address(to.name, place), is_const(offset, 0) ? "" : fmt::format(" + {}", writer_.index(offset)), map, barrier, coordinates);
        }
}

}  // namespace acu::codegen
