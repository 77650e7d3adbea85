#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"
#include "ir/pass/window.h"

namespace acu::ir::pass {
namespace {

/// A part of a statement's value that becomes a buffer of its own.
class Outliner {
  public:
    Outliner(const Program& p, const std::string& label) : p_(p), at_(find_block(p, label)), b_(block_of(at_)) {
        need(b_.via.empty(), "outline.bound", fmt::format("`{}` is done by the microkernel `{}`", b_.label, b_.via), "", at_.stmt->loc);
        for (const Value& v : b_.vals) list(v);
    }

    struct Choice {
        int64_t part = -1;
        std::string call, reads;
    };

    /// `as`: the type of the buffer; empty: that of the value.
    Rewrite run(const Choice& choice, const std::string& into, const std::string& as, Scope local) const {
        const Value v = chosen(choice);
        const DType exact = stored_type(v), type = !as.empty() ? *type_named(as) : is_float(v->type) && !is_float(exact) ? v->type : exact;
        need(keeps_values(exact, type), "outline.as", fmt::format("{} does not hold every {}", as, name_of(exact)), "leave out `as`", at_.stmt->loc);
        const std::string name = into.empty() ? unique_name(p_, b_.label + ".v") : into;
        need(unique_name(p_, name) == name, "outline.name", fmt::format("`{}` means something already", name));
        std::set<std::string> outs;
        for (const Access& o : b_.outs) outs.insert(o.tensor);
        for (const std::string& t : tensors_in(v)) need(!outs.contains(t), "outline.own", fmt::format("`{}` reads `{}`, which `{}` writes", print(v), t, b_.label), "", at_.stmt->loc);
        Block def{name, axes_for(v), {}, Monoid::None, {v}, {}, false, 0, {}};
        for (const Value& g : b_.guards)
            if (!meet(names_in(g), others(def))) def.guards.push_back(g);
        Decl d{name, Scope::Temp, type, {}};
        std::vector<Index> cell;
        for (Axis& a : def.axes) {
            a.kind = AxisKind::Par, a.vector = 1;
            d.dims.push_back({a.base, a.size});
            cell.push_back(ir::name(a.name));
        }
        def.outs = {{name, cell}};
        Block now = b_;
        const Value read = load(name, d.type, cell);
        for (Value& x : now.vals) x = ir::replace(x, [&](const Value& y) { return equal(y, v) ? read : nullptr; });
        Rewrite out{replace_stmt(p_, at_.stmt, {make_stmt(at_.stmt->loc, std::move(def)), with_node(at_.stmt, std::move(now))}), {{b_.label, name, Part::Derived}}};
        out.program = declare(std::move(out.program), at_.above, {d}, local);
        return out;
    }

  private:
    /// Parts that are computed at every point: not under a condition. The outermost first, each once.
    void list(const Value& v) {
        const bool worth = v->op != Op::Const && v->op != Op::OfIndex && v->op != Op::Load && v->op != Op::Cast;
        if (worth && std::ranges::none_of(parts_, [&](const Value& x) { return equal(x, v); })) parts_.push_back(v);
        const bool lazy = v->op == Op::Select || v->op == Op::And || v->op == Op::Or || v->op == Op::Load;
        for (size_t i = 0; i < v->args.size(); ++i)
            if (!lazy || (i == 0 && v->op != Op::Load)) list(v->args[i]);
    }

    std::string listed() const {
        std::string s;
        for (size_t i = 0; i < parts_.size(); ++i) s += fmt::format("{}{}: {}", i ? "; " : "", i, print(parts_[i]));
        return parts_.empty() ? "it has none" : "its parts are " + s;
    }

    /// The type whose values it has: a cast around it says so, or the tensor that it loads.
    DType stored_type(const Value& v) const {
        if (v->op == Op::Load) return buffer_at(p_, at_, v->name)->type;
        if (v->op != Op::Cast) return v->type;
        const DType to = *type_named(v->name), from = stored_type(v->args[0]);
        return keeps_values(from, to) ? from : to;
    }

    Value chosen(const Choice& c) const {
        need((c.part >= 0) + !c.call.empty() + !c.reads.empty() == 1, "outline.choice", fmt::format("give `call`, `part` or `reads`, to say which part of `{}`", b_.label), listed());
        if (!c.reads.empty()) return factor_that_reads(c.reads);
        if (!c.call.empty()) return part_that_calls(c.call);
        need(c.part < static_cast<int64_t>(parts_.size()), "outline.part", fmt::format("`{}` has no part {}, but {}", b_.label, c.part, parts_.size()), listed(), at_.stmt->loc);
        return parts_[static_cast<size_t>(c.part)];
    }

