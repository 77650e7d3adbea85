#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "acuc/options.h"
#include "codegen/cpu.h"
#include "codegen/dialect.h"
#include "frontend/ast_print.h"
#include "ir/lower/lower.h"

namespace acu {
namespace {

struct CompileArguments {
    Chosen chosen;
    std::string target, output = ".", emit;
};

/// Text of a subject for `--emit`; what needs a target has one.
Result<std::string> emitted(const Subject& s, const std::string& what, const Target* target) {
    if (what == "tensor") return ir::print(s.op.program);
    if (what == "loop") return ir::print(planned(s.op.program));
    if (what == "llvm") return codegen::llvm_text(planned(s.op.program));
    auto e = compile_subject(s, *target);
    if (!e) return e.why();
    return what == "plan" ? e->plan : e->source;
}

/// The files of one operator.
struct Files {
    std::string stem;
    codegen::Emitted emitted;
};

Result<Files> files_of(const Subject& s, const Target& target, const std::string& directory) {
    auto e = compile_subject(s, target);
    if (!e) return e.why();
    return Files{(std::filesystem::path(directory) / s.op.program.name).string(), std::move(*e)};
}

Status write(const Files& f, const Target& target) {
    const std::pair<std::string, const std::string*> files[] = {
        {f.stem + std::string(codegen::dialect_of(target.platform).extension), &f.emitted.source}, {f.stem + ".h", &f.emitted.header}, {f.stem + ".plan.json", &f.emitted.plan}};
    for (const auto& [path, text] : files) {
        if (const Status w = write_text(path, *text); !w) return w;
        fmt::print("wrote {}\n", path);
    }
    return ok();
}

/// Compiles all before it writes any.
int write_all(const std::vector<Subject>& subjects, const Target& target, const std::string& directory) {
    std::vector<Files> all;
    for (const Subject& s : subjects) {
        auto f = files_of(s, target, directory);
        if (!f) return fail(f.why());
        all.push_back(std::move(*f));
    }
    std::error_code ec;
    std::filesystem::create_directories(directory, ec);
    if (ec) return fail({"file.unwritable", {}, fmt::format("cannot make the folder `{}`: {}", directory, ec.message())});
    for (const Files& f : all)
        if (const Status w = write(f, target); !w) return fail(w.why());
    return 0;
}

/// The target, where one is needed; null after an error.
const Target* target_of(const CompileArguments& a, int& exit) {
    const Target* t = target_named(a.target);
    const bool gpu = t && t->platform != Platform::Cpu;
    const bool hip = t && t->platform == Platform::Hip;
    std::vector<std::string> names;
    for (const Target& x : targets()) names.emplace_back(x.name);
    if (a.target.empty()) exit = fail({"target.missing", {}, "no target is given", {}, fmt::format("--target is one of {}", fmt::join(names, ", ")), Exit::Usage});
    else if (!t) exit = fail({"target.unknown", {}, fmt::format("no target `{}` is known", a.target), {}, fmt::format("it is one of {}", fmt::join(names, ", ")), Exit::Usage});
    else if (!gpu && a.emit != "plan") exit = fail({"target.cpu", {}, "the cpu target is compiled in memory", {}, "see what it does with `--emit llvm` or `--emit loop`, or run it with `acuc run`", Exit::Usage});
    else if ((a.emit == "cuda" && hip) || (a.emit == "hip" && !hip)) exit = fail({"target.emit", {}, fmt::format("{} is not what {} is compiled from", a.emit, a.target), {}, {}, Exit::Usage});
    else return t;
    return nullptr;
}

int compile(const CompileArguments& a) {
    Session s;
    const frontend::Module* m = s.open(a.chosen.file);
    if (!m || s.failed()) return s.report();
    if (a.emit == "ast") {
        fmt::print("{}", frontend::print(m->file));
        return 0;
    }
    const std::vector<Subject> subjects = subjects_of(s, *m, a.chosen.selection);
    if (s.failed()) return s.report();
    const bool needs_target = a.emit != "tensor" && a.emit != "loop" && a.emit != "llvm";
    int exit = 0;
    const Target* target = needs_target ? target_of(a, exit) : nullptr;
    if (needs_target && !target) return exit;
    if (a.emit.empty()) return write_all(subjects, *target, a.output);
    for (const Subject& subject : subjects) {
        const auto text = emitted(subject, a.emit, target);
        if (!text) return fail(text.why());
        fmt::print("{}", *text);
    }
    return 0;
}

}  // namespace

void add_compile(CLI::App& app, int& exit) {
    auto a = std::make_shared<CompileArguments>();
    CLI::App* c = app.add_subcommand("compile", "emit CUDA or HIP with a C launcher: NAME.cu or NAME.hip, NAME.h, NAME.plan.json");
    add_selection(*c, a->chosen);
    c->add_option("--target", a->target, "sm_70, sm_80, sm_90a, gfx90a");
    c->add_option("-o", a->output, "the folder to write to")->capture_default_str();
    c->add_option("--emit", a->emit, "print to standard output instead")->check(CLI::IsMember({"ast", "tensor", "loop", "cuda", "hip", "llvm", "plan"}));
    c->callback([a, &exit] { exit = compile(*a); });
}

}  // namespace acu
