#pragma once
#include <map>
#include <optional>

#include "ir/program.h"

namespace acu::ir::analysis {

/// How an integer input is used, which says what values make sense for it.
struct InputUse {
    enum Kind { Free, Subscript, Offsets, Length } kind = Free;
    Index bound = nullptr;    ///< Subscript: 0 <= x < bound. Offsets: the last one equals bound. Length: 0 <= x <= bound.
};

/// Of each integer input of a tensor-level program.
std::map<std::string, InputUse> input_uses(const Program& tensor);

}  // namespace acu::ir::analysis