    Value factor_that_reads(const std::string& tensor) const {
        std::vector<Value> found;
        if (b_.vals.size() == 1) std::ranges::copy_if(factors(b_.vals[0]).num, std::back_inserter(found), [&](const Value& v) { return tensors_in(v).contains(tensor); });
        need(found.size() == 1, "outline.reads", fmt::format("`{}` has {} factors that read `{}`", b_.label, found.size(), tensor), listed(), at_.stmt->loc);
        return found[0];
    }

    Value part_that_calls(const std::string& call) const {
        std::vector<Value> found;
        std::ranges::copy_if(parts_, std::back_inserter(found), [&](const Value& v) { return v->op == Op::Call && v->name == call; });
        need(!found.empty(), "outline.call", fmt::format("`{}` calls no `{}` at every point", b_.label, call), listed(), at_.stmt->loc);
        need(found.size() == 1, "outline.several", fmt::format("`{}` calls `{}` {} times with different arguments", b_.label, call, found.size()), listed(), at_.stmt->loc);
        return found[0];
    }

    static std::set<std::string> tensors_in(const Value& v) { return tensors_read(Block{{}, {}, {}, Monoid::None, {v}}); }

    std::set<std::string> others(const Block& def) const {
        std::set<std::string> out;
        for (const Axis& a : b_.axes)
            if (!axis_of(def, a.name)) out.insert(a.name);
        return out;
    }

    /// Those that it mentions, where it then is computed only at points at which the statement would have; else all of them.
    std::vector<Axis> axes_for(const Value& v) const {
        std::vector<Axis> mine;
        std::ranges::copy_if(b_.axes, std::back_inserter(mine), [&](const Axis& a) { return mentions(v, a.name); });
        if (mine.size() == b_.axes.size()) return mine;
        std::set<std::string> left;
        Facts facts = facts_at(p_, at_.above);
        bool nonempty = true;
        for (const Axis& a : b_.axes) {
            if (mentions(v, a.name)) facts.add_range(a.name, a.base, a.size);
            else left.insert(a.name), nonempty &= facts.less(constant(0), a.size);
        }
        for (const Value& g : without(b_.guards, left)) facts.add(g);
        const bool guarded = std::ranges::any_of(b_.guards, [&](const Value& g) { return meet(names_in(g), left); });
        return (nonempty && !guarded) || readable(p_, at_, v, facts) ? mine : b_.axes;
    }

    const Program& p_;
    Place at_;
    const Block& b_;
    std::vector<Value> parts_;
};

/// y[m, n] = x[m, n]*rsqrt(s[m]) over m, n  ->  y.v[m] = rsqrt(s[m]) over m;  y[m, n] = x[m, n]*y.v[m] over m, n
struct Outline {
    static constexpr std::string_view name = "outline", doc = "a part of a statement's value becomes a buffer, over the axes that it mentions: `outline(y, call = rsqrt)`";
    static constexpr std::string_view picture = "y[m, n] = x[m, n]*rsqrt(s[m]) over m, n\n-> r[m] = rsqrt(s[m]) over m; y[m, n] = x[m, n]*r[m] over m, n";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        int64_t part = -1;
        std::string call, into, reads, as, in = "register";
        static constexpr auto fields = std::tuple{
            optional("part", &Params::part, +[] { return integers(0, 4096, {0, 1, 2, 3}); }, "its number in the list that a refusal shows: outermost first, each once"),
            optional("call", &Params::call, +[] { return a_name(); }, "the function that it calls, where the statement calls it once"),
            optional("reads", &Params::reads, +[] { return a_name(); }, "a buffer: the part is the factor of a product that reads it"),
            optional("as", &Params::as, +[] { return words({"f16", "bf16", "f32"}); }, "the type of the new buffer, which must hold every value of the part"),
            optional("in", &Params::in, +[] { return words({"register", "shared"}); }, "the memory of a statement inside a loop"),
            optional("into", &Params::into, +[] { return a_name(); }, "the name of the buffer and of the statement that fills it; `y.v` for a statement `y`")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return Outliner(site.program, site.name()).run({p.part, p.call, p.reads}, p.into, p.as, scope_named(p.in)); }
};

}  // namespace

Pass outline_pass() { return make_pass<Outline>(); }

}  // namespace acu::ir::pass
