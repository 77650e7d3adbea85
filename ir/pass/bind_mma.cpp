#include <fmt/format.h>

#include <algorithm>

#include "ir/layout_use.h"
#include "ir/pass/bind_check.h"

namespace acu::ir::pass {
namespace {

/// A factor of the product: the tile that it is read from, and which of its dimensions are subscripted by the terms and by the other axis.
struct Operand {
    const Decl* tile = nullptr;
    DType type = DType::F32;    ///< as it is multiplied
    std::string along;          ///< its axis that is not reduced
    size_t term_dim = 0, along_dim = 0;
    bool in_registers() const { return tile->scope == Scope::Register; }
};

/// One product and the microkernel that shall compute it.
class MmaCheck {
  public:
    MmaCheck(const Program& p, const Microkernel& m, const Place& at) : p_(p), m_(m), at_(at), b_(block_of(at)) {}

    /// Which axis is k, and which buffers are read along it; `rows`: the axis along the rows of the instruction, empty: the first of the result.
    void run(const std::string& rows) {
        kind(b_.monoid == Monoid::Sum && b_.outs.size() == 1 && b_.vals.size() == 1 && !is_scatter(b_), "is no sum into one buffer", "");
        kind(b_.guards.empty(), "has a guard", "pad the copies that it reads, and relax it");
        kind(b_.axes.size() == 3 && axes_of_kind(b_, true).size() == 2, fmt::format("runs over {} axes, not over two of its result and one that is reduced", b_.axes.size()), "tile the others by 1, or make one axis of several (fuse_axes)");
        for (const Axis& a : b_.axes)
            if (a.kind == AxisKind::Red) k_ = &a;
        const Value& v = b_.vals[0];
        kind(v->op == Op::Mul, "adds no products", "");
        out_ = buffer_at(p_, at_, b_.outs[0].tensor);
        need(out_ && out_->scope == Scope::Register, "bind.scope", fmt::format("`{}` adds to `{}`, but `{}` to registers", b_.label, b_.outs[0].tensor, m_.id), "keep it in registers first", loc());
        need(out_->type == m_.matrix.sum, "bind.type", fmt::format("`{}` adds up in {}, but `{}` in {}", b_.label, name_of(out_->type), m_.id, name_of(m_.matrix.sum)), "", loc());
        Operand a = operand(v->args[0]), b = operand(v->args[1]);
        kind(a.along != b.along, "multiplies two factors of the same axis", "");
        need(m_.matrix.mixed || a.type == b.type, "bind.type", fmt::format("`{}` multiplies {} by {}, but `{}` factors of one type", b_.label, name_of(a.type), name_of(b.type), m_.id), "", loc());
        const std::string first = rows.empty() ? first_out_axis() : rows;
        swapped_ = a.along != first;
        if (swapped_) std::swap(a, b);
        kind(a.along == first, fmt::format("has no factor with the axis `{}`", first), "");
        rows_ = axis_of(b_, a.along), columns_ = axis_of(b_, b.along);
        if (m_.matrix.rows_in_registers) from_registers_ = a, is_window(a);
        else lies(a);
        lies(b);
        scope(a, m_.operands[1]), scope(b, m_.operands[2]);
    }

    /// The tile of the factor that lies in registers; empty: none does.
    std::string factor() const { return from_registers_ ? from_registers_->tile->name : ""; }
    /// How it lies: as the sums of a product with the terms as its columns.
    Layout factor_layout(int64_t r, int64_t c) const {
        const MatrixShape& x = m_.matrix;
        shape(c == 1, fmt::format("has its columns in {} groups of threads, each of which would need the same rows", c), "take columns = 1");
        const Operand& o = *from_registers_;
        const MatrixTiles tiles{rows() / (r * x.rows), size_of(*k_) / x.columns, r, 1};
        const auto placed = embedded(matrix_layout(*fragment_named(x.accumulator), {x.rows, x.columns}, tiles), static_cast<int>(o.tile->dims.size()), {static_cast<int>(o.along_dim), static_cast<int>(o.term_dim)});
        need(bool(placed), "bind.shape", "the layout of the factor cannot be formed", "", loc());
        for (const Stmt& s : block_stmts(p_.body)) {    // its pairs are packed as they are rounded
            const Block& w = *as_block(s);
            if (o.tile->type == DType::F32 || !written(s).contains(o.tile->name)) continue;
            const Value v = w.vals[0]->op == Op::Cast ? w.vals[0]->args[0] : w.vals[0];
            const Decl* from = v->op == Op::Load ? buffer_at(p_, at_, v->name) : nullptr;
            shape(w.monoid == Monoid::None && w.guards.empty() && from && from->type == DType::F32 && from->scope == Scope::Register, fmt::format("takes `{}` from registers, which `{}` does not round from a tile of f32", o.tile->name, w.label), "compute it in f32, narrow it where it is multiplied and outline that");
        }
        need(!o.tile->layout || same(*o.tile->layout, *placed), "bind.shape", fmt::format("`{}` lies otherwise than `{}` takes it", o.tile->name, m_.id), "multiply it by threads that have the same rows", loc());
        return *placed;
    }

