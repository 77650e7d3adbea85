#pragma once
#include "ir/interpret.h"

namespace acu {

/// The bound on an output's error: |y - r| <= tau*s + u*|r|, with s the root mean square of the reference's row (last dimension; of the whole tensor where rows are
/// short) and u twice the unit roundoff of the stored type. Integers: equal, or off by one on at most one element in a thousand where they come from rounding.
struct Tolerance {
    double tau = 0;
    bool rounded_integers = false;
    std::string why;    ///< "f16 operands, sum of 4096 terms"
};

/// From the types that the operator reads and its longest contraction, as benchmarks/README.md states the rules.
Tolerance tolerance_of(const ir::Program& tensor, const ir::Env& dims);

struct Comparison {
    bool equal = false;
    double worst = 0;       ///< largest error as a share of its bound
    int64_t at = -1;        ///< where
    double actual = 0, expected = 0;
    int64_t compared = 0;
};

/// Compares an output, or a sample of one, with its reference element by element.
Comparison compare(const ir::Array& y, const ir::Array& reference, const Tolerance& t);

}  // namespace acu
