#pragma once
#include "synth/plan/groups.h"

// Two sums of products with exponentials between them whose maximum and sum run over the axis that they share: what `online` makes one loop.
namespace acu::synth::plan {

/// x[rows, j] += a b over the terms;  … t[rows, j] …;  top[rows] max= t over j!;  e[rows, j] = exp(t - top);  l[rows] += e over j!;  y[rows, d] += …e…*c[j, d] over j!.
struct Chain {
    std::string scores, top, exp, last;    ///< statements
    std::string terms;                     ///< j
    std::vector<std::string> labels;       ///< all from the first product to what is computed from the last for the same rows
    std::vector<std::string> rows;
};
/// The chain that begins with this statement; nothing where none does.
std::optional<Chain> chain_from(const ir::Program& p, const std::string& label);

}  // namespace acu::synth::plan
