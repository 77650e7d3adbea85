#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/pass/bind_check.h"
#include "ir/pass/mask.h"
#include "ir/pass/window.h"

namespace acu::ir::pass {
namespace {

/// One copy and the microkernel that shall make it.
class CopyCheck {
  public:
    CopyCheck(const Program& p, const Microkernel& m, const Place& at) : p_(p), m_(m), at_(at), b_(block_of(at)) {}

    void run() {
        load_ = moved();
        need(load_ != nullptr, "bind.kind", fmt::format("`{}` is no copy", b_.label), "stage what it reads, and bind that copy", loc());
        to_ = buffer_at(p_, at_, b_.outs[0].tensor), from_ = buffer_at(p_, at_, load_->name);
        need(to_ && from_, "bind.scope", fmt::format("`{}` copies from or to nothing", b_.label));
        need(to_->type == from_->type, "bind.type", fmt::format("`{}` turns {} into {}, but `{}` moves elements as they are", b_.label, name_of(from_->type), name_of(to_->type), m_.id), "", loc());
        check_type(m_, b_, *to_, loc());
        scopes();
        if (m_.function == "tensor_copy" || m_.function == "tensor_multicast" || m_.function == "tensor_store") return boxes();
        fills();
        width();
    }

  private:
    Loc loc() const { return at_.stmt->loc; }
    void shape(bool holds, const std::string& message, const std::string& help = {}) const { need(holds, "bind.shape", message, help, loc()); }

    /// The load that the statement stores; unlike `is_copy`, also where loops around it stand in the subscripts.
    Value moved() const {
        if (b_.monoid != Monoid::None || b_.vals.size() != 1 || is_scatter(b_)) return nullptr;
        const Value& v = b_.vals[0];
        if (v->op == Op::Select && v->args[1]->op == Op::Load && v->args[2]->op == Op::Const) return v->args[1];
        return v->op == Op::Load ? v : nullptr;
    }

    /// The axis along which points are neighbours in what is written.
    const Axis* last_axis() const {
        const Axis* found = nullptr;
        for (const Axis& a : b_.axes)
            if (!b_.outs[0].subscripts.empty() && mentions(b_.outs[0].subscripts.back(), a.name) && (!found || a.vector > found->vector)) found = &a;
        return found;
    }

    /// Two operands: one is written. One operand: the other side is a register.
    void scopes() const {
        bool fits = false;
        for (const auto& [to, from] : {std::pair<size_t, size_t>{0, 1}, {1, 0}}) {
            if (m_.operands.size() < 2) break;
            fits |= m_.operands[to].written && may_lie(m_.operands[to], *to_) && may_lie(m_.operands[from], *from_);
        }
        if (m_.operands.size() == 1) fits = (may_lie(m_.operands[0], *to_) && from_->scope == Scope::Register) || (may_lie(m_.operands[0], *from_) && to_->scope == Scope::Register);
        std::string takes;
        for (const MicrokernelOperand& o : m_.operands) {
            takes += (takes.empty() ? "`" : ", `") + o.name + "` in";
            for (const Scope s : o.scopes) takes += " " + std::string(name_of(s));
        }
        need(fits, "bind.scope", fmt::format("`{}` copies from `{}` ({}) to `{}` ({}), but `{}` has {}", b_.label, from_->name, name_of(from_->scope), to_->name, name_of(to_->scope), m_.id, takes), "keep or stage them there", loc());
    }

    /// f divides e; a fact may say so of a multiple of f.
    bool whole(const Index& e, int64_t f) const {
        for (int64_t g = f; g <= 8 * f; g *= 2)
            if (divides(p_, e, g)) return true;
        return false;
    }

    bool past_registers() const { return std::ranges::find(m_.headers, "async") != m_.headers.end(); }

    /// What lies outside can only become zero on a way that no register lies on.
    void fills() const {
        if (!past_registers()) return;
        const Value other = b_.vals[0]->op == Op::Select ? b_.vals[0]->args[2] : load_->args.empty() ? nullptr : load_->args[0];
        shape(!other || (other->op == Op::Const && other->number == 0 && other->integer == 0), fmt::format("`{}` fills with something other than zero, but `{}` with zeros", b_.label, m_.id));
    }

