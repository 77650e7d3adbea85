#include "synth/plan/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/microkernel.h"
#include "ir/pass/edit.h"
#include "microkernels/catalogue.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Without casts that keep every value.
Value unwidened(const Value& v) { return v->op == Op::Cast && v->name == name_of(DType::F32) && !v->args.empty() ? unwidened(v->args[0]) : v; }

int axes_read_in(const Block& b, const Index& i) {
    return static_cast<int>(std::ranges::count_if(b.axes, [&](const Axis& a) { return analysis::mentions(i, a.name); }));
}

bool is_segment(const Index& i) { return i->op == IndexOp::Segment && i->args[0]->op == IndexOp::Name; }

/// Segments aside, which are the same for all points of a tile that lies within one.
std::set<std::string> axes_read(const Block& b, const Value& v) {
    const std::function<Index(const Index&)> index = [&](const Index& i) { return is_segment(i) ? constant(0) : map_args(i, index); };
    const std::function<Value(const Value&)> aside = [&](const Value& x) { return map_parts(x, aside, index); };
    const Value seen = aside(v);
    std::set<std::string> out;
    for (const Axis& a : b.axes)
        if (analysis::mentions(seen, a.name)) out.insert(a.name);
    return out;
}

/// Each subscript is an axis, perhaps from some point on, or the same for all points of a tile: `single` are the axes of which a tile has one point.
bool plain_subscripts(const Block& b, const Value& load, const std::set<std::string>& single) {
    return std::ranges::all_of(load->subscripts, [&](const Index& s) {
        return is_segment(s) || (!mentions_load(s) && std::ranges::all_of(b.axes, [&](const Axis& a) {
            if (single.contains(a.name)) return true;
            const auto e = analysis::mentions(s, a.name) ? analysis::affine(s, a.name) : std::nullopt;
            return !analysis::mentions(s, a.name) || (e && is_const(e->coefficient, 1) && axes_read_in(b, s) == 1);
        }));
    });
}

/// The offsets by which the factor asks for the segment of an axis.
std::string segments_of(const Value& v, const std::string& axis) {
    std::string out;
    analysis::for_each_load(v, [&](const Value& x) {
        for (const Index& i : x->subscripts)
            if (is_segment(i) && is_name(i->args[0], axis)) out = i->name;
    });
    return out;
}

/// The number of neighbouring values of a name for which a value is the same.
class Run {
  public:
    explicit Run(std::string name) : name_(std::move(name)) {}
    int64_t of(const Value& v) {
        visit(v);
        return run_;
    }

  private:
    void visit(const Value& v) {
        for (const Index& i : v->subscripts) visit(i);
        for (const Value& a : v->args) visit(a);
    }
    void visit(const Index& i) {
        if (i->op == IndexOp::Div && is_name(i->args[0], name_) && is_const(i->args[1]) && i->args[1]->value > 0) run_ = run_ == longest ? i->args[1]->value : std::gcd(run_, i->args[1]->value);
        else if (is_name(i, name_)) run_ = 1;
        else for (const Index& a : i->args) visit(a);
    }
    static constexpr int64_t longest = std::numeric_limits<int64_t>::max();
    std::string name_;
    int64_t run_ = longest;
};

/// Nothing where no tensor is read.
std::optional<ProductFactor> factor_of(const Program& p, const Block& b, const Value& v, const std::set<std::string>& single) {
    const Value core = unwidened(v);
    const bool rounds = core->op == Op::Cast, tf32 = rounds && core->name == name_of(DType::Tf32);
    const Value inner = tf32 ? unwidened(core->args[0]) : core;
    std::optional<Value> widest;
    bool known = true;
    analysis::for_each_load(v, [&](const Value& x) {
        const Decl* d = p.find(x->name);
        known &= d && !d->strided;
        if (d && d->scope != Scope::Param && (!widest || x->subscripts.size() > (*widest)->subscripts.size())) widest = x;
    });
    if (!widest || !known) return {};
    const bool plain = inner->op == Op::Load && inner->args.empty() && plain_subscripts(b, inner, single);
    const DType stored = inner->op == Op::Load ? p.find(inner->name)->type : rounds ? *type_named(core->name) : core->type;
    return ProductFactor{v, *widest, tf32 ? DType::Tf32 : stored, plain};
}

}  // namespace

