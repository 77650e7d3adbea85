#pragma once
#include <string>
#include <vector>

namespace acu {

/// A place in a source text: 1-based line and column; `file` is an index into the `SourceMap` that holds the text.
struct Loc {
    int file = -1;
    int line = 0;
    int column = 0;
    int length = 1;
    bool operator==(const Loc&) const = default;
    explicit operator bool() const { return line > 0; }
};

struct Note {
    Loc loc;
    std::string text;
};

/// Exit codes of the command line; a diagnostic carries the one that it leads to.
enum class Exit { Done = 0, Input = 1, Usage = 2, Lacking = 3, Wrong = 4 };

/// What went wrong, as a value: a stable `code` (`name.unknown`), where, one sentence in lower case without a full stop,
/// further places, and what to do.
struct Diagnostic {
    std::string code;
    Loc loc = {};
    std::string message;
    std::vector<Note> notes = {};
    std::string help = {};
    Exit exit = Exit::Input;
    bool warning = false;
};

/// A nearest name, for `did you mean`; empty when nothing is near enough.
std::string nearest(const std::string& name, const std::vector<std::string>& known);

/// `did you mean `x`?` or nothing.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

}  // namespace acu
