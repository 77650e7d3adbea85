#pragma once
#include <optional>

#include "frontend/ast.h"
#include "ir/pass/pass.h"

// A step of a schedule block and the same step as data. Both ways: what one says, the other says.
//   tile(acc, k = 64)      {"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 64}}}
//   cooperate(r, m, 2)     a number without a name goes to the first parameter that is a number and is not given
//   fuse(a, b, over = m)   {"over": {"m": 1}}
//   specialize(when = (N % 8 == 0 && N >= 8))   {"when": "N % 8 == 0 and N >= 8"}
namespace acu::frontend {

/// Where a word of a step goes: to a parameter of its pass (null: of a pass that this compiler does not have), whole or as one axis of it.
struct Slot {
    std::string parameter;
    const ir::pass::ParamSpec* spec = nullptr;
    bool axis = false;    ///< `k = 64`: the word is an axis, with its size
};
/// One a step argument; nothing for a name in front, and where the pass has no such parameter.
std::vector<std::optional<Slot>> slots_of(const Step& step);

/// The step as data; what fits no parameter is left out. Does not say what is wrong: `check_schedule` does.
ir::pass::Step step_of(const Step& step);

/// The step as a line of a schedule block, without its reason.
std::string words_of(const ir::pass::Step& step);

/// The text of a parameter as the language writes a name, a number or a condition, or nothing where it is none of them. What comes out goes in: two texts that mean the same are equal then.
std::optional<std::string> canonical_text(const std::string& text);

/// Would the language read this as one name, such as `acc`, `k.o` or `consumer/k.o`?
bool is_path(std::string_view text);
/// Words that cannot stand in a path.
const std::vector<std::string_view>& keywords();

}  // namespace acu::frontend
