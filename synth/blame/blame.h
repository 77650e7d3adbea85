#pragma once
#include <functional>

#include "codegen/emit.h"
#include "ir/interpret.h"
#include "ir/lower/lower.h"
#include "ir/pass/driver.h"
#include "synth/record/step.h"

// Which decision of a plan made its result wrong. Every stage of compilation answers a program that runs, so each is run at small sizes and compared with the definition.
namespace acu::synth::blame {

/// The first element that is not as it should be.
struct Difference {
    std::string output;
    int64_t element = 0;
    double expected = 0, actual = 0;
};

/// One experiment. `Refused`: it could not be made, since a step or the target does not admit it.
struct Trial {
    enum Verdict { Right, Wrong, Refused } verdict = Right;
    std::string of;                               ///< in words: ``after step 3, `tile(acc, k = 64)` ``
    std::optional<Difference> differs = {};
    std::optional<Diagnostic> finding = {};       ///< of the verifier, the interpreter or the emulation; why it was refused
    std::string detector() const;                 ///< the code of the finding, or `values`
};

/// What is at fault. `Decision`: a pass, by the first step after which the program is wrong. `Together`: decisions each of which is right without the other.
/// The program is right in all others: `Lowering`: a step of the fixed lowering; `Microkernel`: the text is right without it; `Text`: what was emitted.
enum class Cause { None, Decision, Together, Lowering, Microkernel, Text };
std::string_view name_of(Cause cause);

struct Blame {
    Cause cause = Cause::None;
    std::vector<int> decisions = {};    ///< ids of what is blamed; of other causes, of the decisions without which it does not show
    std::string part = {};              ///< the pass, the step of the lowering, the id of the microkernel
    Trial evidence = {};
    std::vector<Trial> trials = {};     ///< prefixes, steps of the lowering, emulation, in order
    std::string text() const;           ///< in one sentence
};

/// Runs a lowered program as emitted text. What it finds wrong is the diagnostic.
using Emulate = std::function<Result<ir::Arrays>(const ir::Program& kernels)>;

/// A plan whose result is wrong, perhaps. `start`: loop level, before the first step. `pass`, `lowering`: instead of the registered ones.
struct Request {
    ir::Program start;
    std::vector<record::Decision> decisions;
    ir::Arguments arguments;            ///< small sizes
    ir::Arrays inputs;
    const Target* target = nullptr;     ///< null: neither lowered nor emulated
    ir::pass::Context context = {};
    Emulate emulate = {};               ///< empty: not emulated
    int most_emulations = 40;
    std::function<const ir::pass::Pass*(std::string_view)> pass = {};
    const std::vector<ir::lower::LoweringStep>* lowering = nullptr;
};

/// Runs the program after each step of the plan, then after each step of the lowering, then the emitted text; what differs first is blamed, and delta debugging finds the
/// decisions that it takes. A step or a lowering that is refused is the diagnostic: then there is no result that could be wrong.
Result<Blame> find_blame(const Request& request);

using Emit = std::function<Result<codegen::Emitted>(const ir::Program& kernels)>;
/// In order with red zones between shared buffers, and in a random order. `emit` empty: codegen's, with provenance.
Emulate in_emulation(const Target& target, const ir::Arguments& arguments, const ir::Arrays& inputs, Emit emit = {});

/// Sizes for an experiment, small ones first: each leaves the remainders by common tile sizes as they are, so that tiles that were exact or ragged stay so; each dimension is
/// once some tiles longer than the others.
std::vector<ir::Env> small_sizes(const ir::Env& dims);

}  // namespace acu::synth::blame
