#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/pass/online_tiles.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// The largest power of two that a value of the type may reach with room to spare.
int64_t exponent_limit(DType t) {
    switch (t) {
        case DType::F16: return 15;
        case DType::F8E5M2: return 15;
        case DType::F8E4M3: return 8;
        default: return 100;
    }
}

class Online {
  public:
    Online(const Program& p, OnlineChain c, int64_t tile, int64_t threshold) : p_(p), c_(std::move(c)), threshold_(threshold), rows_(axes_of_kind(c_.top(), true)), guards_(without(c_.top().guards, {c_.axis})) {
        const Axis& a = *axis_of(c_.top(), c_.axis);
        base_ = a.base, size_ = a.size, tile_ = tile;
        const auto fixed = constant_value(size_);
        whole_ = fixed && *fixed <= tile;
        var_ = tile_loop_name(p_, c_.axis);
        type_ = buffer_at(p_, c_.max, c_.top().outs[0].tensor)->type;
        old_ = state(".old", type_), scale_ = state(".scale", c_.factor_type()), best_ = state(".tile", type_);
        for (const Place& x : c_.escapes) refuse("online.escapes", fmt::format("`{}` reads `{}` after the loop", block_of(x).label, c_.exponential().outs[0].tensor), "inline the exponential there, or use split_online", x.stmt->loc);
        if (threshold_ > 0) check_lazy();
    }

    Rewrite run() {
        Loop l{var_, normal(ceil_div(size_, constant(tile_))), LoopKind::Serial, AxisKind::Red, {}, {old_, scale_}, {}};
        if (threshold_ > 0) l.allocs.insert(l.allocs.begin() + 1, best_);
        for (const Stmt& s : c_.group)
            if (s != c_.max.stmt && s != c_.exp.stmt && !c_.is_use(s)) l.body.push_back(cut(s));
        maximum(l.body);
        for (const OnlineUse& u : c_.uses) use(l.body, u);
        const std::vector<Stmt> fixes = c_.fixes(p_);
        Rewrite out{edit_run(p_, c_.labels(), "online", [&](Body before, const Body& run, const Body& after) {
                        const Gathered g = gather(run, c_.labels(), "online");
                        before.insert(before.end(), g.others.begin(), g.others.end());
                        before.push_back(make_stmt(c_.max.stmt->loc, std::move(l)));
                        before.insert(before.end(), fixes.begin(), fixes.end());
                        before.insert(before.end(), after.begin(), after.end());
                        return before;
                    }),
                    std::move(lineage_)};
        for (size_t i = 0; i < fixes.size(); ++i) out.lineage.push_back({c_.uses[i].block().label, as_block(fixes[i])->label, Part::Derived});
        out.lineage.push_back({c_.top().label, var_, Part::Outer});
        return out;
    }

  private:
    /// A value of each row.
    Decl state(const char* suffix, DType type) const { return {unique_name(p_, c_.top().label + suffix), Scope::Register, type, windows_of(rows_)}; }
    Value at_rows(const Decl& d) const { return load(d.name, d.type, names_of(rows_)); }
    Value top() const { return load(c_.top().outs[0].tensor, type_, c_.top().outs[0].subscripts); }

    /// A reference that lags behind is nobody else's maximum, and lets exponentials grow up to the threshold.
    void check_lazy() const {
        const std::string& m = c_.top().outs[0].tensor;
        const Stmt fill = fill_of(p_, c_.top());
        need(buffer_at(p_, c_.max, m)->scope != Scope::Out, "online.lazy", fmt::format("`{}` is an output, and a lazy reference is no maximum", m), "rescale = textbook");
        for (const Stmt& s : block_stmts(p_.body)) {
            const bool ours = s == fill || std::ranges::find(c_.group, s) != c_.group.end();
            need(ours || !touched(s).contains(m), "online.lazy", fmt::format("`{}` reads the maximum itself, and a lazy reference is none", as_block(s)->label), "rescale = textbook", s->loc);
        }
        const std::string& e = c_.exponential().outs[0].tensor;
        int64_t limit = exponent_limit(buffer_at(p_, c_.exp, e)->type);
        for (const OnlineUse& u : c_.uses)
            visit(u.block().vals[0], [&](const ValueNode& n) {
                if (n.op == Op::Cast) limit = std::min(limit, exponent_limit(*type_named(n.name)));
            });
        const bool natural = print(c_.exponential().vals[0]).find("exp(") != std::string::npos;
        const auto reach = static_cast<int64_t>(static_cast<double>(threshold_) * (natural ? 1.4427 : 1.0)) + (natural ? 1 : 0);
        need(reach <= limit, "online.range", fmt::format("exponentials up to 2^{} do not fit where `{}` is stored or rounded, at most 2^{}", reach, e, limit), "a smaller threshold", c_.exp.stmt->loc);
    }

