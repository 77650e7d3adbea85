#pragma once
#include "acuc/compiler.h"
#include "ir/lower/lower.h"
#include "ir/pass/driver.h"
#include "synth/record/plan.h"

// From a plan file, a schedule block or neither to a scheduled program.
namespace acu {

using synth::record::Plan;

/// Reads a plan file and checks all that needs no operator. Codes `file.*` and those of `synth::record::parse_plan`.
Result<Plan> load_plan(const std::string& path);

/// What the command line leaves open is as the plan says: the operator, the case, types, sizes. Code `plan.operator`.
Status complete(Selection& selection, const Plan& plan, const frontend::Module& module);

/// A plan without steps for this subject, with everything that fixes it.
Plan bare_plan(const Subject& s, const Target* target);

/// What the built-in planner decides for the subject (synth/plan/default_plan.h): on the CPU and where it knows nothing better the bare plan.
Plan default_plan(const Subject& s, const Target* target);

/// Is the plan for this subject and target? Answers the conditions of its guard that the sizes leave open: the launcher checks them then.
/// Codes `plan.operator`, `plan.target`, `plan.shape`, `plan.stale`, `plan.when`.
Result<std::vector<ir::Value>> fit(const Plan& plan, const Subject& s, const Target* target);

/// What of a plan the sizes of the subject leave: no variant that they exclude, and none behind the first that they admit whatever is open. Codes of `fit`.
Result<Plan> narrowed(const Plan& plan, const Subject& s, const Target* target);

/// The schedule blocks of the file for this subject and target, those whose conditions the sizes leave open as variants; behind them, where no block is for every size, the default plan.
/// A block that cannot be used is a warning: `schedule.later` (a pass that this compiler does not have). Wrong ones are errors (`schedule.*`).
Plan choose_plan(Session& session, const frontend::Module& module, const Subject& s, const Target* target);

/// Applies the steps to a loop-level program. A step that changes nothing is a warning (`plan.no-effect`); the first that is refused is the diagnostic, with its number, its words and
/// whose fault it is.
Result<ir::Program> apply_plan(const ir::Program& loops, const Plan& plan, const Target* target, std::vector<Diagnostic>& warnings, ir::pass::Observer* observer = nullptr);

/// The subject with those sizes open that the plan leaves open, as far as the sizes of tensors give them: what a plan for open sizes was made for.
Subject opened(Subject s, const Plan& plan);

/// The loop-level program of a subject after the steps, where the plan fits it. The plan has no variants.
Result<ir::Program> scheduled(const Subject& s, const Plan& plan, const Target* target, std::vector<Diagnostic>& warnings, ir::pass::Observer* observer = nullptr);

/// A subject under a plan.
struct Planned {
    Plan plan;                ///< with all that fixes it, as it is written beside the source
    ir::Program scheduled;    ///< after the steps
    ir::Program kernels;
};
/// Looks on: after each step of the plan, and after each step of the fixed lowering.
struct Onlooker {
    ir::pass::Observer* steps = nullptr;
    std::function<void(const ir::lower::LoweringStep&, const ir::Program&)> lowering = {};
};
Result<Planned> planned(const Subject& s, const Plan& plan, const Target& target, std::vector<Diagnostic>& warnings, const Onlooker& onlooker = {});
/// The same for each alternative of the plan.
Result<std::vector<Planned>> all_planned(const Subject& s, const Plan& plan, const Target& target, std::vector<Diagnostic>& warnings, const Onlooker& onlooker = {});
/// The plan that its alternatives make up.
Plan plan_of(const std::vector<Planned>& alternatives);

/// CUDA or HIP of a subject under a plan.
Result<codegen::Emitted> compile_subject(const Subject& s, const std::vector<Planned>& alternatives, const Target& target, const codegen::EmitOptions& options = {});

}  // namespace acu
