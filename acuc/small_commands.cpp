#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "acuc/options.h"
#include "codegen/cpu.h"
#include "frontend/format.h"
#include "ir/pass/pass.h"
#include "runtime/toolkit.h"
#include "synth/record/schema.h"

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
    return {{"name", t.name}, {"chip", t.chip}, {"warp", t.warp}, {"shared_bytes", t.shared_bytes}, {"bf16_arithmetic", t.bf16_arithmetic}, {"fp8_conversion", t.fp8_conversion}, {"mbarrier", t.mbarrier}};
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

static void print_pass(const ir::pass::Pass& p) {
    std::vector<std::string_view> names;
    for (const ir::pass::ParamSpec& s : p.params) names.push_back(s.name);
    fmt::print("{:16} {}{}\n", p.name, p.doc, names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
}

void add_passes(CLI::App& app, int& exit) {
    auto json = std::make_shared<bool>(false);
    CLI::App* c = app.add_subcommand("passes", "the passes that a plan may name");
    c->add_flag("--json", *json, "as JSON: the JSON Schema of a plan, and every pass with its parameters");
    c->callback([json, &exit] {
        if (*json) fmt::print("{}\n", nlohmann::ordered_json{{"schema", synth::record::plan_schema()}, {"passes", synth::record::passes_json()}}.dump(2));
        else
            for (const ir::pass::Pass& p : ir::pass::all_passes()) print_pass(p);
        exit = 0;
    });
}

}  // namespace acu
