#include "ir/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/function.h"
#include "ir/scalar.h"

namespace acu::ir {
namespace {

/// Thrown inside this file only.
struct Fault {
    Diagnostic why;
};

struct Number {
    double f = 0;
    int64_t i = 0;
};

/// A buffer while it is alive. `written` counts the block execution that wrote a cell last, 0: never.
struct Buffer {
    const Decl* decl = nullptr;
    std::vector<int64_t> origin, sizes;
    Array* array = nullptr;
    Array own;
    std::vector<int64_t> written;
};

class Interpreter {
  public:
    Interpreter(const Program& p, const Arguments& args, Arrays& arrays) : p_(p), args_(args), env_(args.dims) {
        for (const auto& [n, v] : known_dims(p)) env_[n] = v;
        for (const Decl& d : p.decls) open(d, arrays);
    }

    void run() {
        body(p_.body);
        for (const Decl& d : p_.decls)
            if (d.scope == Scope::Out) check_written(buffers_.at(d.name));
    }

  private:
    [[noreturn]] void fault(const char* rule, std::string what) const { throw Fault{{rule, loc_, std::move(what)}}; }

    void open(const Decl& d, Arrays& arrays) {
        Buffer& b = buffers_[d.name];
        b = Buffer{&d, {}, {}, nullptr, {}, {}};
        for (const Window& w : d.dims) b.origin.push_back(index(w.origin)), b.sizes.push_back(std::max<int64_t>(0, index(w.size)));
        if (d.scope == Scope::In) {
            const auto it = arrays.find(d.name);
            if (it == arrays.end() || it->second.type != d.type || it->second.sizes != b.sizes)
                fault("run.input", fmt::format("the input `{}` is missing, or has another type or shape than {}[{}]", d.name, name_of(d.type), fmt::join(b.sizes, ", ")));
            b.array = &it->second;
        } else if (d.scope == Scope::Out) {
            b.array = &(arrays[d.name] = Array::zeros(d.type, b.sizes));
        } else {
            b.own = Array::zeros(d.type, b.sizes);
            b.array = &b.own;
        }
        const bool given = d.scope == Scope::In || d.scope == Scope::Param;
        b.written.assign(static_cast<size_t>(b.array->count()), given ? 1 : 0);
        if (d.scope == Scope::Param) scalar(d, b);
    }

    void scalar(const Decl& d, Buffer& b) {
        const auto it = args_.scalars.find(d.name);
        if (it == args_.scalars.end()) fault("run.input", fmt::format("the scalar `{}` has no value", d.name));
        b.array->set(0, it->second);
    }

    void check_written(const Buffer& b) const {
        const auto it = std::ranges::find(b.written, 0);
        if (it != b.written.end()) fault("run.D9", fmt::format("element {} of the output `{}` is not written", it - b.written.begin(), b.decl->name));
    }

    // ---- index expressions

    int64_t index(const Index& e) {
        switch (e->op) {
            case IndexOp::Const: return e->value;
            case IndexOp::Name: {
                const auto it = env_.find(e->name);
                if (it == env_.end()) fault("run.D3", fmt::format("the name `{}` has no value", e->name));
                return it->second;
            }
            case IndexOp::Load: {
                int64_t at = 0;
                Buffer& b = buffers_.at(e->name);
                if (!locate(b, e->args, at)) fault("run.D1", fmt::format("`{}` is outside its tensor", print(e)));
                return load_int(b.array->bytes.data(), at, b.decl->type);
            }
            case IndexOp::Segment: return find_segment(buffers_.at(e->name), index(e->args[0]));
            default: return apply(e->op, index(e->args[0]), index(e->args[1]));
        }
    }

    static int64_t find_segment(const Buffer& b, int64_t t) {
        const int64_t count = b.array->count();
        int64_t e = 0;
        while (e + 2 < count && load_int(b.array->bytes.data(), e + 1, b.decl->type) <= t) ++e;
        return e;
    }

