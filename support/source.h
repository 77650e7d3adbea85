#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace acu {

/// One source text. `name` is what diagnostics print.
struct Source {
    std::string name;
    std::string text;
};

/// Owns every source text of a run; `Loc::file` is an index into it.
class SourceMap {
  public:
    int add(std::string name, std::string text);
    const Source& operator[](int file) const { return sources_[static_cast<size_t>(file)]; }
    int size() const { return static_cast<int>(sources_.size()); }
    std::string_view line(Loc loc) const;

    /// `file:line:column: error[code]: message`, the line with a caret, notes and help.
    std::string render(const Diagnostic& d) const;

  private:
    std::string place(Loc loc) const;
    std::string excerpt(Loc loc) const;
    std::vector<Source> sources_;
};

/// Reads a text file of at most `limit` bytes. Codes: `file.missing`, `file.unreadable`, `file.too-large`, `file.binary`.
Result<std::string> read_text(const std::string& path, size_t limit);

/// Writes a file through a temporary name beside it, so that a failure leaves what was there. Code `file.unwritable`.
Status write_text(const std::string& path, std::string_view text);

}  // namespace acu
