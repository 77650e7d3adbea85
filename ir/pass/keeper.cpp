#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/cover.h"
#include "ir/pass/keeper.h"

namespace acu::ir::pass {
namespace {

class Keeper {
  public:
    Keeper(const Program& p, std::string buffer, const std::string& at, Scope scope) : p_(p), buffer_(std::move(buffer)), scope_(scope) {
        collect();
        home_ = at.empty() ? innermost() : find_loop(p_, at).stmt;
    }

    Rewrite run() {
        check_users();
        check_covered();
        choose_window();
        if (stored()) make_store();
        Rewrite out{replace_stmt(p_, home_, {rebuilt()}), {}};
        if (store_) out.lineage.push_back({block_of(inside_[0]).label, as_block(store_)->label, Part::Copy});
        else std::erase_if(out.program.decls, [&](const Decl& d) { return d.name == buffer_; });
        return out;
    }

  private:
    /// Is the buffer still there after the loop?
    bool stored() const { return decl_->scope == Scope::Out || inside_.size() < users_.size(); }
    const Block& fill() const { return block_of(inside_[0]); }
    const Access& filled() const { return *std::ranges::find(fill().outs, buffer_, &Access::tensor); }

    void collect() {
        decl_ = p_.find(buffer_);
        need(decl_ && (decl_->scope == Scope::Temp || decl_->scope == Scope::Out), "keep.buffer", fmt::format("`{}` is {}", buffer_, decl_ ? "an input" : "kept in a loop already"), "name a temporary or an output");
        need(!steers(p_, buffer_), "keep.index", fmt::format("`{}` is used in subscripts, ranges or conditions of the schedule", buffer_));
        for_each_place(p_, [&](const Place& x) {
            if (as_block(x.stmt) && touched(x.stmt).contains(buffer_)) users_.push_back(x);
        });
        need(!users_.empty(), "keep.buffer", fmt::format("`{}` is not used", buffer_));
    }

    Stmt innermost() const {
        std::vector<Stmt> shared = users_[0].above;
        for (const Place& x : users_) shared.resize(std::min(shared.size(), common_path(users_[0], x).size()));
        const std::vector<Stmt> loops = loops_of(shared);
        need(!loops.empty(), "keep.loop", fmt::format("no loop holds all uses of `{}`", buffer_), "fuse the statements that use it");
        return loops.back();
    }

    void check_users() {
        for (const Place& x : users_) {
            const Block& b = block_of(x);
            if (std::ranges::find(x.above, home_) != x.above.end()) inside_.push_back(x);
            else
                need(!written(x.stmt).contains(buffer_), "keep.escapes", fmt::format("`{}` writes `{}` outside the loop `{}`", b.label, buffer_, as_loop(home_)->var),
                     "fuse it into the loop, or keep it at a loop around both", x.stmt->loc);
            for (const Value& v : loads_of(b, buffer_)) need(v->args.empty(), "keep.default", fmt::format("`{}` reads `{}` outside its bounds", b.label, buffer_), "inline it first", x.stmt->loc);
        }
        need(!inside_.empty(), "keep.escapes", fmt::format("`{}` is not used in the loop `{}`", buffer_, as_loop(home_)->var));
        need(fill().monoid == Monoid::None && written(inside_[0].stmt).contains(buffer_) && loads_of(fill(), buffer_).empty(), "keep.first", fmt::format("the loop `{}` does not start by filling `{}`: `{}` comes first", as_loop(home_)->var, buffer_, fill().label),
             "fuse the statement that fills it", inside_[0].stmt->loc);
    }