    void width() const {
        const auto size = static_cast<int64_t>(info(to_->type).bytes);
        const Axis* last = last_axis();
        if (m_.bytes.empty()) return whole_rows(last, size);
        const int64_t points = last ? last->vector : 1, bytes = points * size;
        shape(std::ranges::find(m_.bytes, bytes) != m_.bytes.end(), fmt::format("`{}` moves {} bytes at once, but `{}` {}", b_.label, bytes, m_.id, fmt::join(m_.bytes, ", ")), "vectorize its last axis first");
        if (points > 1) neighbours(*last, points, m_.alignment ? std::max<int64_t>(1, m_.alignment / size) : points);
    }

    /// What comes from a tensor: zeros where the box lies outside.
    void box_is_filled() const {
        fills();
        if (m_.function == "tensor_multicast") shared_by_cluster();
        shape(b_.guards.empty() && b_.vals[0]->op == Op::Load && (!load_->args.empty() || inside()), fmt::format("`{}` leaves out points, but `{}` fills boxes", b_.label, m_.id), "pad it first");
        shape(!std::signbit(load_->args.empty() ? 0 : load_->args[0]->number), "the copy engine fills with zeros, not with -0");
    }

    /// What goes to a tensor: all of the box that lies inside, and nothing else is left out. Nobody else in the kernel looks at it.
    void box_is_stored() const {
        shape(b_.vals[0]->op == Op::Load && load_->args.empty(), fmt::format("`{}` fills points, but `{}` moves what is there", b_.label, m_.id));
        for (const Value& g : b_.guards) {
            const auto x = comparison(g);
            const bool of_bounds = x && std::ranges::any_of(std::views::iota(size_t{0}, to_->dims.size()), [&](size_t i) { return same(normal(x->right - x->left), normal(to_->dims[i].size - b_.outs[0].subscripts[i])); });
            shape(of_bounds, fmt::format("`{}` leaves out points inside of `{}`", b_.label, to_->name));
        }
        for_each_place(p_, [&](const Place& x) {
            const Block* b = as_block(x.stmt);
            if (b && !at_.above.empty() && std::ranges::find(x.above, at_.above.front()) != x.above.end()) shape(!tensors_read(*b).contains(to_->name), fmt::format("`{}` reads `{}` in the kernel that stores it", b->label, to_->name));
        });
    }

