#pragma once
#include <map>

#include "synth/blame/blame.h"

namespace acu::synth::blame {

using Steps = std::vector<record::Decision>;

/// Makes experiments with parts of a plan.
class Bench {
  public:
    explicit Bench(const Request& request) : r_(request) {}
    /// The reference; what the definition itself breaks.
    Status prepare();

    /// The program after the steps, interpreted in f64; where the last step is exact, in the declared types too, bit for bit.
    Trial scheduled(const Steps& steps) const;
    /// After each step of the lowering; ends with the first that is not right.
    std::vector<Trial> lowered(const Steps& steps) const;
    Trial lowered_at_all(const Steps& steps) const { return lowered(steps).back(); }
    /// What this step of the lowering answers, where all threads meet between any two statements.
    Trial lowered_in_lockstep(const Steps& steps, const std::string& step) const;
    /// The emitted text.
    Trial emulated(const Steps& steps);
    /// The same where the program was changed into an equal one, before or after lowering.
    using Change = std::function<ir::Program(const ir::Program&)>;
    Trial emulated(const Steps& steps, const Change& schedule, const Change& kernels);

    /// A program, or why there is none.
    std::variant<ir::Program, Trial> apply(const Steps& steps) const;

  private:
    Trial interpreted(const ir::Program& p, const ir::Arrays& want, bool in_float64, const ir::InterpretOptions& options) const;
    /// All steps, or those up to one.
    std::variant<ir::Program, Trial> lower(const ir::Program& scheduled, const std::string& last = {}) const;
    ir::Program fixed(ir::Program p) const;
    const std::vector<ir::lower::LoweringStep>& lowering() const { return r_.lowering ? *r_.lowering : ir::lower::lowering_steps(); }
    Trial exact(const Steps& steps, const ir::Program& after) const;
    const ir::pass::Pass* pass_of(const record::Decision& d) const;

    const Request& r_;
    ir::Arrays reference_;    ///< outputs, in f64
    int emulations_ = 0;
    std::map<std::vector<int>, Trial> known_;
};

/// The first element outside the bounds that its type's rounding explains; `exact`: that is not the same.
std::optional<Difference> first_difference(const ir::Program& p, const ir::Arrays& want, const ir::Arrays& got, bool exact);

/// Every statement bound to this microkernel is not bound.
ir::Program without_microkernel(const ir::Program& scheduled, const std::string& id);
std::vector<std::string> microkernels_in(const ir::Program& scheduled);
/// All threads of a block meet, and all copies land, between any two statements.
ir::Program in_lockstep(const ir::Program& kernels);

}  // namespace acu::synth::blame
