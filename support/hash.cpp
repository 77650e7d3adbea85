#include "support/hash.h"

#include <fmt/format.h>

#include <cstdint>

namespace acu {

std::string hash_of(std::string_view text) {
    uint64_t h = 1469598103934665603u;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return fmt::format("{:016x}", h);
}

}  // namespace acu