    /// A box of the tensor is the whole of the tile, dimension by dimension.
    void boxes() const {
        const bool stores = m_.function == "tensor_store";
        stores ? box_is_stored() : box_is_filled();
        const Decl &tensor = *(stores ? to_ : from_), &tile = *(stores ? from_ : to_);
        const std::vector<Index>&in_tensor = stores ? b_.outs[0].subscripts : load_->subscripts, &in_tile = stores ? load_->subscripts : b_.outs[0].subscripts;
        shape(!tensor.strided, fmt::format("the strides of `{}` are the caller's", tensor.name), "require a contiguous tensor");
        shape(tensor.dims.size() <= 5, fmt::format("`{}` has {} dimensions, more than 5", tensor.name, tensor.dims.size()));
        const auto bytes = static_cast<int64_t>(info(tensor.type).bytes), unit = std::max<int64_t>(1, m_.alignment / bytes);
        size_t next = 0;    // of the target's dimensions
        std::set<std::string> seen;
        int wide = 0;    // axes that are cut into several boxes
        shape(affine_in_last(in_tensor.back()), fmt::format("`{}` does not run through neighbours of `{}`", b_.label, tensor.name));
        for (size_t i = 0; i < tensor.dims.size(); ++i) {
            const Index& s = in_tensor[i];
            shape(is_const(tensor.dims[i].origin, 0) && !mentions_load(s), fmt::format("`{}` is {} at {}, which no map describes", tensor.name, stores ? "written" : "read", print(s)));
            const Axis* a = nullptr;
            for (const Axis& x : b_.axes)
                if (mentions(s, x.name)) shape(!a, fmt::format("`{}` is read along two axes in one dimension", tensor.name)), a = &x;
            if (!a) continue;
            shape(seen.insert(a->name).second, fmt::format("`{}` subscripts two dimensions of `{}`", a->name, tensor.name));
            const auto along = affine(s, a->name);
            shape(along && is_const(along->coefficient, 1), fmt::format("`{}` is not read along neighbours of `{}`", tensor.name, a->name));
            const auto n = known_value(p_, a->size);
            shape(n.has_value(), fmt::format("the box of `{}` has no size known at compile time", b_.label), "tile it");
            while (next < tile.dims.size() && !is_name(in_tile[next], a->name)) ++next;
            shape(next < tile.dims.size() && same(a->base, tile.dims[next].origin) && same(a->size, tile.dims[next].size), fmt::format("`{}` does not lie in `{}` as in `{}`", a->name, tile.name, tensor.name), "stage it in the order of the source");
            const bool inner = i + 1 == tensor.dims.size();
            wide += !inner && *n > 256;
            shape(*n > 0 && (wide < 2 || *n <= 256), fmt::format("`{}` copies more than 256 points along two axes", b_.label), "tile one of them");
            const Index start = normal(ir::substitute(s, {{a->name, a->base}}));
            shape(!inner || whole(start, unit), fmt::format("`{}` is read from {} on along its neighbours, no multiple of 16 bytes", tensor.name, print(start)), "tile by a multiple");
            shape(!inner || *n % unit == 0, fmt::format("lines of {} elements are no multiple of 16 bytes", *n));
            shape(inner || *n <= 256 || *n % 256 == 0, fmt::format("{} points along `{}` are more than a box has", *n, a->name), "tile it by 256");
        }
        shape(seen.size() == b_.axes.size(), fmt::format("`{}` has axes along which `{}` does not lie", b_.label, tensor.name));
        for (size_t i = 0; i < tile.dims.size(); ++i)
            shape(std::ranges::any_of(b_.axes, [&](const Axis& x) { return is_name(in_tile[i], x.name); }) || known_value(p_, tile.dims[i].size) == 1, fmt::format("`{}` fills a part of `{}`", b_.label, tile.name), "stage what is copied");
        for (size_t i = 0; i + 1 < tensor.dims.size(); ++i) {
            Index stride = constant(1);
            for (size_t k = i + 1; k < tensor.dims.size(); ++k) stride = stride * tensor.dims[k].size;
            shape(whole(stride, unit), fmt::format("neighbours along dimension {} of `{}` are {} elements apart, no multiple of 16 bytes", i, tensor.name, print(normal(stride))), fmt::format("state the fact `{} % {} == 0`, or copy without the copy engine", print(tensor.dims.back().size), unit));
        }
        const auto line = known_value(p_, tile.dims.back().size);
        shape(line && (tile.swizzle ? tile.panels || *line * bytes == tile.swizzle : *line <= 256), fmt::format("the lines of `{}` are longer than its swizzle pattern", tile.name), "swizzle it with `panels = yes`");
        shape(tile.swizzle_rows == 1, fmt::format("`{}` permutes several rows alike", tile.name));
    }

    bool affine_in_last(const Index& last) const {
        return std::ranges::any_of(b_.axes, [&](const Axis& a) { return mentions(last, a.name); });
    }

    /// All blocks of the cluster want the same box.
    void shared_by_cluster() const {
        const Loop* cluster = nullptr;
        IndexMap derived;
        for (const Stmt& s : loops_of(at_.above)) {
            const Loop& l = *as_loop(s);
            if (l.kind == LoopKind::Cluster) cluster = &l;
            for (const Let& x : l.lets) derived.insert_or_assign(x.name, ir::substitute(x.value, derived));
        }
        const auto lines = to_->dims.size() > 1 ? known_value(p_, to_->dims[to_->dims.size() - 2].size) : std::nullopt;
        const int64_t blocks = cluster ? known_value(p_, cluster->extent).value_or(0) : 1;
        shape(blocks > 0 && blocks <= 8, fmt::format("the cluster of `{}` has no known number of blocks up to 8", b_.label), "take 2 or 4");
        shape(lines.value_or(1) % (8 * blocks) == 0 || !cluster, fmt::format("the lines of `{}` cannot be dealt to the blocks of the cluster in groups of 8", to_->name), "bind sm90.tensor_copy");
        shape(cluster, fmt::format("`{}` stands in no loop over the blocks of a cluster", b_.label), "fuse or bind one as cluster, or bind sm90.tensor_copy");
        std::vector<Index> all = load_->subscripts;
        for (const Axis& a : b_.axes) all.push_back(a.base);
        for (const Index& e : all)
            shape(!mentions(ir::substitute(e, derived), cluster->var), fmt::format("the blocks of the cluster `{}` want different boxes of `{}`", cluster->var, from_->name), "bind sm90.tensor_copy");
    }

