#include "frontend/statements.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::frontend {

using namespace ir;

namespace {

/// One statement: its target's index variables with their loops, then its blocks.
class StatementBuilder {
  public:
    StatementBuilder(Instance& in, size_t at) : in_(in), s_(in.op.body[at]), at_(at), elaborator_(in, in.base_facts()) {}

    void run() {
        if (s_.kind == Statement::Scatter) return scatter();
        if (!check_targets()) return;
        if (s_.kind == Statement::TopK || pair_reduction()) return pair();
        if (s_.targets.size() > 1) {
            in_.report("output.count", s_.loc, fmt::format("{} names stand on the left, but the right side is one value", s_.targets.size()));
            return;
        }
        if (!bind_target(s_.targets[0], nullptr)) return define_all();
        if (s_.kind == Statement::Scan) return scan();
        define();
    }

  private:
    Instance& in_;
    const Statement& s_;
    size_t at_;
    Elaborator elaborator_;
    Names names_;
    std::vector<Axis> axes_;

    bool pair_reduction() const {
        return s_.kind == Statement::Define && s_.targets.size() == 2 && s_.value->kind == Expr::Reduction && (s_.value->text == "argmax" || s_.value->text == "argmin");
    }

    // ---- targets

    bool check_targets() {
        for (const Target& t : s_.targets) {
            const auto it = in_.tensors.find(t.name);
            if (it != in_.tensors.end() && (!it->second.output || it->second.defined)) {
                const bool input = !it->second.output && it->second.loc && std::ranges::any_of(in_.op.params, [&](const Param& p) { return p.name == t.name; });
                in_.report("name.twice", t.loc, input ? fmt::format("`{}` is an input", t.name) : fmt::format("`{}` is defined twice", t.name), {}, {{it->second.loc, "first here"}});
                return false;
            }
            if (in_.scalars.contains(t.name) || in_.dims.contains(t.name) || in_.values.contains(t.name)) {
                in_.report("name.twice", t.loc, fmt::format("`{}` already means something else here", t.name));
                return false;
            }
        }
        return true;
    }

    const TensorInfo* output(const std::string& name) const {
        const auto it = in_.tensors.find(name);
        return it != in_.tensors.end() && it->second.output ? &it->second : nullptr;
    }

    bool bind(const std::string& name, Loc loc, Index size) {
        if (names_.indices.contains(name) || in_.dims.contains(name) || in_.values.contains(name) || in_.scalars.contains(name)) {
            in_.report("name.shadow", loc, fmt::format("`{}` already means something here", name), "an index variable needs a name of its own");
            return false;
        }
        const std::string axis = elaborator_.fresh_axis(name, names_);
        names_.indices[name] = ir::name(axis);
        axes_.push_back({axis, AxisKind::Par, constant(0), size});
        elaborator_.add_range(axis, size);
        return true;
    }

    bool bind_pack(const ExprPtr& s, const std::vector<Index>& sizes) {
        names_.indices[".." + s->text] = constant(0);    // the pack is bound, also where it has no dimension
        for (size_t i = 0; i < sizes.size(); ++i) {
            const std::string axis = sizes.size() == 1 ? s->text : fmt::format("{}{}", s->text, i);
            const std::string own = elaborator_.fresh_axis(axis, names_);
            names_.indices[fmt::format("..{}.{}", s->text, i)] = ir::name(own);
            axes_.push_back({own, AxisKind::Par, constant(0), sizes[i]});
            elaborator_.add_range(own, sizes[i]);
        }
        return true;
    }

    /// The sizes behind a pack on the left: those of the output, or of the operator's pack of that name in capitals.
    std::optional<std::vector<Index>> pack_sizes(const Target& t, const ExprPtr& s) {
        const TensorInfo* out = output(t.name);
        if (out && out->sizes.size() + 1 >= t.subscripts.size()) {
            const size_t width = out->sizes.size() + 1 - t.subscripts.size();
            return std::vector<Index>(out->sizes.begin(), out->sizes.begin() + static_cast<ptrdiff_t>(width));
        }
        if (in_.packs.size() == 1) return in_.packs.begin()->second;
        in_.report("range.unknown", s->loc, fmt::format("the range of `..{}` is not known", s->text), "only an operator with a `..B` in its shapes has index packs");
        return {};
    }

