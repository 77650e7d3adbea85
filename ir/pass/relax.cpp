#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/padded.h"

namespace acu::ir::pass {
namespace {

class Relaxing {
  public:
    Relaxing(const Program& p, const std::string& label, const std::vector<std::string>& finite) : program_(p), at_(find_block(p, label)), block_(block_of(at_)), finite_(finite.begin(), finite.end()) {
        for (const Value& g : block_.guards) {
            const bool reduced = std::ranges::any_of(block_.axes, [&](const Axis& a) { return a.kind != AxisKind::Par && mentions(g, a.name); });
            if (!axes_of(g).empty() && (is_sum() || !reduced)) dropped_.push_back(g);
        }
    }

    Program run() {
        if (is_sum()) check_sum();
        else check_cell();
        for (const Value& g : dropped_) check_guard(g);
        Program out = replace_stmt(program_, at_.stmt, {stripped(at_.stmt)});
        for (const Stmt& init : fills_) out = replace_stmt(std::move(out), init, {stripped(init)});
        return out;
    }

  private:
    bool is_sum() const { return block_.monoid == Monoid::Sum && block_.outs.size() == 1 && !is_scatter(block_) && std::ranges::any_of(block_.axes, [](const Axis& a) { return a.kind == AxisKind::Red; }); }

    /// Each cell is computed by itself. Those beyond the guard were never written, so nobody reads them, and they may hold anything.
    void check_cell() {
        need(block_.outs.size() == 1 && !is_scatter(block_), "relax.sum", fmt::format("`{}` does not write one buffer", block_.label), {}, at_.stmt->loc);
        need(!dropped_.empty(), "relax.none", fmt::format("`{}` has no guard on the axes of its cells", block_.label), {}, at_.stmt->loc);
        for (const Stmt& s : block_stmts(program_.body)) {
            if (s == at_.stmt || !written(s).contains(block_.outs[0].tensor)) continue;
            for (const Value& g : dropped_)
                need(contains(as_block(s)->guards, g), "relax.writers", fmt::format("`{}` writes `{}` where {} fails, too", as_block(s)->label, block_.outs[0].tensor, describe(g)), "relax it last", s->loc);
        }
        std::vector<Value> loads;
        for (const Value& v : block_.vals)
            for_each_load(v, [&](const Value& x) { loads.push_back(x); });
        std::erase_if(loads, [&](const Value& x) { return !buffer_at(program_, at_, x->name) || buffer_at(program_, at_, x->name)->scope == Scope::Param; });
        factors_ = factors_at(program_, at_, loads);
    }

    void check_sum() {
        need(!dropped_.empty(), "relax.none", fmt::format("`{}` has no guard on its axes", block_.label), {}, at_.stmt->loc);
        const Factors f = ir::pass::factors(block_.vals[0]);
        need(f.den.empty(), "relax.sum", fmt::format("`{}` divides", block_.label), "hoist the divisor first", at_.stmt->loc);
        factors_ = factors_at(program_, at_, f.num);
        for (const Factor& x : factors_) need(x.decl, "relax.product", fmt::format("a factor of `{}` is not a load", block_.label), "outline it and keep it", at_.stmt->loc);
    }

    void check_guard(const Value& g) {
        bool reduced = false, spatial = false;
        for (const Axis& a : block_.axes)
            if (mentions(g, a.name)) (a.kind == AxisKind::Par ? spatial : reduced) = true;
        for (const Factor& f : factors_) {
            if (!meet(names_in(f.load), axes_of(g))) continue;
            const std::string why = not_total(program_, at_, f);
            need(why.empty(), "relax.total", fmt::format("`{}`, which `{}` reads beyond its guard {}, {}", f.decl->name, block_.label, describe(g), why), "stage and pad it", at_.stmt->loc);
        }
        if (reduced) check_zero(g);
        if (spatial) check_cells(g);
    }

    std::set<std::string> axes_of(const Value& g) const {
        std::set<std::string> out;
        for (const Axis& a : block_.axes)
            if (mentions(g, a.name)) out.insert(a.name);
        return out;
    }