    /// The element at the subscripts; false where one lies outside.
    bool locate(Buffer& b, const std::vector<Index>& subscripts, int64_t& at) {
        at = 0;
        for (size_t d = 0; d < subscripts.size(); ++d) {
            const int64_t i = index(subscripts[d]) - b.origin[d];
            if (i < 0 || i >= b.sizes[d]) return false;
            at = at * b.sizes[d] + i;
        }
        return true;
    }

    // ---- values

    static Number rounded(DType t, double x) { return {t == DType::F64 ? x : static_cast<double>(static_cast<float>(x)), 0}; }

    Number value(const Value& v) {
        switch (v->op) {
            case Op::Const: return {v->number, v->integer};
            case Op::OfIndex: return {0, index(v->subscripts[0])};
            case Op::Load: return read(*v);
            case Op::Neg: {
                const Number a = value(v->args[0]);
                return {-a.f, wrap(static_cast<int64_t>(-static_cast<uint64_t>(a.i)), v->type)};
            }
            case Op::Not: return {0, !value(v->args[0]).i};
            case Op::BitNot: return {0, wrap(~value(v->args[0]).i, v->type)};
            case Op::And: return {0, value(v->args[0]).i && value(v->args[1]).i};
            case Op::Or: return {0, value(v->args[0]).i || value(v->args[1]).i};
            case Op::Select: return value(v->args[value(v->args[0]).i ? 1 : 2]);
            case Op::Cast: return convert(value(v->args[0]), v->args[0]->type, *type_named(v->name));
            case Op::Call: return function(*v);
            case Op::Reduce: fault("run.level", "a reduction inside a value: the program is at tensor level");
            default: break;
        }
        const Number a = value(v->args[0]), b = value(v->args[1]);
        return is_float(v->args[0]->type) ? arithmetic(*v, a.f, b.f) : arithmetic(*v, a.i, b.i);
    }

    static Number arithmetic(const ValueNode& v, double a, double b) {
        switch (v.op) {
            case Op::Add: return rounded(v.type, a + b);
            case Op::Sub: return rounded(v.type, a - b);
            case Op::Mul: return rounded(v.type, a * b);
            case Op::Div: return rounded(v.type, a / b);
            default: return {0, compare(v.op, a, b)};
        }
    }

    static Number arithmetic(const ValueNode& v, int64_t a, int64_t b) {
        const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
        const int bits = v.type == DType::I64 ? 63 : 31;
        const auto whole = [&](uint64_t r) { return Number{0, wrap(static_cast<int64_t>(r), v.type)}; };
        switch (v.op) {
            case Op::Add: return whole(x + y);
            case Op::Sub: return whole(x - y);
            case Op::Mul: return whole(x * y);
            case Op::Div: return whole(static_cast<uint64_t>(floor_div(a, b)));
            case Op::Mod: return {0, floor_mod(a, b)};
            case Op::Shl: return whole(x << (y & static_cast<uint64_t>(bits)));
            case Op::Shr: return {0, a >> (b & bits)};
            case Op::BitAnd: return {0, a & b};
            case Op::BitXor: return {0, a ^ b};
            case Op::BitOr: return {0, a | b};
            default: return {0, compare(v.op, a, b)};
        }
    }

    static Number convert(Number a, DType from, DType to) {
        if (to == DType::Bool) return {0, is_float(from) ? a.f != 0 : a.i != 0};
        if (!is_float(to)) return {0, is_float(from) ? saturate(a.f, to) : saturate(a.i, to)};
        const double x = is_float(from) ? a.f : static_cast<double>(a.i);
        if (to == DType::F64) return {x, 0};
        const float narrow = is_float(from) ? static_cast<float>(a.f) : static_cast<float>(a.i);
        if (to == DType::Tf32) return {round_tf32(narrow), 0};
        std::array<std::byte, 8> cell{};
        store_float(cell.data(), 0, to, narrow);
        return {load_float(cell.data(), 0, to), 0};
    }

