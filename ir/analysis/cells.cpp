#include "ir/analysis/cells.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/function.h"
#include "ir/analysis/absence.h"
#include "ir/scalar.h"

namespace acu::ir::analysis {
namespace {

struct Late {};    // thrown when the deadline has passed

/// Computed cells: an array with marks for a tensor of moderate size, else a table.
class Known {
  public:
    void size(int64_t cells) {
        if (cells > (int64_t{1} << 24)) return;
        dense_.resize(static_cast<size_t>(cells));
        marked_.resize(dense_.size());
    }
    const double* find(int64_t at) const {
        if (!dense_.empty()) return marked_[static_cast<size_t>(at)] ? &dense_[static_cast<size_t>(at)] : nullptr;
        const auto it = sparse_.find(at);
        return it == sparse_.end() ? nullptr : &it->second;
    }
    double& operator[](int64_t at) {
        if (dense_.empty()) return sparse_[at];
        marked_[static_cast<size_t>(at)] = true;
        return dense_[static_cast<size_t>(at)];
    }

  private:
    std::vector<double> dense_;
    std::vector<bool> marked_;
    std::unordered_map<int64_t, double> sparse_;
};

struct Tensor {
    const Decl* decl = nullptr;
    std::vector<int64_t> sizes;
    const Array* input = nullptr;
    std::optional<double> scalar;
    std::vector<const Block*> blocks;              // that write it, in order
    Known known;
    bool computed = false;                         // as a whole (scatter)
};

/// Expressions with names resolved to slots and tensors, so that evaluating costs little.
struct FastIndex {
    IndexOp op;
    int64_t value = 0;
    size_t slot = 0;
    Tensor* tensor = nullptr;
    std::vector<FastIndex> args;
};
struct FastAxis {
    size_t slot;
    FastIndex base, size;
};
struct FastValue {
    const ValueNode* node;
    Tensor* tensor = nullptr;
    std::vector<FastIndex> subscripts;
    std::vector<FastValue> args;
    std::vector<FastAxis> axes;
    std::shared_ptr<FastValue> absent;    // of a sum
    double (*function)(double, double, double) = nullptr;
    DType cast = DType::F64;
};
struct FastBlock {
    std::vector<FastAxis> axes;
    std::vector<std::vector<FastIndex>> outs;
    std::vector<FastValue> vals;
};

}  // namespace

class Cells::State {
  public:
    State(const Program& p, const Arguments& args, const Arrays& inputs) : program_(p), dims_(args.dims) {
        for (const auto& [n, v] : known_dims(p)) dims_[n] = v;
        for (const auto& [n, v] : dims_) slots_[slot(n)] = v;
        for (const Decl& d : program_.decls) open(d, args, inputs);
        for_each_block(program_.body, [&](const Block& b, Loc) {
            absence_.learn(b);
            for (const Access& o : b.outs) tensors_.at(o.tensor).blocks.push_back(&b);
        });
    }

    double cell(Tensor& t, int64_t element) {
        if (t.scalar) return *t.scalar;
        if (t.input) return t.input->get(element);
        if (const double* known = t.known.find(element)) return *known;
        return produce(t, element);
    }
    Tensor& tensor(const std::string& name) { return tensors_.at(name); }
    std::chrono::steady_clock::time_point deadline;

  private:
    void open(const Decl& d, const Arguments& args, const Arrays& inputs) {
        Tensor& t = tensors_[d.name];
        t.decl = &d;
        t.sizes = sizes_of(d, dims_);
        if (d.scope == Scope::In) t.input = &inputs.at(d.name);
        if (d.scope == Scope::Param) t.scalar = args.scalars.at(d.name);
        if (d.scope != Scope::Out && d.scope != Scope::Temp) return;
        int64_t cells = 1;
        for (const int64_t s : t.sizes) cells *= s;
        t.known.size(cells);
    }

    // ---- resolving

    size_t slot(const std::string& name) {
        const auto [it, fresh] = names_.try_emplace(name, slots_.size());
        if (fresh) slots_.push_back(0);
        return it->second;
    }

