#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/pass/clone.h"
#include "ir/pass/ring.h"
#include "ir/pass/trim_effects.h"

namespace acu::ir::pass {
namespace {

/// The first and the end of the iterations that must run; null: as before.
struct Trips {
    Index first, end;
};

/// A point is absent where `size >= 1`; by which guard (null: a selection).
struct Gap {
    Index size;
    Value guard;
};

class Trimmer {
  public:
    Trimmer(const Program& p, const std::string& loop, const std::string& statement) : p_(p), at_(find_loop(p, loop)), l_(loop_of(at_)), block_(find_block(p, statement)), b_(block_of(block_)), facts_(facts_at(p, at_.above)) {}

    Rewrite run() {
        shape();
        hiding();
        need(!gaps_.empty(), "trim.form", fmt::format("`{}` has no guard on indices, and no selection of -inf by one", b_.label), "", block_.stmt->loc);
        Trips t;
        for (const Gap& g : gaps_) trips(g, t);
        if (!t.first && !t.end) refuse(why_.empty() ? "trim.affine" : why_, said_, helps_, block_.stmt->loc);
        return {replace_stmt(p_, at_.stmt, {rebuilt(t)}), {}};
    }

  private:
    void shape() const {
        need(std::ranges::find(block_.above, at_.stmt) != block_.above.end(), "trim.outside", fmt::format("`{}` is not in `{}`", b_.label, l_.var));
        need(l_.kind == LoopKind::Serial, "trim.kind", fmt::format("`{}` is a {} loop", l_.var, name_of(l_.kind)), "trim the serial loop inside it");
        const bool roles = any_inside(l_.body, [](const Stmt& s) { return std::holds_alternative<Sync>(s->node) || std::holds_alternative<Roles>(s->node); });
        need(!roles, "trim.role", fmt::format("another role counts on all iterations of `{}`", l_.var), "trim before warp_specialize");
        bool ring = false;
        for_each_block(l_.body, [&](const Block& b, Loc) {
            for (const Touch& t : touches(b)) ring |= !t.version.empty();
        });
        need(!ring, "trim.ring", fmt::format("iterations of `{}` are under way ahead of time", l_.var), "trim before pipeline and skew");
        for (const Value& g : b_.guards) need(!(g->op == Op::Const), "trim.form", fmt::format("a guard of `{}` is constant", b_.label));
    }

    /// The conditions, each of which alone makes the statement's points absent: `gap >= 1`.
    void hiding() {
        for (const Value& g : b_.guards) absent_when(unary(Op::Not, g), g);
        for (const Value& v : b_.vals)
            if (v->op == Op::Select) {
                const auto infinite = [&](int i) { return v->args[static_cast<size_t>(i)]->op == Op::Const && v->args[static_cast<size_t>(i)]->number == -INFINITY; };
                if (infinite(1)) absent_when(v->args[0], nullptr);
                else if (infinite(2)) absent_when(unary(Op::Not, v->args[0]), nullptr);
            }
    }
    void absent_when(const Value& c, const Value& guard) {
        if (c->op == Op::Or) return absent_when(c->args[0], guard), absent_when(c->args[1], guard);
        const Value& inner = c->op == Op::Not ? c->args[0] : c;
        if (c->op == Op::Not && inner->op == Op::And) return absent_when(unary(Op::Not, inner->args[0]), guard), absent_when(unary(Op::Not, inner->args[1]), guard);
        if (c->op == Op::Not && inner->op == Op::Not) return absent_when(inner->args[0], guard);
        if (const auto x = comparison(c)) gaps_.push_back({x->right - x->left, guard});
    }

    void nothing() { note("trim.nothing", fmt::format("the condition of `{}` hides no whole iteration of `{}`", b_.label, l_.var), ""); }

    void note(const char* code, std::string message, std::string help) {
        if (why_ == "trim.effect") return;    // the nearest to success
        why_ = code, said_ = std::move(message), helps_ = std::move(help);
    }

