#pragma once
#include <nlohmann/json_fwd.hpp>

namespace acu::synth::record {

/// The JSON Schema (draft 2020-12) of a plan, made from the passes' own fields.
nlohmann::ordered_json plan_schema();

/// Every pass as data: what it does, to what, with which parameters.
nlohmann::ordered_json passes_json();

}  // namespace acu::synth::record
