#pragma once
#include "ir/pass/window.h"

namespace acu::ir::pass {

/// A factor of a product: a load, with what fills its buffer. Casts between floats are looked through.
struct Factor {
    Value load;
    const Decl* decl = nullptr;        ///< null: not a load
    std::vector<Block> writers = {};
};
std::vector<Factor> factors_at(const Program& p, const Place& at, const std::vector<Value>& values);

/// The buffer belongs to a loop, every statement that writes it fills all of it by `=`, and `at` reads it inside, whatever its guards say. Answers why not.
std::string not_total(const Program& p, const Place& at, const Factor& f);
/// Where the condition fails, the factor is 0, by what its copies say.
bool zero_unless(const Program& p, const Value& condition, const Factor& f);
/// Where the condition fails, what was written into the cell that is loaded is 0.
bool zero_as_written(const Program& p, const Value& condition, const Value& load);
/// Where the condition fails, the value is -inf, by what writes the buffers that it loads.
bool minus_infinity_unless(const Program& p, const Value& condition, const Value& v);
/// Two conditions that say the same, by their words or as bounds.
bool agrees(const Value& a, const Value& b);
bool is_minus_infinity(const Value& v);
/// `(0 if m == -inf else m)`: the reference that makes exp(t - m) 0 in a row of -inf. `unsafe` answers m, or null.
Value safe(const Value& m);
Value unsafe(const Value& v);

}  // namespace acu::ir::pass
