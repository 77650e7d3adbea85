#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/recompute.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// Moves the statements that define a buffer into a loop of its readers, where they compute what one iteration reads.
class Mover {
  public:
    Mover(const Program& p, const std::string& label, const std::string& loop) : p_(p), def_(find_block(p, label)), at_(find_loop(p, loop)), buffer_(block_of(def_).outs[0].tensor) {
        for (const Stmt& s : block_stmts(p.body))
            if (written(s).contains(buffer_)) writers_.push_back(s);
    }

    Rewrite run() {
        const Decl* d = buffer_at(p_, def_, buffer_);
        need(d && d->scope != Scope::Out && !d->ring.versions, "compute_at.temporary", fmt::format("`{}` is an output or a ring: others read it", buffer_), "only a temporary can be computed again", def_.stmt->loc);
        decl_ = *d;
        for (const Stmt& s : writers_) shape(s);
        const size_t depth = def_.above.size();
        const bool under = at_.above.size() >= depth && std::equal(def_.above.begin(), def_.above.end(), at_.above.begin());
        need(under && at_.stmt != def_.stmt, "compute_at.place", fmt::format("`{}` and `{}` do not stand in one sequence, or in what it holds", block_of(def_).label, loop().var), "", at_.stmt->loc);
        const Stmt around = at_.above.size() == depth ? at_.stmt : at_.above[depth];
        users();
        order(around);
        facts_ = facts_at(p_, at_.above);
        facts_.add_range(loop().var, constant(0), loop().extent);
        for (const Let& x : loop().lets) facts_.add_nonnegative(x.value - ir::name(x.name)), facts_.add_nonnegative(ir::name(x.name) - x.value);
        box();
        now_ = unique_name(p_, buffer_ + ".t");
        Rewrite out{p_, {{buffer_, now_, Part::Copy}}};
        out.program = without_buffer(edit(p_, [&](const Stmt& s) -> std::optional<Body> {
            if (is_writer(s)) return Body{};
            return s == at_.stmt ? std::optional(Body{filled()}) : std::nullopt;
        }), buffer_);
        return out;
    }

  private:
    const Loop& loop() const { return loop_of(at_); }

