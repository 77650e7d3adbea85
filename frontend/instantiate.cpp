#include "frontend/instantiate.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/statements.h"

namespace acu::frontend {

using namespace ir;

void Instance::report(std::string code, Loc loc, std::string message, std::string help, std::vector<Note> notes) {
    build.found.push_back({std::move(code), loc, std::move(message), std::move(notes), std::move(help)});
}

analysis::Facts Instance::base_facts() const {
    const Program& p = build.program;
    analysis::Facts f(known_dims(p), [&p](const std::string& tensor) -> Index {
        const Decl* d = p.find(tensor);
        return d && !d->dims.empty() ? d->dims[0].size : nullptr;
    });
    for (const Dim& d : p.dims) f.add_dim(d.name);
    for (const Value& v : p.facts) f.add(v);
    return f;
}

std::optional<DType> Instance::type_of(const std::string& name) const {
    if (const auto it = types.find(name); it != types.end()) return it->second;
    return type_named(name);
}

std::vector<std::string> Instance::known_names(const Names& names) const {
    std::vector<std::string> out{"inf", "nan", "pi"};
    for (const auto& [n, i] : names.indices)
        if (!n.starts_with("..")) out.push_back(n);
    for (const auto& [n, v] : names.values) out.push_back(n);
    for (const auto& [n, t] : tensors) out.push_back(n);
    for (const auto& [n, v] : values) out.push_back(n);
    for (const auto& [n, d] : dims) out.push_back(n);
    for (const auto& [n, s] : scalars) out.push_back(n);
    return out;
}

std::vector<DType> type_set(const Generic& g) {
    std::vector<DType> out;
    for (const std::string& t : g.types) {
        if (t == "float") out.insert(out.end(), {DType::F16, DType::BF16, DType::F32, DType::F64});
        else if (t == "int") out.insert(out.end(), {DType::I8, DType::U8, DType::I16, DType::I32, DType::I64});
        else if (const auto type = type_named(t)) out.push_back(*type);
    }
    return out;
}

namespace {

std::string shown(const std::vector<DType>& types) {
    std::string s;
    for (const DType t : types) s += (s.empty() ? "" : ", ") + std::string(name_of(t));
    return s;
}

/// `int` alone is a compile-time value when the name is used as one; a type set when it is used as a type.
bool used_as_type(const OpDecl& op, const std::string& name) {
    const auto uses = [&](const Param& p) { return p.type == name; };
    return std::ranges::any_of(op.params, uses) || std::ranges::any_of(op.outputs, uses);
}
bool value_generic(const OpDecl& op, const Generic& g) { return g.types.size() == 1 && (g.types[0] == "bool" || (g.types[0] == "int" && !used_as_type(op, g.name))); }

bool check_generic(Instance& in, const Generic& g) {
    for (size_t i = 0; i < g.types.size(); ++i) {
        if (g.types[i] == "float" || g.types[i] == "int" || g.types[i] == "bool" || type_named(g.types[i])) continue;
        std::vector<std::string> names{"float", "int", "bool"};
        for (const TypeInfo& t : all_types()) names.emplace_back(t.name);
        in.report("type.unknown", g.type_locs[i], fmt::format("no type `{}` is known", g.types[i]), did_you_mean(g.types[i], names));
        return false;
    }
    return true;
}

/// Dimensions in order of first appearance: names that are no compile-time value.
void collect_dims(const Instance& in, const Expr& e, std::vector<std::string>& out) {
    if (e.kind == Expr::Name && !in.values.contains(e.text) && std::ranges::find(out, e.text) == out.end()) out.push_back(e.text);
    for (const ExprPtr& a : e.args) collect_dims(in, *a, out);
}

bool bind_value(Instance& in, const Generic& g, const std::map<std::string, int64_t>& given) {
    const bool boolean = g.types[0] == "bool";
    if (const auto it = given.find(g.name); it != given.end()) {
        in.values[g.name] = {it->second, boolean};
        return true;
    }
    if (!g.otherwise) {
        in.report("generic.unbound", g.loc, fmt::format("the compile-time value `{}` has no default and is not given", g.name), fmt::format("give it: `--set {}=…`, or in a case", g.name));
        return false;
    }
    if (g.otherwise->kind == Expr::Boolean) {
        in.values[g.name] = {g.otherwise->integer, true};
        return true;
    }
    std::vector<std::string> names;
    collect_dims(in, *g.otherwise, names);
    if (!names.empty()) {
        in.report("generic.default", g.otherwise->loc, "a default of a compile-time value is a constant");
        return false;
    }
    Elaborator e(in, in.base_facts());
    const Index v = e.dimension(*g.otherwise);
    if (v && is_const(v)) in.values[g.name] = {v->value, boolean};
    else if (v) in.report("generic.default", g.otherwise->loc, "a default of a compile-time value is a constant");
    return v && is_const(v);
}

bool bind_type(Instance& in, const Generic& g, const std::map<std::string, DType>& given) {
    const std::vector<DType> allowed = type_set(g);
    const auto it = given.find(g.name);
    const DType type = it != given.end() ? it->second : allowed[0];
    if (std::ranges::find(allowed, type) == allowed.end()) {
        in.report("generic.type", g.loc, fmt::format("`{}` cannot be {}", g.name, name_of(type)), fmt::format("it is one of {}", shown(allowed)));
        return false;
    }
    in.types[g.name] = type;
    return true;
}

bool bind_generics(Instance& in, const std::map<std::string, DType>& types, const std::map<std::string, int64_t>& values) {
    for (const Generic& g : in.op.generics) {
        const bool twice = std::ranges::any_of(in.op.generics, [&](const Generic& x) { return &x < &g && x.name == g.name; });
        if (twice || type_named(g.name)) {
            in.report(twice ? "name.twice" : "name.builtin", g.loc, fmt::format(fmt::runtime(twice ? "`{}` is declared twice" : "`{}` is a name of the language"), g.name));
            return false;
        }
    }
    for (const Generic& g : in.op.generics) {
        if (!check_generic(in, g)) return false;
        if (!(value_generic(in.op, g) ? bind_value(in, g, values) : bind_type(in, g, types))) return false;
    }
    return true;
}

Loc place_in(const Expr& e, const std::string& name) {
    if (e.kind == Expr::Name && e.text == name) return e.loc;
    for (const ExprPtr& a : e.args)
        if (const Loc loc = place_in(*a, name)) return loc;
    return {};
}

/// Where a dimension stands first.
Loc place_of(const OpDecl& op, const std::string& dim) {
    for (const auto* list : {&op.params, &op.outputs})
        for (const Param& p : *list)
            for (const ExprPtr& d : p.shape.dims)
                if (const Loc loc = place_in(*d, dim)) return loc;
    return op.loc;
}

void declare_dims(Instance& in, const Bindings& bindings) {
    std::vector<std::string> names;
    for (const auto* list : {&in.op.params, &in.op.outputs})
        for (const Param& p : *list)
            for (const ExprPtr& d : p.shape.dims) collect_dims(in, *d, names);
    for (const std::string& n : names) {
        if (n == "inf" || n == "nan" || n == "pi" || type_named(n)) in.report("name.builtin", place_of(in.op, n), fmt::format("`{}` is a name of the language", n), "choose another name for the dimension");
        Dim dim{n};
        if (const auto it = bindings.dims.find(n); it != bindings.dims.end()) dim.value = it->second;
        in.build.program.dims.push_back(dim);
        in.dims[n] = ir::name(n);
    }
    for (const auto* list : {&in.op.params, &in.op.outputs})
        for (const Param& p : *list)
            for (const ExprPtr& d : p.shape.dims)
                if (d->pack) {
                    in.packs[d->text] = {ir::name(d->text)};
                    std::ranges::find(in.build.program.dims, d->text, &Dim::name)->pack = true;
                }
}

/// A symbolic divisor in a shape or a condition is at least 1.
void divisor_facts(Instance& in, const Index& e) {
    if ((e->op == IndexOp::Div || e->op == IndexOp::Mod) && !in.base_facts().nonnegative(e->args[1] - constant(1)))
        in.build.program.facts.push_back(binary(Op::Ge, of_index(e->args[1]), of_index(constant(1))));
    for (const Index& a : e->args) divisor_facts(in, a);
}

void divisor_facts(Instance& in, const Value& v) {
    for (const Index& e : v->subscripts) divisor_facts(in, e);
    for (const Value& a : v->args) divisor_facts(in, a);
}

std::optional<std::vector<Index>> sizes_of(Instance& in, const Param& p) {
    std::vector<Index> out;
    Elaborator e(in, in.base_facts());
    for (const ExprPtr& d : p.shape.dims) {
        if (d->pack) {
            const auto& pack = in.packs.at(d->text);
            out.insert(out.end(), pack.begin(), pack.end());
            continue;
        }
        Index size = e.dimension(*d);
        if (!size) return {};
        divisor_facts(in, size);
        out.push_back(std::move(size));
    }
    return out;
}

std::optional<DType> parameter_type(Instance& in, const Param& p) {
    const auto type = in.type_of(p.type);
    if (type && *type != DType::Tf32) return type;
    std::vector<std::string> names;
    for (const TypeInfo& t : all_types()) names.emplace_back(t.name);
    for (const auto& [n, t] : in.types) names.push_back(n);
    in.report("type.unknown", p.type_loc, type ? "`tf32` is a rounding, not a type of tensors" : fmt::format("no type `{}` is known", p.type), did_you_mean(p.type, names));
    return {};
}

bool name_taken(Instance& in, const Param& p) {
    const bool taken = in.tensors.contains(p.name) || in.scalars.contains(p.name) || in.dims.contains(p.name) || in.values.contains(p.name) || in.types.contains(p.name);
    if (type_named(p.name) || p.name == "inf" || p.name == "nan" || p.name == "pi") {
        in.report("name.builtin", p.loc, fmt::format("`{}` is a name of the language", p.name), "choose another name");
        return true;
    }
    if (taken) in.report("name.twice", p.loc, fmt::format("`{}` already means something in this signature", p.name));
    return taken;
}

void declare_scalar(Instance& in, const Param& p, DType type, std::map<std::string, double>& known) {
    in.build.program.decls.push_back({p.name, Scope::Param, type, {}, false, p.loc});
    in.scalars[p.name] = load(p.name, type, {});
    if (!p.otherwise || known.contains(p.name)) return;
    Names none;
    Elaborator e(in, in.base_facts());
    const Value v = e.value(*p.otherwise, none);
    if (v && v->op == Op::Const) known[p.name] = is_float(v->type) ? (p.otherwise->kind == Expr::Float ? p.otherwise->number : v->number) : static_cast<double>(v->integer);
    else if (v) in.report("generic.default", p.otherwise->loc, "a default is a constant");
}

void declare_tensor(Instance& in, const Param& p, DType type, bool output) {
    const auto sizes = sizes_of(in, p);
    if (!sizes) return;
    Decl d{p.name, output ? Scope::Out : Scope::In, type, {}, p.strided, p.loc};
    for (const Index& s : *sizes) d.dims.push_back({constant(0), s});
    in.build.program.decls.push_back(d);
    in.tensors[p.name] = {p.name, type, *sizes, p.loc, output, !output};
}

void declare_signature(Instance& in, std::map<std::string, double>& scalars) {
    for (const Param& p : in.op.params) {
        const auto type = parameter_type(in, p);
        if (!type || name_taken(in, p)) continue;
        if (p.shape.present) declare_tensor(in, p, *type, false);
        else if (p.strided) in.report("type.strided", p.loc, "a scalar has no strides");
        else declare_scalar(in, p, *type, scalars);
    }
    for (const Param& p : in.op.outputs) {
        const auto type = parameter_type(in, p);
        if (type && !name_taken(in, p)) declare_tensor(in, p, *type, true);
    }
}

/// A condition on dimensions; empty after an error.
Value where_condition(Instance& in, const ExprPtr& w) {
    Elaborator e(in, in.base_facts());
    Names none;
    const Value v = e.value(*w, none);
    bool loads = false;
    if (v) visit(v, [&](const ValueNode& n) { loads |= n.op == Op::Load; });
    if (v && v->type == DType::Bool && !loads) return v;
    if (v) in.report("where.condition", w->loc, "`where` takes conditions on dimensions and compile-time values");
    return nullptr;
}

/// `where P == e` gives P its value where that is known.
void solve(Instance& in, const ExprPtr& w) {
    if (w->kind != Expr::Infix || w->text != "==" || w->args[0]->kind != Expr::Name) return;
    const auto dim = std::ranges::find(in.build.program.dims, w->args[0]->text, &Dim::name);
    if (dim == in.build.program.dims.end() || dim->value) return;
    Elaborator e(in, in.base_facts());
    const Index size = e.dimension(*w->args[1]);
    if (!size) return;
    if (const auto v = in.base_facts().value(size)) dim->value = *v;
}

std::optional<bool> constant_truth(const Instance& in, const Value& v) {
    const auto f = in.base_facts();
    const auto side = [&](const Value& x) -> std::optional<int64_t> {
        if (x->op == Op::Const) return x->integer;
        return x->op == Op::OfIndex ? f.value(x->subscripts[0]) : std::nullopt;
    };
    if (v->op == Op::Const) return v->integer != 0;
    if (v->op < Op::Eq || v->op > Op::Ge) return {};
    const auto a = side(v->args[0]), b = side(v->args[1]);
    if (!a || !b) return {};
    switch (v->op) {
        case Op::Eq: return *a == *b;
        case Op::Ne: return *a != *b;
        case Op::Lt: return *a < *b;
        case Op::Le: return *a <= *b;
        case Op::Gt: return *a > *b;
        default: return *a >= *b;
    }
}

void declare_where(Instance& in) {
    for (const ExprPtr& w : in.op.where) solve(in, w);
    for (const ExprPtr& w : in.op.where) {
        const Value v = where_condition(in, w);
        if (!v) continue;
        divisor_facts(in, v);
        const auto truth = constant_truth(in, v);
        if (truth && !*truth) in.report("where.false", w->loc, "the condition does not hold for these sizes", describe(v));
        if (!truth) in.build.program.facts.push_back(v);
    }
}

void check_outputs(Instance& in) {
    for (const Param& p : in.op.outputs)
        if (const auto it = in.tensors.find(p.name); it != in.tensors.end() && !it->second.defined)
            in.report("output.undefined", p.loc, fmt::format("no statement defines the output `{}`", p.name));
}

/// Conditions that are true, or stand twice, need no check.
void drop_known_facts(Program& p) {
    std::vector<Value> kept;
    analysis::Facts f(known_dims(p));
    for (const Dim& d : p.dims) f.add_dim(d.name);
    for (const Value& v : p.facts) {
        const bool comparison = v->op >= Op::Eq && v->op <= Op::Ge && v->args[0]->op == Op::OfIndex;
        const Index a = comparison ? v->args[0]->subscripts[0] : nullptr;
        const Index b = comparison ? (v->args[1]->op == Op::OfIndex ? v->args[1]->subscripts[0] : constant(v->args[1]->integer)) : nullptr;
        if (comparison && ((v->op == Op::Ge && f.nonnegative(a - b)) || (v->op == Op::Lt && f.less(a, b)))) continue;
        if (std::ranges::none_of(kept, [&](const Value& k) { return equal(k, v); })) kept.push_back(v);
    }
    p.facts = std::move(kept);
}

}  // namespace

Operator instantiate(const Module& module, const OpDecl& op, const Bindings& bindings, std::vector<Diagnostic>& found) {
    Build build{{}, found};
    build.program.name = op.name;
    Instance in{module, op, build};
    Operator out{{}, bindings.scalars, op.doc, bindings};
    const size_t errors = found.size();
    if (bind_generics(in, bindings.types, bindings.values)) {
        declare_dims(in, bindings);
        declare_signature(in, out.scalars);
        if (found.size() == errors) declare_where(in);
        if (found.size() == errors) elaborate_body(in);
        if (found.size() == errors) check_outputs(in);
    }
    if (found.size() == errors) drop_known_facts(build.program);
    for (const auto& [n, t] : in.types) out.bindings.types[n] = t;
    for (const auto& [n, v] : in.values) out.bindings.values[n] = v.first;
    out.program = std::move(build.program);
    return out;
}

void check_fn(const Module& module, const FnDecl& fn, std::vector<Diagnostic>& found) {
    static const OpDecl nothing{};
    Build build{{}, found};
    Instance in{module, nothing, build};
    Names names;
    names.fn_params = &names;
    for (const std::string& p : fn.params) names.values[p] = load(p, DType::F32, {});
    Elaborator(in, in.base_facts()).value(*fn.body, names);
}

// ---- calls of operators

namespace {

class Call {
  public:
    Call(Instance& caller, const Statement& s, const OpDecl& op, const Module& home)
        : caller_(caller), s_(s), e_(*s.value), in_{home, op, caller.build, caller.prefix + s.targets[0].name + "."} {}

