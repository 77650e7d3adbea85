#pragma once
#include "frontend/module.h"
#include "ir/program.h"

namespace acu::frontend {

/// What fixes an instance of an operator: types and values of its generics, sizes of dimensions, values of scalars.
struct Bindings {
    std::map<std::string, ir::DType> types = {};
    std::map<std::string, int64_t> values = {};     ///< compile-time values; false and true are 0 and 1
    std::map<std::string, int64_t> dims = {};
    std::map<std::string, double> scalars = {};
};

/// An operator with its generics fixed. `scalars` holds what is known of its scalar parameters: given values and defaults.
struct Operator {
    ir::Program program;
    std::map<std::string, double> scalars;
    std::string doc;
    Bindings bindings;
};

/// Elaborates `op`: resolves names, types and shapes, substitutes calls, proves every access in bounds or leaves a condition on dimensions to the launcher.
/// Answers what could be built; it is usable when no error was added to `found`. Codes `generic.*`, `name.*`, `type.*`, `shape.*`, `range.*`, `bounds.*`,
/// `call.*`, `expr.*`, `output.*`, `where.*`.
Operator instantiate(const Module& module, const OpDecl& op, const Bindings& bindings, std::vector<Diagnostic>& found);

/// Checks the body of a function that perhaps nothing calls, on f32 arguments.
void check_fn(const Module& module, const FnDecl& fn, std::vector<Diagnostic>& found);

/// Is the generic a compile-time value, not a type? `int` alone is a value unless the signature uses the name as a type.
bool value_generic(const OpDecl& op, const Generic& g);

/// The types that a generic may take.
std::vector<ir::DType> type_set(const Generic& g);

}  // namespace acu::frontend
