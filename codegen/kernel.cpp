#include "codegen/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "codegen/expression.h"

namespace acu::codegen {

using namespace ir;

namespace {

// ---- does 32-bit arithmetic suffice?

struct Interval {
    int64_t low, high;
};
constexpr int64_t narrow_limit = std::numeric_limits<int32_t>::max() - most_blocks * block_threads;

/// Ranges of index expressions where every dimension is fixed; empty: unknown or too large.
class Intervals {
  public:
    explicit Intervals(const Program& p) {
        for (const auto& [n, v] : known_dims(p)) ranges_[n] = {v, v};
        complete_ = ranges_.size() == p.dims.size();
    }
    bool complete() const { return complete_; }
    void set(const std::string& name, Interval i) { ranges_[name] = i; }

    std::optional<Interval> of(const Index& e) const {
        if (e->op == IndexOp::Const) return Interval{e->value, e->value};
        if (e->op == IndexOp::Name) {
            const auto it = ranges_.find(e->name);
            return it == ranges_.end() ? std::nullopt : std::optional(it->second);
        }
        if (e->args.size() != 2 || e->op == IndexOp::Load) return {};
        const auto a = of(e->args[0]), b = of(e->args[1]);
        if (!a || !b) return {};
        return checked(corners(e->op, *a, *b));
    }

  private:
    static std::optional<Interval> checked(Interval i) {
        if (i.low < -narrow_limit || i.high > narrow_limit) return {};
        return i;
    }
    static Interval corners(IndexOp op, Interval a, Interval b) {
        if (op == IndexOp::Mod) return {std::min<int64_t>(0, b.low), std::max<int64_t>(0, b.high)};
        Interval r{INT64_MAX, INT64_MIN};
        for (const int64_t x : {a.low, a.high})
            for (const int64_t y : {b.low, b.high}) {
                const int64_t v = apply(op, x, y);
                r.low = std::min(r.low, v), r.high = std::max(r.high, v);
            }
        if (op == IndexOp::Div) r.low = std::min({r.low, a.low, -a.high}), r.high = std::max({r.high, a.high, -a.low});
        return r;
    }
    std::map<std::string, Interval> ranges_;
    bool complete_ = false;
};

class NarrowTest {
  public:
    explicit NarrowTest(const Program& p) : p_(p), intervals_(p) {}

    bool fits(const Loop& kernel) {
        if (!intervals_.complete()) return false;
        for (const Decl& d : p_.decls) buffers_[d.name] = &d;
        return loop(kernel);
    }

  private:
    bool loop(const Loop& l) {
        const auto extent = intervals_.of(l.extent);
        if (!extent) return false;
        intervals_.set(l.var, {0, std::max<int64_t>(0, extent->high - 1)});
        for (const Let& x : l.lets) {
            const auto i = intervals_.of(x.value);
            if (!i) return false;
            intervals_.set(x.name, *i);
        }
        for (const Decl& d : l.allocs) buffers_[d.name] = &d;
        return body(l.body);
    }
    bool body(const Body& stmts) {
        return std::ranges::all_of(stmts, [&](const Stmt& s) {
            return match(
                s, [&](const Block& b) { return block(b); }, [&](const Loop& l) { return loop(l); },
                [&](const If& i) { return value(i.condition) && body(i.body) && body(i.otherwise); }, [](const Roles&) { return false; }, [](const Sync&) { return true; });
        });
    }
    bool block(const Block& b) {
        for (const Axis& a : b.axes) {
            const auto base = intervals_.of(a.base), size = intervals_.of(a.size);
            if (!base || !size) return false;
            intervals_.set(a.name, {base->low, std::max(base->low, base->high + size->high - 1)});
        }
        for (const Access& o : b.outs)
            if (!access(o.tensor, o.subscripts)) return false;
        return std::ranges::all_of(b.vals, [&](const Value& v) { return value(v); }) && std::ranges::all_of(b.guards, [&](const Value& v) { return value(v); });
    }
    bool access(const std::string& tensor, const std::vector<Index>& subscripts) {
        const Decl& d = *buffers_.at(tensor);
        Index count = constant(1);
        for (const Window& w : d.dims) count = count * w.size;
        return intervals_.of(count).has_value() && std::ranges::all_of(subscripts, [&](const Index& i) { return intervals_.of(i).has_value(); });
    }
    bool value(const Value& v) {
        bool good = true;
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) good &= access(n.name, n.subscripts);
            if (n.op == Op::OfIndex) good &= intervals_.of(n.subscripts[0]).has_value();
        });
        return good;
    }
    const Program& p_;
    Intervals intervals_;
    std::map<std::string, const Decl*> buffers_;
};