    Number function(const ValueNode& v) {
        std::array<Number, 3> a{};
        for (size_t i = 0; i < v.args.size(); ++i) a[i] = value(v.args[i]);
        const DType t = v.args[0]->type;
        if (!is_float(t)) return {0, wrap(integer_function(v.name, a[0].i, a[1].i), t)};
        const FunctionBody& f = body_of(v.name);
        const double x = t == DType::F64 ? f.f64(a[0].f, a[1].f, a[2].f) : f.f32(static_cast<float>(a[0].f), static_cast<float>(a[1].f), static_cast<float>(a[2].f));
        return v.type == DType::Bool ? Number{0, x != 0} : Number{x, 0};
    }

    Number read(const ValueNode& v) {
        Buffer& b = buffers_.at(v.name);
        int64_t at = 0;
        if (!locate(b, v.subscripts, at)) {
            if (v.args.empty()) fault("run.D1", fmt::format("`{}[…]` is read outside its tensor", v.name));
            return value(v.args[0]);
        }
        if (!b.written[static_cast<size_t>(at)]) fault("run.D2", fmt::format("element {} of `{}` is read before it is written", at, v.name));
        return fetch(b, at);
    }

    static Number fetch(const Buffer& b, int64_t at) {
        const void* data = b.array->bytes.data();
        return is_float(b.decl->type) ? Number{load_float(data, at, b.decl->type), 0} : Number{0, load_int(data, at, b.decl->type)};
    }

    void put(Buffer& b, int64_t at, DType from, Number x) {
        void* data = b.array->bytes.data();
        if (!is_float(b.decl->type)) store_int(data, at, b.decl->type, is_float(from) ? saturate(x.f, b.decl->type) : x.i);
        else store_float(data, at, b.decl->type, is_float(from) ? x.f : static_cast<double>(x.i));
        b.written[static_cast<size_t>(at)] = serial_;
    }

    // ---- statements

    void body(const Body& stmts) {
        for (const Stmt& s : stmts) {
            loc_ = s->loc;
            match(
                s, [&](const Block& b) { block(b); }, [&](const Loop& l) { loop(l); },
                [&](const If& i) { body(value(i.condition).i ? i.body : i.otherwise); });
        }
    }

    void loop(const Loop& l) {
        const int64_t extent = index(l.extent);
        for (int64_t i = 0; i < extent; ++i) {
            env_[l.var] = i;
            for (const Let& x : l.lets) env_[x.name] = index(x.value);
            for (const Decl& d : l.allocs) open(d, none_);
            body(l.body);
        }
    }

    void block(const Block& b) {
        ++serial_;
        points(b, 0);
    }

    void points(const Block& b, size_t axis) {
        if (axis == b.axes.size()) return point(b);
        const Axis& a = b.axes[axis];
        const int64_t base = index(a.base), size = index(a.size);
        for (int64_t i = 0; i < size; ++i) {
            env_[a.name] = base + i;
            points(b, axis + 1);
        }
    }

    void point(const Block& b) {
        for (const Value& g : b.guards)
            if (!value(g).i) return;
        std::vector<Number> vals;
        for (const Value& v : b.vals) vals.push_back(value(v));
        if (is_pair(b.monoid)) return keep_best(b, vals[0], vals[1].i);
        if (b.monoid != Monoid::None) return combine(b, vals[0]);
        for (size_t i = 0; i < b.outs.size(); ++i) assign(b, i, vals[i]);
    }

    void assign(const Block& b, size_t i, Number x) {
        Buffer& out = buffers_.at(b.outs[i].tensor);
        int64_t at = 0;
        if (!locate(out, b.outs[i].subscripts, at)) fault("run.D1", fmt::format("`{}` is written outside its tensor", out.decl->name));
        if (out.written[static_cast<size_t>(at)] == serial_) fault("run.D4", fmt::format("element {} of `{}` is written twice by one statement", at, out.decl->name));
        put(out, at, b.vals[i]->type, x);
    }

