#include <fmt/format.h>

#include <algorithm>

#include "frontend/signature.h"
#include "frontend/statements.h"

namespace acu::frontend {

using namespace ir;

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