    FastIndex fast(const Index& e) {
        FastIndex f{e->op, e->value, 0, nullptr, {}};
        if (e->op == IndexOp::Name) f.slot = slot(e->name);
        if (e->op == IndexOp::Load || e->op == IndexOp::Segment) f.tensor = &tensors_.at(e->name);
        for (const Index& a : e->args) f.args.push_back(fast(a));
        return f;
    }

    FastAxis fast(const Axis& a) { return {slot(a.name), fast(a.base), fast(a.size)}; }

    FastValue fast(const Value& v) {
        FastValue f{v.get(), nullptr, {}, {}, {}, nullptr};
        if (v->op == Op::Load) f.tensor = &tensors_.at(v->name);
        if (v->op == Op::Call) f.function = body_of(v->name).f64;
        if (v->op == Op::Cast) f.cast = *type_named(v->name);
        for (const Index& s : v->subscripts) f.subscripts.push_back(fast(s));
        for (const Axis& a : v->axes) f.axes.push_back(fast(a));
        for (const Value& a : v->args) f.args.push_back(fast(a));
        if (v->op == Op::Reduce && v->monoid == Monoid::Sum)
            if (const Value absent = absence_.zero(v->args[0])) {
                derived_.push_back(absent);
                f.absent = std::make_shared<FastValue>(fast(absent));
            }
        return f;
    }

    const FastBlock& fast(const Block& b) {
        const auto [it, fresh] = blocks_.try_emplace(&b);
        if (!fresh) return it->second;
        FastBlock f;
        for (const Axis& a : b.axes) f.axes.push_back(fast(a));
        for (const Access& o : b.outs) {
            f.outs.emplace_back();
            for (const Index& s : o.subscripts) f.outs.back().push_back(fast(s));
        }
        for (const Value& v : b.vals) f.vals.push_back(fast(v));
        return blocks_[&b] = std::move(f);
    }

    // ---- evaluating

    void tick() {
        if ((++ticks_ & 0xffff) == 0 && std::chrono::steady_clock::now() > deadline) throw Late{};
    }

    bool offset(const Tensor& t, const std::vector<FastIndex>& subscripts, int64_t& at) {
        at = 0;
        for (size_t d = 0; d < subscripts.size(); ++d) {
            const int64_t i = index(subscripts[d]);
            if (i < 0 || i >= t.sizes[d]) return false;
            at = at * t.sizes[d] + i;
        }
        return true;
    }

    int64_t index(const FastIndex& e) {
        switch (e.op) {
            case IndexOp::Const: return e.value;
            case IndexOp::Name: return slots_[e.slot];
            case IndexOp::Load: {
                int64_t at = 0;
                return offset(*e.tensor, e.args, at) ? static_cast<int64_t>(cell(*e.tensor, at)) : -1;
            }
            case IndexOp::Segment: {
                const int64_t t = index(e.args[0]), count = e.tensor->sizes[0];
                int64_t s = 0;
                while (s + 2 < count && static_cast<int64_t>(cell(*e.tensor, s + 1)) <= t) ++s;
                return s;
            }
            default: return apply(e.op, index(e.args[0]), index(e.args[1]));
        }
    }

    static bool integral(const Value& v) { return !is_float(v->type); }

    double value(const FastValue& v) {
        const ValueNode& n = *v.node;
        switch (n.op) {
            case Op::Const: return is_float(n.type) ? n.number : static_cast<double>(n.integer);
            case Op::OfIndex: return static_cast<double>(index(v.subscripts[0]));
            case Op::Load: {
                int64_t at = 0;
                return offset(*v.tensor, v.subscripts, at) ? cell(*v.tensor, at) : v.args.empty() ? std::nan("") : value(v.args[0]);
            }
            case Op::Neg: return -value(v.args[0]);
            case Op::Not: return value(v.args[0]) == 0;
            case Op::BitNot: return static_cast<double>(~static_cast<int64_t>(value(v.args[0])));
            case Op::And: return value(v.args[0]) != 0 && value(v.args[1]) != 0;
            case Op::Or: return value(v.args[0]) != 0 || value(v.args[1]) != 0;
            case Op::Select: return value(v.args[value(v.args[0]) != 0 ? 1 : 2]);
            case Op::Cast: return converted(v, value(v.args[0]));
            case Op::Call: return function(v);
            case Op::Reduce: return reduction(v);
            default: break;
        }
        const double a = value(v.args[0]), b = value(v.args[1]);
        return integral(n.args[0]) ? whole(n, static_cast<int64_t>(a), static_cast<int64_t>(b)) : real(n.op, a, b);
    }

