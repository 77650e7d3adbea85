#pragma once
#include <chrono>
#include <memory>

#include "ir/interpret.h"

namespace acu::ir::analysis {

/// Single cells of an operator's outputs, computed on demand from its definition in f64: only what a cell needs is evaluated, once. The program is
/// tensor-level and in f64 (ir/lower/lower.h, in_float64). This shares no code with lowering, plans or code generation.
class Cells {
  public:
    Cells(const Program& tensor, const Arguments& args, const Arrays& inputs);
    ~Cells();

    /// The value of an output's element (row-major); empty once `deadline` has passed.
    std::optional<double> at(const std::string& output, int64_t element, std::chrono::steady_clock::time_point deadline);

  private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace acu::ir::analysis