    void combine(const Block& b, Number x) {
        Buffer& state = buffers_.at(b.outs[0].tensor);
        int64_t at = 0;
        if (!locate(state, b.outs[0].subscripts, at)) {
            if (is_scatter(b)) return;    // a scatter outside is dropped
            fault("run.D1", fmt::format("`{}` is written outside its tensor", state.decl->name));
        }
        if (!state.written[static_cast<size_t>(at)]) fault("run.D2", fmt::format("`{}` is accumulated before it is filled", state.decl->name));
        const Number before = fetch(state, at);
        const DType t = widened(state.decl->type);
        put(state, at, t, combined(b, t, before, convert(x, b.vals[0]->type, t)));
        if (b.outs.size() < 2) return;
        Buffer& out = buffers_.at(b.outs[1].tensor);
        int64_t to = 0;
        if (!locate(out, b.outs[1].subscripts, to)) fault("run.D1", fmt::format("`{}` is written outside its tensor", out.decl->name));
        put(out, to, t, b.exclusive ? before : fetch(state, at));
    }

    static Number combined(const Block& b, DType t, Number a, Number x) {
        const MonoidInfo& m = info(b.monoid);
        if (m.op == Op::And) return {0, a.i && x.i};
        if (m.op == Op::Or) return {0, a.i || x.i};
        if (m.op == Op::Call && is_float(t)) return {body_of(m.name).f64(a.f, x.f, 0), 0};
        if (m.op == Op::Call) return {0, integer_function(m.name, a.i, x.i)};
        ValueNode n{m.op, t};
        return is_float(t) ? arithmetic(n, a.f, x.f) : arithmetic(n, a.i, x.i);
    }

    double as_double(const Buffer& b, int64_t at) const { return b.array->get(at); }

    /// Keeps the k best (value, position) pairs, best first; k = 1 for ArgMax and ArgMin.
    void keep_best(const Block& b, Number x, int64_t position) {
        Buffer &values = buffers_.at(b.outs[0].tensor), &positions = buffers_.at(b.outs[1].tensor);
        const int64_t k = b.monoid == Monoid::TopK ? b.k : 1;
        std::vector<Index> subscripts = b.outs[0].subscripts;
        if (b.monoid == Monoid::TopK) subscripts.push_back(constant(0));
        int64_t base = 0;
        if (!locate(values, subscripts, base)) fault("run.D1", fmt::format("`{}` is written outside its tensor", values.decl->name));
        const bool real = is_float(b.vals[0]->type);
        Number v = real ? convert(x, b.vals[0]->type, values.decl->type) : x;
        const double key = real ? v.f : static_cast<double>(v.i);
        int64_t place = k;
        for (int64_t j = k; j-- > 0 && better(b.monoid, key, position, as_double(values, base + j), static_cast<int64_t>(positions.array->get(base + j)));) place = j;
        for (int64_t j = k - 1; j > place; --j) {
            put(values, base + j, values.decl->type, fetch(values, base + j - 1));
            put(positions, base + j, DType::I64, fetch(positions, base + j - 1));
        }
        if (place == k) return;
        put(values, base + place, b.vals[0]->type, v);
        put(positions, base + place, DType::I64, {0, position});
    }

    const Program& p_;
    const Arguments& args_;
    Env env_;
    std::map<std::string, Buffer, std::less<>> buffers_;
    Arrays none_;
    int64_t serial_ = 1;
    Loc loc_;
};

}  // namespace

Status interpret(const Program& p, const Arguments& args, Arrays& arrays) {
    try {
        Interpreter(p, args, arrays).run();
        return ok();
    } catch (const Fault& f) {
        return f.why;
    }
}

}  // namespace acu::ir
