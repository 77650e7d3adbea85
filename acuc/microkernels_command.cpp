#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "acuc/options.h"
#include "acuc/validate_microkernels.h"
#include "microkernels/catalogue.h"

namespace acu {

using nlohmann::ordered_json;

namespace {

constexpr size_t stamps_limit = size_t{16} << 20;

std::vector<std::string> names(const ir::Microkernel& m, bool only_stamped) {
    std::vector<std::string> out;
    for (const auto& t : m.targets)
        if (!only_stamped || microkernels::stamped(m, *target_named(t.name))) out.push_back(t.name);
    return out;
}

// ---- list

void list_text(const ir::Microkernel& m) {
    std::vector<std::string> rows;
    for (const auto& t : m.targets) rows.push_back(t.name + (microkernels::stamped(m, *target_named(t.name)) ? "" : " (no stamp)"));
    fmt::print("{:26} {:9} {:8} {}\n{:26} {}\n", m.id, ir::name_of(m.kind), ir::name_of(m.group), fmt::join(rows, ", "), "", m.doc);
}

int list(bool json) {
    ordered_json all = ordered_json::array();
    for (const ir::Microkernel& m : microkernels::catalogue()) {
        if (!json) {
            list_text(m);
            continue;
        }
        ordered_json j = microkernels::describe(m);
        j["hash"] = microkernels::hash_of(m);
        j["stamped"] = names(m, true);
        all.push_back(std::move(j));
    }
    if (json) fmt::print("{}\n", all.dump(2));
    return 0;
}

Diagnostic no_such(const std::string& id) {
    std::vector<std::string> known;
    for (const ir::Microkernel& m : microkernels::catalogue()) known.push_back(m.id);
    const std::string near_name = did_you_mean(id, known);
    return {"microkernels.unknown", {}, fmt::format("there is no microkernel `{}`", id), {}, near_name.empty() ? "`acuc microkernels list` names them" : near_name, Exit::Usage};
}

// ---- source: the test kernels

int print_source(const std::string& id, const std::string& target_name, bool only_last) {
    const ir::Microkernel* m = microkernels::find(id);
    if (!m) return fail(no_such(id));
    const Target* target = target_named(target_name);
    if (!target || !m->on(target_name))
        return fail({"microkernels.target", {}, fmt::format("`{}` does not exist on `{}`", id, target_name), {}, fmt::format("it does on {}", fmt::join(names(*m, false), ", ")), Exit::Usage});
    fmt::print("{}", trials_of(*m, *target).source(only_last));
    return 0;
}

// ---- validate

struct ValidateOptions {
    std::vector<std::string> devices, ids;
    std::string write;
    bool json = false;
    runtime::ToolkitOptions toolkits;
};

std::string today() {
    const std::chrono::year_month_day d(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(d.year()), static_cast<unsigned>(d.month()), static_cast<unsigned>(d.day()));
}

ordered_json json_of(const Validation& v) {
    return {{"id", v.id}, {"target", v.target}, {"device", v.device}, {"toolchain", v.toolchain}, {"trials", v.trials}, {"seconds", v.seconds}, {"faults", v.faults}};
}

void print_validation(const Validation& v) {
    fmt::print("{:26} {:18} {:5} trials  {:6.1f} s  {}\n", v.id, v.device, v.trials, v.seconds, v.faults.empty() ? "ok" : "WRONG");
    for (const std::string& f : v.faults) fmt::print("    {}\n", f);
    std::fflush(stdout);
}

Status write_stamps(const std::string& path, const std::vector<microkernels::Stamp>& made) {
    std::vector<microkernels::Stamp> old;
    if (std::ifstream(path).good()) {
        const auto text = read_text(path, stamps_limit);
        if (!text) return text.why();
        auto parsed = microkernels::parse_stamps(*text);
        if (!parsed) return parsed.why();
        old = std::move(*parsed);
    }
    return write_text(path, microkernels::print_stamps(microkernels::merged(old, made)));
}

/// Validates all chosen microkernels on one device; answers whether all passed.
Result<bool> validate_on(const std::string& name, const ValidateOptions& o, ordered_json& all, std::vector<microkernels::Stamp>& made) {
    const auto on = open_for_validation(name, o.toolkits);
    if (!on) return on.why();
    bool good = true;
    for (const ir::Microkernel& m : microkernels::catalogue()) {
        if (!m.on(on->target->name) || (!o.ids.empty() && std::ranges::find(o.ids, m.id) == o.ids.end())) continue;
        const Validation v = validate(*on, m, trials_of(m, *on->target));
        if (o.json) all.push_back(json_of(v));
        else print_validation(v);
        good &= v.faults.empty();
        if (v.faults.empty()) made.push_back({v.id, v.target, v.device, microkernels::hash_of(m), v.toolchain, today(), v.trials});
    }
    return good;
}

int validate_all(const ValidateOptions& o) {
    for (const std::string& id : o.ids)
        if (!microkernels::find(id)) return fail(no_such(id));
    ordered_json all = ordered_json::array();
    std::vector<microkernels::Stamp> made;
    bool good = true;
    for (const std::string& name : o.devices) {
        const auto passed = validate_on(name, o, all, made);
        if (!passed) return fail(passed.why());
        good &= *passed;
    }
    if (o.json) fmt::print("{}\n", all.dump(2));
    if (!o.write.empty())
        if (const Status written = write_stamps(o.write, made); !written) return fail(written.why());
    return good ? 0 : static_cast<int>(Exit::Wrong);
}

void add_validate(CLI::App& app, int& exit) {
    auto o = std::make_shared<ValidateOptions>();
    for (const Target& t : targets())
        if (t.platform != Platform::Cpu) o->devices.push_back("emu:" + std::string(t.name));
    CLI::App* c = app.add_subcommand("validate", "compare microkernels with scalar references on a device, or on emulated ones");
    c->add_option("--device", o->devices, "cuda:0, hip:0, emu:TARGET; several may be given")->capture_default_str();
    c->add_option("--id", o->ids, "only these microkernels");
    c->add_option("--write", o->write, "add stamps of what passed to this file, and drop those that are out of date");
    c->add_flag("--json", o->json, "the results as JSON");
    add_toolkits(*c, o->toolkits);
    c->callback([o, &exit] { exit = validate_all(*o); });
}

}  // namespace

void add_microkernels(CLI::App& app, int& exit) {
    CLI::App* c = app.add_subcommand("microkernels", "the device functions that plans are made of");
    c->require_subcommand(1);
    auto json = std::make_shared<bool>(false);
    CLI::App* l = c->add_subcommand("list", "what there is, for which targets, and where a valid stamp is missing");
    l->add_flag("--json", *json, "descriptors as JSON");
    l->callback([json, &exit] { exit = list(*json); });
    struct Chosen {
        std::string id, target;
        bool last = false;
    };
    auto chosen = std::make_shared<Chosen>();
    CLI::App* s = c->add_subcommand("source", "the test kernels of a microkernel, as CUDA or HIP");
    s->add_option("ID", chosen->id, "the microkernel")->required();
    s->add_option("--target", chosen->target, "the chip")->required();
    s->add_flag("--last", chosen->last, "only the last kernel, which has the widest type");
    s->callback([chosen, &exit] { exit = print_source(chosen->id, chosen->target, chosen->last); });
    add_validate(*c, exit);
}

}  // namespace acu