    bool bind_target(const Target& t, const Index& last_extent) {
        const TensorInfo* out = output(t.name);
        size_t dim = 0;
        const bool has_pack = std::ranges::any_of(t.subscripts, [](const ExprPtr& s) { return s->pack; });
        if (out && !has_pack && out->sizes.size() != t.subscripts.size()) {
            in_.report("shape.rank", t.loc, fmt::format("`{}` has {} dimensions, but {} subscripts are written", t.name, out->sizes.size(), t.subscripts.size()), {},
                       {{out->loc, "declared here"}});
            return false;
        }
        for (size_t i = 0; i < t.subscripts.size(); ++i) {
            const ExprPtr& s = t.subscripts[i];
            if (s->pack) {
                const auto sizes = pack_sizes(t, s);
                if (!sizes || !bind_pack(s, *sizes)) return false;
                dim += sizes->size();
                continue;
            }
            if (s->kind != Expr::Name) {
                in_.report("expr.target", s->loc, "a subscript on the left of `=` is an index variable", "compound subscripts are for reading, and for `+=` (scatter-add)");
                return false;
            }
            const bool last = last_extent && i + 1 == t.subscripts.size();
            Index size = last ? last_extent : out && dim < out->sizes.size() ? out->sizes[dim] : extent_of(*s, t.name, i);
            if (!size || !bind(s->text, s->loc, size)) return false;
            ++dim;
        }
        return true;
    }

    /// From plain subscripts in this statement, else from the statements that read the result.
    Index extent_of(const Expr& var, const std::string& target, size_t position) {
        if (const Index here = elaborator_.inferred_extent(var.text, *s_.value, var.loc)) return here;
        if (const Index later = later_extent(target, position, at_ + 1, 0)) return later;
        in_.report("range.unknown", var.loc, fmt::format("the range of `{}` is not known", var.text),
                   fmt::format("no tensor has `{}` alone as a subscript here, and none that reads `{}` gives its size", var.text, target));
        return nullptr;
    }

    static void find_accesses(const Expr& e, const std::string& tensor, std::vector<const Expr*>& out) {
        if (e.kind == Expr::Access && e.text == tensor) out.push_back(&e);
        for (const ExprPtr& a : e.args) find_accesses(*a, tensor, out);
    }

    Index later_extent(const std::string& tensor, size_t position, size_t from, int depth) {
        if (depth > 8) return nullptr;
        for (size_t i = from; i < in_.op.body.size(); ++i) {
            const Statement& s = in_.op.body[i];
            std::vector<const Expr*> reads;
            find_accesses(*s.value, tensor, reads);
            for (const Expr* r : reads) {
                if (position >= r->args.size() || r->args[position]->kind != Expr::Name || r->args[position]->pack) continue;
                if (const Index size = extent_in(s, r->args[position]->text, i, depth)) return size;
            }
        }
        return nullptr;
    }

    Index extent_in(const Statement& s, const std::string& var, size_t at, int depth) {
        const Target& t = s.targets[0];
        for (size_t p = 0; p < t.subscripts.size(); ++p) {
            if (t.subscripts[p]->kind != Expr::Name || t.subscripts[p]->text != var) continue;
            if (const TensorInfo* out = output(t.name); out && p < out->sizes.size()) return out->sizes[p];
            if (const Index size = elaborator_.inferred_extent(var, *s.value, s.loc)) return size;
            return later_extent(t.name, p, at + 1, depth + 1);
        }
        return elaborator_.inferred_extent(var, *s.value, s.loc);
    }

    // ---- blocks

    std::vector<Index> axis_names() const {
        std::vector<Index> out;
        for (const Axis& a : axes_) out.push_back(ir::name(a.name));
        return out;
    }
    std::vector<Index> axis_sizes() const {
        std::vector<Index> out;
        for (const Axis& a : axes_) out.push_back(a.size);
        return out;
    }
    static std::vector<Window> windows(const std::vector<Index>& sizes) {
        std::vector<Window> out;
        for (const Index& s : sizes) out.push_back({constant(0), s});
        return out;
    }

    void emit(Block b) { in_.build.program.body.push_back(make_stmt(s_.loc, std::move(b))); }

    std::string declare_temp(const std::string& name, DType type, const std::vector<Index>& sizes) {
        in_.build.program.decls.push_back({name, Scope::Temp, type, windows(sizes), false, s_.loc});
        return name;
    }