    void check_covered() const {
        need(std::ranges::count(fill().outs, buffer_, &Access::tensor) == 1, "keep.index", fmt::format("`{}` writes `{}` twice", fill().label, buffer_));
        const auto from = std::ranges::find(inside_[0].above, home_) + 1;
        need(std::all_of(from, inside_[0].above.end(), [](const Stmt& s) { return as_loop(s); }), "keep.first", fmt::format("`{}` fills `{}` under a condition or in a role", fill().label, buffer_), "keep it before roles and conditions are made");
        for (const Place& x : inside_) {
            check_whole(x);
            const Loop* apart = divides_scope(loops_inside(x.above, home_), scope_);
            need(!apart, "keep.scope", fmt::format("`{}` runs in the {} loop `{}`, whose iterations do not share {} memory", block_of(x).label, apart ? name_of(apart->kind) : "", apart ? apart->var : "", name_of(scope_)),
                 "keep it at that loop, or in another memory", x.stmt->loc);
            for (const Touch& t : touches(block_of(x))) {
                if (t.tensor != buffer_ || x.stmt == inside_[0].stmt || block_of(x).monoid == Monoid::TopK) continue;
                const std::string why = uncovered(p_, inside_[0], filled(), x, t.subscripts);
                need(why.empty(), "keep.covered", fmt::format("an iteration of `{}` may use cells of `{}` that it did not fill: {}", as_loop(home_)->var, buffer_, why), "keep it at a loop further out", x.stmt->loc);
            }
        }
    }

    /// The best of several go to the cells that were filled together.
    void check_whole(const Place& x) const {
        const Block& b = block_of(x);
        if (b.monoid != Monoid::TopK) return;
        const Access& o = *std::ranges::find(b.outs, buffer_, &Access::tensor);
        const Index& last = filled().subscripts.back();
        const Axis* a = last->op == IndexOp::Name ? axis_of(fill(), last->name) : nullptr;
        const bool all = a && is_const(a->base, 0) && is_const(a->size, b.k), row = same(o.subscripts, {filled().subscripts.begin(), filled().subscripts.end() - 1});
        need(all && row && fill().guards.size() == b.guards.size(), "keep.topk", fmt::format("`{}` does not fill the {} cells of `{}` that `{}` writes", fill().label, b.k, buffer_, b.label), {}, x.stmt->loc);
    }

    /// Where all subscripts are the same words, the window has a dimension for each axis in them; else the dimensions of the buffer.
    void choose_window() {
        const std::vector<Stmt> loops = loops_inside(inside_[0].above, home_);
        by_axes_ = words_agree(loops);
        Decl d = *decl_;
        d.name = unique_name(p_, buffer_ + ".t");
        d.scope = scope_, d.strided = false, d.dims.clear();
        const auto dimension = [&](const Index& e) {
            const auto w = dense(e, fill(), loops);
            need(w.has_value(), "keep.window", fmt::format("`{}` does not fill one box of `{}` in an iteration of `{}`", fill().label, buffer_, as_loop(home_)->var), {}, inside_[0].stmt->loc);
            d.dims.push_back(*w);
        };
        for (const Axis& a : own_axes())
            if (by_axes_) dimension(name(a.name));
        for (const Index& e : filled().subscripts)
            if (!by_axes_) dimension(e);
        window_ = std::move(d);
    }

    std::vector<Axis> own_axes() const {
        std::set<std::string> used;
        for (const Index& e : filled().subscripts) used.merge(names_in(e));
        std::vector<Axis> out;
        std::ranges::copy_if(fill().axes, std::back_inserter(out), [&](const Axis& a) { return used.contains(a.name); });
        return out;
    }

    bool words_agree(const std::vector<Stmt>& loops) const {
        std::set<std::string> used, own;
        bool plain = true;
        for (const Axis& a : own_axes()) own.insert(a.name);
        for (const Index& e : filled().subscripts) {
            used.merge(names_in(e));
            plain &= e->op == IndexOp::Name || !meet(names_in(e), own);
        }
        if (meet(used, names_made_in(as_loop(home_)->body)) || (!plain && !loops.empty())) return false;
        return std::ranges::all_of(inside_, [&](const Place& x) {
            std::set<std::string> here;
            for (const Axis& a : block_of(x).axes)
                if (used.contains(a.name)) here.insert(a.name);
            const auto all = touches(block_of(x));
            return here == own && std::ranges::all_of(all, [&](const Touch& t) { return t.tensor != buffer_ || same(t.subscripts, filled().subscripts); });
        });
    }

