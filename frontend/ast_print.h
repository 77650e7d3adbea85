#pragma once
#include "frontend/ast.h"

namespace acu::frontend {

/// The syntax tree of a file, one node a line, children indented: what `--emit ast` prints.
std::string print(const File& file);

}  // namespace acu::frontend