    static double converted(const FastValue& v, double x) {
        if (v.cast == DType::Bool) return x != 0;
        if (is_float(v.cast)) return x;
        return static_cast<double>(is_float(v.node->args[0]->type) ? saturate(x, v.cast) : saturate(static_cast<int64_t>(x), v.cast));
    }

    double function(const FastValue& v) {
        double a[3] = {};
        for (size_t i = 0; i < v.args.size(); ++i) a[i] = value(v.args[i]);
        return v.function(a[0], a[1], a[2]);
    }

    static double real(Op op, double a, double b) {
        switch (op) {
            case Op::Add: return a + b;
            case Op::Sub: return a - b;
            case Op::Mul: return a * b;
            case Op::Div: return a / b;
            default: return compare(op, a, b);
        }
    }

    static double whole(const ValueNode& n, int64_t a, int64_t b) {
        switch (n.op) {
            case Op::Add: return static_cast<double>(wrap(a + b, n.type));
            case Op::Sub: return static_cast<double>(wrap(a - b, n.type));
            case Op::Mul: return static_cast<double>(wrap(a * b, n.type));
            case Op::Div: return static_cast<double>(floor_div(a, b));
            case Op::Mod: return static_cast<double>(floor_mod(a, b));
            case Op::Shl: return static_cast<double>(wrap(static_cast<int64_t>(static_cast<uint64_t>(a) << (b & (n.type == DType::I64 ? 63 : 31))), n.type));
            case Op::Shr: return static_cast<double>(a >> (b & (n.type == DType::I64 ? 63 : 31)));
            case Op::BitAnd: return static_cast<double>(a & b);
            case Op::BitXor: return static_cast<double>(a ^ b);
            case Op::BitOr: return static_cast<double>(a | b);
            default: return real(n.op, static_cast<double>(a), static_cast<double>(b));
        }
    }

    template <class F>
    void points(const std::vector<FastAxis>& axes, size_t at, F f) {
        if (at == axes.size()) return tick(), f();
        const int64_t base = index(axes[at].base), size = index(axes[at].size);
        for (int64_t i = 0; i < size; ++i) {
            slots_[axes[at].slot] = base + i;
            points(axes, at + 1, f);
        }
    }

    /// Keeps the slots of the caller: a cell may be asked for in the middle of other loops.
    struct Saved {
        explicit Saved(std::vector<int64_t>& s) : slots(s), copy(s) {}
        ~Saved() { std::ranges::copy(copy, slots.begin()); }
        std::vector<int64_t>& slots;
        std::vector<int64_t> copy;
    };

    double reduction(const FastValue& v) {
        const Monoid m = v.node->monoid;
        const Value start = identity(m, v.node->args[0]->type);
        double state = is_float(start->type) ? start->number : static_cast<double>(start->integer);
        int64_t position = 0;
        points(v.axes, 0, [&] {
            if (v.args.size() > 1 && value(v.args[1]) == 0) return;
            if (v.absent && value(*v.absent) != 0) return;
            const double x = value(v.args[0]);
            if (is_pair(m)) {
                const int64_t i = slots_[v.axes[0].slot];
                if (better(m, x, i, state, position)) state = x, position = i;
            } else state = combined(m, state, x);
        });
        return is_pair(m) ? static_cast<double>(position) : integral(v.node->args[0]) && v.node->type == DType::I32 ? static_cast<double>(wrap(static_cast<int64_t>(state), DType::I32)) : state;
    }

    static double combined(Monoid m, double a, double x) {
        switch (m) {
            case Monoid::Sum: return a + x;
            case Monoid::Prod: return a * x;
            case Monoid::Any: return a != 0 || x != 0;
            case Monoid::All: return a != 0 && x != 0;
            default: return body_of(info(m).name).f64(a, x, 0);
        }
    }

    // ---- one cell