    void run() {
        if (!check_counts() || !bind_arguments() || !bind_dims_of_tensors()) return fail();
        declare_outputs();
        check_where();
        elaborate_body(in_);
        finish();
    }

  private:
    bool check_counts() {
        size_t required = 0;
        for (const Param& p : in_.op.params) required += p.otherwise == nullptr;
        if (e_.args.size() < required || e_.args.size() > in_.op.params.size()) {
            caller_.report("call.count", e_.loc, fmt::format("`{}` takes {} arguments, but {} are given", e_.text, in_.op.params.size(), e_.args.size()), {}, {{in_.op.loc, "declared here"}});
            return false;
        }
        if (s_.targets.size() != in_.op.outputs.size()) {
            caller_.report("output.count", s_.loc, fmt::format("`{}` has {} outputs, but {} names stand on the left", e_.text, in_.op.outputs.size(), s_.targets.size()), {},
                           {{in_.op.loc, "declared here"}});
            return false;
        }
        if (++caller_.build.depth > 32 || ++caller_.build.calls > most_calls) {
            const bool recursion = caller_.build.depth > 32;
            --caller_.build.depth;
            if (caller_.build.exhausted) return false;
            caller_.build.exhausted = true;
            caller_.report(recursion ? "call.recursion" : "call.size", e_.loc,
                           recursion ? fmt::format("`{}` calls itself, directly or through others", e_.text) : fmt::format("the calls come to more than {} operators", most_calls));
            return false;
        }
        entered_ = true;
        return true;
    }

