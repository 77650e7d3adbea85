#pragma once
#include <string>

namespace acu::frontend {

/// The source `text` in the one style of `.acu` files. It must parse without findings. Tokens and comments keep their order and the author's line
/// breaks stay; white space and blank lines are decided here: `format(format(t)) == format(t)`.
std::string format(const std::string& text);

}  // namespace acu::frontend
