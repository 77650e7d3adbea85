#include "ir/value.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ir/scalar.h"

namespace acu::ir {

static Value make(ValueNode n) {
    n.size = 1;
    for (const Value& a : n.args) n.size = std::min(n.size + a->size, int64_t{1} << 40);
    return std::make_shared<const ValueNode>(std::move(n));
}

const std::vector<Function>& functions() {
    static const std::vector<Function> table{
        {"exp", 1, true, false},   {"exp2", 1, true, false},  {"expm1", 1, true, false}, {"log", 1, true, false},    {"log2", 1, true, false},
        {"log1p", 1, true, false}, {"sqrt", 1, true, false},  {"rsqrt", 1, true, false}, {"sin", 1, true, false},    {"cos", 1, true, false},
        {"tan", 1, true, false},   {"tanh", 1, true, false},  {"erf", 1, true, false},   {"floor", 1, true, false},  {"ceil", 1, true, false},
        {"round", 1, true, false}, {"trunc", 1, true, false}, {"pow", 2, true, false},   {"fma", 3, true, false},    {"abs", 1, false, false},
        {"sign", 1, false, false}, {"max", 2, false, false},  {"min", 2, false, false},  {"isnan", 1, true, true},   {"isinf", 1, true, true},
        {"exp.approx", 1, true, false},  {"exp2.approx", 1, true, false},  {"log.approx", 1, true, false},  {"log2.approx", 1, true, false},
        {"sqrt.approx", 1, true, false}, {"rsqrt.approx", 1, true, false}, {"tanh.approx", 1, true, false}, {"erf.approx", 1, true, false},
        {"reciprocal.approx", 1, true, false},
    };
    return table;
}

const Function* function_named(std::string_view name) {
    const auto it = std::ranges::find(functions(), name, &Function::name);
    return it == functions().end() ? nullptr : &*it;
}

const std::vector<MonoidInfo>& monoids() {
    static const std::vector<MonoidInfo> table{
        {Monoid::None, "", "=", Op::Const},        {Monoid::Sum, "sum", "+=", Op::Add},        {Monoid::Prod, "prod", "*=", Op::Mul},
        {Monoid::Max, "max", "max=", Op::Call},    {Monoid::Min, "min", "min=", Op::Call},     {Monoid::Any, "any", "any=", Op::Or},
        {Monoid::All, "all", "all=", Op::And},     {Monoid::ArgMax, "argmax", "argmax=", Op::Call}, {Monoid::ArgMin, "argmin", "argmin=", Op::Call},
        {Monoid::TopK, "topk", "topk=", Op::Call},
    };
    return table;
}
const MonoidInfo& info(Monoid m) { return monoids()[static_cast<size_t>(m)]; }

static Value lowest(DType t) {
    if (is_float(t)) return number(-std::numeric_limits<double>::infinity(), t);
    return integer(t == DType::I64 ? INT64_MIN : INT32_MIN, t);
}
static Value highest(DType t) {
    if (is_float(t)) return number(std::numeric_limits<double>::infinity(), t);
    return integer(t == DType::I64 ? INT64_MAX : INT32_MAX, t);
}

Value identity(Monoid m, DType t) {
    const bool upper = m == Monoid::Min || m == Monoid::ArgMin;
    if (upper) return highest(t);
    if (m == Monoid::Max || m == Monoid::ArgMax || m == Monoid::TopK) return lowest(t);
    if (m == Monoid::Any || m == Monoid::All) return boolean(m == Monoid::All);
    const int one = m == Monoid::Prod;
    return is_float(t) ? number(one, t) : integer(one, t);
}

Value number(double x, DType type) {
    ValueNode n{Op::Const, type};
    n.number = type == DType::F64 ? x : static_cast<double>(static_cast<float>(x));
    return make(std::move(n));
}
Value integer(int64_t x, DType type) {
    ValueNode n{Op::Const, type};
    n.integer = x;
    return make(std::move(n));
}
Value boolean(bool x) { return integer(x, DType::Bool); }

Value of_index(Index e) {
    if (is_const(e)) return integer(e->value, DType::I64);
    ValueNode n{Op::OfIndex, DType::I64};
    n.subscripts = {std::move(e)};
    return make(std::move(n));
}

Value load(std::string tensor, DType stored, std::vector<Index> subscripts, Value otherwise) {
    ValueNode n{Op::Load, widened(stored)};
    n.name = std::move(tensor);
    n.subscripts = std::move(subscripts);
    if (otherwise) n.args = {cast(n.type, std::move(otherwise))};
    return make(std::move(n));
}

Value cast(DType type, Value a) {
    if (a->type == type && widened(type) == type) return a;
    if (a->op == Op::Const && is_float(type) && type != DType::Tf32 && widened(type) == type && !is_float(a->type))
        return number(static_cast<double>(a->integer), type);
    if (a->op == Op::Const && type == DType::F64 && is_float(a->type)) return number(a->number, DType::F64);
    if (a->op == Op::Const && type == DType::I64 && a->type == DType::I32) return integer(a->integer, type);
    ValueNode n{Op::Cast, type == DType::Bool ? DType::Bool : widened(type)};
    n.args = {std::move(a)};
    n.name = name_of(type);
    return make(std::move(n));
}

/// An operand as index arithmetic: an `OfIndex` or an integer constant.
static Index as_index(const Value& v) {
    if (v->op == Op::OfIndex) return v->subscripts[0];
    return v->op == Op::Const && is_int(v->type) ? constant(v->integer) : nullptr;
}

static bool index_operator(Op op, IndexOp& out) {
    switch (op) {
        case Op::Add: out = IndexOp::Add; return true;
        case Op::Sub: out = IndexOp::Sub; return true;
        case Op::Mul: out = IndexOp::Mul; return true;
        case Op::Div: out = IndexOp::Div; return true;
        case Op::Mod: out = IndexOp::Mod; return true;
        default: return false;
    }
}

static bool is_comparison(Op op) { return op >= Op::Eq && op <= Op::Ge; }

Value binary(Op op, Value a, Value b) {
    IndexOp index_op;
    if (index_operator(op, index_op) && (a->op == Op::OfIndex || b->op == Op::OfIndex))
        if (const Index x = as_index(a), y = as_index(b); x && y) return of_index(binary(index_op, x, y));
    if (index_operator(op, index_op) && a->op == Op::Const && b->op == Op::Const && is_int(a->type) && is_int(b->type)) {
        const DType both = promote(a->type, b->type);
        return integer(wrap(apply(index_op, a->integer, b->integer), both), both);
    }
    DType type = promote(a->type, b->type);
    if (op == Op::And || op == Op::Or) type = DType::Bool;
    else if (type == DType::Bool && !is_comparison(op) && op < Op::BitAnd) type = DType::I32;
    ValueNode n{op, is_comparison(op) ? DType::Bool : type};
    n.args = {cast(type, std::move(a)), cast(type, std::move(b))};
    return make(std::move(n));
}

/// The comparison that holds when this one of integers does not; other values: Op::Not.
static Op opposite(const Value& v) {
    if (!is_comparison(v->op) || is_float(v->args[0]->type)) return Op::Not;
    constexpr std::array<Op, 6> other{Op::Ne, Op::Eq, Op::Ge, Op::Gt, Op::Le, Op::Lt};
    return other[static_cast<size_t>(v->op) - static_cast<size_t>(Op::Eq)];
}

Value unary(Op op, Value a) {
    if (op == Op::Not && opposite(a) != Op::Not) return binary(opposite(a), a->args[0], a->args[1]);
    if (op == Op::Neg && a->op == Op::OfIndex) return of_index(constant(0) - a->subscripts[0]);
    if (op == Op::Neg && a->op == Op::Const && is_float(a->type)) return number(-a->number, a->type);
    if (op == Op::Neg && a->op == Op::Const && is_int(a->type)) return integer(apply(IndexOp::Sub, 0, a->integer), a->type);
    if (op == Op::Neg && a->type == DType::Bool) a = cast(DType::I32, std::move(a));
    ValueNode n{op, op == Op::Not ? DType::Bool : a->type};
    n.args = {op == Op::Not ? cast(DType::Bool, std::move(a)) : std::move(a)};
    return make(std::move(n));
}

Value select(Value condition, Value a, Value b) {
    const DType type = promote(a->type, b->type);
    ValueNode n{Op::Select, type};
    n.args = {std::move(condition), cast(type, std::move(a)), cast(type, std::move(b))};
    return make(std::move(n));
}

Value call(const std::string& fn, std::vector<Value> args) {
    const Function& row = *function_named(fn);
    if ((fn == "min" || fn == "max") && (args[0]->op == Op::OfIndex || args[1]->op == Op::OfIndex))
        if (const Index x = as_index(args[0]), y = as_index(args[1]); x && y) return of_index(binary(fn == "min" ? IndexOp::Min : IndexOp::Max, x, y));
    DType type = args[0]->type;
    for (const Value& a : args) type = promote(type, a->type);
    if (row.floating && !is_float(type)) type = DType::F32;
    if (type == DType::Bool) type = DType::I32;
    for (Value& a : args) a = cast(type, a);
    ValueNode n{Op::Call, row.predicate ? DType::Bool : type};
    n.name = fn;
    n.args = std::move(args);
    return make(std::move(n));
}

Value reduce(Monoid monoid, std::vector<Axis> axes, Value body, Value condition) {
    DType type = body->type;
    if (monoid == Monoid::Any || monoid == Monoid::All) type = DType::Bool;
    else if (!is_float(type)) type = accumulator(type);
    ValueNode n{Op::Reduce, monoid == Monoid::ArgMax || monoid == Monoid::ArgMin ? DType::I64 : type};
    n.monoid = monoid;
    n.axes = std::move(axes);
    n.args = {cast(type, std::move(body))};
    if (condition) n.args.push_back(std::move(condition));
    return make(std::move(n));
}

static bool equal(const Axis& a, const Axis& b) { return a.name == b.name && a.kind == b.kind && a.vector == b.vector && equal(a.base, b.base) && equal(a.size, b.size); }

bool equal(const Value& a, const Value& b) {
    if (a == b) return true;
    const bool same_number = a->number == b->number || (a->number != a->number && b->number != b->number);
    return a->op == b->op && a->type == b->type && same_number && a->integer == b->integer && a->name == b->name && a->monoid == b->monoid &&
           std::ranges::equal(a->subscripts, b->subscripts, [](const Index& x, const Index& y) { return equal(x, y); }) &&
           std::ranges::equal(a->version, b->version, [](const Index& x, const Index& y) { return equal(x, y); }) &&
           std::ranges::equal(a->axes, b->axes, [](const Axis& x, const Axis& y) { return equal(x, y); }) &&
           std::ranges::equal(a->args, b->args, [](const Value& x, const Value& y) { return equal(x, y); });
}

Value map_parts(const Value& v, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g) {
    ValueNode n = *v;
    for (Value& a : n.args) a = f(a);
    for (Index& s : n.subscripts) s = g(s);
    for (Index& s : n.version) s = g(s);
    bool changed = n.args != v->args || n.subscripts != v->subscripts || n.version != v->version;
    for (Axis& a : n.axes) {
        const Index base = g(a.base), size = g(a.size);
        changed |= base != a.base || size != a.size;
        a.base = base, a.size = size;
    }
    if (!changed) return v;
    if (v->op == Op::OfIndex) return of_index(n.subscripts[0]);
    return make(std::move(n));
}

Value substitute(const Value& v, const IndexMap& names) {
    return map_parts(v, [&](const Value& a) { return substitute(a, names); }, [&](const Index& e) { return substitute(e, names); });
}

Value rename_tensors(const Value& v, const std::map<std::string, std::string>& names) {
    const Value mapped = map_parts(
        v, [&](const Value& a) { return rename_tensors(a, names); }, [&](const Index& e) { return rename_tensors(e, names); });
    if (v->op != Op::Load) return mapped;
    const auto it = names.find(v->name);
    if (it == names.end()) return mapped;
    ValueNode n = *mapped;
    n.name = it->second;
    return make(std::move(n));
}

Value replace(const Value& v, const std::function<Value(const Value&)>& f) {
    if (Value now = f(v)) return now;
    return map_parts(v, [&](const Value& a) { return replace(a, f); }, [](const Index& e) { return e; });
}

Value with_version(const Value& v, std::vector<Index> version) {
    ValueNode n = *v;
    n.version = std::move(version);
    return make(std::move(n));
}

Value with_source(const Value& v, std::string tensor, std::vector<Index> subscripts) {
    ValueNode n = *v;
    n.name = std::move(tensor);
    n.subscripts = std::move(subscripts);
    return make(std::move(n));
}

Value with_default(const Value& v, Value otherwise) {
    ValueNode n = *v;
    n.args.clear();
    if (otherwise) n.args.push_back(cast(v->type, std::move(otherwise)));
    return make(std::move(n));
}

void free_names(const Value& v, std::set<std::string>& out) {
    std::set<std::string> mine;
    for (const Index& s : v->subscripts) free_names(s, mine);
    for (const Index& s : v->version) free_names(s, mine);
    for (const Value& a : v->args) free_names(a, mine);
    for (const Axis& a : v->axes) mine.erase(a.name);
    for (const Axis& a : v->axes) free_names(a.base, mine), free_names(a.size, mine);
    out.merge(mine);
}

void visit(const Value& v, const std::function<void(const ValueNode&)>& f) {
    f(*v);
    for (const Value& a : v->args) visit(a, f);
}

}  // namespace acu::ir