    bool bind_arguments() {
        std::map<std::string, DType> types;
        for (size_t i = 0; i < e_.args.size(); ++i) {
            const Param& p = in_.op.params[i];
            if (!p.shape.present) continue;
            const Expr& a = *e_.args[i];
            const auto it = a.kind == Expr::Name ? caller_.tensors.find(a.text) : caller_.tensors.end();
            if (it != caller_.tensors.end() && it->second.failed) return false;
            if (it == caller_.tensors.end() || !it->second.defined) {
                const bool known = a.kind != Expr::Name || caller_.scalars.contains(a.text);
                caller_.report(known ? "call.tensor" : "name.unknown", a.loc, known ? fmt::format("argument {} of `{}` is a whole tensor", i + 1, e_.text) : fmt::format("`{}` is not known here", a.text),
                               known ? "name the expression as an intermediate first, and pass its name" : did_you_mean(a.text, caller_.known_names({})));
                return false;
            }
            tensors_.push_back({&p, &it->second, a.loc});
            if (std::ranges::any_of(in_.op.generics, [&](const Generic& g) { return g.name == p.type; })) types.emplace(p.type, it->second.type);
        }
        std::map<std::string, int64_t> values;
        for (size_t g = 0; g < e_.generics.size(); ++g) {
            const auto& [name, expr] = e_.generics[g];
            if (std::ranges::none_of(in_.op.generics, [&, &n = name](const Generic& g) { return g.name == n; })) {
                std::vector<std::string> names;
                for (const Generic& g : in_.op.generics) names.push_back(g.name);
                caller_.report("generic.unknown", e_.generic_locs[g], fmt::format("`{}` has no generic `{}`", e_.text, name), did_you_mean(name, names));
                return false;
            }
            if (expr->kind == Expr::Name && caller_.type_of(expr->text)) types[name] = *caller_.type_of(expr->text);
            else if (expr->kind == Expr::Boolean) values[name] = expr->integer;
            else if (!constant_argument(name, *expr, values)) return false;
        }
        for (Generic g : in_.op.generics)
            if (!types.contains(g.name) && !value_generic(in_.op, g)) default_output_type(g, types);
        return bind_generics(in_, types, values);
    }

