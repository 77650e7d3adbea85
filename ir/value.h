#pragma once
#include "ir/index.h"
#include "ir/type.h"

namespace acu::ir {

struct ValueNode;
using Value = std::shared_ptr<const ValueNode>;

/// Value expressions. They are never simplified by rules that hold only for exact numbers; index arithmetic inside them is an `OfIndex`.
enum class Op {
    Const, OfIndex, Load,
    Neg, Not, BitNot,
    Add, Sub, Mul, Div, Mod, Shl, Shr, BitAnd, BitXor, BitOr,
    Eq, Ne, Lt, Le, Gt, Ge, And, Or,
    Select, Cast, Call, Reduce
};

/// What a reduction, a scan or an accumulating block combines with. Ties of `ArgMax`, `ArgMin`, `TopK` go to the lowest index; NaN wins.
enum class Monoid { None, Sum, Prod, Max, Min, Any, All, ArgMax, ArgMin, TopK };

/// `par`: any order, together. `red` (printed `k!`): combined, any order. `scan` (printed `n^`): combined in order.
enum class AxisKind { Par, Red, Scan };

/// The name takes the values `base .. base + size - 1`.
struct Axis {
    std::string name;
    AxisKind kind;
    Index base;
    Index size;
    int64_t vector = 1;    ///< points next to each other that one thread takes together, where a plan says so
};

/// One node. `type` is the type of the value: a load of a narrow type is widened. `args` are the operands; of a `Load` its default, if it
/// has one (taken where a subscript lies outside the tensor); of a `Reduce` the body and, if it has one, the condition.
struct ValueNode {
    Op op;
    DType type;
    std::vector<Value> args = {};
    double number = 0;                     ///< Const of a float type
    int64_t integer = 0;                   ///< Const of another type
    std::string name = {};                 ///< tensor of a Load, function of a Call
    std::vector<Index> subscripts = {};    ///< of a Load; the one expression of an OfIndex
    Monoid monoid = Monoid::None;          ///< of a Reduce
    std::vector<Axis> axes = {};           ///< of a Reduce, all of kind red
    std::vector<Index> version = {};       ///< of a Load from a ring
    int64_t size = 1;                      ///< nodes of the tree, shared ones counted each time; at most 2^40
};

Value number(double x, DType type = DType::F32);
Value integer(int64_t x, DType type = DType::I32);
Value boolean(bool x);
Value of_index(Index e);
/// `stored` is the element type of the tensor.
Value load(std::string tensor, DType stored, std::vector<Index> subscripts, Value otherwise = nullptr);
/// `v`, a load, from another version of its ring (none: from a plain buffer), another buffer, other subscripts or with another default.
Value with_version(const Value& v, std::vector<Index> version);
Value with_source(const Value& v, std::string tensor, std::vector<Index> subscripts);
Value with_default(const Value& v, Value otherwise);
/// Operands are brought to the promoted type by explicit casts; index arithmetic stays an `OfIndex`.
Value binary(Op op, Value a, Value b);
Value unary(Op op, Value a);
Value select(Value condition, Value a, Value b);
Value cast(DType type, Value a);
/// `fn` must be in the function table; arguments are cast as the row says.
Value call(const std::string& fn, std::vector<Value> args);
Value reduce(Monoid monoid, std::vector<Axis> axes, Value body, Value condition = nullptr);

/// A function of value expressions. `floating`: integer arguments become f32; else arguments are promoted together. `exp.approx` and its like are what
/// `approximate` makes of a function (ir/function.cpp says what they mean): authors cannot write their names.
struct Function {
    std::string_view name;
    int arity;
    bool floating;
    bool predicate;    ///< gives bool
};
const std::vector<Function>& functions();
const Function* function_named(std::string_view name);

struct MonoidInfo {
    Monoid monoid;
    std::string_view name;      ///< in the language
    std::string_view assign;    ///< in IR text
    Op op;                      ///< the infix operator, or Call for max and min
};
const std::vector<MonoidInfo>& monoids();
const MonoidInfo& info(Monoid m);
/// The element that changes nothing, in type `t`.
Value identity(Monoid m, DType t);
inline bool is_pair(Monoid m) { return m == Monoid::ArgMax || m == Monoid::ArgMin || m == Monoid::TopK; }

/// The truth of a comparison (Eq to Ge) of numbers.
template <class T>
bool compare(Op op, T a, T b) {
    switch (op) {
        case Op::Eq: return a == b;
        case Op::Ne: return a != b;
        case Op::Lt: return a < b;
        case Op::Le: return a <= b;
        case Op::Gt: return a > b;
        default: return a >= b;
    }
}

std::string_view sign_of(Op op);    ///< "+", "<=", …; empty for others
bool equal(const Value& a, const Value& b);

/// Rebuilds `v` with `f` applied to operands and `g` to index expressions (subscripts, ranges); `v` itself where nothing changed.
Value map_parts(const Value& v, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g);
Value substitute(const Value& v, const IndexMap& names);
Value rename_tensors(const Value& v, const std::map<std::string, std::string>& names);
/// Replaces, from the outside in, each part for which `f` answers something; answers `v` itself where nothing changed.
Value replace(const Value& v, const std::function<Value(const Value&)>& f);
void free_names(const Value& v, std::set<std::string>& out);
void visit(const Value& v, const std::function<void(const ValueNode&)>& f);

std::string print(const Value& v);
std::string print(const Axis& a);
/// For people: a condition on sizes as an author would write it, without the suffixes of IR text.
std::string describe(const Value& v);
/// A number that reads back as the same value of `type`: `0.5` (f32), `0.5d` (f64), `3` (i32), `3l` (i64).
std::string print_number(double x, DType type);

}  // namespace acu::ir