    int64_t rows() const { return size_of(*rows_); }
    int64_t columns() const { return size_of(*columns_); }

    /// Of the result, over threads in `r` x `c` groups.
    Layout layout(int64_t r, int64_t c) const {
        const MatrixShape& x = m_.matrix;
        const int64_t m = rows(), n = columns(), k = size_of(*k_);
        shape(m % (r * x.rows) == 0, fmt::format("has {} points along `{}`, no multiple of {} x {}", m, rows_->name, r, x.rows), "tile by a multiple");
        shape(n % (c * x.columns) == 0, fmt::format("has {} points along `{}`, no multiple of {} x {}", n, columns_->name, c, x.columns), "tile by a multiple");
        shape(k % x.depth == 0, fmt::format("has {} terms, no multiple of {}", k, x.depth), "tile by a multiple");
        const int64_t wide = n / c;
        shape(!x.most_columns || wide <= x.most_columns, fmt::format("gives {} columns to each group of threads, more than {}", wide, x.most_columns), "take more groups, or a smaller tile");
        shape(!x.needs_swizzle || c == 1 || wide % 64 == 0, fmt::format("gives {} columns to each group of threads, no multiple of 64", wide), "");
        const MatrixTiles tiles{m / (r * x.rows), n / (c * x.columns), r, c};
        const Layout* fragment = fragment_named(x.accumulator);
        const auto placed = embedded(matrix_layout(*fragment, {x.rows, x.columns}, tiles), static_cast<int>(out_->dims.size()), {dim_of(*rows_), dim_of(*columns_)});
        need(bool(placed), "bind.shape", "the layout of the result cannot be formed", "", loc());
        return *placed;
    }

    const std::string& result() const { return out_->name; }

    /// The statement in the order of the instruction: rows, columns, terms; the factor of the rows first.
    Block bound() const {
        Block b = b_;
        b.axes = {*rows_, *columns_, *k_};
        if (swapped_) b.vals[0] = binary(Op::Mul, b_.vals[0]->args[1], b_.vals[0]->args[0]);
        b.via = m_.id;
        return b;
    }

  private:
    Loc loc() const { return at_.stmt->loc; }
    void kind(bool holds, const std::string& what, const std::string& help) const { need(holds, "bind.kind", fmt::format("`{}` {}", b_.label, what), help, loc()); }
    void shape(bool holds, const std::string& what, const std::string& help) const { need(holds, "bind.shape", fmt::format("`{}` {}, as `{}` takes them", b_.label, what, m_.id), help, loc()); }

    int64_t size_of(const Axis& a) const {
        const auto n = known_value(p_, a.size);
        shape(n && *n > 0, fmt::format("has {} points along `{}`, a number not known at compile time", print(a.size), a.name), "tile it");
        return *n;
    }

    std::string first_out_axis() const {
        for (const Index& s : b_.outs[0].subscripts)
            for (const Axis& a : b_.axes)
                if (is_name(s, a.name)) return a.name;
        return {};
    }

    int dim_of(const Axis& a) const {
        for (size_t i = 0; i < out_->dims.size(); ++i)
            if (is_name(b_.outs[0].subscripts[i], a.name) && same(a.base, out_->dims[i].origin) && same(a.size, out_->dims[i].size)) return static_cast<int>(i);
        shape(false, fmt::format("does not have the window of `{}` as its range of `{}`", out_->name, a.name), "keep it at the loop of the tile");
        return 0;
    }