// ---- text

class KernelWriter {
  public:
    KernelWriter(const Program& p, const Loop& l) : p_(p), loop_(l), facts_(known_dims(p), [&p](const std::string& t) { return p.find(t)->dims[0].size; }), writer_(buffers_, names_, facts_) {
        for (const Decl& d : p.decls) buffers_[d.name] = &d;
        for (const Dim& d : p.dims) facts_.add_dim(d.name), names_.of(d.name);
        for (const Value& f : p.facts) facts_.add(f);
    }

    Kernel write(const std::string& name) {
        Kernel k{name, loop_.extent, arguments(), ""};
        for (const KernelArgument& a : k.arguments) parameter(a);
        const bool narrow = NarrowTest(p_).fits(loop_);
        grid_loop();
        const std::string body = std::exchange(text_, "");
        line("typedef {} Index;", narrow ? "int" : "i64");
        for (const Dim& d : p_.dims)
            if (d.value && mentions(body, names_.of(d.name))) line("const Index {} = {};", names_.of(d.name), *d.value);
        k.text = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n{}{}}}\n", block_threads, name, parameters_, text_, body);
        return k;
    }

  private:
    template <class... A>
    void line(fmt::format_string<A...> format, A&&... args) { text_ += std::string(4 * depth_, ' ') + fmt::format(format, std::forward<A>(args)...) + "\n"; }

    /// Does the identifier stand in the text as a word of its own?
    static bool mentions(const std::string& text, const std::string& word) {
        const auto letter = [&](size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'); };
        for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
            if (!letter(at + word.size()) && (at == 0 || !letter(at - 1))) return true;
        return false;
    }

    void use(const Index& e) {
        free_names(e, used_);
        loaded_tensors(e, used_buffers_);
        std::set<std::string> loaded;
        loaded_tensors(e, loaded);
        for (const std::string& t : loaded) use_sizes(t);
    }
    void use_sizes(const std::string& tensor) {
        const auto it = buffers_.find(tensor);
        if (it == buffers_.end()) return;
        for (const Window& w : it->second->dims) free_names(w.size, used_);
    }
    void use(const Value& v) {
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) used_buffers_.insert(n.name), use_sizes(n.name);
            for (const Index& s : n.subscripts) use(s);
        });
    }

    /// What the kernel reads and writes, in the order of the program's declarations, then the dimensions that it uses.
    std::vector<KernelArgument> arguments() {
        use(loop_.extent);
        for (const Let& x : loop_.lets) use(x.value);
        for_each_block(loop_.body, [&](const Block& b, Loc) {
            for (const Axis& a : b.axes) use(a.base), use(a.size);
            for (const Value& v : b.vals) use(v);
            for (const Value& g : b.guards) use(g);
            for (const Access& o : b.outs) {
                used_buffers_.insert(o.tensor), written_.insert(o.tensor), use_sizes(o.tensor);
                for (const Index& s : o.subscripts) use(s);
            }
        });
        std::vector<KernelArgument> out;
        for (const Decl& d : p_.decls) {
            if (!used_buffers_.contains(d.name)) continue;
            out.push_back({d.scope == Scope::Param ? KernelArgument::Scalar : KernelArgument::Buffer, d.name});
            for (size_t axis = 0; d.strided && axis < d.dims.size(); ++axis) out.push_back({KernelArgument::Stride, d.name, axis});
        }
        for (const Dim& d : p_.dims)
            if (!d.value && used_.contains(d.name)) out.push_back({KernelArgument::Dim, d.name});
        return out;
    }

    void parameter(const KernelArgument& a) {
        const auto add = [&](const std::string& s) { parameters_ += (parameters_.empty() ? "" : ", ") + s; };
        switch (a.kind) {
            case KernelArgument::Buffer:
                add(fmt::format("{}{}* __restrict__ {}", written_.contains(a.name) ? "" : "const ", element_type(buffers_.at(a.name)->type), names_.buffer(a.name)));
                return;
            case KernelArgument::Scalar: add(fmt::format("{} {}", value_type(buffers_.at(a.name)->type), names_.buffer(a.name))); return;
            case KernelArgument::Dim: add(fmt::format("i64 {}", names_.of(a.name))); return;
            case KernelArgument::Stride: add(fmt::format("i64 {}", names_.buffer(fmt::format("{}.stride{}", a.name, a.axis)))); return;
        }
    }

    void grid_loop() {
        line("const Index cells = {};", writer_.index(loop_.extent));
        const std::string u = names_.of(loop_.var);
        line("for (Index {0} = (Index)blockIdx.x * {1} + threadIdx.x; {0} < cells; {0} += (Index)gridDim.x * {1}) {{", u, block_threads);
        facts_.add_range(loop_.var, constant(0), loop_.extent);
        ++depth_;
        for (const Let& x : loop_.lets) {
            line("const Index {} = {};", names_.of(x.name), writer_.coordinate(x.value));
            add_let(x);
        }
        for (const Decl& d : loop_.allocs) declare(d);
        body(loop_.body);
        --depth_;
        line("}}");
    }

    /// The axes of the cells have the ranges that they were made from.
    void add_let(const Let& x) {
        const Index size = x.value->op == IndexOp::Mod ? x.value->args[1] : nullptr;
        if (size) facts_.add_range(x.name, constant(0), size);
        else {
            facts_.add_nonnegative(ir::name(x.name));
            facts_.add_nonnegative(x.value - ir::name(x.name));
            facts_.add_nonnegative(ir::name(x.name) - x.value);
            Index inner = x.value->op == IndexOp::Div ? x.value->args[1] : constant(1);
            if (const Index outer = outermost(loop_.extent, inner)) facts_.add_range(x.name, constant(0), outer);
        }
    }

    /// total = outer*inner gives outer, by the way the extent was multiplied together.
    Index outermost(const Index& total, const Index& inner) const {
        if (is_const(inner, 1)) return total;
        for (const Decl* d : outs())
            if (!d->dims.empty() && facts_.equal(d->dims[0].size * inner, total)) return d->dims[0].size;
        Index e = total;
        while (e->op == IndexOp::Mul && e->args[0]->op == IndexOp::Mul) e = e->args[0];
        return e->op == IndexOp::Mul && facts_.equal(e->args[0] * inner, total) ? e->args[0] : nullptr;
    }
    std::vector<const Decl*> outs() const {
        std::vector<const Decl*> out;
        for (const std::string& t : written_)
            if (const auto it = buffers_.find(t); it != buffers_.end()) out.push_back(it->second);
        return out;
    }

    void declare(const Decl& d) {
        buffers_[d.name] = &d;
        Index count = constant(1);
        for (const Window& w : d.dims) count = count * w.size;
        line("{} {}{};", element_type(d.type), names_.buffer(d.name), d.dims.empty() ? "" : fmt::format("[{}]", print(count)));
    }

    void body(const Body& stmts) {
        for (const Stmt& s : stmts)
            match(
                s, [&](const Block& b) { block(b); }, [&](const Loop& l) { serial_loop(l); }, [&](const If& i) { branch(i); }, [](const Roles&) {}, [](const Sync&) {});
    }

    void serial_loop(const Loop& l) {
        const std::string v = names_.of(l.var);
        line("for (Index {0} = 0; {0} < {1}; ++{0}) {{", v, writer_.index(l.extent));
        facts_.add_range(l.var, constant(0), l.extent);
        ++depth_;
        for (const Let& x : l.lets) line("const Index {} = {};", names_.of(x.name), writer_.index(x.value));
        for (const Decl& d : l.allocs) declare(d);
        body(l.body);
        --depth_;
        line("}}");
    }

    void branch(const If& i) {
        line("if ({}) {{", writer_.value(i.condition));
        ++depth_;
        body(i.body);
        --depth_;
        if (!i.otherwise.empty()) {
            line("}} else {{");
            ++depth_;
            body(i.otherwise);
            --depth_;
        }
        line("}}");
    }

    void block(const Block& b) {
        const analysis::Facts before = facts_;
        const size_t outer = depth_;
        for (const Axis& a : b.axes) {
            const std::string n = names_.of(a.name);
            facts_.add_range(a.name, a.base, a.size);
            if (is_const(a.base, 0)) line("for (Index {0} = 0; {0} < {1}; ++{0})", n, writer_.index(a.size));
            else line("for (Index {0} = {1}; {0} < {2}; ++{0})", n, writer_.index(a.base), writer_.index(a.base + a.size));
            ++depth_;
        }
        std::string guard;
        for (const Value& g : b.guards) guard += fmt::format("{}({})", guard.empty() ? "" : " && ", writer_.value(g));
        for (const Value& g : b.guards) facts_.add(g);
        if (!guard.empty()) line("if ({})", guard), ++depth_;
        statement(b);
        depth_ = outer;
        facts_ = before;
    }

    /// One statement, in braces with the values that it shares where there are any.
    void statement(const Block& b) {
        const std::vector<std::string> shared = writer_.shared(b.vals);
        const bool loops = depth_ > 0 && (!b.axes.empty() || !b.guards.empty());
        const std::vector<std::string> lines = effects(b);
        const bool braces = loops && shared.size() + lines.size() > 1;
        if (braces && text_.ends_with(")\n")) text_.insert(text_.size() - 1, " {");
        for (const std::string& s : shared) line("{}", s);
        for (const std::string& s : lines) line("{}", s);
        if (braces) --depth_, line("}}");
        writer_.forget_shared();
    }

    std::vector<std::string> effects(const Block& b) {
        if (is_pair(b.monoid)) return {keep(b)};
        if (b.monoid != Monoid::None) return combine(b);
        std::vector<std::string> out;
        for (size_t i = 0; i < b.outs.size(); ++i)
            out.push_back(fmt::format("{} = {};", writer_.element(b.outs[i].tensor, b.outs[i].subscripts), writer_.stored(writer_.value(b.vals[i]), b.vals[i]->type, writer_.decl(b.outs[i].tensor).type)));
        return out;
    }

    std::string keep(const Block& b) {
        const std::string value = writer_.value(b.vals[0]), at = writer_.value(b.vals[1]);
        const std::string v = names_.buffer(b.outs[0].tensor), i = names_.buffer(b.outs[1].tensor);
        const DType state = writer_.decl(b.outs[0].tensor).type;
        if (b.monoid == Monoid::TopK) return fmt::format("keep_top({}, {}, {}, {});", v, i, writer_.stored(value, b.vals[0]->type, state), at);
        return fmt::format("keep_best<{}>({}, {}, {}, {});", b.monoid == Monoid::ArgMin, v, i, writer_.stored(value, b.vals[0]->type, state), at);
    }

    std::vector<std::string> combine(const Block& b) {
        const Decl& d = writer_.decl(b.outs[0].tensor);
        const std::string state = writer_.element(b.outs[0].tensor, b.outs[0].subscripts);
        const std::string x = writer_.stored(writer_.value(b.vals[0]), b.vals[0]->type, d.type);
        if (is_scatter(b)) return {scatter(b, state, x)};
        std::vector<std::string> out{combined(b.monoid, d.type, state, x)};
        if (b.outs.size() > 1) {
            const Decl& to = writer_.decl(b.outs[1].tensor);
            const std::string copy = fmt::format("{} = {};", writer_.element(b.outs[1].tensor, b.outs[1].subscripts), writer_.stored(state, d.type, to.type));
            out.insert(b.exclusive ? out.begin() : out.end(), copy);
        }
        return out;
    }

    std::string scatter(const Block& b, const std::string& state, const std::string& x) {
        const std::string test = writer_.inside(b.outs[0].tensor, b.outs[0].subscripts);
        return fmt::format("{}atomic_add(&{}, {});", test.empty() ? "" : fmt::format("if ({}) ", test), state, x);
    }

    static std::string combined(Monoid m, DType t, const std::string& state, const std::string& x) {
        const bool real = is_float(t);
        const char* raw = t == DType::I64 ? "unsigned long long" : "unsigned";
        switch (m) {
            case Monoid::Sum: return real ? fmt::format("{} += {};", state, x) : fmt::format("{0} = ({1})(({2}){0} + ({2})({3}));", state, element_type(t), raw, x);
            case Monoid::Prod: return real ? fmt::format("{} *= {};", state, x) : fmt::format("{0} = ({1})(({2}){0} * ({2})({3}));", state, element_type(t), raw, x);
            case Monoid::Max: return fmt::format("{0} = larger<{1}>({0}, {2});", state, element_type(t), x);
            case Monoid::Min: return fmt::format("{0} = smaller<{1}>({0}, {2});", state, element_type(t), x);
            case Monoid::Any: return fmt::format("{0} = {0} || ({1});", state, x);
            default: return fmt::format("{0} = {0} && ({1});", state, x);
        }
    }

    const Program& p_;
    const Loop& loop_;
    std::map<std::string, const Decl*> buffers_;
    Identifiers names_;
    analysis::Facts facts_;
    ExpressionWriter writer_;
    std::set<std::string> used_, used_buffers_, written_;
    std::string parameters_, text_;
    size_t depth_ = 1;
};

/// The label that a person would call the kernel by: that of its accumulation, else of its first block.
std::string label_of(const Loop& l) {
    std::string label;
    for_each_block(l.body, [&](const Block& b, Loc) {
        if (label.empty() || b.monoid != Monoid::None) label = b.label;
    });
    return label;
}

}  // namespace

std::vector<Kernel> kernels_of(const Program& p) {
    std::vector<Kernel> out;
    Identifiers names;
    for (const Stmt& s : p.body) {
        const Loop& l = std::get<Loop>(s->node);
        out.push_back(KernelWriter(p, l).write(names.fresh(fmt::format("{}_{}", p.name, label_of(l)))));
    }
    return out;
}

}  // namespace acu::codegen
