// A libFuzzer target: any text is parsed without a crash; what parses is checked, and formatting it twice is formatting it once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "acuc/compiler.h"
#include "frontend/format.h"

namespace {

/// Inputs of the fuzzer are short; what is slow by its size alone has tests of its own.
constexpr size_t most_bytes = 4096;

/// Imports that are files would read the disk.
bool reads_files(const acu::frontend::File& file) {
    for (const auto& import : file.imports)
        if (import.path[0] != "std") return true;
    return false;
}

[[noreturn]] void fail(const char* what, const std::string& before, const std::string& after) {
    fmt::print(stderr, "{}\n--- before\n{}\n--- after\n{}\n", what, before, after);
    std::abort();
}

bool parses(const std::string& text) {
    acu::SourceMap sources;
    std::vector<acu::Diagnostic> found;
    acu::frontend::parse(sources, sources.add("formatted", text), found);
    return found.empty();
}

void check_format(const std::string& text) {
    const std::string once = acu::frontend::format(text);
    if (!parses(once)) fail("the formatted text does not parse", text, once);
    const std::string twice = acu::frontend::format(once);
    if (once != twice) fail("formatting again changes the text", once, twice);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), std::min(size, most_bytes));
    acu::SourceMap sources;
    std::vector<acu::Diagnostic> found;
    const acu::frontend::File file = acu::frontend::parse(sources, sources.add("fuzz", text), found);
    if (!found.empty()) return 0;
    check_format(text);
    if (reads_files(file)) return 0;
    acu::Session session;
    const acu::frontend::Module* module = session.modules.load_text("fuzz", text, session.found);
    if (module && session.found.empty()) acu::check_module(session, *module);
    return 0;
}
