#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace acu::ir {

struct IndexNode;
using Index = std::shared_ptr<const IndexNode>;

/// Index expressions: exact 64-bit integers; `Div` and `Mod` round toward minus infinity, by zero they give 0.
enum class IndexOp { Const, Name, Add, Sub, Mul, Div, Mod, Min, Max, Load, Segment };

/// `value` of a `Const`; `name` of a `Name`, of the tensor of a `Load` (whose subscripts are `args`), of the offsets of a `Segment` (whose
/// position is `args[0]`).
struct IndexNode {
    IndexOp op;
    int64_t value = 0;
    std::string name = {};
    std::vector<Index> args = {};
};

Index constant(int64_t value);
Index name(std::string text);
/// Builds and folds: constants, `x + 0`, `x*1`, `x*0`, `x/1`, `x%1`.
Index binary(IndexOp op, Index a, Index b);
Index load_index(std::string tensor, std::vector<Index> subscripts);
Index segment(std::string offsets, Index position);

Index operator+(const Index& a, const Index& b);
Index operator-(const Index& a, const Index& b);
Index operator*(const Index& a, const Index& b);
Index div(const Index& a, const Index& b);
Index mod(const Index& a, const Index& b);
Index ceil_div(const Index& a, const Index& b);

inline bool is_const(const Index& e) { return e->op == IndexOp::Const; }
inline bool is_const(const Index& e, int64_t v) { return is_const(e) && e->value == v; }
bool is_name(const Index& e, const std::string& text);
bool equal(const Index& a, const Index& b);

/// Rebuilds `e` from `f(arg)` with the folding constructors; answers `e` itself where nothing changed.
Index map_args(const Index& e, const std::function<Index(const Index&)>& f);

using IndexMap = std::map<std::string, Index, std::less<>>;
/// Replaces names (dimensions, axes).
Index substitute(const Index& e, const IndexMap& names);
/// Renames the tensors that are loaded.
Index rename_tensors(const Index& e, const std::map<std::string, std::string>& names);

void free_names(const Index& e, std::set<std::string>& out);
void loaded_tensors(const Index& e, std::set<std::string>& out);
bool mentions_load(const Index& e);
/// What it is at most, without loads, where it grows with minima of which one side has none: `min(n, x[i])*m` -> `n*m`.
Index without_loads(const Index& e);

/// An arithmetic operator on numbers, in two's complement, so that nothing an author writes is undefined.
int64_t apply(IndexOp op, int64_t a, int64_t b);

using Env = std::map<std::string, int64_t, std::less<>>;
/// Value of an expression without loads.
int64_t evaluate(const Index& e, const Env& env);

std::string print(const Index& e);

}  // namespace acu::ir
