#pragma once
#include "frontend/instantiate.h"
#include "ir/analysis/facts.h"

namespace acu::frontend {

/// A tensor as the body of an operator sees it.
struct TensorInfo {
    std::string ir_name;
    ir::DType type;
    std::vector<ir::Index> sizes;
    Loc loc;
    bool output = false;
    bool defined = true;    ///< an output is, once a statement has defined it
    bool failed = false;    ///< its definition had an error: uses are not reported
};

/// The program under construction, shared by an operator and the calls that are substituted into it.
struct Build {
    ir::Program program;
    std::vector<Diagnostic>& found;
    int depth = 0;              ///< of substituted calls
    int calls = 0;              ///< how many were substituted
    int64_t nodes = 0;          ///< of substituted functions
    bool exhausted = false;     ///< a limit was passed, and reported
};

inline constexpr int most_calls = 500;
inline constexpr int64_t most_nodes = 200000;

/// Names that stand for values inside one statement: index variables, and parameters of a substituted `fn`.
struct Names {
    std::map<std::string, ir::Index> indices = {};
    std::map<std::string, ir::Value> values = {};
    const Names* fn_params = nullptr;    ///< set inside the body of a `fn`
};

/// One operator being elaborated: its generics, dimensions and tensors.
struct Instance {
    const Module& module;
    const OpDecl& op;
    Build& build;
    std::string prefix = {};    ///< of the names of intermediates: empty, or `p.` in a substituted call
    std::map<std::string, ir::DType> types = {};
    std::map<std::string, std::pair<int64_t, bool>> values = {};    ///< compile-time values; second: is a bool
    ir::IndexMap dims = {};
    std::map<std::string, std::vector<ir::Index>> packs = {};
    std::map<std::string, ir::Value> scalars = {};
    std::map<std::string, TensorInfo> tensors = {};

    void report(std::string code, Loc loc, std::string message, std::string help = {}, std::vector<Note> notes = {});
    ir::analysis::Facts base_facts() const;
    /// The type that a name stands for here: a generic or an element type.
    std::optional<ir::DType> type_of(const std::string& name) const;
    /// Every name that an expression could mean, for `did you mean`.
    std::vector<std::string> known_names(const Names& names) const;
};

/// Elaborates expressions inside one statement. Every method answers null after it has reported an error.
class Elaborator {
  public:
    Elaborator(Instance& instance, ir::analysis::Facts facts) : in_(instance), facts_(std::move(facts)) {}

    ir::Value value(const Expr& e, Names& names);
    ir::Index index(const Expr& e, Names& names);
    /// An expression of dimensions and compile-time values only.
    ir::Index dimension(const Expr& e);
    std::optional<ir::DType> cast_target(const Expr& e) const;
    /// The extent that plain subscripts in `e` give to `name`; reports a conflict. Null: there is none.
    ir::Index inferred_extent(const std::string& name, const Expr& e, Loc loc);
    void add_range(const std::string& name, const ir::Index& size) { facts_.add_range(name, ir::constant(0), size); }
    /// Proves 0 <= e < size, or leaves it to the launcher, or reports.
    bool check_bounds(const ir::Index& e, const ir::Index& size, const TensorInfo& tensor, const std::string& shown, size_t dim, Loc loc, bool written = false);
    std::vector<ir::Index> subscripts(const Expr& access, const TensorInfo& tensor, Names& names, bool check);
    /// The name of an index variable in the program: no dimension has it, and no variable of `around` (a reduction may reuse a name).
    std::string fresh_axis(const std::string& name, const Names& around) const;

  private:
    ir::Value name(const Expr& e, Names& names);
    ir::Value access(const Expr& e, Names& names, ir::Value otherwise);
    ir::Value call(const Expr& e, Names& names);
    ir::Value function(const Expr& e, const std::string& fn, Names& names);
    ir::Value substituted(const Expr& e, const FnDecl& fn, Names& names);
    ir::Value infix(const Expr& e, Names& names);
    ir::Value logical(const Expr& e, Names& names);
    ir::Value unary(const Expr& e, Names& names);
    ir::Value conditional(const Expr& e, Names& names);
    ir::Value otherwise(const Expr& e, Names& names);
    ir::Value reduction(const Expr& e, Names& names);
    std::optional<std::vector<ir::Value>> arguments(const Expr& e, Names& names);
    bool reduction_axes(const Expr& e, Names& names, std::vector<ir::Axis>& axes);
    ir::Index index_access(const Expr& e, Names& names);
    ir::Index index_name(const Expr& e, Names& names);
    ir::Index index_segment(const Expr& e, Names& names);
    void extents(const std::string& name, const Expr& e, bool soft, std::vector<std::tuple<ir::Index, Loc, std::string, bool>>& out) const;
    void unknown_name(const Expr& e, const Names& names);
    ir::Value bad_operands(const Expr& e, const ir::Value& a, const ir::Value& b);
    bool check_mixing(const Expr& e);

    Instance& in_;
    ir::analysis::Facts facts_;
    int path_ = 0;    ///< conditions around this place
    int fn_depth_ = 0;
    ir::DType literal_ = ir::DType::F32;
};

}  // namespace acu::frontend
