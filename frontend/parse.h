#pragma once
#include <string>
#include <vector>

#include "frontend/ast.h"
#include "support/source.h"

namespace acu::frontend {

/// A file of more than this many bytes is refused.
inline constexpr size_t max_source_bytes = size_t{2} << 20;

/// Parses the source `file` of `sources`. Findings are added to `found` (codes `syntax.*`); what could be read is answered all the same.
File parse(const SourceMap& sources, int file, std::vector<Diagnostic>& found);

/// One token of a source text for the formatter; comments and line ends included, other white space not.
struct SourceToken {
    enum Kind { Word, Number, Sign, LineEnd, Comment } kind;
    std::string text;
    int line;
    bool generic = false;      ///< an angle bracket of compile-time arguments
    bool reduction = false;    ///< a name that opens a reduction
};
std::vector<SourceToken> tokenize(const std::string& text);

}  // namespace acu::frontend
