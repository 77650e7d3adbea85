#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace acu::ir {

/// A token of IR text. Names may hold dots; numbers carry their suffix (`d`, `l`).
struct Token {
    enum Kind { Name, Number, Sign, End } kind;
    std::string text;
    Loc loc;
};

/// Splits IR text; `//` comments run to the end of the line.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace acu::ir
