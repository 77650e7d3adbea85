#pragma once
#include <span>

#include "ir/program.h"

namespace acu::ir {

/// Values of one tensor: `sizes`, and elements of `type` in row-major order.
struct Array {
    DType type = DType::F32;
    std::vector<int64_t> sizes;
    std::vector<std::byte> bytes;

    int64_t count() const;
    static Array zeros(DType type, std::vector<int64_t> sizes);
    double get(int64_t i) const;       ///< integers as double
    void set(int64_t i, double x);     ///< rounds as a store does
};

using Arrays = std::map<std::string, Array>;

/// Sizes and scalar arguments of a run.
struct Arguments {
    Env dims;
    std::map<std::string, double> scalars;
};

/// `seed`: other than 0, the points of a block, the iterations of parallel loops and the roles run in an order drawn from it. `races`: whether D5 is looked at
/// (lowering spreads blocks over threads before it places the barriers).
struct InterpretOptions {
    uint64_t seed = 0;
    bool races = true;
};

/// The definition of the loop IR: runs a loop-level program, one point after another, every operation rounded to its type. `arrays` holds the inputs and
/// receives the outputs. Broken dynamic rules are diagnostics: `run.D1` (an index outside its buffer or window), `run.D2` (a cell that was never written is
/// read), `run.D4` (`=` writes a cell twice), `run.D5` (iterations of a parallel loop, or threads with no barrier between, meet in a cell, one writing),
/// `run.D6` (a version of a ring that is read is not there), `run.D7` (roles deadlock), `run.D9` (an output cell is not written). `run.input` for a missing or
/// misshapen input.
Status interpret(const Program& p, const Arguments& args, Arrays& arrays, const InterpretOptions& options = {});

/// Sizes of a declaration under `dims`.
std::vector<int64_t> sizes_of(const Decl& d, const Env& dims);

}  // namespace acu::ir
