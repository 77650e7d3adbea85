#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace acu::frontend {

/// What the author wrote, name for name; nothing is resolved.
struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct AxisSpec {
    std::string name;
    ExprPtr extent;    ///< null: inferred
    Loc loc;
};

/// `text`: name of a name, call or access; the sign of an operator; the digits of a literal; the monoid of a reduction.
/// `pack` marks a subscript `..b`.
struct Expr {
    enum Kind { Name, Integer, Float, Boolean, Access, Call, Unary, Infix, If, Or, Reduction } kind;
    Loc loc;
    std::string text = {};
    std::vector<ExprPtr> args = {};
    int64_t integer = 0;
    double number = 0;
    bool pack = false;
    Loc sign = {};                                                 ///< of an infix operator
    bool grouped = false;                                          ///< stood in parentheses
    std::vector<AxisSpec> axes = {};                               ///< of a reduction; its body is args[0], its condition args[1]
    std::vector<std::pair<std::string, ExprPtr>> generics = {};    ///< compile-time arguments of a call
    std::vector<Loc> generic_locs = {};
};

struct Shape {
    bool present = false;
    std::vector<ExprPtr> dims = {};    ///< a pack is an Expr::Name with `pack`
};

struct Param {
    std::string name;
    Loc loc;
    std::string type;
    Loc type_loc;
    bool strided = false;
    Shape shape;
    ExprPtr otherwise;    ///< default of a scalar
};

struct Generic {
    std::string name;
    Loc loc;
    std::vector<std::string> types;    ///< the type set, or `bool` or `int` alone for a value
    std::vector<Loc> type_locs;
    ExprPtr otherwise;
};

struct Target {
    std::string name;
    Loc loc;
    bool subscripted = false;
    std::vector<ExprPtr> subscripts = {};
};

struct Statement {
    enum Kind { Define, Scatter, Scan, TopK } kind;
    Loc loc;
    std::vector<Target> targets;
    ExprPtr value;
    std::string monoid = {};    ///< of a scan
    bool exclusive = false;
    AxisSpec axis = {};         ///< of a scan or top-k
    ExprPtr count = {};         ///< of a top-k
};

struct FnDecl {
    std::string name;
    Loc loc;
    std::vector<std::string> params;
    std::vector<Loc> param_locs;
    ExprPtr body;
};

struct OpDecl {
    std::string name;
    Loc loc;
    std::vector<Generic> generics;
    std::vector<Param> params;
    std::vector<Param> outputs;
    std::vector<ExprPtr> where;
    std::vector<Statement> body;
    std::string doc;
};

struct Setting {
    std::string name;
    Loc loc;
    bool list = false;
    std::vector<ExprPtr> values;
};

struct CaseDecl {
    std::string name;
    Loc loc;
    std::string op;
    Loc op_loc;
    std::vector<Setting> settings;
};

struct StepValue {
    enum Kind { Path, Integer, Boolean, List, Condition } kind;
    Loc loc;
    Loc key_loc = {};    ///< of the key in front of an item of a list
    std::string text = {};
    int64_t integer = 0;
    std::vector<std::pair<std::string, StepValue>> items = {};    ///< of a list; a key may be empty
    ExprPtr condition = {};    ///< `(N % 8 == 0)`
};

struct StepArgument {
    std::string name;    ///< empty: positional
    Loc loc;
    StepValue value;
};

struct Step {
    std::string pass;
    Loc loc;
    std::vector<StepArgument> arguments;
    std::string doc = {};
};

struct ScheduleDecl {
    std::string op;
    Loc op_loc;
    std::string target;
    Loc target_loc;
    ExprPtr when;
    std::vector<Step> steps;
    std::string doc = {};
};

struct ImportDecl {
    std::vector<std::string> path;
    Loc loc;
    std::vector<std::pair<std::string, Loc>> names;
};

struct File {
    int source = -1;
    std::vector<ImportDecl> imports;
    std::vector<FnDecl> fns;
    std::vector<OpDecl> ops;
    std::vector<CaseDecl> cases;
    std::vector<ScheduleDecl> schedules;
};

}  // namespace acu::frontend
