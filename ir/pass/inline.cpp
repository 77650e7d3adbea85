#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// A temporary's only definition, and what its uses are replaced by.
class Inliner {
  public:
    Inliner(const Program& p, const std::string& label) : p_(p), at_(find_block(p, label)), b_(block_of(at_)) {}

    Rewrite run() {
        shape();
        for (const Stmt& s : loops_of(at_.above)) note_loop(*as_loop(s));
        Program out = edit_run(p_, {b_.label}, "inline", [&](Body before, const Body&, Body after) {
            earlier(before);
            hazards(after);
            for (Stmt& s : after) s = replaced(s);
            before.insert(before.end(), after.begin(), after.end());
            return before;
        });
        std::set<std::string> left = touched(out.body);
        need(!left.contains(buffer()), "inline.scope", fmt::format("`{}` is used where its definition does not stand before it", buffer()), "move the definition into the loop of its uses with `fuse` or `compute_at`", at_.stmt->loc);
        return {without_buffer(std::move(out), decl_.name), {}};
    }

  private:
    const std::string& buffer() const { return b_.outs[0].tensor; }

    bool is_axis(const Index& e) const { return e->op == IndexOp::Name && axis_of(b_, e->name); }

    void shape() {
        const Decl* d = b_.outs.empty() ? nullptr : buffer_at(p_, at_, buffer());
        need(b_.monoid == Monoid::None && b_.outs.size() == 1 && b_.via.empty() && d && !d->ring.versions && !is_scatter(b_), "inline.shape", fmt::format("`{}` is no plain definition of one buffer", b_.label), "only elementwise statements can be inlined", at_.stmt->loc);
        decl_ = *d;
        need(d->scope != Scope::Out, "inline.temporary", fmt::format("`{}` is an output", buffer()), "only a temporary can be inlined", at_.stmt->loc);
        for (const Stmt& s : block_stmts(p_.body))
            for (const Access& o : as_block(s)->outs)
                need(s == at_.stmt || o.tensor != buffer(), "inline.temporary", fmt::format("`{}` is written by `{}`, too", buffer(), as_block(s)->label), "", s->loc);
        std::set<std::string> seen;
        for (const Index& e : b_.outs[0].subscripts)
            if (is_axis(e)) seen.insert(e->name);
        const bool plain = std::ranges::none_of(b_.outs[0].subscripts, [&](const Index& e) { return !is_axis(e) && meet(names_in(e), seen); });
        need(seen.size() == b_.axes.size() && plain, "inline.shape", fmt::format("the subscripts of `{}` are not the axes of `{}`", buffer(), b_.label), "", at_.stmt->loc);
        const DType to = widened(decl_.type), from = b_.vals[0]->type;
        need((from == to && decl_.type == to) || (is_float(from) && is_float(to)), "inline.type", fmt::format("`{}` holds {}, but its value is {}", buffer(), name_of(decl_.type), name_of(from)), "", at_.stmt->loc);
        need(!tensors_read(b_).contains(buffer()), "inline.shape", fmt::format("`{}` reads itself", buffer()), "", at_.stmt->loc);
        need(!index_loaded(p_).contains(buffer()), "inline.index", fmt::format("`{}` subscripts another buffer", buffer()), "an index is an integer that lies in memory", at_.stmt->loc);
    }

    /// Names of the loops in which the buffer lives on from one iteration to the next, and whether the inputs change in them.
    void note_loop(const Loop& l) {
        if (std::ranges::find(l.allocs, decl_.name, &Decl::name) != l.allocs.end()) {
            carried_.clear(), inputs_change_ = false;
            return;
        }
        carried_.insert(l.var);
        for (const Let& x : l.lets) carried_.insert(x.name);
        inputs_change_ |= meet(written(l.body), tensors_read(b_));
    }

