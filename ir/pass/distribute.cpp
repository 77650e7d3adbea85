#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/ring.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// The two loops that one becomes: all iterations of `front` run before the first of `back`.
class Distributor {
  public:
    Distributor(const Program& p, const std::string& loop, std::string before) : p_(p), at_(find_loop(p, loop)), l_(loop_of(at_)), label_(std::move(before)), facts_(facts_at(p, at_.above)) { facts_.add_range(l_.var, constant(0), l_.extent); }

    Rewrite run() {
        shape();
        const auto cut = l_.body.begin() + static_cast<std::ptrdiff_t>(cut_at());
        front_.body.assign(l_.body.begin(), cut), back_.body.assign(cut, l_.body.end());
        control();
        owners();
        for (const Inside& a : blocks_inside(front_))
            for (const Inside& b : blocks_inside(back_)) apart(a, b);
        return build();
    }

  private:
    void shape() const {
        need(at_.role.empty() && !holds_sync(at_.stmt), "distribute.role", fmt::format("`{}` holds roles or signals between them, or stands in a role: they count its iterations", l_.var), "distribute before warp_specialize", at_.stmt->loc);
        bool ring = std::ranges::any_of(l_.allocs, [](const Decl& d) { return d.ring.versions > 0; });
        for_each_block(l_.body, [&](const Block& b, Loc) { ring |= std::ranges::any_of(touches(b), [](const Touch& t) { return !t.version.empty(); }); });
        need(!ring, "distribute.ring", fmt::format("versions of a ring pass between iterations of `{}` or of a loop inside", l_.var), "distribute before pipeline, skew and prefetch", at_.stmt->loc);
    }

    /// A reduction takes the fill along that stands directly before it.
    size_t cut_at() const {
        const Place b = find_block(p_, label_);
        const auto holds = [&](const Stmt& s, const std::vector<std::string>& labels) { return std::ranges::any_of(labels, [&](const std::string& x) { return labels_in(s).contains(x); }); };
        const auto found = std::ranges::find_if(l_.body, [&](const Stmt& s) { return holds(s, {block_of(b).label}); });
        need(found != l_.body.end(), "distribute.outside", fmt::format("`{}` is not in `{}`", label_, l_.var), "name a statement of the loop: it begins the second one", b.stmt->loc);
        auto cut = static_cast<size_t>(found - l_.body.begin());
        while (cut > 0 && as_block(l_.body[cut - 1]) && is_fill(*as_block(l_.body[cut - 1])) && holds(l_.body[cut - 1], with_fills(p_, {label_}))) --cut;
        const Loop* inner = cut == 0 ? as_loop(l_.body[0]) : nullptr;
        const bool deeper = inner && !inner->body.empty() && !holds(inner->body[0], {block_of(b).label});
        need(cut > 0, "distribute.nothing", fmt::format("nothing of `{}` stands before `{}` and its fill", l_.var, label_), deeper ? fmt::format("distribute `{}` first, in which it stands", inner->var) : "name a later statement", b.stmt->loc);
        return cut;
    }

    /// A half may not decide what runs in the other, nor how often.
    void control() const {
        Loop head = l_;
        head.body.clear();
        const auto steers = [&](const Body& asking, const Body& writing) {
            const std::set<std::string> made = written(writing);
            for (const std::string& t : control_reads(asking))
                need(!made.contains(t), "distribute.control", fmt::format("`{}` decides which statements run, and `{}` writes it elsewhere", t, l_.var), fmt::format("cut so that `{}` is written and asked in one loop", t), at_.stmt->loc);
        };
        steers({make_stmt({}, std::move(head))}, l_.body);
        steers(front_.body, back_.body);
        steers(back_.body, front_.body);
    }

    /// Each half owns the buffers that only it uses.
    void owners() {
        std::set<std::string> a = touched(front_.body), b = touched(back_.body);
        a.merge(control_reads(front_.body)), b.merge(control_reads(back_.body));
        for (const Decl& d : l_.allocs) {
            need(!a.contains(d.name) || !b.contains(d.name), "distribute.window", fmt::format("`{}` belongs to one iteration of `{}`, and is used before `{}` and from it on", d.name, l_.var, label_),
                 fmt::format("cut where `{}` holds nothing, or distribute before `keep` or `stage` puts it into `{}`", d.name, l_.var), d.loc);
            (b.contains(d.name) ? back_ : front_).allocs.push_back(d);
        }
    }

