#include "ir/pass/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace acu::ir::pass {

static constexpr std::array<std::string_view, 42> language{
    "approximate", "bind", "bind_copy", "bind_mma", "bind_reduce", "bind_scan", "cluster", "compute_at", "cooperate", "decide", "flatten", "fuse", "fuse_axes", "hoist",
    "inline", "keep", "online", "outline", "overlap", "pad", "pdl", "persist", "ping_pong", "pipeline", "prefetch", "rasterize", "relax", "reorder",
    "reuse", "segment", "skew", "specialize", "split_axis", "split_online", "split_reduction", "stage", "swizzle", "tile", "trim", "unroll", "vectorize", "warp_specialize"};

bool is_reserved(std::string_view name) { return std::ranges::find(language, name) != language.end() && !pass_named(name); }

std::vector<std::string> pass_names() {
    std::vector<std::string> out(language.begin(), language.end());
    for (const Pass& p : all_passes()) out.emplace_back(p.name);
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

const ParamSpec* param_named(const Pass& pass, std::string_view name) {
    const auto it = std::ranges::find(pass.params, name, &ParamSpec::name);
    return it == pass.params.end() ? nullptr : &*it;
}

std::optional<std::string> wrong_count(const Pass& pass, size_t count) {
    const auto n = static_cast<int64_t>(count);
    const auto [kinds, least, most] = pass.sites;
    if (n >= least && n <= most) return {};
    const int limit = n < least ? least : most;
    return fmt::format("`{}` takes {}{} name{}, but {} {} given", pass.name, least == most ? "" : n < least ? "at least " : "at most ", limit, limit == 1 ? "" : "s", n, n == 1 ? "is" : "are");
}

std::optional<Diagnostic> misfit(const Pass& pass, const ParamSpec& spec, const Arguments& args) {
    int64_t number = 0;
    std::string text;
    std::vector<std::string> list;
    Sizes sizes;
    switch (spec.domain.kind) {
        case Domain::Integer: return read_argument(pass, spec, args, number);
        case Domain::Names: return read_argument(pass, spec, args, list);
        case Domain::Sizes: return read_argument(pass, spec, args, sizes);
        case Domain::Word:
        case Domain::Name:
        case Domain::Text: return read_argument(pass, spec, args, text);
    }
    return {};
}

std::optional<Diagnostic> misfit(const Step& step) {
    const Pass* pass = pass_named(step.pass);
    if (!pass && is_reserved(step.pass))
        return Diagnostic{"pass.later", step.loc, fmt::format("`{}` is kept for a pass that this compiler does not have yet", step.pass), {}, "`acuc passes` lists those that it has"};
    if (!pass) return Diagnostic{"pass.unknown", step.loc, fmt::format("no pass `{}` is known", step.pass), {}, did_you_mean(step.pass, pass_names())};
    if (const auto wrong = wrong_count(*pass, step.sites.size())) return Diagnostic{"site.count", step.loc, *wrong, {}, std::string(pass->doc)};
    std::optional<Diagnostic> bad = unknown_argument(*pass, step.args);
    for (const ParamSpec& spec : pass->params)
        if (!bad) bad = misfit(*pass, spec, step.args);
    if (bad) bad->loc = step.loc;
    return bad;
}

}  // namespace acu::ir::pass
