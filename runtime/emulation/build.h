#pragma once
#include <map>
#include <string>
#include <string_view>

#include "runtime/temporary_folder.h"
#include "support/result.h"
#include "target/target.h"

namespace acu::runtime::emulation {

/// A host compiler: "g++ 12.2".
struct HostCompiler {
    std::string program;
    std::string name;
    bool clang = false;
};

/// The first of ACU_HOST_CXX, g++, clang++ that starts. Code `toolkit.missing` (exit 3), also where addr2line is missing.
Result<HostCompiler> find_host_compiler();

/// Compiles `text` and the functions that call its kernels to a shared object in the folder; answers its path. Codes `compile.failed`, `compile.time`.
Result<std::string> build_text(const HostCompiler& compiler, const TemporaryFolder& folder, const Target& target, const std::string& text, const std::string& file_name);

/// The headers that the text is compiled with, shim.h and words.h, by stem (embedded at build time).
const std::map<std::string, std::string_view>& shim_headers();

}  // namespace acu::runtime::emulation