    /// Every point lies inside of the source.
    bool inside() const {
        const Facts f = facts_in(p_, at_.above, b_);
        for (size_t i = 0; i < from_->dims.size(); ++i)
            if (!f.nonnegative(load_->subscripts[i]) || !f.less(load_->subscripts[i], from_->dims[i].size)) return false;
        return true;
    }

    /// The copy engine moves whole runs of aligned bytes.
    void whole_rows(const Axis* last, int64_t size) const {
        shape(last, fmt::format("`{}` has no row for `{}` to move", b_.label, m_.id));
        const int64_t unit = std::max<int64_t>(1, m_.alignment / size);
        shape(b_.guards.empty() && b_.vals[0]->op == Op::Load && load_->args.empty(), fmt::format("`{}` leaves out or fills points, but `{}` moves whole rows", b_.label, m_.id), "pad the size, or bind a copy of single elements");
        shape(whole(last->size, unit), fmt::format("a row of `{}` is {} elements of {} bytes, no multiple of the {} that `{}` moves", b_.label, print(last->size), size, m_.alignment, m_.id));
        neighbours(*last, unit, unit);
    }

    /// Points that one access takes must lie next to each other on both sides, and be there or not be there together.
    void neighbours(const Axis& a, int64_t points, int64_t unit) const {
        shape(whole(a.base, points) && whole(a.size, points), fmt::format("`{}` of `{}` starts at {} with {} points, which are not whole groups of {}", a.name, b_.label, print(a.base), print(a.size), points));
        side(*to_, b_.outs[0].subscripts, a, unit);
        side(*from_, load_->subscripts, a, unit);
        std::vector<Value> conditions = b_.guards;
        if (b_.vals[0]->op == Op::Select) conditions.push_back(b_.vals[0]->args[0]);
        for (const Value& c : conditions) shape(uniform(c, a.name, points), fmt::format("a condition of `{}` may hold for a part of {} neighbours along `{}`", b_.label, points, a.name), "pad the copy first, or take a smaller width");
    }

    void side(const Decl& d, const std::vector<Index>& at, const Axis& a, int64_t unit) const {
        const auto along = at.empty() ? std::nullopt : affine(at.back(), a.name);
        const bool next = along && is_const(along->coefficient, 1) && std::none_of(at.begin(), at.end() - 1, [&](const Index& e) { return mentions(e, a.name); });
        shape(next, fmt::format("the points of `{}` along `{}` are not neighbours in `{}`", b_.label, a.name, d.name), "vectorize the axis that is last in both");
        shape(!d.strided || unit == 1, fmt::format("the strides of `{}` are the caller's: {} neighbours may not be aligned", d.name, unit), "require a contiguous tensor");
        shape(d.swizzle == 0 || unit * static_cast<int64_t>(info(d.type).bytes) <= 16, fmt::format("`{}` is swizzled in chunks of 16 bytes", d.name));
        const Index start = ir::substitute(at.back(), {{a.name, a.base}}) - d.dims.back().origin;
        shape(whole(start, unit), fmt::format("`{}` is reached from {} on, no multiple of {} elements", d.name, print(normal(start)), unit), "tile by a multiple of it");
        const bool rows = d.dims.size() > 1 || !load_->args.empty();
        shape(!rows || whole(d.dims.back().size, unit), fmt::format("a row of `{}` has {} elements, no multiple of {}", d.name, print(d.dims.back().size), unit), fmt::format("state the fact `{} % {} == 0`, or take a smaller width", print(d.dims.back().size), unit));
    }

    /// Is the condition the same for `points` neighbours that start at a multiple of it?
    bool uniform(const Value& c, const std::string& axis, int64_t points) const {
        if (!mentions(c, axis)) return true;
        if (c->op == Op::And || c->op == Op::Or) return uniform(c->args[0], axis, points) && uniform(c->args[1], axis, points);
        const auto x = comparison(c);
        const auto gap = x ? affine(normal(x->right - x->left), axis) : std::nullopt;    // holds where gap >= 1
        if (!gap) return false;
        if (is_const(gap->coefficient, -1)) return whole(gap->rest, points);
        return is_const(gap->coefficient, 1) && whole(gap->rest - constant(1), points);
    }

    const Program& p_;
    const Microkernel& m_;
    const Place& at_;
    const Block& b_;
    Value load_;
    const Decl *to_ = nullptr, *from_ = nullptr;
};

}  // namespace

void check_copy(const Program& p, const Microkernel& m, const Place& at) { CopyCheck(p, m, at).run(); }

}  // namespace acu::ir::pass