    /// A type that no argument gives is that of the declared output it lands in, else the first of its set.
    void default_output_type(const Generic& g, std::map<std::string, DType>& types) const {
        for (size_t i = 0; i < in_.op.outputs.size(); ++i) {
            const auto it = caller_.tensors.find(s_.targets[i].name);
            if (in_.op.outputs[i].type == g.name && it != caller_.tensors.end()) types[g.name] = it->second.type;
        }
    }

    bool constant_argument(const std::string& name, const Expr& e, std::map<std::string, int64_t>& values) {
        if (const auto it = caller_.values.find(e.text); e.kind == Expr::Name && it != caller_.values.end()) return values[name] = it->second.first, true;
        Elaborator elaborator(caller_, caller_.base_facts());
        const Index v = elaborator.dimension(e);
        const auto known = v ? caller_.base_facts().value(v) : std::nullopt;
        if (known) values[name] = *known;
        else if (v) caller_.report("generic.value", e.loc, fmt::format("`{}` takes a constant that is known at compile time", name));
        return known.has_value();
    }

    /// Unifies the callee's shapes with the sizes of the arguments; its dimensions become expressions of the caller's.
    bool bind_dims_of_tensors() {
        for (const Argument& a : tensors_)
            if (!unify_rank(*a.param, *a.tensor, a.loc)) return false;
        for (const Argument& a : tensors_)
            if (!unify_expressions(*a.param, *a.tensor, a.loc)) return false;
        for (size_t i = 0; i < in_.op.params.size(); ++i)
            if (!in_.op.params[i].shape.present && !scalar(i)) return false;
        return solve_where();
    }