    /// Where the guard fails, the addend must be 0: one factor is, and no other can be infinite or NaN there.
    void check_zero(const Value& g) const {
        const bool floats = is_float(block_.vals[0]->type);
        const Factor* open = nullptr;
        bool zero = false;
        for (const Factor& f : factors_) {
            if (zero_unless(program_, g, f)) zero = true;
            else if (floats && !finite_.contains(f.decl->name)) open = &f;
        }
        need(zero, "relax.zero", fmt::format("no factor of `{}` is 0 where {} fails", block_.label, describe(g)), "pad the copies that it reads", at_.stmt->loc);
        need(!open, "relax.finite", fmt::format("`{}` may be infinite or NaN where {} fails, and 0 times that is not 0", open ? open->decl->name : "", describe(g)),
             "pad it, too, or name it in `finite` if its values are known to be finite", at_.stmt->loc);
    }

    /// The cells that the guard kept away are in the window, and are filled.
    void check_cells(const Value& g) {
        const Decl& d = *buffer_at(program_, at_, block_.outs[0].tensor);
        need(d.scope >= Scope::Register && d.ring.versions == 0, "relax.out", fmt::format("`{}` has no cells where {} fails", d.name, describe(g)), "keep it in the loop", at_.stmt->loc);
        for (const std::string& n : axes_of(g)) {
            const Axis& a = *axis_of(block_, n);
            if (a.kind != AxisKind::Par) continue;
            int found = 0;
            for (size_t i = 0; i < d.dims.size(); ++i)
                found += is_name(block_.outs[0].subscripts[i], n) && same(a.base, d.dims[i].origin) && same(a.size, d.dims[i].size);
            need(found == 1, "relax.out", fmt::format("the window of `{}` is not the range of `{}`", d.name, n), {}, at_.stmt->loc);
        }
        for (const Stmt& s : block_stmts(program_.body)) {
            if (s == at_.stmt) break;
            const Block& b = *as_block(s);
            if (b.monoid != Monoid::None || !written(s).contains(d.name)) continue;
            if (b.guards.empty() && fills_whole(b, d)) continue;
            need(is_fill(b) && fills_whole(b, d), "relax.init", fmt::format("`{}` does not fill the cells of `{}` where {} fails", b.label, d.name, describe(g)), {}, s->loc);
            if (std::ranges::find(fills_, s) == fills_.end()) fills_.push_back(s);
        }
    }

    Stmt stripped(const Stmt& s) const {
        Block b = *as_block(s);
        if (s == at_.stmt) std::erase_if(b.guards, [&](const Value& g) { return contains(dropped_, g); });
        else {
            std::set<std::string> own;
            for (const Axis& a : b.axes) own.insert(a.name);
            b.guards = without(b.guards, own);
        }
        return with_node(s, std::move(b));
    }

    const Program& program_;
    Place at_;
    const Block& block_;
    std::set<std::string> finite_;
    std::vector<Value> dropped_;
    std::vector<Factor> factors_;
    std::vector<Stmt> fills_;
};

/// acc[m, n] += x.t[m, k]*w.t[n, k] where k < K  ->  acc[m, n] += x.t[m, k]*w.t[n, k]
struct Relax {
    static constexpr std::string_view name = "relax", doc = "a sum of products of padded tiles loses its guards: beyond them it adds zeros, or fills cells that nobody reads; so does what is computed cell by cell from whole tiles";
    static constexpr std::string_view picture = "acc[m, n] += x.t[m, k]*w.t[n, k] over … where m < M; k < K\n-> acc[m, n] += x.t[m, k]*w.t[n, k] over …";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::vector<std::string> finite;
        static constexpr auto fields = std::tuple{optional("finite", &Params::finite, +[] { return names(); }, "buffers that the author vouches for: what is masked in them is neither infinite nor NaN")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) out.program = Relaxing(out.program, label, p.finite).run();
        return out;
    }
};

}  // namespace

Pass relax_pass() { return make_pass<Relax>(); }

}  // namespace acu::ir::pass
