#pragma once
#include "ir/program.h"

namespace acu::codegen {

/// Where a dimension gets its value: size `axis` of `tensor` = scale*dim + offset.
struct DimSource {
    std::string dim, tensor;
    size_t axis;
    int64_t scale = 1, offset = 0;
};

/// What a call must satisfy: each dimension from one size, in an order in which it can be computed.
struct Contract {
    std::vector<DimSource> sources;
};

/// Code `emit.unsolved`: a dimension follows from no size.
Result<Contract> contract_of(const ir::Program& p);

/// The dimensions of a run, from the sizes of its tensors. Codes `shape.*`.
Result<ir::Env> solve_dims(const ir::Program& p, const std::map<std::string, std::vector<int64_t>>& sizes);

/// Checks the facts and sizes under `dims`. Codes `shape.fact`, `shape.negative`.
Status check_facts(const ir::Program& p, const ir::Env& dims);

/// The truth of a condition on dimensions.
bool holds(const ir::Value& condition, const ir::Env& dims);

}  // namespace acu::codegen