    bool unify_rank(const Param& p, const TensorInfo& t, Loc loc) {
        const auto& dims = p.shape.dims;
        const bool pack = std::ranges::any_of(dims, [](const ExprPtr& d) { return d->pack; });
        const auto type = in_.type_of(p.type);
        if (type && *type != t.type) {
            caller_.report("type.argument", loc, fmt::format("`{}` of `{}` holds {}, but the argument holds {}", p.name, e_.text, name_of(*type), name_of(t.type)), {}, {{p.loc, "declared here"}});
            return false;
        }
        if (pack ? t.sizes.size() + 1 < dims.size() : t.sizes.size() != dims.size()) {
            caller_.report("shape.rank", loc, fmt::format("`{}` of `{}` has {} dimensions, but the argument has {}", p.name, e_.text, dims.size(), t.sizes.size()), {}, {{p.loc, "declared here"}});
            return false;
        }
        const size_t width = t.sizes.size() + 1 - std::min(dims.size(), t.sizes.size() + 1);
        size_t at = 0;
        for (const ExprPtr& d : dims) {
            if (d->pack) {
                in_.packs.try_emplace(d->text, t.sizes.begin() + static_cast<ptrdiff_t>(at), t.sizes.begin() + static_cast<ptrdiff_t>(at + width));
                at += width;
                continue;
            }
            if (d->kind == Expr::Name && !in_.values.contains(d->text)) in_.dims.try_emplace(d->text, t.sizes[at]);
            ++at;
        }
        return true;
    }