    void shape(const Stmt& s) const {
        const Block& b = *as_block(s);
        const bool mine = s == def_.stmt || (is_fill(b) && block_of(def_).monoid != Monoid::None);
        need(mine, "compute_at.writers", fmt::format("`{}` is written by `{}`, too", buffer_, b.label), "", s->loc);
        std::set<std::string> seen;
        for (const Index& e : b.outs[0].subscripts)
            if (e->op == IndexOp::Name && axis_of(b, e->name)) seen.insert(e->name);
        const bool plain = b.outs.size() == 1 && b.via.empty() && seen.size() == b.outs[0].subscripts.size() && seen.size() == axes_of_kind(b, true).size();
        need(plain && std::ranges::none_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; }), "compute_at.shape", fmt::format("the subscripts of `{}` are not the parallel axes of `{}`, or it has several results", buffer_, b.label), "", s->loc);
    }

    bool is_writer(const Stmt& s) const { return std::ranges::find(writers_, s) != writers_.end(); }

    void users() const {
        bool any = false;
        const Body inside = block_stmts(loop().body);
        for (const Stmt& s : block_stmts(p_.body)) {
            if (is_writer(s) || !touched(s).contains(buffer_)) continue;
            need(std::ranges::find(inside, s) != inside.end(), "compute_at.escapes", fmt::format("`{}` reads `{}` outside `{}`", as_block(s)->label, buffer_, loop().var), "take a loop around all that read it", s->loc);
            need(as_block(s)->via.empty(), "compute_at.bound", fmt::format("`{}` is done by the microkernel `{}`, which reads `{}`", as_block(s)->label, as_block(s)->via, buffer_), "", s->loc);
            any = true;
        }
        need(any, "compute_at.unused", fmt::format("nothing in `{}` reads `{}`", loop().var, buffer_), "", at_.stmt->loc);
        need(!index_loaded(p_).contains(buffer_), "compute_at.index", fmt::format("`{}` subscripts another buffer", buffer_), "", def_.stmt->loc);
        for_each_place(p_, [&](const Place& x) {
            const auto* i = std::get_if<If>(&x.stmt->node);
            need(!i || !loads(make_stmt({}, If{i->condition, {}, {}}), buffer_), "compute_at.condition", fmt::format("a condition reads `{}`", buffer_), "", x.stmt->loc);
        });
    }

    /// What one iteration reads, a dimension at a time; a dimension whose bounds are not known is taken whole.
    void box() {
        box_ = decl_.dims;
        for (size_t d = 0; d < box_.size(); ++d) {
            const auto hull = hull_of(d);
            if (!hull) continue;
            const Index size = normal(hull->high - hull->low + constant(1));
            if (is_const(size) || !constant_value(box_[d].size)) box_[d] = {hull->low, size};    // registers need constant sizes
        }
    }

    std::optional<Interval> hull_of(size_t d) const {
        std::optional<Interval> hull;
        for (const Inside& at : blocks_inside(loop()))
            for (const Value& v : loads_of(*as_block(at.block), buffer_)) {
                const auto x = interval_of(v->subscripts[d], at, facts_);
                if (!x) return {};
                if (!hull) hull = x;
                const auto low = constant_value(x->low - hull->low), high = constant_value(x->high - hull->high);
                if (!low || !high) return {};
                hull = Interval{*low < 0 ? x->low : hull->low, *high > 0 ? x->high : hull->high};
            }
        return hull;
    }

    /// The writers and what holds the loop stand in one sequence, in this order, and nothing on the way changes what the writers read.
    void order(const Stmt& around) const {
        std::set<std::string> inputs;
        bool started = false, done = false;
        size_t found = 0;
        for (const Stmt& s : sequence()) {
            if (is_writer(s)) {
                need(!done, "compute_at.place", fmt::format("`{}` stands behind `{}`", as_block(s)->label, loop().var), "", s->loc);
                inputs.merge(tensors_read(*as_block(s)));
                started = true, ++found;
            } else if (started && !done) unchanged(inputs, s);
            done |= s == around;
        }
        need(found == writers_.size(), "compute_at.place", fmt::format("the statements that define `{}` do not stand in one sequence", buffer_), "", def_.stmt->loc);
    }
    const Body& sequence() const {
        if (!def_.above.empty())
            for (const Body* b : bodies_of(def_.above.back()))
                if (std::ranges::find(*b, def_.stmt) != b->end()) return *b;
        return p_.body;
    }

    void unchanged(const std::set<std::string>& inputs, const Stmt& s) const {
        for (const std::string& t : written(s))
            need(!inputs.contains(t), "compute_at.stale", fmt::format("`{}`, which `{}` reads, changes before the loop `{}` is through", t, block_of(def_).label, loop().var), "", s->loc);
        need(!holds_sync(s), "compute_at.sync", fmt::format("signals stand between `{}` and `{}`", block_of(def_).label, loop().var), "move it before warp_specialize", s->loc);
    }

    Stmt filled() const {
        Loop l = loop();
        for (Stmt& s : l.body) s = replace_loads(s, [&](const Value& v) -> Value { return v->name == buffer_ ? local(v) : nullptr; });
        Body first;
        for (const Stmt& s : writers_) first.push_back(restricted(s));
        l.body.insert(l.body.begin(), first.begin(), first.end());
        Decl d{now_, Scope::Register, decl_.type, {}};
        for (const Window& w : box_)
            if (!is_point(w)) d.dims.push_back(w);
        l.allocs.push_back(std::move(d));
        return with_node(at_.stmt, std::move(l));
    }

    static bool is_point(const Window& w) { return is_const(w.size, 1); }
    /// The cell in the buffer of the iteration, which has no dimension where it would have one point.
    std::vector<Index> cell(const std::vector<Index>& subscripts) const {
        std::vector<Index> out;
        for (size_t d = 0; d < subscripts.size(); ++d)
            if (!is_point(box_[d])) out.push_back(subscripts[d]);
        return out;
    }

    Value local(const Value& v) const {
        const Value there = with_default(with_source(v, now_, cell(v->subscripts)), nullptr);
        if (v->args.empty()) return there;
        const Value other = ir::replace(v->args[0], [&](const Value& x) { return x->op == Op::Load && x->name == buffer_ ? local(x) : nullptr; });
        return select(in_box(v->subscripts, decl_.dims), there, other);
    }

    /// A writer on the box: an axis of one point becomes that point, one whose name means something in the loop gets another, and what may lie outside its old range is left out.
    Stmt restricted(const Stmt& s) const {
        const Block& b = *as_block(s);
        const std::set<std::string> taken = names_around();
        IndexMap names;
        std::set<std::string> points;
        for (const Axis& a : b.axes)
            if (taken.contains(a.name)) names[a.name] = ir::name(unique_name(p_, a.name));
        for (size_t d = 0; d < box_.size(); ++d)
            if (is_point(box_[d])) points.insert(b.outs[0].subscripts[d]->name), names[b.outs[0].subscripts[d]->name] = box_[d].origin;
        Block n = map_block(b, [&](const Value& v) { return rename_tensors(ir::substitute(v, names), {{buffer_, now_}}); }, [&](const Index& e) { return ir::substitute(e, names); });
        n.outs[0].tensor = now_;
        std::erase_if(n.axes, [&](const Axis& a) { return points.contains(a.name); });
        for (Axis& a : n.axes)
            if (const auto it = names.find(a.name); it != names.end()) a.name = it->second->name;
        for (size_t d = 0; d < box_.size(); ++d) restrict(n, d, *axis_of(b, b.outs[0].subscripts[d]->name));
        n.outs[0].subscripts = cell(n.outs[0].subscripts);
        return with_node(s, std::move(n));
    }

    void restrict(Block& n, size_t d, const Axis& old) const {
        const Window& w = box_[d];
        const Index& word = n.outs[0].subscripts[d];
        const auto a = std::ranges::find_if(n.axes, [&](const Axis& x) { return is_name(word, x.name); });
        if (a != n.axes.end()) a->base = w.origin, a->size = w.size;
        if (same(old.base, w.origin) && same(old.size, w.size)) return;
        if (!facts_.nonnegative(w.origin - old.base)) add_guard(n, binary(Op::Le, of_index(old.base), of_index(word)));
        if (!facts_.nonnegative(old.base + old.size - w.origin - w.size)) add_guard(n, below(word, normal(old.base + old.size)));
    }

    std::set<std::string> names_around() const {
        std::set<std::string> out{loop().var};
        for (const Let& x : loop().lets) out.insert(x.name);
        for (const Stmt& s : loops_of(at_.above)) {
            out.insert(as_loop(s)->var);
            for (const Let& x : as_loop(s)->lets) out.insert(x.name);
        }
        return out;
    }

    const Program& p_;
    Place def_, at_;
    std::string buffer_, now_;
    Decl decl_{};
    Body writers_;
    Facts facts_;
    std::vector<Window> box_;
};

}  // namespace

Rewrite recompute(const Program& p, const std::string& label, const std::string& loop) { return Mover(p, label, loop).run(); }

}  // namespace acu::ir::pass