std::optional<Product> product_of(const Program& p, const Block& b) {
    if (b.monoid != Monoid::Sum || b.outs.size() != 1 || b.vals.size() != 1 || !b.guards.empty() || is_scatter(b)) return {};
    const std::vector<Axis> reduced = axes_of_kind(b, false);
    if (reduced.size() != 1 || reduced[0].kind != AxisKind::Red) return {};
    const pass::Factors all = pass::factors(b.vals[0]);
    Product out{b.label, {}, {}, reduced[0].name, {}, {}, {}, {}, 0, !is_float(b.vals[0]->type)};
    std::vector<Value> two, others = all.den;
    for (const Value& v : all.num) (Run(out.terms).of(v) == 1 ? two : others).push_back(v);
    for (const Value& v : others) {
        const int64_t run = Run(out.terms).of(v);
        out.run = out.run ? std::gcd(out.run, run) : run;
    }
    if (two.size() != 2 || out.run == 1 || (out.run && out.whole_numbers)) return {};
    std::set<std::string> batch = axes_read(b, two[0]);
    std::erase_if(batch, [&, others = axes_read(b, two[1])](const std::string& a) { return a == out.terms || !others.contains(a); });
    const auto x = factor_of(p, b, two[0], batch), y = factor_of(p, b, two[1], batch);
    if (!x || !y) return {};
    const auto of_x = axes_read(b, x->value), of_y = axes_read(b, y->value);
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
    const auto single = [&](const std::string& n) { return size_of(p, analysis::axis_of(b, n)->size) == 1; };
    if (out.columns.empty() || single(out.rows) || single(out.columns)) return {};    // a matrix and a row
    out.segments = segments_of(b.vals[0], out.rows);
    out.a = swapped ? *y : *x, out.b = swapped ? *x : *y;
    return out;
}

std::vector<Instruction> instructions_for(const Target& target, const Product& p) {
    const auto sums = [&](const Microkernel& m) { return (m.matrix.sum == DType::I32) == p.whole_numbers; };
    const auto takes = [](const Microkernel& m, DType t) { return std::ranges::find(m.types, t) != m.types.end(); };
    std::vector<DType> common;
    if (p.a.type == p.b.type) common.push_back(p.a.type);
    const bool small = p.a.type == DType::F8E5M2 || p.b.type == DType::F8E5M2;    // some would be subnormal in f16, which MFMA takes for zero
    for (const DType t : {small ? DType::BF16 : DType::F16, small ? DType::F16 : DType::BF16})
        if (!p.whole_numbers && keeps_values(p.a.type, t) && keeps_values(p.b.type, t) && std::ranges::find(common, t) == common.end()) common.push_back(t);
    std::vector<Instruction> out;
    for (const Microkernel& m : microkernels::catalogue()) {
        if (m.kind != MicrokernelKind::Mma || m.matrix.rows_in_registers || !m.on(target.name) || (!target.mbarrier && m.group == ThreadGroup::Warpgroup) || !sums(m)) continue;
        const auto type = std::ranges::find_if(common, [&](DType t) { return takes(m, t); });
        if (type != common.end()) out.push_back({&m, *type});
        else if (m.matrix.mixed && takes(m, p.a.type) && takes(m, p.b.type)) out.push_back({&m, {}});
    }
    std::ranges::stable_sort(out, {}, [&](const Instruction& i) { return std::tuple(i.microkernel->matrix.mixed, i.type && *i.type != common.front(), -i.microkernel->most_threads, -i.microkernel->matrix.rows * i.microkernel->matrix.columns); });
    return out;
}

bool needs_making(const ProductFactor& f, const Instruction& i) { return !f.plain || (i.type && *i.type != f.type); }