    /// The name of the target in the program; declares an intermediate, and marks an output as defined. Empty after an error.
    std::string target_name(const Target& t, const Value& v, DType type, const std::vector<Index>& sizes) {
        const auto it = in_.tensors.find(t.name);
        if (it == in_.tensors.end()) {
            const std::string name = declare_temp(in_.prefix + t.name, type, sizes);
            in_.tensors[t.name] = {name, type, sizes, t.loc};
            return name;
        }
        it->second.defined = true;
        if (is_float(v->type) && !is_float(it->second.type)) {
            in_.report("type.narrowing", s_.value->loc, fmt::format("a value of type {} is stored in `{}`, which holds {}", name_of(v->type), t.name, name_of(it->second.type)),
                       fmt::format("write the cast, `{}(…)`; it truncates and saturates, so you may want `round` first", name_of(it->second.type)));
            return "";
        }
        return it->second.ir_name;
    }

    DType output_type(const Target& t, DType otherwise) const {
        const TensorInfo* out = output(t.name);
        return out ? out->type : otherwise;
    }

    /// The type of an intermediate: that of the expression, or what an outermost cast says.
    DType stored_type(const Value& v) const {
        const auto target = elaborator_.cast_target(*s_.value);
        return target && *target != DType::Tf32 ? *target : v->type;
    }

    void define() {
        const Value v = elaborator_.value(*s_.value, names_);
        const Target& t = s_.targets[0];
        if (!v) return define_anyway(t);
        const std::string name = target_name(t, v, stored_type(v), axis_sizes());
        if (name.empty()) return;
        const DType type = in_.tensors.at(t.name).type;
        emit({name, axes_, {{name, axis_names()}}, Monoid::None, {is_float(v->type) || is_float(type) || type == DType::Bool ? cast(widened(type), v) : v}});
    }

    /// After an error the name is known all the same, so that its uses are not reported as well.
    void define_anyway(const Target& t) {
        const auto it = in_.tensors.find(t.name);
        if (it == in_.tensors.end()) in_.tensors[t.name] = {in_.prefix + t.name, DType::F32, axis_sizes(), t.loc, false, true, true};
        else it->second.defined = true;
    }

    void scan() {
        const auto axis = names_.indices.find(s_.axis.name);
        const Target& t = s_.targets[0];
        if (axis == names_.indices.end()) {
            in_.report("expr.scan", s_.axis.loc, fmt::format("`{}` does not subscript the result", s_.axis.name), "a scan runs along an index variable of the left side");
            return define_anyway(t);
        }
        const Value v = elaborator_.value(*s_.value, names_);
        if (!v) return define_anyway(t);
        const Monoid monoid = std::ranges::find(monoids(), s_.monoid, &MonoidInfo::name)->monoid;
        const DType running = is_float(v->type) ? v->type : accumulator(v->type);
        if (is_pair(monoid) || monoid == Monoid::Any || monoid == Monoid::All) {
            in_.report("expr.scan", s_.loc, fmt::format("`scan {}` does not exist", s_.monoid), "scan takes sum, prod, max or min");
            return define_anyway(t);
        }
        const std::string name = target_name(t, cast(running, v), running, axis_sizes());
        if (name.empty()) return;
        std::vector<Axis> others = axes_;
        std::erase_if(others, [&](const Axis& a) { return is_name(axis->second, a.name); });
        std::vector<Axis> all = others;
        all.push_back(*std::ranges::find_if(axes_, [&](const Axis& a) { return is_name(axis->second, a.name); }));
        all.back().kind = AxisKind::Scan;
        std::vector<Index> at, sizes;
        for (const Axis& a : others) at.push_back(ir::name(a.name)), sizes.push_back(a.size);
        const std::string run = declare_temp(name + ".run", running, sizes);
        emit({run + ".init", others, {{run, at}}, Monoid::None, {identity(monoid, running)}});
        emit({name, all, {{run, at}, {name, axis_names()}}, monoid, {cast(running, v)}, {}, s_.exclusive});
    }

    // ---- pairs: top-k, argmax with its value

    void pair() {
        if (s_.targets.size() != 2) {
            in_.report("output.count", s_.loc, "`topk` gives values and positions", "write two names on the left, as in `v[m, j], i[m, j] = topk(n, 8) x[m, n]`");
            return;
        }
        const bool top = s_.kind == Statement::TopK;
        const AxisSpec& spec = top ? s_.axis : s_.value->axes[0];
        Index count;
        if (top && !(count = elaborator_.dimension(*s_.count))) return define_all();
        if (top && (!is_const(count) || count->value < 1 || count->value > 1024)) {
            in_.report("expr.topk", s_.count->loc, "the number of elements is an integer from 1 to 1024, known at compile time");
            return define_all();
        }
        if (!bind_target(s_.targets[0], count)) return define_all();
        if (top && !check_count(count)) return define_all();
        const Expr& body = top ? *s_.value : *s_.value->args[0];
        Names inner = names_;
        const Index extent = spec.extent ? elaborator_.index(*spec.extent, names_) : elaborator_.inferred_extent(spec.name, body, spec.loc);
        if (!extent || names_.indices.contains(spec.name)) {
            in_.report("range.unknown", spec.loc, fmt::format("the range of `{}` is not known, or its name is taken", spec.name));
            return define_all();
        }
        const std::string axis = elaborator_.fresh_axis(spec.name, names_);
        inner.indices[spec.name] = ir::name(axis);
        if (top) inner.indices.erase(s_.targets[0].subscripts.empty() ? "" : s_.targets[0].subscripts.back()->text);
        elaborator_.add_range(axis, extent);
        const Value v = elaborator_.value(body, inner);
        if (!v || !same_subscripts()) return define_all();
        emit_pair(top, {axis, AxisKind::Red, constant(0), extent}, v, top ? count->value : 0);
    }