    std::optional<Interval> range(const Index& e, const Inside& at) const {
        auto x = interval_of(e, at, facts_);
        if (x) x = Interval{normal(ir::substitute(x->low, let_values(l_))), normal(ir::substitute(x->high, let_values(l_)))};
        return x;
    }

    /// Iterations of `a` pass earlier ones of `b`: no cell may be of both, where one of them writes it.
    void apart(const Inside& a, const Inside& b) const {
        std::set<std::string> own = local_buffers(a.loops);
        own.merge(local_buffers(b.loops));
        for (const Decl& d : l_.allocs) own.insert(d.name);
        for (const Touch& x : touches(*as_block(a.block)))
            for (const Touch& y : touches(*as_block(b.block))) {
                if (x.tensor != y.tensor || (!x.write && !y.write) || own.contains(x.tensor)) continue;
                bool fine = false;
                for (size_t d = 0; !fine && d < std::min(x.subscripts.size(), y.subscripts.size()); ++d) fine = ahead(range(x.subscripts[d], a), range(y.subscripts[d], b));
                need(fine, "distribute.carried", fmt::format("`{}` of a later iteration of `{}` may meet `{}` of an earlier one in `{}`", as_block(a.block)->label, l_.var, as_block(b.block)->label, x.tensor),
                     fmt::format("leave them in one loop, or give `{}` a dimension that `{}` counts", x.tensor, l_.var), a.block->loc);
            }
    }

    /// Both move by one step an iteration, and what `a` touches in the next iteration already lies beyond what `b` touches in this one.
    bool ahead(const std::optional<Interval>& a, const std::optional<Interval>& b) const {
        if (!a || !b) return false;
        const auto low = affine(a->low, l_.var), high = affine(a->high, l_.var), first = affine(b->low, l_.var), last = affine(b->high, l_.var);
        if (!low || !high || !first || !last) return false;
        for (const auto* x : {&high, &first, &last})
            if (!same(low->coefficient, (*x)->coefficient)) return false;
        const Index& step = low->coefficient;
        if (facts_.nonnegative(step) && facts_.less(last->rest, normal(low->rest + step))) return true;
        return facts_.nonnegative(constant(0) - step) && facts_.less(normal(high->rest + step), first->rest);
    }

    Rewrite build() {
        IndexMap names{{l_.var, name(unique_name(p_, l_.var + ".next"))}};
        for (const Let& x : l_.lets) names[x.name] = name(unique_name(p_, x.name + ".next"));
        Loop a = l_, b = l_;
        a.allocs = front_.allocs, a.body = front_.body, b.allocs = back_.allocs, b.body = back_.body;
        b = *as_loop(substitute(make_stmt(at_.stmt->loc, b), names));
        b.extent = l_.extent, b.var = names.at(l_.var)->name;
        for (Let& x : b.lets) x.name = names.at(x.name)->name;
        return {replace_stmt(p_, at_.stmt, {with_node(at_.stmt, std::move(a)), with_node(at_.stmt, b)}), {{l_.var, b.var, Part::Clone}}};
    }

    const Program& p_;
    const Place at_;
    const Loop& l_;
    const std::string label_;
    Facts facts_;
    Loop front_, back_;
};

/// for m in M { S; T }  ->  for m in M { S }; for m.next in M { T }
struct Distribute {
    static constexpr std::string_view name = "distribute", doc = "cut a loop around several statements into two loops, one after the other";
    static constexpr std::string_view picture = "for m in M { S: h[m] = …; T: y[m] = …h[m]… }\n-> for m in M { S: h[m] = … }; for m.next in M { T: y[m.next] = …h[m.next]… }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        std::string before;
        static constexpr auto fields = std::tuple{required("before", &Params::before, +[] { return a_name(); }, "the statement (a reduction with its fill) with which the second loop begins")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return Distributor(site.program, site.name(), p.before).run(); }
};

}  // namespace

Pass distribute_pass() { return make_pass<Distribute>(); }

}  // namespace acu::ir::pass