namespace {

/// Each side so long that a copy costs little beside the product.
bool is_large(const Program& p, const Product& x) {
    constexpr int64_t least = 256;
    const Block& b = *block_named(p, x.label);
    return std::ranges::all_of(std::array{x.rows, x.columns, x.terms}, [&](const std::string& n) { return size_of(p, analysis::axis_of(b, n)->size).value_or(0) >= least; });
}

/// What makes the factor becomes a kernel of its own.
void make_factors(Draft& d, const std::string& label) {
    for (const bool first : {true, false}) {
        const auto p = product_of(d.program(), *block_named(d.program(), label));
        const auto all = p ? instructions_for(d.target(), *p) : std::vector<Instruction>{};
        if (all.empty() || all[0].microkernel->group != ThreadGroup::Warpgroup || !is_large(d.program(), *p)) return;
        const ProductFactor& f = first ? p->a : p->b;
        if (!needs_making(f, all[0])) continue;
        Arguments args{{"reads", f.load->name}};
        if (all[0].type && *all[0].type != f.type) args.emplace("as", std::string(name_of(*all[0].type)));
        d.step("outline", {label}, args, "computed once, so that the copy engine can bring it");
    }
}

void repack_factors(Draft& d, const std::string& label) {
    const auto p = product_of(d.program(), *block_named(d.program(), label));
    const auto all = p ? instructions_for(d.target(), *p) : std::vector<Instruction>{};
    if (all.empty() || all[0].microkernel->group != ThreadGroup::Warpgroup || !is_large(d.program(), *p)) return;
    for (const auto& [f, along] : {std::pair{p->a, p->rows}, {p->b, p->columns}}) {
        if (needs_making(f, all[0])) continue;
        const Decl& x = *d.program().find(f.load->name);
        const int64_t unit = 16 / static_cast<int64_t>(info(x.type).bytes);
        const bool rounds = f.type == DType::Tf32;    // which wgmma does not
        const bool deep = is_name(f.load->subscripts.back(), p->terms), whole = size_of(d.program(), x.dims.back().size).value_or(1) % unit == 0;
        if ((deep || all[0].microkernel->matrix.across) && whole && !rounds) continue;
        std::vector<std::string> order = p->batch;
        order.insert(order.end(), {along, p->terms});
        d.step("repack", {label, f.load->name}, {{"order", order}, {"align", unit}}, !whole ? "the copy engine wants lines of whole 16 bytes" : !deep ? "the tensor cores want neighbours along the terms" : "the copy is rounded to tf32, which wgmma would cut off");
    }
}

}  // namespace

void prepare_factors(Draft& d) {
    std::vector<std::string> labels;
    for_each_block(d.program().body, [&](const Block& b, Loc) { labels.push_back(b.label); });
    for (const std::string& label : labels) make_factors(d, label), repack_factors(d, label);
}

double cycles_of(const ProductTile& t, const ProductSizes& s, const Target& target) {
    // Of an H200: multiplications of 16-bit factors a cycle and multiprocessor; bytes from the L2 cache and from memory; lanes; what the end of a tile of 128 x 256 takes.
    // Hand-written kernels: 1024 cycles for 128 x 256 x 64, 2200 for its end.
    constexpr double products_a_cycle = 2048, memory_bytes = 19, lanes = 128, end_of_tile = 2200.0 / (128 * 256), each_tile = 1500, start = 1500;
    const double l2_bytes = t.turns > 1 ? 56 : 48;    // where roles end tiles in turn, loads never pause
    const auto ceil = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const int64_t tiles = ceil(s.rows, t.rows * t.cluster) * t.cluster * ceil(s.columns, t.columns) * s.batch, blocks = std::min<int64_t>(tiles, target.multiprocessors), rounds = ceil(tiles, target.multiprocessors);
    const double steps = static_cast<double>(ceil(s.terms, t.depth)), area = static_cast<double>(t.rows * t.columns * s.products), edges = static_cast<double>((t.rows + t.columns * s.products / t.cluster) * t.depth * s.bytes);
    const double padded = static_cast<double>(std::max<int64_t>(t.swapped ? t.columns : t.rows, 64)) / static_cast<double>(t.swapped ? t.columns : t.rows);    // the instruction has 64 rows
    const double narrow = 1 + 8.0 / static_cast<double>(t.swapped ? t.rows : t.columns);    // factors are read again for each instruction
    const double step = std::max(area * padded * narrow * static_cast<double>(t.depth * s.bytes) / 2 / products_a_cycle, edges / l2_bytes);
    const double all_bytes = static_cast<double>(s.batch * (s.rows * s.terms + s.columns * s.products * s.terms) * s.bytes);
    const double memory = all_bytes / (memory_bytes * static_cast<double>(std::max<int64_t>(blocks, 1))) * (blocks < target.multiprocessors ? 0.75 : 1.0);
    const double main = steps * step, end = each_tile + area * end_of_tile + static_cast<double>(t.rows * t.columns * s.operations) / lanes;
    const double work = t.turns > 1 ? static_cast<double>(rounds) * std::max(main, (main + end) / static_cast<double>(t.turns)) + end : static_cast<double>(rounds) * (main + end);
    constexpr double few_steps = 16;    // turns hide the end of a tile; with more steps it counts less than the wider tile of two warpgroups, and with one there is nothing to take turns in
    if (t.turns > 1 && (memory > work || steps < 2 || steps > few_steps)) return std::numeric_limits<double>::infinity();
    const double together = t.cluster > 1 && memory > work ? 0.05 * memory : 0;    // where memory is the limit, blocks that wait for each other only lose
    return start + std::max(work, memory) + 0.2 * std::min(work, memory) + together;
}

}  // namespace acu::synth::plan
