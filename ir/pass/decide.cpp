#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/mask.h"

namespace acu::ir::pass {
namespace {

/// t = -inf if c else s
/// ->  if c is false on the whole tile { t.full: t = s } else { t: t = -inf if c else s }
struct Decide {
    static constexpr std::string_view name = "decide", doc = "ask once for a whole tile what a guard or a selection asks at each point";
    static constexpr std::string_view picture = "t = -inf if c else s  over tile  where g\n-> if c is false and g true on the whole tile { t.full: t = s  over tile } else { t: t = -inf if c else s  over tile  where g }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    struct Decision {
        Value condition;    ///< under which `full` is the same as the statement; null: nothing can be decided
        Block full;
        bool asks = false;    ///< there is a guard or selection at all
    };

    static void add(Decision& d, const Value& c) { d.condition = d.condition ? both(d.condition, c) : c; }

    static Value ask(const Program& p, const Block& b, const Value& c, const Value& own) { return c && may_read_outside(p, b, c, own) ? c : nullptr; }

    static Value without_selections(const Program& p, const Block& b, const std::vector<Span>& box, const Value& v, Decision& d) {
        return replace(v, [&](const Value& x) -> Value {
            if (x->op != Op::Select) return nullptr;
            d.asks = true;
            const bool first = x->args[1]->op != Op::Const && x->args[2]->op == Op::Const;    // the branch that computes is the usual one
            for (const bool take_first : {first, !first}) {
                const Value c = ask(p, b, take_first ? everywhere(x->args[0], box) : nowhere(x->args[0], box), nullptr);
                const auto known = c ? constant_truth(c) : std::nullopt;
                if (!c || (known && !*known)) continue;
                add(d, c);
                return without_selections(p, b, box, x->args[take_first ? 1 : 2], d);
            }
            return nullptr;
        });
    }

    static Decision decision(const Program& p, const Place& at) {
        const Block& b = block_of(at);
        const std::vector<Span> box = box_of(at, nullptr);
        Decision d{nullptr, b};
        d.full.guards.clear();
        for (const Value& g : b.guards) {
            d.asks = true;
            const Value c = ask(p, b, everywhere(g, box), g);
            if (c) add(d, c);
            else d.full.guards.push_back(g);
        }
        for (Value& v : d.full.vals) v = without_selections(p, b, box, v, d);
        return d;
    }

    /// Was this statement decided before: does its twin stand in the same condition?
    static bool done(const Place& at) {
        const auto* i = at.above.empty() ? nullptr : std::get_if<If>(&at.above.back()->node);
        const std::string& label = block_of(at).label;
        const auto twin = [&](const Stmt& s) { return as_block(s) && as_block(s)->label != label && (as_block(s)->label.starts_with(label + ".full") || label.starts_with(as_block(s)->label + ".full")); };
        return i && (std::ranges::any_of(i->body, twin) || std::ranges::any_of(i->otherwise, twin));
    }

    static Rewrite apply(const Site& site, const Params&, const Context&) {
        Rewrite out{site.program, {}};
        for (const Place& at : family(site.program, site.name())) {
            const Block& b = block_of(at);
            need(!done(at), "decide.done", fmt::format("`{}` is decided already", site.name()), "", at.stmt->loc);
            Decision d = decision(site.program, at);
            need(d.asks, "decide.form", fmt::format("`{}` has no guard and no selection", b.label), "", at.stmt->loc);
            need(d.condition != nullptr, "decide.affine", fmt::format("no guard or selection of `{}` is affine in its axes", b.label), "decide before axes are fused", at.stmt->loc);
            const auto known = constant_truth(d.condition);
            need(!known || *known, "decide.never", fmt::format("no tile of `{}` is free of its conditions", b.label), "", at.stmt->loc);
            if (known) {
                out.program = replace_stmt(std::move(out.program), at.stmt, {with_node(at.stmt, d.full)});
                continue;
            }
            d.full.label = unique_name(out.program, b.label + ".full");
            out.lineage.push_back({b.label, d.full.label, Part::Clone});
            const Stmt full = with_node(at.stmt, d.full);
            out.program = replace_stmt(std::move(out.program), at.stmt, {make_stmt(at.stmt->loc, If{d.condition, {full}, {at.stmt}})});
        }
        return out;
    }
};

}  // namespace

Pass decide_pass() { return make_pass<Decide>(); }

}  // namespace acu::ir::pass
