#pragma once
#include <set>
#include <string>
#include <string_view>

namespace acu::frontend {

/// The declarations of a library text that `names` need, directly or through others, each on its own line numbers; the rest is left empty. Reading less
/// is what keeps a compilation short. A declaration begins with its word at the start of a line; imports are always kept.
std::string excerpt(std::string_view text, const std::set<std::string>& names);

}  // namespace acu::frontend