    std::vector<Index> subscripts(const std::vector<Index>& words) const {
        if (!by_axes_) return words;
        std::vector<Index> out;
        for (const Axis& a : own_axes()) out.push_back(name(a.name));
        return out;
    }

    static bool mentions_loop(const Access& o, const Loop& l) {
        return std::ranges::any_of(o.subscripts, [&](const Index& e) {
            const auto names = names_in(e);
            return names.contains(l.var) || std::ranges::any_of(l.lets, [&](const Let& x) { return names.contains(x.name); });
        });
    }
    /// Proved from what stands around the loop: inside it, that there is an iteration is known anyway.
    bool runs(const Stmt& loop) const {
        const std::vector<Stmt>& above = inside_[0].above;
        return facts_at(p_, {above.begin(), std::ranges::find(above, loop)}).less(constant(0), as_loop(loop)->extent);
    }

    /// An output, or what is read after the loop, is stored from its window once the last statement that writes it is through.
    void make_store() {
        Block s{unique_name(p_, buffer_ + ".store"), own_axes(), {filled()}, Monoid::None, {load(window_.name, window_.type, subscripts(filled().subscripts))}, {}};
        const std::vector<Stmt> loops = loops_inside(inside_[0].above, home_);
        for (Axis& a : s.axes) {
            const auto w = dense(name(a.name), fill(), loops);
            need(w.has_value(), "keep.window", fmt::format("the range of `{}` belongs to a loop inside `{}`", a.name, as_loop(home_)->var));
            a.base = w->origin, a.size = w->size, a.vector = 1;
        }
        s.guards = fill().guards;
        std::set<std::string> used = names_made_in(as_loop(home_)->body);
        for (const Index& e : filled().subscripts) need(!meet(names_in(e), used), "keep.window", fmt::format("`{}` is subscripted by a loop inside `{}`", buffer_, as_loop(home_)->var), "keep it at that loop");
        for (const Value& g : s.guards) need(!meet(names_in(g), used), "keep.guard", fmt::format("the guard {} of `{}` belongs to a loop inside `{}`", describe(g), fill().label, as_loop(home_)->var), "keep it at that loop");
        for (const Stmt& x : loops)
            need(mentions_loop(filled(), *as_loop(x)) || runs(x), "keep.window", fmt::format("`{}` may not fill `{}` in every iteration of `{}`: the loop `{}` may be empty", fill().label, buffer_, as_loop(home_)->var, as_loop(x)->var),
                 "keep it at that loop", inside_[0].stmt->loc);
        store_ = make_stmt(inside_[0].stmt->loc, std::move(s));
    }

    Stmt rebuilt() const {
        Loop l = *as_loop(home_);
        size_t last = 0;
        for (size_t i = 0; i < l.body.size(); ++i)
            if (written(l.body[i]).contains(buffer_)) last = i;
        l.body = edit(l.body, [&](const Stmt& s) -> std::optional<Body> {
            if (!as_block(s) || !touched(s).contains(buffer_)) return {};
            return Body{renamed(s)};
        });
        if (store_) l.body.insert(l.body.begin() + static_cast<std::ptrdiff_t>(last) + 1, store_);
        l.allocs.push_back(window_);
        return with_node(home_, std::move(l));
    }

    Stmt renamed(const Stmt& s) const {
        const Stmt now = replace_loads(s, [&](const Value& v) { return v->name == buffer_ ? with_source(v, window_.name, subscripts(v->subscripts)) : nullptr; });
        Block b = *as_block(now);
        for (Access& o : b.outs)
            if (o.tensor == buffer_) o = {window_.name, subscripts(o.subscripts)};
        return with_node(s, std::move(b));
    }

    const Program& p_;
    std::string buffer_;
    Scope scope_;
    const Decl* decl_ = nullptr;
    std::vector<Place> users_, inside_;
    Stmt home_, store_;
    Decl window_{};
    bool by_axes_ = false;
};

}  // namespace

Rewrite keep_buffer(const Program& p, const std::string& buffer, const std::string& at, Scope scope) { return Keeper(p, buffer, at, scope).run(); }

}  // namespace acu::ir::pass
