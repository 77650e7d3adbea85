#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "ir/pass/pass.h"
#include "support/result.h"

namespace acu::synth::record {

// Limits of what is read: a plan is data from anywhere.
inline constexpr size_t most_steps = 1000, most_items = 64, most_text = 2000, most_name = 200;

/// `{"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 64}}, "by": "user", "why": "…"}`. Code `plan.step` (its form is wrong: says which member).
Result<ir::pass::Step> step_from_json(const nlohmann::ordered_json& j);
nlohmann::ordered_json to_json(const ir::pass::Step& step);

/// A number or a word, such as a time that was predicted or measured.
using Measure = std::variant<int64_t, double, std::string>;
using Measures = std::vector<std::pair<std::string, Measure>>;

/// Why a step was refused.
struct Finding {
    std::string code, message, help = {};
};

/// A step with its record. `status`: empty (not tried), `applied`, `kept` (it proved good), `rejected`, `blamed` (it broke or slowed the result): the last two are not replayed.
struct Decision {
    int id = 0;
    ir::pass::Step step;
    std::string status = {};
    std::optional<Finding> diagnostic = {};
    Measures predicted = {}, measured = {};
};
inline bool is_replayed(const Decision& d) { return d.status != "rejected" && d.status != "blamed"; }

/// All of a decision; `id` may be missing (0 then). Code `plan.step`.
Result<Decision> decision_from_json(const nlohmann::ordered_json& j);
nlohmann::ordered_json to_json(const Decision& d);

}  // namespace acu::synth::record