    /// What the definition takes from such loops must be pinned by a subscript, or it must define the same cells each time: else a use could mean an older cell.
    void fresh(const std::vector<Index>& at) const {
        std::set<std::string> depends = names_in(b_.vals[0]), range;
        for (const Axis& a : b_.axes) range.merge(names_in(a.base)), range.merge(names_in(a.size));
        for (const Value& g : b_.guards) range.merge(names_in(g));
        std::set<std::string> loops = carried_;
        for (size_t d = 0; d < at.size(); ++d) {
            const Index& e = b_.outs[0].subscripts[d];
            if (is_axis(e)) continue;
            need(same(e, at[d]), "inline.cell", fmt::format("`{}[{}]` is used where this iteration defines `{}[{}]`", buffer(), print_all(at), buffer(), print_all(b_.outs[0].subscripts)), "", at_.stmt->loc);
            if (e->op == IndexOp::Name) loops.erase(e->name);
        }
        const bool varies = meet(depends, loops) || (inputs_change_ && !loops.empty());
        need(!varies || (!meet(range, loops) && b_.guards.empty()), "inline.stale", fmt::format("a use of `{}` may mean a cell that an earlier iteration defined", buffer()), fmt::format("`keep` `{}` in the innermost loop first", buffer()), at_.stmt->loc);
    }
    static std::string print_all(const std::vector<Index>& at) {
        std::string s;
        for (const Index& e : at) s += (s.empty() ? "" : ", ") + print(e);
        return s;
    }

    void earlier(const Body& before) const {
        need(!touched(before).contains(buffer()), "inline.scope", fmt::format("`{}` is used before `{}` defines it, by an earlier iteration", buffer(), b_.label), "", at_.stmt->loc);
    }

    /// Up to the last use, nothing changes what the definition reads.
    void hazards(const Body& after) const {
        const std::set<std::string> inputs = tensors_read(b_);
        auto last = after.end();
        while (last != after.begin() && !loads(*(last - 1), buffer())) --last;
        for (const Stmt& s : Body(after.begin(), last)) {
            for (const std::string& t : written(s))
                need(!inputs.contains(t), "inline.overwritten", fmt::format("`{}`, which `{}` reads, changes before `{}` is used", t, b_.label, buffer()), "", s->loc);
            need(!holds_sync(s), "inline.sync", fmt::format("signals stand between `{}` and its uses", b_.label), "inline before warp_specialize", s->loc);
        }
    }

    Stmt replaced(const Stmt& s) const {
        for (const Stmt& x : block_stmts({s}))
            need(as_block(x)->via.empty() || !loads(x, buffer()), "inline.bound", fmt::format("`{}` is done by the microkernel `{}`, which reads `{}`", as_block(x)->label, as_block(x)->via, buffer()), "inline before `bind_mma`", x->loc);
        return map_expressions(s, [&](const Value& v) { return ir::replace(v, [&](const Value& x) { return use(x); }); }, [](const Index& e) { return e; });
    }

    Value use(const Value& v) const {
        if (v->op != Op::Load || v->name != buffer()) return nullptr;
        fresh(v->subscripts);
        IndexMap now;
        for (size_t d = 0; d < v->subscripts.size(); ++d)
            if (const Index& e = b_.outs[0].subscripts[d]; is_axis(e)) now[e->name] = v->subscripts[d];
        const Value value = cast(decl_.type, ir::substitute(b_.vals[0], now));
        if (v->args.empty()) return value;
        return select(in_box(v->subscripts, decl_.dims), value, ir::replace(v->args[0], [&](const Value& x) { return use(x); }));
    }

    const Program& p_;
    Place at_;
    const Block& b_;
    Decl decl_{};
    std::set<std::string> carried_;
    bool inputs_change_ = false;
};

/// t[i] = f(i);  y[i] = g(t[e])  ->  y[i] = g(f(e))
struct Inline {
    static constexpr std::string_view name = "inline", doc = "compute a temporary where it is used: `inline(g)`";
    static constexpr std::string_view picture = "t[i] = f(i) over i; y[i] = g(t[i + 1]) over i\n-> y[i] = g(f(i + 1)) over i";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) { return Inliner(site.program, site.name()).run(); }
};

}  // namespace

Pass inline_pass() { return make_pass<Inline>(); }

}  // namespace acu::ir::pass
