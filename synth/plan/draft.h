#pragma once
#include "ir/pass/pass.h"

// What planners have in common: decisions that are tried on a program, one after another.
namespace acu::synth::plan {

/// A program and the decisions that led to it. A step that is refused leaves no trace, so a planner may try what it is not sure of.
class Draft {
  public:
    Draft(ir::Program loops, const Target& target) : program_(std::move(loops)), target_(&target) {}

    /// Applies a step; false where it is refused or changes nothing.
    bool step(std::string pass, std::vector<std::string> sites, ir::pass::Arguments args, std::string why);

    const ir::Program& program() const { return program_; }
    const std::vector<ir::pass::Step>& steps() const { return steps_; }
    const Target& target() const { return *target_; }
    /// Can the fixed lowering make kernels of it for the target?
    bool lowers() const;

  private:
    ir::Program program_;
    const Target* target_;
    std::vector<ir::pass::Step> steps_;
};

}  // namespace acu::synth::plan
