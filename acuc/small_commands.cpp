#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "acuc/options.h"
#include "codegen/cpu.h"
#include "frontend/format.h"
#include "ir/pass/catalogue.h"
#include "runtime/toolkit.h"

namespace acu {

// ---- fmt

/// Formats one file in place; answers whether it was as it should be.
static int format_file(const std::string& file, bool check, bool& clean) {
    Session s;
    const frontend::Module* m = s.open(file);
    if (!m || s.failed()) return s.report();
    const std::string& before = s.sources[m->file.source].text;
    const std::string after = frontend::format(before);
    clean &= before == after;
    if (before == after) return 0;
    if (check) return fmt::print("{} is not formatted\n", file), 0;
    if (const Status w = write_text(file, after); !w) return fail(w.why());
    fmt::print("formatted {}\n", file);
    return 0;
}

void add_fmt(CLI::App& app, int& exit) {
    struct Arguments {
        std::vector<std::string> files;
        bool check = false;
    };
    auto a = std::make_shared<Arguments>();
    CLI::App* c = app.add_subcommand("fmt", "format .acu files in place");
    c->add_option("FILE", a->files, "the .acu sources")->required();
    c->add_flag("--check", a->check, "write nothing; exit 1 if a file is not formatted");
    c->callback([a, &exit] {
        bool clean = true;
        for (const std::string& f : a->files) exit = std::max(exit, format_file(f, a->check, clean));
        if (a->check && !clean) exit = std::max(exit, 1);
    });
}

// ---- targets

static nlohmann::ordered_json target_json(const Target& t) {
    return {{"name", t.name}, {"chip", t.chip}, {"warp", t.warp}, {"shared_bytes", t.shared_bytes}, {"bf16_arithmetic", t.bf16_arithmetic}, {"fp8_conversion", t.fp8_conversion}};
}

static void print_target(const Target& t, const std::vector<runtime::ToolkitFound>& kits) {
    std::string with;
    for (const auto& k : kits)
        if (t.platform != Platform::Cpu && runtime::builds(k, std::string(t.name))) with += (with.empty() ? "" : ", ") + runtime::describe(k);
    if (t.platform == Platform::Cpu) with = codegen::cpu_executor();
    fmt::print("{:8} {:14} {}\n", t.name, t.chip, with.empty() ? "no compiler found: " + runtime::toolkit_advice(std::string(t.name)) : "compiled by " + with);
}

void add_targets(CLI::App& app, int& exit) {
    struct Arguments {
        runtime::ToolkitOptions toolkits;
        bool json = false;
    };
    auto a = std::make_shared<Arguments>();
    CLI::App* c = app.add_subcommand("targets", "the chips that code can be emitted for, and the compilers found for them");
    add_toolkits(*c, a->toolkits);
    c->add_flag("--json", a->json, "as JSON");
    c->callback([a, &exit] {
        nlohmann::ordered_json all = nlohmann::ordered_json::array();
        const auto kits = a->json ? std::vector<runtime::ToolkitFound>{} : runtime::find_toolkits(a->toolkits);
        for (const Target& t : targets()) {
            if (a->json) all.push_back(target_json(t));
            else print_target(t, kits);
        }
        if (a->json) fmt::print("{}\n", all.dump(2));
        exit = 0;
    });
}

// ---- passes

void add_passes(CLI::App& app, int& exit) {
    auto json = std::make_shared<bool>(false);
    CLI::App* c = app.add_subcommand("passes", "the passes that a schedule may name");
    c->add_flag("--json", *json, "as JSON");
    c->callback([json, &exit] {
        nlohmann::ordered_json all = nlohmann::ordered_json::array();
        for (const auto& p : ir::pass::signatures()) {
            if (*json) all.push_back({{"name", p.name}, {"doc", p.doc}, {"parameters", p.parameters}});
            else fmt::print("{:16} {}{}\n", p.name, p.doc, p.parameters.empty() ? "" : fmt::format(" ({})", fmt::join(p.parameters, ", ")));
        }
        if (*json) fmt::print("{}\n", all.dump(2));
        exit = 0;
    });
}

}  // namespace acu