    Block cut(Block b) const {
        const auto a = std::ranges::find(b.axes, c_.axis, &Axis::name);
        a->base = normal(base_ + constant(tile_) * name(var_));
        a->size = whole_ ? size_ : constant(tile_);
        const Value guard = below(name(c_.axis), normal(base_ + size_));
        if (!whole_ && !divides(p_, size_, tile_) && !contains(b.guards, guard)) add_guard(b, guard);
        return b;
    }
    Stmt cut(const Stmt& s) const { return with_node(s, cut(*as_block(s))); }

    Stmt add(Block b, const Place& from) {
        lineage_.push_back({block_of(from).label, b.label, Part::Derived});
        return make_stmt(from.stmt->loc, std::move(b));
    }
    Stmt row_statement(const Decl& d, const Value& v) { return add({d.name, rows_, {{d.name, names_of(rows_)}}, Monoid::None, {v}, guards_}, c_.max); }

    void maximum(Body& out) {
        out.push_back(row_statement(old_, top()));
        if (threshold_ == 0) out.push_back(cut(c_.max.stmt));
        else {
            const double bottom = -std::numeric_limits<double>::infinity();
            out.push_back(add({best_.name + ".init", rows_, {{best_.name, names_of(rows_)}}, Monoid::None, {number(bottom, widened(type_))}, guards_}, c_.max));
            Block b = cut(c_.top());
            b.label = best_.name, b.outs = {{best_.name, names_of(rows_)}};
            out.push_back(add(std::move(b), c_.max));
            const Value best = at_rows(best_), ahead = binary(Op::Lt, binary(Op::Add, top(), number(static_cast<double>(threshold_), widened(type_))), best);
            out.push_back(with_node(c_.max.stmt, Block{c_.top().label, rows_, c_.top().outs, Monoid::None, {select(ahead, best, top())}, guards_}));
        }
        out.push_back(row_statement(scale_, c_.factor(at_rows(old_), top())));
        Block e = cut(c_.exponential());
        e.vals = {c_.with_reference(c_.top_at(c_.rows))};
        out.push_back(with_node(c_.exp.stmt, std::move(e)));
    }

    void use(Body& out, const OnlineUse& u) {
        const Block& b = u.block();
        std::vector<Index> row;
        for (const Axis& a : rows_) row.push_back(u.rows.at(a.name));
        out.push_back(add({unique_name(p_, b.label + ".rescale"), axes_of_kind(b, true), b.outs, Monoid::Prod, {load(scale_.name, scale_.type, row)}, without(b.guards, reduced_names(b))}, u.at));
        out.push_back(cut(u.at.stmt));
    }

    const Program& p_;
    OnlineChain c_;
    int64_t tile_ = 0, threshold_;    ///< 0: textbook
    std::vector<Axis> rows_;
    std::vector<Value> guards_;
    Index base_, size_;
    bool whole_ = false;
    std::string var_;
    DType type_ = DType::F32;
    Decl old_{}, scale_{}, best_{};
    std::vector<Lineage> lineage_;
};

}  // namespace

Rewrite online_in_tiles(const Program& p, OnlineChain chain, int64_t tile, int64_t threshold) { return Online(p, std::move(chain), tile, threshold).run(); }

}  // namespace acu::ir::pass