    bool unify_expressions(const Param& p, const TensorInfo& t, Loc loc) {
        size_t at = 0;
        for (const ExprPtr& d : p.shape.dims) {
            if (d->pack) {
                const auto& pack = in_.packs.at(d->text);
                for (const Index& size : pack)
                    if (!same_size(size, t.sizes[at++], p, loc)) return false;
                continue;
            }
            if (d->kind != Expr::Name) solve_product(*d, t.sizes[at]);
            Elaborator e(in_, in_.base_facts());
            const Index size = e.dimension(*d);
            if (!size || !same_size(size, t.sizes[at++], p, loc)) return false;
        }
        return true;
    }

    /// `2*F` against a size gives F = size/2.
    void solve_product(const Expr& d, const Index& size) {
        if (d.kind != Expr::Infix || d.text != "*" || d.args[0]->kind != Expr::Integer || d.args[1]->kind != Expr::Name) return;
        if (!in_.values.contains(d.args[1]->text)) in_.dims.try_emplace(d.args[1]->text, div(size, constant(d.args[0]->integer)));
    }

    bool same_size(const Index& a, const Index& b, const Param& p, Loc loc) {
        const auto f = caller_.base_facts();
        if (f.equal(a, b)) return true;
        const auto known = f.value(a - b);
        if (!known) {
            caller_.build.program.facts.push_back(binary(Op::Eq, of_index(a), of_index(b)));
            return true;
        }
        caller_.report("shape.mismatch", loc, fmt::format("`{}` of `{}` needs the size {}, but the argument has {}", p.name, e_.text, print(a), print(b)), {}, {{p.loc, "declared here"}});
        return false;
    }

