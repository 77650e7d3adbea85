#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/mask.h"
#include "ir/pass/ring.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

class Peeler {
  public:
    Peeler(const Program& p, const std::string& loop) : p_(p), at_(find_loop(p, loop)), l_(loop_of(at_)), facts_(facts_at(p, at_.above)), trips_(count_of(l_.extent, facts_)) {}

    Rewrite run() {
        shape();
        choose();
        const auto last = constant_value(trips_ - full_);
        Rewrite out{p_, {}};
        const Index rest = last ? constant(*last) : binary(IndexOp::Min, constant(1), normal(trips_ - full_));
        const Stmt whole = whole_tiles(), part = copy_apart(p_, at_.stmt, ".rest", out.lineage);
        const std::string var = as_loop(part)->var;
        Loop l = *as_loop(substitute(part, {{var, full_}}));
        l.extent = rest;
        out.program = replace_stmt(p_, at_.stmt, {whole, with_node(at_.stmt, std::move(l))});
        return out;
    }

  private:
    void shape() const {
        need(at_.role.empty() && !holds_sync(at_.stmt), "peel.role", fmt::format("`{}` holds roles or signals between them, or stands in a role: they count its iterations", l_.var), "peel before warp_specialize", at_.stmt->loc);
        bool ring = std::ranges::any_of(l_.allocs, [](const Decl& d) { return d.ring.versions > 0; });
        for_each_block(l_.body, [&](const Block& b, Loc) { ring |= std::ranges::any_of(touches(b), [](const Touch& t) { return !t.version.empty(); }); });
        need(!ring, "peel.ring", fmt::format("versions of a ring pass between iterations of `{}` or of a loop inside", l_.var), "peel before pipeline, skew and prefetch", at_.stmt->loc);
        const bool kernel = l_.kind == LoopKind::Grid && at_.above.empty();
        need(!is_parallel(l_.kind) || kernel, "peel.kind", fmt::format("`{}` is {} inside a kernel: its last iteration would wait for all others", l_.var, name_of(l_.kind)), "use `decide`, which asks in each iteration, or peel a serial loop inside", at_.stmt->loc);
    }

    /// The number of first iterations in which the guard holds at every point; null: not known. Guards that read memory may be what keeps others inside.
    Index whole_of(const Value& guard, const Place& at) const {
        const auto g = as_below(guard);
        if (!g || mentions_load(g->left) || mentions_load(g->right)) return nullptr;
        const auto gap = least(ir::substitute(g->right - g->left, derived_names(at, at_.stmt.get())), box_of(at, at_.stmt.get()));
        const auto a = gap ? affine(*gap, l_.var) : std::nullopt;
        const int64_t slope = a ? constant_value(a->coefficient).value_or(0) : 0;
        std::set<std::string> inner = names_made_in({at_.stmt});
        for (const Axis& x : block_of(at).axes) inner.insert(x.name);
        if (slope >= 0 || meet(names_in(a->rest), inner) || mentions_load(*gap)) return nullptr;
        // -c*v + rest >= 1
        return normal(div(a->rest - constant(1), constant(-slope)) + constant(1));
    }

    std::vector<Place> places() const {
        std::vector<Place> out;
        for_each_place(p_, [&](const Place& x) {
            if (as_block(x.stmt) && std::ranges::find(x.above, at_.stmt) != x.above.end()) out.push_back(x);
        });
        return out;
    }

    void choose() {
        bool any = false;
        for (const Place& x : places())
            for (const Value& g : block_of(x).guards) {
                const Index n = full_ ? nullptr : whole_of(g, x);
                any |= n != nullptr;
                if (n && facts_.nonnegative(n) && facts_.nonnegative(trips_ - n) && facts_.nonnegative(n + constant(1) - trips_)) full_ = n;
            }
        need(any || full_, "peel.nothing", fmt::format("no statement of `{}` has a guard that only its last iterations need", l_.var), "peel the loop whose tiles a guard asks about, or use `decide`, which asks in each iteration", at_.stmt->loc);
        need(full_ != nullptr, "peel.last", fmt::format("it is not proven that only the last of the {} iterations of `{}` is ragged", print(l_.extent), l_.var), "peel before `trim` changes its range, or use `decide`, which asks in each iteration", at_.stmt->loc);
    }

    Stmt whole_tiles() const {
        std::map<std::string, Stmt> now;
        for (const Place& x : places()) {
            Block b = block_of(x);
            std::erase_if(b.guards, [&](const Value& g) { const Index n = whole_of(g, x); return n && facts_.nonnegative(n - full_); });
            now[b.label] = with_node(x.stmt, b);
        }
        Loop l = l_;
        l.extent = full_;
        l.body = edit(l.body, [&](const Stmt& s) { return as_block(s) ? std::optional(Body{now.at(as_block(s)->label)}) : std::nullopt; });
        return with_node(at_.stmt, std::move(l));
    }

    const Program& p_;
    const Place at_;
    const Loop& l_;
    const Facts facts_;
    const Index trips_;
    Index full_;
};

/// for i.o in ceil(E, 4) { S over i in 4*i.o +: 4 where i < E }
/// ->  for i.o in E/4 { S over i in 4*i.o +: 4 }; for i.o.rest in min(1, ceil(E, 4) - E/4) { S.rest over i in 4*(E/4) +: 4 where i < E }
struct Peel {
    static constexpr std::string_view name = "peel", doc = "take the last iteration, alone ragged, out of a loop, whose tiles then are whole and need no guards";
    static constexpr std::string_view picture = "for i.o in ceil(E, 4) { S over i in 4*i.o +: 4 where i < E }\n-> for i.o in E/4 { S over i in 4*i.o +: 4 }; for i.o.rest in min(1, ceil(E, 4) - E/4) { S.rest over i in 4*(E/4) +: 4 where i < E }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) { return Peeler(site.program, site.name()).run(); }
};

}  // namespace

Pass peel_pass() { return make_pass<Peel>(); }

}  // namespace acu::ir::pass
