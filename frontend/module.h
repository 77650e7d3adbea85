#pragma once
#include <map>
#include <memory>
#include <set>

#include "frontend/parse.h"

namespace acu::frontend {

/// A parsed file with the names that it can use: its own and what it imports.
struct Module {
    File file;
    std::map<std::string, std::pair<const FnDecl*, const Module*>> fns;
    std::map<std::string, std::pair<const OpDecl*, const Module*>> ops;
};

/// Loads files and what they import. `std.NAME` is part of the compiler (stdlib/NAME.acu); `a.b` is a/b.acu beside the importing file.
class Modules {
  public:
    explicit Modules(SourceMap& sources) : sources_(sources) {}

    /// Null where nothing could be read. Codes `file.*`, `syntax.*`, `import.*`, `name.twice`.
    const Module* load_file(const std::string& path, std::vector<Diagnostic>& found);
    /// A text that is not a file, under the name that diagnostics print.
    const Module* load_text(const std::string& name, const std::string& text, std::vector<Diagnostic>& found);

  private:
    const Module* add(const std::string& key, const std::string& name, const std::string& text, std::vector<Diagnostic>& found);
    void import(Module& into, const ImportDecl& d, const std::string& importer, std::vector<Diagnostic>& found);
    const Module* library(const std::string& file, std::string_view text, const ImportDecl& d, std::vector<Diagnostic>& found);
    const Module* find(const ImportDecl& d, const std::string& importer, std::vector<Diagnostic>& found);

    SourceMap& sources_;
    std::map<std::string, std::unique_ptr<Module>> loaded_;
    std::set<std::string> loading_;
};

/// Names of the library's modules and their texts (generated at build time from stdlib/).
const std::map<std::string, std::string_view>& standard_library();

}  // namespace acu::frontend