    /// The declared size of an output's last dimension is the number of elements.
    bool check_count(const Index& count) {
        for (const Target& t : s_.targets) {
            const TensorInfo* out = output(t.name);
            if (!out || out->sizes.empty()) continue;
            const Value same = binary(Op::Eq, of_index(out->sizes.back()), of_index(count));
            const auto known = in_.base_facts().value(out->sizes.back());
            if (!known) in_.build.program.facts.push_back(same);
            if (!known || *known == count->value) continue;
            in_.report("expr.topk", s_.count->loc, fmt::format("{} elements do not fit the last dimension of `{}`, which is {}", count->value, t.name, *known), {}, {{out->loc, "declared here"}});
            return false;
        }
        return true;
    }

    void define_all() {
        for (const Target& t : s_.targets) define_anyway(t);
    }

    bool same_subscripts() {
        const auto& a = s_.targets[0].subscripts;
        const auto& b = s_.targets[1].subscripts;
        if (std::ranges::equal(a, b, [](const ExprPtr& x, const ExprPtr& y) { return x->kind == y->kind && x->text == y->text && x->pack == y->pack; })) return true;
        in_.report("expr.target", s_.targets[1].loc, "both names on the left take the same subscripts");
        return false;
    }

    /// State of the right types first, then one copy into each target.
    void emit_pair(bool top, Axis red, const Value& v, int64_t k) {
        const DType type = v->type == DType::Bool ? DType::I32 : v->type;
        const std::array<DType, 2> types{output_type(s_.targets[0], type), output_type(s_.targets[1], DType::I64)};
        const std::array<Value, 2> values{cast(type, v), of_index(ir::name(red.name))};
        std::vector<Axis> around = axes_;
        if (top) around.pop_back();
        std::vector<Index> at;
        for (const Axis& a : around) at.push_back(ir::name(a.name));
        const Monoid monoid = top ? Monoid::TopK : s_.value->text == "argmax" ? Monoid::ArgMax : Monoid::ArgMin;
        Block b{"", around, {}, monoid, {values[0], values[1]}, {}, false, k};
        std::vector<std::pair<std::string, std::string>> copies;
        for (size_t i = 0; i < 2; ++i) {
            const DType state = i == 0 ? type : DType::I64;
            const std::string name = target_name(s_.targets[i], values[i], state, axis_sizes());
            if (name.empty()) return;
            const std::string home = types[i] == state ? name : declare_temp(name + ".state", state, axis_sizes());
            if (home != name) copies.emplace_back(name, home);
            emit({home + ".init", axes_, {{home, axis_names()}}, Monoid::None, {i == 0 ? identity(monoid, state) : integer(top ? -1 : 0, DType::I64)}});
            b.outs.push_back({home, at});
        }
        b.label = b.outs[0].tensor;
        b.axes.push_back(std::move(red));
        if (!top) in_.build.program.facts.push_back(binary(Op::Ge, of_index(b.axes.back().size), of_index(constant(1))));
        const Access first = b.outs[0], second = b.outs[1];
        emit(std::move(b));
        for (const auto& [name, home] : copies) {
            const DType state = home == first.tensor ? type : DType::I64, out = home == first.tensor ? types[0] : types[1];
            emit({name, axes_, {{name, axis_names()}}, Monoid::None, {cast(widened(out), load(home, state, axis_names()))}});
        }
    }

    // ---- scatter-add

