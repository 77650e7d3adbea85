#include <CLI/CLI.hpp>
#include <memory>

#include "acuc/options.h"

namespace acu {

void add_check(CLI::App& app, int& exit) {
    struct Arguments {
        std::vector<std::string> files;
        bool json = false;
    };
    auto a = std::make_shared<Arguments>();
    CLI::App* c = app.add_subcommand("check", "parse and check .acu files; silent when all is well");
    c->add_option("FILE", a->files, "the .acu sources")->required();
    c->add_flag("--json", a->json, "diagnostics as JSON lines");
    c->callback([a, &exit] {
        for (const std::string& file : a->files) {
            Session s;
            if (const frontend::Module* m = s.open(file)) check_module(s, *m);
            exit = std::max(exit, s.report(a->json));
        }
    });
}

}  // namespace acu
