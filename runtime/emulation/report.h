#pragma once
#include <fmt/format.h>

#include <string>

#include "runtime/emulation/machine.h"

namespace acu::runtime::emulation {

/// Where a site is in the emitted text: the kernel's own line first.
struct Place {
    int line = 0;
    std::string text;  ///< "softmax.cu:31", or "softmax.cu:31, in line 240" when the access is in a function that was called there
};
const Place& place_of(Site site);

/// One source line may become several calls (jump threading), so sites that differ are compared as places.
bool same_site(Site a, Site b);

/// "block 3, thread 125 (warp 3, lane 29)"
std::string describe(const Thread* t);

/// Ends the launch with a finding. `more` are lines below it.
[[noreturn]] void report(const char* code, Site site, const std::string& message, const std::string& more = "");

template <class... A>
[[noreturn]] void fail(const char* code, Site site, fmt::format_string<A...> format, A&&... args) {
    report(code, site, fmt::format(format, std::forward<A>(args)...));
}

/// From now on a crash of this process is a finding, too.
void catch_crashes();

}  // namespace acu::runtime::emulation
