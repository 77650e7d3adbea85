#pragma once
#include <nlohmann/json_fwd.hpp>

#include "ir/pass/pass.h"
#include "support/result.h"

namespace acu::synth::record {

/// `{"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 64}}, "by": "user", "why": "…"}`. Codes `plan.step` (its shape is wrong: says which member).
Result<ir::pass::Step> step_from_json(const nlohmann::ordered_json& j);
nlohmann::ordered_json to_json(const ir::pass::Step& step);

}  // namespace acu::synth::record
