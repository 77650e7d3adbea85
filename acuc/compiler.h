#pragma once
#include <memory>

#include "codegen/emit.h"
#include "frontend/case.h"

namespace acu {

/// One file being worked on: its sources, modules and findings.
class Session {
  public:
    /// Reads and parses; null when nothing could be read. Findings stay in `found`.
    const frontend::Module* open(const std::string& path);
    /// Prints the findings to standard error (as text, or as JSON lines); answers the exit code.
    int report(bool json = false) const;
    bool failed() const;

    SourceMap sources;
    frontend::Modules modules{sources};
    std::vector<Diagnostic> found;
};

/// What the command line says of one operator: `--op`, `--case`, `--set`.
struct Selection {
    std::string op, case_name;
    std::vector<std::string> sets;
};

/// An operator with everything that fixes it, ready to compile or run.
struct Subject {
    frontend::Operator op;
    std::map<std::string, frontend::Distribution> inputs;
    std::string spec;                         ///< `softmax (case NM01): T = f16, M = 8192, N = 8192`
    std::string case_name = {};
    std::string definition = {};              ///< hash of what it computes, whatever its sizes are: a plan of another one is stale
    const frontend::Module* home = nullptr;   ///< where the operator is declared; the session owns both
    const frontend::OpDecl* decl = nullptr;
};

/// The operators that a selection means: one, or without `--op` and `--case` all of the file. Findings go to the session.
std::vector<Subject> subjects_of(Session& session, const frontend::Module& module, const Selection& selection);

/// The subject with all its sizes.
Subject at_sizes(Subject s, const ir::Env& dims);

/// Checks everything in a file: each operator for each of its types, each case, each schedule.
void check_module(Session& session, const frontend::Module& module);

/// The loop-level program of a subject under the fallback plan.
ir::Program planned(const ir::Program& tensor);

}  // namespace acu
