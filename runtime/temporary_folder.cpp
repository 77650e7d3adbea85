#include "runtime/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

namespace acu::runtime {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make() {
    std::error_code ec;
    const fs::path base = fs::temp_directory_path(ec);
    std::string name = ((ec ? fs::path("/tmp") : base) / "acuc-XXXXXX").string();    // mkdtemp fills in the last six
    if (mkdtemp(name.data())) return TemporaryFolder(name);
    return Diagnostic{.code = "file.unwritable",
                      .message = fmt::format("cannot make a temporary folder: {}", std::strerror(errno)),
                      .help = "set TMPDIR to a folder with room",
                      .exit = Exit::Lacking};
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace acu::runtime
