#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/pass/online_slices.h"

namespace acu::ir::pass {
namespace {

class SplitOnline {
  public:
    SplitOnline(const Program& p, OnlineChain c, const SliceRequest& r) : p_(p), c_(std::move(c)), rows_(axes_of_kind(c_.top(), true)), s_(slices_of(p, c_.max, *axis_of(c_.top(), c_.axis), r, "split_online")) {
        top_ = partial_of(p_, c_.top(), s_, {type_of(c_.max)});
        scale_ = {unique_name(p_, c_.top().label + ".scale"), Scope::Temp, c_.factor_type(), top_.decls[0].dims};
        for (const Place& x : c_.escapes) check_escape(x);
    }

    Rewrite run() {
        Loop l{s_.var, constant(s_.count), s_.kind, AxisKind::Par, {}, {}, {}};
        std::vector<Decl> decls;
        Body after;
        for (const Stmt& s : c_.group) {
            if (s == c_.max.stmt) slice(l.body, decls, c_.max, top_), after.push_back(with_node(s, unbound_join(c_.top(), top_.load_at(name(s_.join))))), after.push_back(scale_statement(decls));
            else if (s == c_.exp.stmt) l.body.push_back(with_node(s, exponential()));
            else if (c_.is_use(s)) use(l.body, after, decls, c_.use_of(s));
            else l.body.push_back(with_node(s, s_.cut(*as_block(s))));
        }
        for (const Stmt& s : c_.fixes(p_)) after.push_back(s);
        Program out = edit_run(p_, c_.labels(), "split_online", [&](Body before, const Body& run, const Body& rest) {
            const Gathered g = gather(run, c_.labels(), "split_online");
            before.insert(before.end(), g.others.begin(), g.others.end());
            before.push_back(make_stmt(c_.max.stmt->loc, std::move(l)));
            before.insert(before.end(), after.begin(), after.end());
            before.insert(before.end(), rest.begin(), rest.end());
            return before;
        });
        for (const Place& x : c_.escapes) out = replace_stmt(std::move(out), x.stmt, {corrected(x)});
        return {declare_slices(std::move(out), c_.max.above, std::move(decls), s_), std::move(lineage_)};
    }

  private:
    DType type_of(const Place& x) const { return buffer_at(p_, x, block_of(x).outs[0].tensor)->type; }

    void check_escape(const Place& x) const {
        const std::string& e = c_.exponential().outs[0].tensor;
        const std::vector<Stmt> home = loops_of(c_.max.above);
        const bool inside = home.empty() || std::ranges::find(x.above, home.back()) != x.above.end();
        need(inside && x.role.empty(), "split_online.escapes", fmt::format("`{}` reads `{}` outside the loop of `{}`", block_of(x).label, e, c_.top().label), "fuse it into the loop", x.stmt->loc);
        for (const Value& g : block_of(x).guards) for_each_load(g, [&](const Value& v) { need(v->name != e, "split_online.escapes", fmt::format("a guard of `{}` reads `{}`", block_of(x).label, e), {}, x.stmt->loc); });
        for (const Value& v : loads_of(block_of(x), e)) need(v->args.empty(), "split_online.escapes", fmt::format("`{}` reads `{}` outside its bounds", block_of(x).label, e), {}, x.stmt->loc);
    }

    void slice(Body& body, std::vector<Decl>& decls, const Place& x, const Partial& w) {
        decls.push_back(w.decls[0]);
        body.push_back(make_stmt(x.stmt->loc, w.inits[0]));
        body.push_back(make_stmt(x.stmt->loc, s_.cut(w.block)));
        for (const std::string& to : {w.inits[0].label, w.block.label}) lineage_.push_back({block_of(x).label, to, Part::Partial});
    }

    Block unbound_join(const Block& b, const Value& v) const {
        Block out = joined(b, s_, {v});
        out.via.clear();
        return out;
    }

    /// A value of a slice at a row; `rows`: the axes of the maximum as words.
    Value of_slice(const Decl& d, const Index& slice, const IndexMap& rows) const {
        std::vector<Index> at{slice};
        for (const Axis& a : rows_) at.push_back(rows.at(a.name));
        return load(d.name, d.type, std::move(at));
    }

    /// What a slice's own maximum is corrected by. Where others read the exponentials, a slice with the maximum itself needs no correction, be it infinite.
    Stmt scale_statement(std::vector<Decl>& decls) {
        decls.push_back(scale_);
        Block b{scale_.name, rows_, {{scale_.name, names_of(rows_)}}, Monoid::None, {}, without(c_.top().guards, {c_.axis})};
        b.outs[0].subscripts.insert(b.outs[0].subscripts.begin(), name(s_.join));
        b.axes.push_back({s_.join, AxisKind::Par, constant(0), constant(s_.count)});
        const Value mine = top_.load_at(name(s_.join)), all = load(c_.top().outs[0].tensor, type_of(c_.max), c_.top().outs[0].subscripts);
        const Value factor = c_.factor(mine, all);
        b.vals = {c_.escapes.empty() ? factor : select(binary(Op::Eq, mine, all), number(1, factor->type), factor)};
        lineage_.push_back({c_.top().label, b.label, Part::Derived});
        return make_stmt(c_.max.stmt->loc, std::move(b));
    }

    Block exponential() const {
        Block e = s_.cut(c_.exponential());
        e.vals = {c_.with_reference(of_slice(top_.decls[0], name(s_.var), c_.rows))};
        return e;
    }

    void use(Body& body, Body& after, std::vector<Decl>& decls, const OnlineUse& u) {
        const Partial w = partial_of(p_, u.block(), s_, {type_of(u.at)});
        slice(body, decls, u.at, w);
        after.push_back(with_node(u.at.stmt, unbound_join(u.block(), binary(Op::Mul, w.load_at(name(s_.join)), of_slice(scale_, name(s_.join), u.rows)))));
    }

    /// Readers of the exponentials see them corrected, and NaN where the definition subtracts -inf from -inf.
    Stmt corrected(const Place& x) const {
        Block b = block_of(x);
        const Block& e = c_.exponential();
        for (Value& v : b.vals)
            v = replace(v, [&](const Value& l) -> Value {
                if (l->op != Op::Load || l->name != e.outs[0].tensor) return nullptr;
                IndexMap words, rows;
                for (size_t d = 0; d < l->subscripts.size(); ++d) words[e.outs[0].subscripts[d]->name] = l->subscripts[d];
                for (const auto& [axis, word] : c_.rows) rows[axis] = substitute(word, words);
                const Value now = binary(Op::Mul, l, of_slice(scale_, normal(div(words.at(c_.axis) - s_.base, s_.length)), rows)), m = c_.top_at(rows);
                if (!c_.corrects) return now;
                return select(binary(Op::Eq, m, number(-std::numeric_limits<double>::infinity(), m->type)), number(std::numeric_limits<double>::quiet_NaN(), now->type), now);
            });
        return with_node(x.stmt, std::move(b));
    }

    const Program& p_;
    OnlineChain c_;
    std::vector<Axis> rows_;
    Slices s_;
    Partial top_{};
    Decl scale_{};
    std::vector<Lineage> lineage_;
};

}  // namespace

Rewrite online_in_slices(const Program& p, OnlineChain chain, const SliceRequest& r) { return SplitOnline(p, std::move(chain), r).run(); }

}  // namespace acu::ir::pass
