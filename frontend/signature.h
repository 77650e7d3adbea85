#pragma once
#include "frontend/elaborate.h"

namespace acu::frontend {

// The parts of an operator's head, for an operator on its own (instantiate.cpp) and for a call that is substituted (calls.cpp). Each reports what is wrong.

bool bind_generics(Instance& in, const std::map<std::string, ir::DType>& types, const std::map<std::string, int64_t>& values);

/// Dimensions in order of first appearance: names that are no compile-time value.
void collect_dims(const Instance& in, const Expr& e, std::vector<std::string>& out);
void declare_dims(Instance& in, const Bindings& bindings);

/// A symbolic divisor in a condition is at least 1.
void divisor_facts(Instance& in, const ir::Value& v);
std::optional<std::vector<ir::Index>> sizes_of(Instance& in, const Param& p);
std::optional<ir::DType> parameter_type(Instance& in, const Param& p);
void declare_signature(Instance& in, std::map<std::string, double>& scalars);

/// A condition on dimensions; null after an error.
ir::Value where_condition(Instance& in, const ExprPtr& w);
/// Its truth where the sizes are known.
std::optional<bool> constant_truth(const Instance& in, const ir::Value& v);
void declare_where(Instance& in);
void check_outputs(Instance& in);

}  // namespace acu::frontend
