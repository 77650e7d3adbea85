#pragma once
#include <map>

#include "ir/analysis/facts.h"
#include "ir/program.h"

// Which accesses of neighbouring elements start at a multiple of their bytes: proven once, so that the text need not ask at every access.
namespace acu::codegen {

/// What a launch must bring so that the proofs hold. Empty: nothing was proven.
struct Alignment {
    std::map<std::string, int64_t> buffers = {};    ///< bytes of which the address of a tensor is a multiple
    std::map<std::string, int64_t> dims = {};       ///< of which a dimension without a fixed size is a multiple
    bool empty() const { return buffers.empty() && dims.empty(); }
};

/// Is `e` a multiple of n? `dims` collects the dimensions without a fixed size that must be multiples, and of what; as before where the answer is no.
bool is_multiple(const ir::Index& e, int64_t n, const ir::Program& p, const ir::analysis::Facts& facts, std::map<std::string, int64_t>& dims);

/// How far an element of a contiguous tensor lies behind its first one.
ir::Index offset_of(const ir::Decl& d, const std::vector<ir::Index>& subscripts);

}  // namespace acu::codegen
