#include "codegen/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/contract.h"
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

std::string condition_of(const Variant& v) {
    std::vector<std::string> parts;
    for (const Value& w : v.when) parts.push_back(describe(w));
    return fmt::format("{}", fmt::join(parts, " and "));
}

static std::string plan_of(const Variant& v) {
    const std::string when = v.when.empty() ? "" : " where " + condition_of(v);
    return v.plan.empty() ? fmt::format("// plan{}: fallback, one thread a cell, any legal shape\n", when) : fmt::format("// plan{}:\n{}", when, commented(fmt::format("{}\n", fmt::join(v.plan, "\n"))));
}

static std::string banner(const Target& target, const Origin& origin, const std::vector<Variant>& variants) {
    std::string plans;
    for (const Variant& v : variants) plans += plan_of(v);
    return fmt::format("// {}\n// for {} ({}); emitted by AlphaCu {}\n{}// definition:\n{}\n", origin.spec, target.name, target.chip, ACU_VERSION, plans, commented(print(origin.tensor)));
}

const Variant* Emitted::variant_for(const Env& dims, const Variant* behind) const {
    const auto from = behind ? variants.begin() + (behind - variants.data()) + 1 : variants.begin();
    const auto it = std::find_if(from, variants.end(), [&](const Variant& v) { return std::ranges::all_of(v.when, [&](const Value& w) { return holds(w, dims); }); });
    return it == variants.end() ? nullptr : &*it;
}

int64_t Kernel::grid(int64_t iterations) const {
    const int64_t each = threads ? packed : block_threads;
    return cluster * std::min((iterations + each - 1) / each, most_blocks);
}

/// The device text and, behind it in their order, the headers that some kernel needs.
std::string device_text(const std::vector<Kernel>& kernels) {
    std::set<std::string> needed;
    for (const Kernel& k : kernels) needed.insert(k.headers.begin(), k.headers.end());
    if (needed.contains("elements")) needed.insert("swizzle");
    std::string text = needed.contains("async") ? "#define ACU_ASYNC 1\n" : "";
    text += microkernels::texts().at("device");
    for (const char* name : {"group", "copy", "async", "swizzle", "elements", "early", "cluster", "ring", "roles", "registers", "tensor_copy", "tensor_store", "multicast", "reduce", "lanes", "rows", "top", "scan", "online", "operand", "pairs", "fma", "mma", "mma_rows", "wgmma", "wgmma_order", "wgmma_rows", "quads", "mfma"})
        if (needed.contains(name)) text += "\n" + std::string(microkernels::texts().at(name));
    for (const Kernel& k : kernels) text += "\n" + k.text;
    return text;
}

Result<Emitted> emit(std::vector<Variant> variants, const Target& target, const Origin& origin, const EmitOptions& options) {
    const Program& p = variants.front().program;
    if (is_reserved(p.name)) return Diagnostic{"emit.name", {}, fmt::format("an operator named `{}` cannot become a C function", p.name), {}, "that is a word of C or of emitted code: rename the operator"};
    const auto contract = contract_of(p);
    if (!contract) return contract.why();
    const Dialect& dialect = dialect_of(target.platform);
    Identifiers names;
    std::vector<Kernel> kernels;
    for (Variant& v : variants) {
        v.kernels = kernels_of(v.program, target, names, options);
        kernels.insert(kernels.end(), v.kernels.begin(), v.kernels.end());
    }
    Emitted e;
    e.device = banner(target, origin, variants) + device_text(kernels);
    e.header = launcher_header(origin.tensor, origin);
    e.source = fmt::format("{}\n#if !defined(__CUDACC_RTC__) && !defined(__HIPCC_RTC__)\n#include {}\n\n#include \"{}.h\"\n\n{}#endif\n", e.device, dialect.include, p.name,
                           launcher_source(origin.tensor, *contract, variants, dialect));
    e.variants = std::move(variants);
    return e;
}

}  // namespace acu::codegen
