#pragma once
#include <string>
#include <vector>

#include "acuc/compiler.h"
#include "runtime/device.h"

namespace CLI {
class App;
}

namespace acu {

/// Adds a subcommand; its callback stores the exit code.
void add_check(CLI::App& app, int& exit);
void add_compile(CLI::App& app, int& exit);
void add_run(CLI::App& app, int& exit);
void add_fmt(CLI::App& app, int& exit);
void add_targets(CLI::App& app, int& exit);
void add_passes(CLI::App& app, int& exit);
void add_explain(CLI::App& app, int& exit);
void add_blame(CLI::App& app, int& exit);
void add_microkernels(CLI::App& app, int& exit);

/// FILE, `--op`, `--case`, `--set`, shared by compile and run.
struct Chosen {
    std::string file;
    Selection selection;
};
void add_selection(CLI::App& command, Chosen& chosen);
void add_toolkits(CLI::App& command, runtime::ToolkitOptions& options);

/// Prints one diagnostic that has no place in a source; answers its exit code.
int fail(const Diagnostic& d);

}  // namespace acu