    bool scalar(size_t i) {
        const Param& p = in_.op.params[i];
        const ExprPtr e = i < e_.args.size() ? e_.args[i] : p.otherwise;
        Names none;
        Elaborator elaborator(i < e_.args.size() ? caller_ : in_, caller_.base_facts());
        const auto type = parameter_type(in_, p);
        const Value v = type ? elaborator.value(*e, none) : nullptr;
        if (v) in_.scalars[p.name] = cast(widened(*type), v);
        return v != nullptr;
    }

    bool solve_where() {
        for (const ExprPtr& w : in_.op.where) {
            if (w->kind != Expr::Infix || w->text != "==" || w->args[0]->kind != Expr::Name || in_.dims.contains(w->args[0]->text) || in_.values.contains(w->args[0]->text)) continue;
            Elaborator e(in_, in_.base_facts());
            const Index size = e.dimension(*w->args[1]);
            if (!size) return false;
            in_.dims[w->args[0]->text] = size;
        }
        return bind_dims_of_outputs();
    }

    /// What is left is given by a declared output that the result lands in.
    bool bind_dims_of_outputs() {
        for (size_t i = 0; i < in_.op.outputs.size(); ++i) {
            const Param& p = in_.op.outputs[i];
            const auto it = caller_.tensors.find(s_.targets[i].name);
            const bool lands = it != caller_.tensors.end() && it->second.output && it->second.sizes.size() == p.shape.dims.size();
            for (size_t d = 0; d < p.shape.dims.size(); ++d) {
                std::vector<std::string> names;
                collect_dims(in_, *p.shape.dims[d], names);
                for (const std::string& n : names) {
                    if (in_.dims.contains(n) || in_.packs.contains(n)) continue;
                    if (lands && p.shape.dims[d]->kind == Expr::Name) {
                        in_.dims[n] = it->second.sizes[d];
                        continue;
                    }
                    caller_.report("shape.unsolved", e_.loc, fmt::format("the dimension `{}` of `{}` follows from none of the arguments", n, e_.text), {}, {{p.loc, "used here"}});
                    return false;
                }
            }
        }
        return true;
    }

