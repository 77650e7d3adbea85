#include "frontend/elaborate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>

namespace acu::frontend {

using namespace ir;

static bool is_literal(const Expr& e) {
    if (e.kind == Expr::Unary) return is_literal(*e.args[0]);
    if (e.kind == Expr::Infix) return is_literal(*e.args[0]) && is_literal(*e.args[1]);
    return e.kind == Expr::Float || e.kind == Expr::Integer || (e.kind == Expr::Name && (e.text == "pi" || e.text == "inf" || e.text == "nan"));
}

Value Elaborator::value(const Expr& e, Names& names) {
    switch (e.kind) {
        case Expr::Name: return name(e, names);
        case Expr::Integer: return integer(e.integer, e.integer > INT32_MAX ? DType::I64 : DType::I32);
        case Expr::Float: return number(e.number, literal_);
        case Expr::Boolean: return boolean(e.integer != 0);
        case Expr::Access: return access(e, names, nullptr);
        case Expr::Call: return call(e, names);
        case Expr::Unary: return unary(e, names);
        case Expr::Infix: return infix(e, names);
        case Expr::If: return conditional(e, names);
        case Expr::Or: return otherwise(e, names);
        case Expr::Reduction: return reduction(e, names);
    }
    return nullptr;
}

void Elaborator::unknown_name(const Expr& e, const Names& names) {
    in_.report("name.unknown", e.loc, fmt::format("`{}` is not known here", e.text), did_you_mean(e.text, in_.known_names(names)));
}

Value Elaborator::name(const Expr& e, Names& names) {
    if (const auto it = names.values.find(e.text); it != names.values.end()) return it->second;
    if (const auto it = names.indices.find(e.text); it != names.indices.end()) return of_index(it->second);
    const auto constant_named = [&](double x) { return number(x, literal_); };
    if (e.text == "inf") return constant_named(std::numeric_limits<double>::infinity());
    if (e.text == "nan") return constant_named(std::numeric_limits<double>::quiet_NaN());
    if (e.text == "pi") return constant_named(std::numbers::pi);
    if (names.fn_params) return unknown_name(e, names), nullptr;
    if (const auto it = in_.values.find(e.text); it != in_.values.end()) return it->second.second ? boolean(it->second.first) : integer(it->second.first);
    if (const auto it = in_.dims.find(e.text); it != in_.dims.end()) return of_index(it->second);
    if (const auto it = in_.scalars.find(e.text); it != in_.scalars.end()) return it->second;
    const auto it = in_.tensors.find(e.text);
    if (it == in_.tensors.end()) return unknown_name(e, names), nullptr;
    if (it->second.failed) return nullptr;
    if (it->second.sizes.empty()) return load(it->second.ir_name, it->second.type, {});
    in_.report("expr.whole-tensor", e.loc, fmt::format("the tensor `{}` stands here without subscripts", e.text),
               fmt::format("write `{}[…]` with {} subscripts; only a call of an operator takes a whole tensor", e.text, it->second.sizes.size()));
    return nullptr;
}

Value Elaborator::access(const Expr& e, Names& names, Value otherwise) {
    const auto it = in_.tensors.find(e.text);
    if (names.fn_params || it == in_.tensors.end()) {
        const bool scalar = !names.fn_params && (in_.scalars.contains(e.text) || in_.dims.contains(e.text) || in_.values.contains(e.text));
        if (scalar) in_.report("expr.scalar-subscript", e.loc, fmt::format("`{}` is a number and takes no subscripts", e.text));
        else unknown_name(e, names);
        return nullptr;
    }
    const TensorInfo& t = it->second;
    if (t.failed) return nullptr;
    if (!t.defined) {
        in_.report("name.undefined", e.loc, fmt::format("the output `{}` is read before it is defined", e.text), "define it in a statement above");
        return nullptr;
    }
    const std::vector<Index> at = subscripts(e, t, names, otherwise == nullptr);
    if (at.size() != t.sizes.size()) return nullptr;
    const bool loaded = std::ranges::any_of(at, [](const Index& i) { return i->op != IndexOp::Segment && mentions_load(i); });
    if (loaded && !otherwise) otherwise = is_float(t.type) ? number(0, widened(t.type)) : integer(0, widened(t.type));
    return load(t.ir_name, t.type, at, otherwise);
}

Value Elaborator::otherwise(const Expr& e, Names& names) {
    const Expr& left = *e.args[0];
    if (left.kind != Expr::Access) {
        in_.report("expr.or", left.loc, "the left side of `or` is not an access of a tensor", "`x[i - 1] or 0` gives a default for what lies outside; the logical or is `||`");
        return nullptr;
    }
    Value d = value(*e.args[1], names);
    return d ? access(left, names, std::move(d)) : nullptr;
}

std::vector<Index> Elaborator::subscripts(const Expr& e, const TensorInfo& t, Names& names, bool check) {
    std::vector<Index> at;
    for (const ExprPtr& s : e.args) {
        if (s->pack) {
            const auto pack = in_.packs.find(s->text);
            size_t count = 0;
            for (; names.indices.contains(fmt::format("..{}.{}", s->text, count)); ++count) at.push_back(names.indices.at(fmt::format("..{}.{}", s->text, count)));
            if (count == 0 && (pack == in_.packs.end() || !pack->second.empty()) && !names.indices.contains(".." + s->text)) {
                in_.report("name.unknown", s->loc, fmt::format("the index pack `..{}` is not bound here", s->text), "bind it on the left side of the statement");
                return {};
            }
            continue;
        }
        Index i = index(*s, names);
        if (!i) return {};
        at.push_back(std::move(i));
    }
    if (at.size() != t.sizes.size()) {
        in_.report("shape.rank", e.loc, fmt::format("`{}` has {} dimensions, but {} subscripts are written", e.text, t.sizes.size(), at.size()), {},
                   t.loc ? std::vector<Note>{{t.loc, "declared here"}} : std::vector<Note>{});
        return {};
    }
    if (!check) return at;
    for (size_t d = 0; d < at.size(); ++d) {
        const Loc loc = e.args.size() == at.size() ? e.args[d]->loc : e.loc;
        if (!check_bounds(at[d], t.sizes[d], t, e.text, d, loc)) return {};
    }
    return at;
}

/// The upper end as a condition on dimensions for the launcher, where no condition of the path takes part.
bool Elaborator::check_bounds(const Index& e, const Index& size, const TensorInfo& t, const std::string& shown, size_t dim, Loc loc, bool written) {
    if (e->op != IndexOp::Segment && mentions_load(e)) return true;
    const bool low = facts_.nonnegative(e), high = facts_.less(e, size);
    if (low && high) return true;
    const auto lower = facts_.lower_bound(e), upper = facts_.upper_bound(e);
    const auto refuted = [&](const Index& from, const Index& below) { return in_.base_facts().nonnegative(from - below); };
    const bool decidable = path_ == 0 && lower && upper && (low || !in_.base_facts().nonnegative(constant(-1) - *lower)) && (high || !refuted(*upper, size));
    const auto left = [&](const Index& i) { return !in_.base_facts().value(i); };
    if (decidable && (low || left(*lower)) && (high || left(*upper - size))) {
        if (!low) in_.build.program.facts.push_back(binary(Op::Ge, of_index(*lower), of_index(constant(0))));
        if (!high) in_.build.program.facts.push_back(binary(Op::Lt, of_index(*upper), of_index(size)));
        return true;
    }
    const std::string range = lower && upper ? fmt::format("it runs from {} to {}", print(*lower), print(*upper)) : fmt::format("its range is not known: {}", print(e));
    in_.report("bounds.outside", loc, fmt::format("subscript {} of `{}` is not proven inside 0 to {} - 1: {}", dim + 1, shown, print(size), range),
               written ? "a condition that bounds it: a `where` on dimensions"
                       : fmt::format("give a default, as in `({}[…] or 0)`, or a condition that bounds it: an `if`, or a `where` on dimensions", shown),
               t.loc ? std::vector<Note>{{t.loc, fmt::format("`{}` is declared here", shown)}} : std::vector<Note>{});
    return false;
}

// ---- operators

static bool bitwise(const std::string& s) { return s == "&" || s == "|" || s == "^" || s == "<<" || s == ">>"; }
static bool compares(const std::string& s) { return s == "==" || s == "!=" || s == "<" || s == "<=" || s == ">" || s == ">="; }

bool Elaborator::check_mixing(const Expr& e) {
    for (const ExprPtr& a : e.args) {
        if (a->kind != Expr::Infix || a->grouped) continue;
        const bool mixed = (compares(e.text) && bitwise(a->text)) || (bitwise(e.text) && compares(a->text));
        const bool chain = compares(e.text) && compares(a->text);
        if (!mixed && !chain) continue;
        in_.report(mixed ? "expr.mixed" : "expr.chain", e.sign,
                   mixed ? fmt::format("`{}` and `{}` stand beside each other without parentheses", a->text, e.text) : "comparisons do not chain",
                   mixed ? "C and Python read this differently: write the parentheses" : "write `a < b && b < c`");
        return false;
    }
    return true;
}

static Op op_named(const std::string& sign) {
    for (int i = static_cast<int>(Op::Add); i <= static_cast<int>(Op::Ge); ++i)
        if (sign_of(static_cast<Op>(i)) == sign) return static_cast<Op>(i);
    return sign == "&&" ? Op::And : Op::Or;
}

Value Elaborator::bad_operands(const Expr& e, const Value& a, const Value& b) {
    const std::string types = b ? fmt::format("{} and {}", name_of(a->type), name_of(b->type)) : std::string(name_of(a->type));
    const bool integers = bitwise(e.text) || e.text == "~" || e.text == "%", truths = e.text == "&&" || e.text == "||" || e.text == "!" || e.text == "any" || e.text == "all";
    const bool negated = e.kind == Expr::Unary && e.text == "-";
    in_.report("type.operands", e.sign ? e.sign : e.loc, fmt::format("`{}` does not apply to {}", e.text, types),
               negated ? "the negation of a truth value is `!`" : integers ? "it needs integers" : truths ? "it needs truth values: compare with `!= 0`" : "it needs numbers: cast the truth value, as in `i32(c)`");
    return nullptr;
}

Value Elaborator::logical(const Expr& e, Names& names) {
    const Value a = value(*e.args[0], names);
    if (!a) return nullptr;
    const analysis::Facts before = facts_;
    if (e.text == "&&") facts_.add(a);
    else facts_.add_negation(a);
    ++path_;
    const Value b = value(*e.args[1], names);
    --path_;
    facts_ = before;
    if (!b) return nullptr;
    if (a->type != DType::Bool || b->type != DType::Bool) return bad_operands(e, a, b);
    if (a->op == Op::Const) return (a->integer != 0) == (e.text == "&&") ? b : a;
    if (b->op == Op::Const) return (b->integer != 0) == (e.text == "&&") ? a : b;
    return binary(e.text == "&&" ? Op::And : Op::Or, a, b);
}

Value Elaborator::infix(const Expr& e, Names& names) {
    if (!check_mixing(e)) return nullptr;
    if (e.text == "&&" || e.text == "||") return logical(e, names);
    Value a = value(*e.args[0], names), b = value(*e.args[1], names);
    if (!a || !b) return nullptr;
    const DType saved = literal_;
    literal_ = DType::F64;
    if (a->type == DType::F64 && b->type == DType::F32 && is_literal(*e.args[1])) b = value(*e.args[1], names);
    if (b->type == DType::F64 && a->type == DType::F32 && is_literal(*e.args[0])) a = value(*e.args[0], names);
    literal_ = saved;
    const bool floating = is_float(a->type) || is_float(b->type), both_bool = a->type == DType::Bool && b->type == DType::Bool;
    if ((bitwise(e.text) || e.text == "%") && floating) return bad_operands(e, a, b);
    if (both_bool && !compares(e.text) && e.text != "&" && e.text != "|" && e.text != "^") return bad_operands(e, a, b);
    return binary(op_named(e.text), std::move(a), std::move(b));
}

Value Elaborator::unary(const Expr& e, Names& names) {
    const Value a = value(*e.args[0], names);
    if (!a) return nullptr;
    if (e.text == "!" && a->type != DType::Bool) return bad_operands(e, a, nullptr);
    if (e.text == "~" && !is_int(a->type)) return bad_operands(e, a, nullptr);
    if (e.text == "-" && a->type == DType::Bool) return bad_operands(e, a, nullptr);
    return ir::unary(e.text == "-" ? Op::Neg : e.text == "!" ? Op::Not : Op::BitNot, a);
}

Value Elaborator::conditional(const Expr& e, Names& names) {
    const Value c = value(*e.args[0], names);
    if (!c) return nullptr;
    if (c->type != DType::Bool) {
        in_.report("type.condition", e.args[0]->loc, fmt::format("the condition has type {}, not bool", name_of(c->type)), "compare it, as in `x != 0`");
        return nullptr;
    }
    if (c->op == Op::Const) return value(*e.args[c->integer ? 1 : 2], names);
    const analysis::Facts before = facts_;
    ++path_;
    facts_.add(c);
    const Value a = value(*e.args[1], names);
    facts_ = before;
    facts_.add_negation(c);
    const Value b = value(*e.args[2], names);
    facts_ = before;
    --path_;
    if (!a || !b) return nullptr;
    if ((a->type == DType::Bool) != (b->type == DType::Bool)) {
        in_.report("type.branches", e.loc, fmt::format("the branches have types {} and {}", name_of(a->type), name_of(b->type)));
        return nullptr;
    }
    return select(c, a, b);
}

// ---- calls

static void count_error(Instance& in, const Expr& e, size_t wanted) {
    in.report("call.count", e.loc, fmt::format("`{}` takes {} argument{}, but {} {} given", e.text, wanted, wanted == 1 ? "" : "s", e.args.size(), e.args.size() == 1 ? "is" : "are"));
}

std::optional<std::vector<Value>> Elaborator::arguments(const Expr& e, Names& names) {
    std::vector<Value> out;
    for (const ExprPtr& a : e.args) {
        Value v = value(*a, names);
        if (!v) return {};
        out.push_back(std::move(v));
    }
    if (std::ranges::any_of(out, [](const Value& v) { return v->type == DType::F64; })) {
        const DType saved = literal_;
        literal_ = DType::F64;
        for (size_t i = 0; i < out.size(); ++i)
            if (is_literal(*e.args[i]) && out[i]->type == DType::F32) out[i] = value(*e.args[i], names);
        literal_ = saved;
    }
    return out;
}

std::optional<DType> Elaborator::cast_target(const Expr& e) const {
    return e.kind == Expr::Call && e.args.size() == 1 ? in_.type_of(e.text) : std::nullopt;
}

Value Elaborator::call(const Expr& e, Names& names) {
    if (e.text == "segment") {
        const Index i = index_segment(e, names);
        return i ? of_index(i) : nullptr;
    }
    if (const auto type = cast_target(e)) {
        const Value a = value(*e.args[0], names);
        return a ? cast(*type, a) : nullptr;
    }
    if (in_.type_of(e.text)) return count_error(in_, e, 1), nullptr;
    if (function_named(e.text) || e.text == "clamp") return function(e, e.text, names);
    if (const auto it = in_.module.fns.find(e.text); it != in_.module.fns.end()) return substituted(e, *it->second.first, names);
    if (in_.module.ops.contains(e.text)) {
        in_.report("call.operator", e.loc, fmt::format("the operator `{}` is called inside an expression", e.text),
                   fmt::format("an operator works on whole tensors: write `p = {}(…)` as a statement of its own", e.text));
        return nullptr;
    }
    std::vector<std::string> known{"clamp", "segment"};
    for (const Function& f : functions()) known.emplace_back(f.name);
    for (const auto& [n, f] : in_.module.fns) known.push_back(n);
    for (const TypeInfo& t : all_types()) known.emplace_back(t.name);
    const std::string near = did_you_mean(e.text, known);
    in_.report("call.unknown", e.loc, fmt::format("no function `{}` is known", e.text),
               !near.empty() ? near : standard_library().contains("nn") ? "activations and losses are in the standard library: `import std.nn { … }`" : "");
    return nullptr;
}

Value Elaborator::function(const Expr& e, const std::string& fn, Names& names) {
    auto args = arguments(e, names);
    if (!args) return nullptr;
    if (std::ranges::any_of(*args, [](const Value& v) { return v->type == DType::Bool; })) return bad_operands(e, (*args)[0], nullptr);
    if (fn == "clamp") {
        if (args->size() != 3) return count_error(in_, e, 3), nullptr;
        return ir::call("min", {ir::call("max", {(*args)[0], (*args)[1]}), (*args)[2]});
    }
    if ((fn == "max" || fn == "min") && args->size() > 2) {
        Value v = (*args)[0];
        for (size_t i = 1; i < args->size(); ++i) v = ir::call(fn, {v, (*args)[i]});
        return v;
    }
    const auto arity = static_cast<size_t>(function_named(fn)->arity);
    if (args->size() != arity) return count_error(in_, e, arity), nullptr;
    return ir::call(fn, std::move(*args));
}

Value Elaborator::substituted(const Expr& e, const FnDecl& fn, Names& names) {
    auto args = arguments(e, names);
    if (!args) return nullptr;
    if (args->size() != fn.params.size()) return count_error(in_, e, fn.params.size()), nullptr;
    if (in_.build.exhausted) return nullptr;
    if (++fn_depth_ > 32 || ++in_.build.nodes > most_nodes) {
        in_.build.exhausted = true;
        if (fn_depth_ > 32) in_.report("call.recursion", e.loc, fmt::format("`{}` calls itself, directly or through others", fn.name));
        else in_.report("call.size", e.loc, fmt::format("the calls of functions come to more than {}", most_nodes), "name parts of the expression as intermediate tensors");
        --fn_depth_;
        return nullptr;
    }
    Names inner;
    inner.fn_params = &inner;
    for (size_t i = 0; i < fn.params.size(); ++i) inner.values[fn.params[i]] = (*args)[i];
    const Module& home = *in_.module.fns.at(fn.name == e.text ? e.text : fn.name).second;
    Instance scope{home, in_.op, in_.build, in_.prefix, in_.types};
    Elaborator body(scope, facts_);
    body.fn_depth_ = fn_depth_;
    const Value v = body.value(*fn.body, inner);
    --fn_depth_;
    if (!v || v->size <= most_nodes || in_.build.exhausted) return v;
    in_.build.exhausted = true;
    in_.report("call.size", e.loc, fmt::format("the expression has more than {} parts", most_nodes), "name parts of it as intermediate tensors");
    return nullptr;
}

// ---- reductions

bool Elaborator::reduction_axes(const Expr& e, Names& names, std::vector<Axis>& axes) {
    for (const AxisSpec& a : e.axes) {
        if (in_.dims.contains(a.name) || in_.values.contains(a.name) || in_.tensors.contains(a.name) || in_.scalars.contains(a.name)) {
            in_.report("name.shadow", a.loc, fmt::format("`{}` already means something here", a.name), "choose another name for the axis");
            return false;
        }
        Index extent = a.extent ? index(*a.extent, names) : inferred_extent(a.name, *e.args[0], a.loc);
        if (a.extent && !extent) return false;
        if (!extent && e.args.size() > 1) extent = inferred_extent(a.name, *e.args[1], a.loc);
        if (!extent) {
            in_.report("range.unknown", a.loc, fmt::format("the range of `{}` is not known", a.name),
                       fmt::format("no tensor has `{}` alone as a subscript: write its extent, `{}({} in …)`", a.name, e.text, a.name));
            return false;
        }
        const bool twice = std::ranges::any_of(e.axes, [&](const AxisSpec& x) { return &x < &a && x.name == a.name; });
        if (twice) {
            in_.report("name.shadow", a.loc, fmt::format("the axis `{}` is written twice", a.name));
            return false;
        }
        axes.push_back({fresh_axis(a.name, names), AxisKind::Red, constant(0), extent});
    }
    for (size_t i = 0; i < axes.size(); ++i) names.indices[e.axes[i].name] = ir::name(axes[i].name);
    return true;
}

Value Elaborator::reduction(const Expr& e, Names& names) {
    Names inner = names;
    std::vector<Axis> axes;
    if (names.fn_params) {
        in_.report("expr.reduction", e.loc, "a `fn` cannot hold a reduction", "write an `op`, or the reduction where the `fn` is called");
        return nullptr;
    }
    if (!reduction_axes(e, inner, axes)) return nullptr;
    const Monoid monoid = std::ranges::find(monoids(), e.text, &MonoidInfo::name)->monoid;
    if (is_pair(monoid) && axes.size() > 1) {
        in_.report("expr.reduction", e.loc, fmt::format("`{}` works along one axis", e.text));
        return nullptr;
    }
    const analysis::Facts before = facts_;
    for (const Axis& a : axes) add_range(a.name, a.size);
    Value condition;
    if (e.args.size() > 1) {
        condition = value(*e.args[1], inner);
        if (condition && condition->type != DType::Bool) {
            in_.report("type.condition", e.args[1]->loc, fmt::format("the condition has type {}, not bool", name_of(condition->type)), "compare it, as in `x != 0`");
            condition = nullptr;
        }
        if (condition) facts_.add(condition), ++path_;
    }
    const bool failed = e.args.size() > 1 && !condition;
    const Value body = failed ? nullptr : value(*e.args[0], inner);
    if (condition) --path_;
    facts_ = before;
    if (!body) return nullptr;
    const bool logical = monoid == Monoid::Any || monoid == Monoid::All;
    if (logical != (body->type == DType::Bool) && (logical || monoid != Monoid::Sum)) return bad_operands(e, body, nullptr);
    if (is_pair(monoid)) in_.build.program.facts.push_back(binary(Op::Ge, of_index(axes[0].size), of_index(constant(1))));
    return reduce(monoid, std::move(axes), body, condition);
}

}  // namespace acu::frontend
