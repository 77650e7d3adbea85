#pragma once
#include "frontend/ast.h"
#include "synth/record/step.h"

namespace acu::synth::record {

inline constexpr size_t most_bytes = size_t{1} << 20, most_variants = 64;
inline constexpr int schema_version = 1;

/// How one operator runs on one chip: the list of decisions, and what they were made for. A member that is empty says nothing: a plan without `dims` is for any size that `when` admits.
struct Plan {
    std::string compiler = ACU_VERSION;
    std::string op, case_name;
    std::string definition;     ///< hash of what the operator computes, types fixed and sizes open
    std::string target;
    std::map<std::string, std::string> types;
    std::map<std::string, int64_t> values, dims;    ///< compile-time values, fixed sizes
    std::map<std::string, double> scalars;          ///< their usual values, which only comments mention
    std::string when;           ///< a condition in the language's words, as `frontend::condition_text` writes it
    std::string toolchain;      ///< what compiled the kernel that was measured
    std::string doc;
    std::vector<Decision> decisions;
    std::vector<Plan> variants = {};    ///< for the sizes that their own `when` admits, tried in order before the plan itself. Each says no more than `when`, `doc` and `decisions`
    Loc loc = {};               ///< of the schedule block that it came from
};

/// Reads a plan file: its form, its limits, and that every step fits its pass. Codes `plan.syntax`, `plan.schema`, `plan.step`, `plan.when`, `pass.*`, `site.count`, `param.*`.
Result<Plan> parse_plan(std::string_view text);
Result<Plan> plan_from_json(const nlohmann::ordered_json& j);

nlohmann::ordered_json to_json(const Plan& p);
/// The same plan is always the same bytes.
std::string print(const Plan& p);

/// Each variant as a plan of its own, with what the plan says of all; last the plan itself, which has none then.
std::vector<Plan> alternatives_of(const Plan& p);
/// The reverse: the last of them with the others as variants.
Plan joined(std::vector<Plan> alternatives);

/// What is wrong with a step of the plan, or of its variants, whatever the program is; the message says which step. Ids that are missing are given.
Status check_steps(Plan& p);
/// ``step 3, `tile(acc, k = 64)` ``
std::string name_of(const Decision& d);

}  // namespace acu::synth::record
