#pragma once
#include <string>
#include <string_view>

namespace acu {

/// 64-bit FNV-1a, in hexadecimal: says whether a text is still the one that something was made from. No protection against intent.
std::string hash_of(std::string_view text);

}  // namespace acu
