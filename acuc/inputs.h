#pragma once
#include "acuc/compiler.h"
#include "ir/interpret.h"

namespace acu {

/// Sizes, scalars and inputs of one run.
struct RunInputs {
    ir::Arguments arguments;
    ir::Arrays arrays;
};

/// Reads the inputs that `files` names (`x` to `x.npy`), binds dimensions to their sizes, and draws all others from `seed`: by the subject's
/// distributions, else floats from a normal distribution and integers by how the operator uses them. Every element depends on the seed, the tensor and its position only.
/// Codes `input.*`, `shape.*`, `npy.*`.
Result<RunInputs> make_inputs(const Subject& s, const std::map<std::string, std::string>& files, uint64_t seed);

}  // namespace acu
