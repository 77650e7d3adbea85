#include "frontend/signature.h"

#include <fmt/format.h>

#include <algorithm>


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

static std::string shown(const std::vector<DType>& types) {
    std::string s;
    for (const DType t : types) s += (s.empty() ? "" : ", ") + std::string(name_of(t));
    return s;
}

/// `int` alone is a compile-time value when the name is used as one; a type set when it is used as a type.
static bool used_as_type(const OpDecl& op, const std::string& name) {
    const auto uses = [&](const Param& p) { return p.type == name; };
    return std::ranges::any_of(op.params, uses) || std::ranges::any_of(op.outputs, uses);
}
bool value_generic(const OpDecl& op, const Generic& g) { return g.types.size() == 1 && (g.types[0] == "bool" || (g.types[0] == "int" && !used_as_type(op, g.name))); }

static bool check_generic(Instance& in, const Generic& g) {
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

static bool bind_value(Instance& in, const Generic& g, const std::map<std::string, int64_t>& given) {
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

static bool bind_type(Instance& in, const Generic& g, const std::map<std::string, DType>& given) {
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

static Loc place_in(const Expr& e, const std::string& name) {
    if (e.kind == Expr::Name && e.text == name) return e.loc;
    for (const ExprPtr& a : e.args)
        if (const Loc loc = place_in(*a, name)) return loc;
    return {};
}

/// Where a dimension stands first.
static Loc place_of(const OpDecl& op, const std::string& dim) {
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
static void divisor_facts(Instance& in, const Index& e) {
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

static bool name_taken(Instance& in, const Param& p) {
    const bool taken = in.tensors.contains(p.name) || in.scalars.contains(p.name) || in.dims.contains(p.name) || in.values.contains(p.name) || in.types.contains(p.name);
    if (type_named(p.name) || p.name == "inf" || p.name == "nan" || p.name == "pi") {
        in.report("name.builtin", p.loc, fmt::format("`{}` is a name of the language", p.name), "choose another name");
        return true;
    }
    if (taken) in.report("name.twice", p.loc, fmt::format("`{}` already means something in this signature", p.name));
    return taken;
}

static void declare_scalar(Instance& in, const Param& p, DType type, std::map<std::string, double>& known) {
    in.build.program.decls.push_back({p.name, Scope::Param, type, {}, false, p.loc});
    in.scalars[p.name] = load(p.name, type, {});
    if (!p.otherwise || known.contains(p.name)) return;
    Names none;
    Elaborator e(in, in.base_facts());
    const Value v = e.value(*p.otherwise, none);
    if (v && v->op == Op::Const) known[p.name] = is_float(v->type) ? (p.otherwise->kind == Expr::Float ? p.otherwise->number : v->number) : static_cast<double>(v->integer);
    else if (v) in.report("generic.default", p.otherwise->loc, "a default is a constant");
}

static void declare_tensor(Instance& in, const Param& p, DType type, bool output) {
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
static void solve(Instance& in, const ExprPtr& w) {
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
    return compare(v->op, *a, *b);
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

}  // namespace acu::frontend
