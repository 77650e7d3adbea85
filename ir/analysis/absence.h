#pragma once
#include "ir/program.h"

namespace acu::ir::analysis {

/// Finds terms that are absent: made -inf by a condition on indices (and integer tensors) alone, then taken through an `exp`.
class Absence {
  public:
    /// Learns what the cells of the block's tensor are.
    void learn(const Block& b);
    /// When `v` is an absent term (as an addend zero); null: never.
    Value zero(const Value& v) const;

  private:
    /// Conditions over the axes of the tensor.
    struct Cells {
        std::vector<std::string> axes;
        Value negative_infinity, zero;
    };
    Value negative_infinity(const Value& v) const;
    Value of_tensor(const ValueNode& load, Value Cells::*which) const;
    std::map<std::string, Cells> tensors_;
};

}  // namespace acu::ir::analysis
