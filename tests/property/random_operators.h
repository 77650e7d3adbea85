#pragma once
#include <string>

#include "tests/property/random_steps.h"

namespace acu::property {

/// The text of an operator and of a case of the same name: one to three inputs of random types and orders of dimensions, up to four statements that compute point by point (with
/// selections, shifted and gathered reads, functions) or reduce (sums, maxima, minima, positions, running ones), one or two outputs. Most are legal.
std::string random_operator(const std::string& name, Random& random);

}  // namespace acu::property
