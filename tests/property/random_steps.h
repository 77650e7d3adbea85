#pragma once
#include <random>

#include "ir/pass/pass.h"

namespace acu::property {

using Random = std::mt19937_64;

/// One decision drawn from the passes' own declarations: a pass, names of the right kinds in the program, parameters from their domains. Legal or not: the compiler says.
/// `before`: the plan's steps so far; passes that it has often already come less often.
ir::pass::Step random_step(const ir::Program& p, const std::vector<ir::pass::Step>& before, Random& random);

/// What the random steps of a plan had to say.
struct Tally {
    std::map<std::string, int64_t> accepted;    ///< by pass
    std::map<std::string, int64_t> refused;     ///< by code
};

}  // namespace acu::property