    void collect_variables(const Expr& e, std::vector<const Expr*>& out) const {
        if (e.kind == Expr::Name && !e.pack && !in_.dims.contains(e.text) && !in_.values.contains(e.text) && !in_.tensors.contains(e.text) && !in_.scalars.contains(e.text) &&
            e.text != "inf" && e.text != "nan" && e.text != "pi" && std::ranges::none_of(out, [&](const Expr* o) { return o->text == e.text; }))
            out.push_back(&e);
        std::vector<const Expr*> inner;
        for (const ExprPtr& a : e.args) collect_variables(*a, inner);
        for (const Expr* i : inner)
            if (std::ranges::none_of(e.axes, [&](const AxisSpec& a) { return a.name == i->text; }) && std::ranges::none_of(out, [&](const Expr* o) { return o->text == i->text; })) out.push_back(i);
    }

    Index scatter_extent(const Expr& var, const Target& t, const TensorInfo& out) {
        for (size_t d = 0; d < t.subscripts.size() && d < out.sizes.size(); ++d)
            if (t.subscripts[d]->kind == Expr::Name && t.subscripts[d]->text == var.text) return out.sizes[d];
        for (const ExprPtr& s : t.subscripts)
            if (const Index size = elaborator_.inferred_extent(var.text, *s, var.loc)) return size;
        const Index size = elaborator_.inferred_extent(var.text, *s_.value, var.loc);
        if (!size) in_.report("range.unknown", var.loc, fmt::format("the range of `{}` is not known", var.text));
        return size;
    }

    void scatter() {
        const Target& t = s_.targets[0];
        const TensorInfo* out = output(t.name);
        if (!out || out->defined) {
            in_.report("expr.scatter", t.loc, fmt::format("`+=` needs an output that nothing else defines, which `{}` is not", t.name));
            return;
        }
        if (t.subscripts.size() != out->sizes.size()) {
            in_.report("shape.rank", t.loc, fmt::format("`{}` has {} dimensions, but {} subscripts are written", t.name, out->sizes.size(), t.subscripts.size()), {}, {{out->loc, "declared here"}});
            return define_anyway(t);
        }
        std::vector<const Expr*> variables;
        for (const ExprPtr& s : t.subscripts) collect_variables(*s, variables);
        collect_variables(*s_.value, variables);
        for (const Expr* v : variables) {
            const Index size = scatter_extent(*v, t, *out);
            if (!size || !bind(v->text, v->loc, size)) return define_anyway(t);
        }
        Access at{"", {}};
        for (size_t d = 0; d < t.subscripts.size(); ++d) {
            const Index i = elaborator_.index(*t.subscripts[d], names_);
            if (!i || !elaborator_.check_bounds(i, out->sizes[d], *out, t.name, d, t.subscripts[d]->loc, true)) return define_anyway(t);
            at.subscripts.push_back(i);
        }
        const Value v = elaborator_.value(*s_.value, names_);
        if (!v) return define_anyway(t);
        emit_scatter(t, std::move(at), v);
    }

    void emit_scatter(const Target& t, Access at, const Value& v) {
        const std::string name = target_name(t, v, v->type, axis_sizes());
        if (name.empty()) return;
        const TensorInfo out = in_.tensors.at(t.name);
        const DType sum = accumulator(out.type);
        at.tensor = sum == out.type ? name : declare_temp(name + ".sum", sum, out.sizes);
        std::vector<Axis> cells;
        std::vector<Index> cell;
        for (size_t d = 0; d < out.sizes.size(); ++d) {
            cells.push_back({fmt::format("d{}", d), AxisKind::Par, constant(0), out.sizes[d]});
            cell.push_back(ir::name(cells.back().name));
        }
        emit({at.tensor + ".init", cells, {{at.tensor, cell}}, Monoid::None, {identity(Monoid::Sum, sum)}});
        const bool separate = at.tensor != name;
        const std::string home = at.tensor;
        emit({home, axes_, {std::move(at)}, Monoid::Sum, {cast(sum, v)}});
        if (separate) emit({name, cells, {{name, cell}}, Monoid::None, {cast(widened(out.type), load(home, sum, cell))}});
    }
};

}  // namespace

void elaborate_body(Instance& in) {
    for (size_t i = 0; i < in.op.body.size(); ++i) {
        const Statement& s = in.op.body[i];
        const bool call = s.kind == Statement::Define && s.value->kind == Expr::Call;
        const auto op = call ? in.module.ops.find(s.value->text) : in.module.ops.end();
        const bool shadowed = call && (function_named(s.value->text) || in.type_of(s.value->text));
        if (op != in.module.ops.end() && !shadowed && !s.targets[0].subscripted) substitute_call(in, s, *op->second.first, *op->second.second);
        else StatementBuilder(in, i).run();
    }
}

}  // namespace acu::frontend
