#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/pass/terms.h"

namespace acu::ir::pass {
namespace {

class Hoisting {
  public:
    Hoisting(const Program& p, const std::string& label) : program_(p), at_(find_block(p, label)), block_(block_of(at_)), facts_(facts_at(p, at_.above)), reduced_(reduced_names(block_)) {}

    Rewrite run() {
        check_sum();
        sort_factors();
        const Decl& target = *buffer_at(program_, at_, block_.outs[0].tensor);
        const std::vector<Axis> pars = axes_of_kind(block_, true);
        const std::string w = unique_name(program_, block_.label + ".w");
        const Decl decl{w, Scope::Register, promote(widened(target.type), block_.vals[0]->type), windows_of(pars)};
        Block init{unique_name(program_, w + ".init"), pars, {{w, names_of(pars)}}, Monoid::None, {number(0, widened(decl.type))}, without(block_.guards, reduced_)};
        Block sum = block_;
        sum.label = w, sum.outs = init.outs, sum.vals = {quotient(product_of(stay_.num), stay_.den)};
        Block tail = rest(load(w, decl.type, names_of(pars)));
        const Loc loc = at_.stmt->loc;
        Rewrite out{replace_stmt(program_, at_.stmt, {make_stmt(loc, init), make_stmt(loc, std::move(sum)), with_node(at_.stmt, std::move(tail))}), {{block_.label, w, Part::Partial}, {block_.label, init.label, Part::Partial}}};
        out.program = declare(std::move(out.program), at_.above, {decl});
        return out;
    }

  private:
    void check_sum() const {
        const bool sum = block_.monoid == Monoid::Sum && block_.outs.size() == 1 && !is_scatter(block_) && block_.outs[0].version.empty();
        need(sum && !reduced_.empty() && is_float(block_.vals[0]->type), "hoist.sum", fmt::format("`{}` is not a sum of floats over an axis", block_.label), {}, at_.stmt->loc);
        need(std::ranges::none_of(block_.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; }), "hoist.sum", fmt::format("`{}` is a scan", block_.label), {}, at_.stmt->loc);
    }

    static Value quotient(const Value& num, const std::vector<Value>& den) { return den.empty() ? num : binary(Op::Div, num, product_of(den)); }

    void sort_factors() {
        const Factors all = factors(block_.vals[0]);
        const auto sort = [&](const std::vector<Value>& from, std::vector<Value>& out, std::vector<Value>& stay) {
            for (const Value& v : from) {
                const Value settled_v = meet(names_in(v), reduced_) ? settled(v) : v;
                const bool constant_here = !meet(names_in(settled_v), inside_);
                (constant_here ? out : stay).push_back(constant_here ? settled_v : v);
            }
        };
        for (const Axis& a : axes_of_kind(block_, false)) inside_.insert(a.name), inside_.insert(a.name + "#");
        sort(all.num, out_.num, stay_.num);
        sort(all.den, out_.den, stay_.den);
        std::vector<std::string> names(reduced_.begin(), reduced_.end());
        need(!out_.num.empty() || !out_.den.empty(), "hoist.none", fmt::format("no factor of `{}` is constant over {}", block_.label, fmt::join(names, ", ")), "inline the factors, or tile the axis so that one is constant in a tile", at_.stmt->loc);
        need(!stay_.num.empty(), "hoist.all", fmt::format("nothing would be left to sum in `{}`", block_.label), {}, at_.stmt->loc);
    }

    /// The value with reduced axes counted from their base, where `(c*o + t)/c` is `o`, `(c*o + t)%c` is `t` and `(c*o + t)/(c*d)` is `o/d` for 0 <= t < c.
    Value settled(const Value& v) const {
        IndexMap shift;
        Facts f = facts_;
        for (const Axis& a : axes_of_kind(block_, false)) {
            shift[a.name] = a.base + name(a.name + "#");
            f.add_range(a.name + "#", constant(0), a.size);
        }
        const std::function<Index(const Index&)> reduce = [&](const Index& e) {
            const Index n = map_args(normal(e), reduce);
            if ((n->op != IndexOp::Div && n->op != IndexOp::Mod) || !is_const(n->args[1]) || n->args[1]->value <= 0) return n;
            if (f.nonnegative(n->args[0]) && f.less(n->args[0], n->args[1])) return n->op == IndexOp::Div ? constant(0) : n->args[0];
            if (n->op == IndexOp::Mod || !reads_inside(n)) return n;
            for (int64_t d = n->args[1]->value / 2; d > 1; --d) {
                if (n->args[1]->value % d != 0) continue;
                const Index part = normal(reduce(div(n->args[0], constant(n->args[1]->value / d))));
                if (!reads_inside(part)) return div(part, constant(d));
            }
            return n;
        };
        const std::function<Value(const Value&)> inside = [&](const Value& x) { return map_parts(x, inside, [&](const Index& e) { return normal(reduce(e)); }); };
        return inside(substitute(v, shift));
    }

    bool reads_inside(const Index& e) const {
        return std::ranges::any_of(inside_, [&](const std::string& n) { return mentions(e, n); });
    }

    /// What is left: the factors times the sum. Where the sum has no term, they may not exist, and 0 divided by one need not be 0.
    Block rest(const Value& sum) const {
        Facts f = facts_;
        for (const Axis& a : axes_of_kind(block_, true)) f.add_range(a.name, a.base, a.size);
        for (const Value& g : without(block_.guards, reduced_)) f.add(g);
        const Terms terms = some_term(block_, f);
        need(terms.known, "hoist.guard", fmt::format("it is not known where `{}` has a term: a guard is no bound of one axis", block_.label), {}, at_.stmt->loc);
        std::vector<Value> num = out_.num;
        num.insert(num.begin(), sum);
        Value v = quotient(product_of(num), out_.den);
        for (const Value& c : terms.of_sizes) v = select(c, v, number(0, v->type));
        Block b = block_;
        b.axes = axes_of_kind(block_, true);
        b.vals = {v};
        b.guards = without(block_.guards, reduced_);
        b.guards.insert(b.guards.end(), terms.of_guards.begin(), terms.of_guards.end());
        b.via.clear();
        return b;
    }

    const Program& program_;
    Place at_;
    const Block& block_;
    Facts facts_;
    std::set<std::string> reduced_, inside_;
    Factors stay_, out_;
};

/// acc[m] += x[m, k]*s[m, k/4] over k! in 4*k.o +: 4  ->  acc.w[m] = 0; acc.w[m] += x[m, k] over k!; acc[m] += acc.w[m]*s[m, k.o]
struct Hoist {
    static constexpr std::string_view name = "hoist", doc = "take factors and divisors that are constant over the reduced axes out of a sum";
    static constexpr std::string_view picture = "o[i] += e[i, j]/l[i]*v[j] over j!\n-> o.w[i] = 0; o.w[i] += e[i, j]*v[j] over j!; o[i] += o.w[i]/l[i]";
    static constexpr Rounding rounding = Rounding::Reassociates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) { return Hoisting(site.program, site.name()).run(); }
};

}  // namespace

Pass hoist_pass() { return make_pass<Hoist>(); }

}  // namespace acu::ir::pass