    /// A load, perhaps widened, or rounded to what the instruction multiplies.
    Operand operand(const Value& v) const {
        Value load = v;
        bool rounded = false;
        if (load->op == Op::Cast && load->name == name_of(DType::Tf32)) rounded = true, load = load->args[0];
        std::optional<DType> narrowed;
        const auto widens = [&](const Value& x) { return x->op == Op::Cast && x->name == name_of(DType::F32) && (is_float(x->args[0]->type) ? x->args[0]->type == DType::F32 : m_.matrix.mixed); };
        while (widens(load)) load = load->args[0];
        if (m_.matrix.rows_in_registers && load->op == Op::Cast && load->args[0]->type == DType::F32) narrowed = type_named(load->name), load = load->args[0];
        kind(load->op == Op::Load && load->args.empty(), "multiplies something other than what lies in two buffers", "outline it and stage it");
        Operand o;
        o.tile = buffer_at(p_, at_, load->name);
        const DType type = o.type = narrowed && o.in_registers() ? *narrowed : rounded && o.tile->type == DType::F32 ? DType::Tf32 : o.tile->type;
        kind(!rounded || type == DType::Tf32, fmt::format("rounds {} to tf32", name_of(o.tile->type)), "multiply them as they are");
        need(std::ranges::find(m_.types, type) != m_.types.end(), "bind.type", fmt::format("`{}` multiplies {}, but `{}` takes {}", b_.label, name_of(type), m_.id, name_of(m_.types[0])), "", loc());
        bool terms = false;
        for (size_t i = 0; i < load->subscripts.size(); ++i)
            for (const Axis& a : b_.axes) {
                if (!mentions(load->subscripts[i], a.name)) continue;
                kind(is_name(load->subscripts[i], a.name), fmt::format("reads `{}` at {}, not at an axis", o.tile->name, print(load->subscripts[i])), "stage it by axes");
                if (a.name == k_->name) terms = true, o.term_dim = i;
                else kind(o.along.empty(), fmt::format("reads `{}` along both axes of its result", o.tile->name), ""), o.along = a.name, o.along_dim = i;
            }
        kind(terms && !o.along.empty(), fmt::format("reads `{}` along {}, but a matrix along two axes", o.tile->name, terms || !o.along.empty() ? "one axis" : "no axis"), "");
        return o;
    }

    void scope(const Operand& o, const MicrokernelOperand& wanted) const {
        need(may_lie(wanted, *o.tile), "bind.scope", fmt::format("`{}` is {}, but `{}` reads {}", o.tile->name, name_of(o.tile->scope), m_.id, wanted.scopes[0] == Scope::Shared ? "shared memory" : "registers"), wanted.scopes[0] == Scope::Shared ? "stage it there first" : "keep it there first", loc());
    }

    /// All of the tile, and nothing else.
    void is_window(const Operand& o) const {
        const Decl& d = *o.tile;
        for (const size_t i : {o.term_dim, o.along_dim}) {
            const Axis& a = *axis_of(b_, i == o.term_dim ? k_->name : o.along);
            shape(same(a.base, d.dims[i].origin) && same(a.size, d.dims[i].size), fmt::format("reads a part of `{}` along `{}`", d.name, a.name), "stage what it reads");
        }
        for (size_t i = 0; i < d.dims.size(); ++i)
            shape(i == o.term_dim || i == o.along_dim || known_value(p_, d.dims[i].size) == 1, fmt::format("reads `{}`, which has more dimensions", d.name), "stage what it reads");
    }

    /// Whole lines of 16 bytes, from the start of the tile on.
    void lies(const Operand& o) const {
        const Decl& d = *o.tile;
        const size_t last = d.dims.size() - 1;
        const bool across = o.along_dim == last;
        const auto bytes = static_cast<int64_t>(info(d.type).bytes);
        shape(o.term_dim == last || across, fmt::format("reads `{}`, whose last dimension is neither of the two axes", d.name), "stage it in another order");
        shape(!across || m_.matrix.across, fmt::format("reads `{}`, whose neighbours do not lie along `{}`", d.name, k_->name), "stage it in the other order");
        const auto line = known_value(p_, d.dims[last].size);
        shape(line && *line * bytes % 16 == 0, fmt::format("reads `{}`, whose lines are no multiple of 16 bytes", d.name), "tile by a multiple");
        is_window(o);
        int64_t all = bytes;
        for (const Window& w : d.dims) all *= known_value(p_, w.size).value_or(0);
        const int64_t period = 8 * d.swizzle * d.swizzle_rows;    // after which the pattern repeats: versions of a ring stand one behind the other
        shape(!d.swizzle || all % period == 0, fmt::format("reads `{}`, whose {} bytes are no multiple of the {} after which its swizzle pattern repeats", d.name, all, period), "swizzle it with fewer `rows`");
        if (m_.matrix.needs_swizzle)
            shape(d.swizzle && (*line * bytes == d.swizzle || d.panels), fmt::format("reads `{}`, whose lines of {} bytes are not as long as its swizzle pattern", d.name, *line * bytes), "swizzle it, with `panels = yes` where its lines are longer than 128 bytes");
    }