    double produce(Tensor& t, int64_t element) {
        const Saved saved(slots_);
        const Block& last = *t.blocks.back();
        if (is_scatter(last)) return whole_tensor(t, element);
        const FastBlock& f = fast(last);
        if (last.monoid == Monoid::None) {
            bind(t, f, f.outs[0], element);
            return t.known[element] = value(f.vals[0]);
        }
        accumulate(t, last, f, element);
        return *t.known.find(element);
    }

    /// Gives the axes that subscript an out plainly the coordinates of the element.
    void bind(const Tensor& t, const FastBlock&, const std::vector<FastIndex>& out, int64_t element) {
        for (size_t d = t.sizes.size(); d-- > 0;) {
            if (d < out.size() && out[d].op == IndexOp::Name) slots_[out[d].slot] = element % t.sizes[d];
            element /= t.sizes[d];
        }
    }

    /// Scans and pairs: the whole row that the element belongs to.
    void accumulate(Tensor& t, const Block& b, const FastBlock& f, int64_t element) {
        const size_t mine = b.outs[0].tensor == t.decl->name ? 0 : 1;
        bind(t, f, f.outs[mine], element);
        std::vector<FastAxis> inner;
        for (size_t i = 0; i < b.axes.size(); ++i)
            if (b.axes[i].kind != AxisKind::Par) inner.push_back(f.axes[i]);
        if (is_pair(b.monoid)) return keep(b, f, inner);
        const Value start = identity(b.monoid, DType::F64);
        double state = start->number;
        points(inner, 0, [&] {
            const double before = state;
            state = combined(b.monoid, state, value(f.vals[0]));
            if (f.outs.size() < 2) return;
            int64_t at = 0;
            if (offset(t, f.outs[1], at)) t.known[at] = b.exclusive ? before : state;
        });
    }

    void keep(const Block& b, const FastBlock& f, const std::vector<FastAxis>& inner) {
        const auto k = static_cast<size_t>(std::max<int64_t>(1, b.k));
        std::vector<std::pair<double, int64_t>> best(k, {b.monoid == Monoid::ArgMin ? HUGE_VAL : -HUGE_VAL, b.monoid == Monoid::TopK ? -1 : 0});
        points(inner, 0, [&] {
            const double x = value(f.vals[0]);
            const auto i = static_cast<int64_t>(value(f.vals[1]));
            size_t j = k;
            while (j > 0 && better(b.monoid, x, i, best[j - 1].first, best[j - 1].second)) --j;
            if (j == k) return;
            best.insert(best.begin() + static_cast<ptrdiff_t>(j), {x, i});
            best.pop_back();
        });
        for (size_t o = 0; o < 2; ++o) {
            Tensor& t = tensors_.at(b.outs[o].tensor);
            int64_t base = 0;
            for (size_t d = 0; d < f.outs[o].size(); ++d) base = base * t.sizes[d] + index(f.outs[o][d]);
            for (size_t j = 0; j < k; ++j) t.known[base * (b.monoid == Monoid::TopK ? b.k : 1) + static_cast<int64_t>(j)] = o == 0 ? best[j].first : static_cast<double>(best[j].second);
        }
    }

    double whole_tensor(Tensor& t, int64_t element) {
        if (!t.computed) {
            t.computed = true;
            const FastBlock& f = fast(*t.blocks.back());
            points(f.axes, 0, [&] {
                int64_t at = 0;
                if (offset(t, f.outs[0], at)) t.known[at] += value(f.vals[0]);
            });
        }
        return t.known[element];
    }

    Program program_;
    Env dims_;
    std::map<std::string, Tensor> tensors_;
    std::map<std::string, size_t> names_;
    std::vector<int64_t> slots_;
    std::unordered_map<const Block*, FastBlock> blocks_;
    Absence absence_;
    std::vector<Value> derived_;    // keeps alive what fast values point into
    uint64_t ticks_ = 0;
};

Cells::Cells(const Program& tensor, const Arguments& args, const Arrays& inputs) : state_(std::make_unique<State>(tensor, args, inputs)) {}
Cells::~Cells() = default;

std::optional<double> Cells::at(const std::string& output, int64_t element, std::chrono::steady_clock::time_point deadline) {
    state_->deadline = deadline;
    try {
        return state_->cell(state_->tensor(output), element);
    } catch (const Late&) {
        return {};
    }
}

}  // namespace acu::ir::analysis