    void declare_outputs() {
        for (const Argument& a : tensors_) in_.tensors[a.param->name] = *a.tensor, in_.tensors[a.param->name].output = false;
        for (size_t i = 0; i < in_.op.outputs.size(); ++i) declare_output(in_.op.outputs[i], s_.targets[i]);
    }

    void declare_output(const Param& p, const Target& target) {
        const auto type = parameter_type(in_, p);
        const auto sizes = sizes_of(in_, p);
        if (!type || !sizes) return;
        const auto it = caller_.tensors.find(target.name);
        if (it != caller_.tensors.end() && (!it->second.output || it->second.defined)) {
            caller_.report("name.twice", target.loc, fmt::format("`{}` is defined twice", target.name), {}, {{it->second.loc, "first here"}});
            return;
        }
        const bool direct = it != caller_.tensors.end();
        if (direct && (it->second.type != *type || it->second.sizes.size() != sizes->size())) {
            caller_.report("type.output", target.loc, fmt::format("`{}` holds {} in {} dimensions, but `{}` gives {} in {}", target.name, name_of(it->second.type), it->second.sizes.size(), e_.text,
                                                                  name_of(*type), sizes->size()),
                           "give the result a name of its own, and store that");
            return;
        }
        for (size_t d = 0; direct && d < sizes->size(); ++d)
            if (!same_size((*sizes)[d], it->second.sizes[d], p, target.loc)) return;
        const std::string name = direct ? it->second.ir_name : caller_.prefix + target.name;
        if (!direct) {
            Decl decl{name, Scope::Temp, *type, {}, false, target.loc};
            for (const Index& s : *sizes) decl.dims.push_back({constant(0), s});
            in_.build.program.decls.push_back(std::move(decl));
        }
        in_.tensors[p.name] = {name, *type, *sizes, p.loc, true, false};
    }

    void check_where() {
        for (const ExprPtr& w : in_.op.where) {
            const Value v = where_condition(in_, w);
            if (!v) continue;
            divisor_facts(in_, v);
            const auto truth = constant_truth(in_, v);
            if (truth && !*truth) caller_.report("where.false", e_.loc, fmt::format("a condition of `{}` does not hold here: {}", e_.text, describe(v)), {}, {{w->loc, "the condition"}});
            const bool trivial = v->op == Op::Eq && v->args[0]->op == Op::OfIndex && v->args[1]->op == Op::OfIndex && equal(v->args[0]->subscripts[0], v->args[1]->subscripts[0]);
            if (!truth && !trivial) in_.build.program.facts.push_back(v);
        }
    }

    void finish() {
        --caller_.build.depth;
        check_outputs(in_);
        for (size_t i = 0; i < in_.op.outputs.size(); ++i) {
            const auto it = in_.tensors.find(in_.op.outputs[i].name);
            if (it == in_.tensors.end()) continue;
            TensorInfo t = it->second;
            const auto mine = caller_.tensors.find(s_.targets[i].name);
            t.output = mine != caller_.tensors.end() && mine->second.output;
            t.loc = s_.targets[i].loc;
            t.defined = true;
            caller_.tensors[s_.targets[i].name] = t;
        }
    }

    void fail() {
        if (entered_) --caller_.build.depth;
        for (const Target& t : s_.targets) {
            const auto [it, fresh] = caller_.tensors.try_emplace(t.name, TensorInfo{caller_.prefix + t.name, DType::F32, {}, t.loc});
            it->second.defined = true;
            it->second.failed |= fresh;
        }
    }

    Instance& caller_;
    const Statement& s_;
    const Expr& e_;
    Instance in_;
    struct Argument {
        const Param* param;
        const TensorInfo* tensor;
        Loc loc;
    };
    std::vector<Argument> tensors_;
    bool entered_ = false;
};

}  // namespace

void substitute_call(Instance& caller, const Statement& s, const OpDecl& op, const Module& home) { Call(caller, s, op, home).run(); }

}  // namespace acu::frontend
