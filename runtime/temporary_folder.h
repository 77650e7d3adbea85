#pragma once
#include <filesystem>

#include "support/result.h"

namespace acu::runtime {

/// A folder that only we can read, and that goes with us, with all that is in it.
class TemporaryFolder {
  public:
    static Result<TemporaryFolder> make();    ///< code `file.unwritable` (exit 3)
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder();
    const std::filesystem::path& path() const { return path_; }

  private:
    explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

}  // namespace acu::runtime