    const Program& p_;
    const Microkernel& m_;
    const Place& at_;
    const Block& b_;
    const Axis *k_ = nullptr, *rows_ = nullptr, *columns_ = nullptr;
    const Decl* out_ = nullptr;
    bool swapped_ = false;
    std::optional<Operand> from_registers_;
};

/// acc += x.t*w.t over m, n, k!
/// ->  acc += x.t*w.t over m, n, k! via sm80.mma_f16
struct BindMma {
    static constexpr std::string_view name = "bind_mma", doc = "let matrix instructions compute a sum of products: `bind_mma(acc, via = sm80.mma_f16, rows = 2, columns = 4)`";
    static constexpr std::string_view picture = "acc.t += x.t*w.t  over m in 128, n in 128, k! in 64\n-> acc.t += x.t*w.t  over m in 128, n in 128, k! in 64  via sm80.mma_f16";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string via, along;
        int64_t rows = 1, columns = 1;
        static constexpr auto fields = std::tuple{required("via", &Params::via, +[] { return a_name(); }, "the microkernel, of kind mma"),
                                                  optional("rows", &Params::rows, +[] { return integers(1, 16, {1, 2, 4}); }, "warps, or warpgroups, that share the rows of the tile"),
                                                  optional("columns", &Params::columns, +[] { return integers(1, 16, {1, 2, 4}); }, "those that share its columns"),
                                                  optional("along", &Params::along, +[] { return a_name(); }, "the axis that lies along the rows of the instruction; left out, the first of the result")};
    };

    static Rewrite apply(const Site& site, const Params& params, const Context& context) {
        const Microkernel& m = microkernel_for(context, params.via, MicrokernelKind::Mma);
        const Place at = find_block(site.program, site.name());
        MmaCheck check(site.program, m, at);
        check.run(params.along);
        const Layout layout = check.layout(params.rows, params.columns);
        const std::string tile = check.result();
        Program out = replace_stmt(site.program, at.stmt, {with_node(at.stmt, check.bound())});
        out = with_layout(std::move(out), tile, layout);
        if (const std::string factor = check.factor(); !factor.empty()) out = with_layout(std::move(out), factor, check.factor_layout(params.rows, params.columns));
        return {with_threads(std::move(out), at, params.rows * params.columns * m.most_threads), {}};
    }

    static Program with_layout(Program p, const std::string& tile, const Layout& layout) {
        return edit_decls(std::move(p), tile, [&](Decl& d) { d.layout = layout; });
    }

    /// Of the role, or of the kernel.
    static Program with_threads(Program p, const Place& at, int64_t threads) {
        if (!at.role.empty()) {
            return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
                const auto* r = std::get_if<Roles>(&s->node);
                if (!r) return {};
                Roles n = *r;
                for (Role& role : n.roles)
                    if (role.name == at.role) role.threads = threads;
                return Body{with_node(s, std::move(n))};
            });
        }
        const auto loops = loops_of(at.above);
        const auto grid = std::ranges::find_if(loops, [](const Stmt& s) { return as_loop(s)->kind == LoopKind::Grid; });
        need(grid != loops.end(), "bind.shape", fmt::format("`{}` stands in no grid loop whose blocks could have {} threads", block_of(at).label, threads), "bind a loop around it to grid first", at.stmt->loc);
        Loop l = *as_loop(*grid);
        need(l.threads == 0 || l.threads == threads, "bind.shape", fmt::format("the blocks of `{}` have {} threads already, not {}", l.var, l.threads, threads), "give that number to the copies, too", at.stmt->loc);
        const std::string var = l.var;
        return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
            if (!as_loop(s) || as_loop(s)->var != var) return {};
            Loop n = *as_loop(s);
            n.threads = threads;
            return Body{with_node(s, std::move(n))};
        });
    }
};

}  // namespace

Pass bind_mma_pass() { return make_pass<BindMma>(); }

}  // namespace acu::ir::pass
