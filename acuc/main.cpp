#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "acuc/options.h"

static int run(int argc, char** argv) {
    CLI::App app{"acuc compiles operators written in .acu to CUDA, HIP and the CPU"};
    int exit = 0;
    app.set_version_flag("--version", "acuc " ACU_VERSION);
    app.require_subcommand(1);
    acu::add_check(app, exit);
    acu::add_compile(app, exit);
    acu::add_run(app, exit);
    acu::add_fmt(app, exit);
    acu::add_targets(app, exit);
    acu::add_passes(app, exit);
    acu::add_explain(app, exit);
    acu::add_blame(app, exit);
    acu::add_microkernels(app, exit);
    app.footer("Exit codes: 0 done, 1 the input is wrong, 2 usage, 3 something is missing on this machine, 4 a check failed.\nThe language: docs/language.md. Try: acuc check examples/softmax.acu");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const int code = app.exit(e);
        return code == 0 ? 0 : 2;
    }
    return exit;
}

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return acu::fail({"memory.exhausted", {}, "this machine has too little memory for these sizes", {}, "give smaller sizes with --set", acu::Exit::Lacking});
    } catch (const std::exception& e) {
        return acu::fail({"internal", {}, fmt::format("an error inside acuc: {}", e.what()), {}, "please report it, with the source and the command", acu::Exit::Wrong});
    }
}
