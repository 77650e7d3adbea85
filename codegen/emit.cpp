#include "codegen/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/expression.h"
#include "codegen/kernel.h"
#include "codegen/launcher.h"
#include "microkernels/catalogue.h"

namespace acu::codegen {

using namespace ir;

static std::string commented(const std::string& text) {
    std::string out;
    size_t from = 0;
    while (from < text.size()) {
        const size_t end = std::min(text.find('\n', from), text.size());
        out += "//   " + text.substr(from, end - from) + "\n";
        from = end + 1;
    }
    return out;
}

static std::string plan_of(const Origin& origin) {
    return origin.plan.empty() ? "// plan: fallback, one thread a cell, any legal shape\n" : "// plan:\n" + commented(fmt::format("{}\n", fmt::join(origin.plan, "\n")));
}

static std::string banner(const Target& target, const Origin& origin) {
    return fmt::format("// {}\n// for {} ({}); emitted by AlphaCu {}\n{}// definition:\n{}\n", origin.spec, target.name, target.chip, ACU_VERSION, plan_of(origin), commented(print(origin.tensor)));
}

int64_t Kernel::grid(int64_t iterations) const {
    const int64_t each = threads ? packed : block_threads;
    return std::min((iterations + each - 1) / each, most_blocks);
}

/// The device text and, behind it in their order, the headers that some kernel needs.
std::string device_text(const std::vector<Kernel>& kernels) {
    std::set<std::string> needed;
    for (const Kernel& k : kernels) needed.insert(k.headers.begin(), k.headers.end());
    std::string text = needed.contains("async") ? "#define ACU_ASYNC 1\n" : "";
    text += microkernels::texts().at("device");
    for (const char* name : {"group", "copy", "async", "elements", "cluster", "ring", "roles", "reduce", "scan", "online"})
        if (needed.contains(name)) text += "\n" + std::string(microkernels::texts().at(name));
    for (const Kernel& k : kernels) text += "\n" + k.text;
    return text;
}

Result<Emitted> emit(const Program& p, const Target& target, const Origin& origin, const EmitOptions& options) {
    if (is_reserved(p.name)) return Diagnostic{"emit.name", {}, fmt::format("an operator named `{}` cannot become a C function", p.name), {}, "that is a word of C or of emitted code: rename the operator"};
    const auto contract = contract_of(p);
    if (!contract) return contract.why();
    const Dialect& dialect = dialect_of(target.platform);
    Emitted e;
    e.program = p;
    e.kernels = kernels_of(e.program, target, options);
    e.device = banner(target, origin) + device_text(e.kernels);
    e.header = launcher_header(p, origin);
    e.source = fmt::format("{}\n#if !defined(__CUDACC_RTC__) && !defined(__HIPCC_RTC__)\n#include {}\n\n#include \"{}.h\"\n\n{}#endif\n", e.device, dialect.include, p.name,
                           launcher_source(p, *contract, e.kernels, dialect));
    return e;
}

}  // namespace acu::codegen