    void trips(const Gap& gap, Trips& t) {
        const auto edge = least(ir::substitute(gap.size, derived_names(block_, at_.stmt.get())), box_of(block_, at_.stmt.get()));
        const auto a = edge ? affine(*edge, l_.var) : std::nullopt;
        const auto slope = a ? constant_value(a->coefficient) : std::nullopt;
        if (!slope || !readable(*edge, gap.guard)) return note("trim.affine", fmt::format("the condition of `{}` is not affine in its axes and `{}`", b_.label, l_.var), "trim before axes are fused");
        if (*slope == 0) return note("trim.monotone", fmt::format("the condition of `{}` does not change with `{}`", b_.label, l_.var), "");
        if (const Stmt s = HiddenIteration(p_, at_, *edge).effect())
            return note("trim.effect", fmt::format("`{}` may leave something behind in an iteration of `{}` that `{}` has no points in", as_block(s)->label, l_.var, b_.label), "keep its buffer at that loop, if no other iteration reads it; else only absent terms can be left out: guards, and maxima over -inf");
        std::set<std::string> inner = names_made_in(l_.body);
        for (const Let& x : l_.lets) inner.insert(x.name);
        if (meet(names_in(a->rest), inner)) return note("trim.affine", fmt::format("the condition of `{}` depends on a loop inside `{}`", b_.label, l_.var), "trim before that loop is made");
        // hidden where slope*v + rest >= 1
        const Index rest = a->rest, size = constant(std::abs(*slope));
        if (*slope > 0) {
            const Index end = normal(div(constant(0) - rest, size) + constant(1));
            if (facts_.nonnegative(end - l_.extent)) return nothing();
            t.end = t.end ? binary(IndexOp::Min, t.end, end) : end;
        } else {
            const Index first = normal(div(rest - constant(1), size) + constant(1));
            if (facts_.nonnegative(constant(0) - first)) return nothing();
            t.first = t.first ? binary(IndexOp::Max, t.first, first) : first;
        }
    }

    bool readable(const Index& e, const Value& guard) const {
        const auto from = std::ranges::find(block_.above, at_.stmt);
        const bool asked = std::all_of(from, block_.above.end(), [](const Stmt& s) { return as_loop(s) != nullptr; });
        return !mentions_load(e) || (asked && may_read_outside(p_, b_, e, guard));
    }

    Stmt rebuilt(const Trips& t) const {
        Loop n = l_;
        if (t.end) n.extent = binary(IndexOp::Max, constant(0), binary(IndexOp::Min, n.extent, t.end));
        const Stmt cut = with_node(at_.stmt, n);
        if (!t.first) return cut;
        const Index first = binary(IndexOp::Max, constant(0), t.first);
        n = *as_loop(substitute(cut, {{l_.var, name(l_.var) + first}}));
        n.extent = binary(IndexOp::Max, constant(0), as_loop(cut)->extent - first);
        return with_node(at_.stmt, std::move(n));
    }

    const Program& p_;
    const Place at_;
    const Loop& l_;
    const Place block_;
    const Block& b_;
    const Facts facts_;
    std::vector<Gap> gaps_;
    std::string why_, said_, helps_;
};

/// for j in T { … t = -inf everywhere from some j on … }
/// ->  for j in max(0, min(T, n)) { … }
struct Trim {
    static constexpr std::string_view name = "trim", doc = "leave out the iterations in which a mask or guard hides every point";
    static constexpr std::string_view picture = "for j.o in ceil(J, 4) { acc += …  over i, j in 4*j.o +: 4  where j <= i }\n-> for j.o in max(0, min(ceil(J, 4), (last i)/4 + 1)) { … }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop, SiteKind::Statement}, 2, 2}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) { return Trimmer(site.program, site.names[0], site.names[1]).run(); }
};

}  // namespace

Pass trim_pass() { return make_pass<Trim>(); }

}  // namespace acu::ir::pass
