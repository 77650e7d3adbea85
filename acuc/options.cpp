#include "acuc/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace acu {

void add_selection(CLI::App& command, Chosen& c) {
    command.add_option("FILE", c.file, "the .acu source")->required();
    command.add_option("--op", c.selection.op, "the operator; without it and --case: every one of the file");
    command.add_option("--case", c.selection.case_name, "a named case: its types, sizes and inputs");
    command.add_option("--set", c.selection.sets, "types, compile-time values, sizes and scalars: M=4096,T=bf16")->take_all();
}

void add_toolkits(CLI::App& command, runtime::ToolkitOptions& o) {
    command.add_option("--cuda-path", o.cuda_path, "where a CUDA toolkit is");
    command.add_option("--rocm-path", o.rocm_path, "where a ROCm toolkit is");
}

int fail(const Diagnostic& d) {
    std::fputs(SourceMap().render(d).c_str(), stderr);
    return static_cast<int>(d.exit);
}

}  // namespace acu
