#include "ir/pass/pass.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::ir::pass {

std::string_view name_of(SiteKind kind) {
    switch (kind) {
        case SiteKind::Statement: return "statement";
        case SiteKind::Loop: return "loop";
        case SiteKind::Buffer: return "buffer";
        case SiteKind::Axis: return "axis";
        case SiteKind::Role: return "role";
    }
    return "?";
}

std::string_view name_of(Rounding r) { return r == Rounding::Exact ? "exact" : r == Rounding::Reassociates ? "reassociates" : "approximates"; }

std::string_view name_of(Part part) {
    constexpr std::array<std::string_view, 7> names{"outer", "inner", "copy", "partial", "join", "clone", "derived"};
    return names[static_cast<size_t>(part)];
}

std::string_view name_of(Stage stage) {
    constexpr std::array<std::string_view, 5> names{"resolve", "domain", "precondition", "apply", "verify"};
    return names[static_cast<size_t>(stage)];
}

Domain integers(int64_t low, int64_t high, std::vector<int64_t> choices) { return {Domain::Integer, low, high, std::move(choices), {}}; }
Domain words(std::vector<std::string_view> list) { return {Domain::Word, 0, 0, {}, std::move(list)}; }
Domain a_name() { return {Domain::Name}; }
Domain names() { return {Domain::Names}; }
Domain sizes(int64_t low, int64_t high, std::vector<int64_t> choices) { return {Domain::Sizes, low, high, std::move(choices), {}}; }
Domain a_text() { return {Domain::Text}; }

void refuse(std::string code, std::string message, std::string help, Loc loc) { throw Refusal{{std::move(code), loc, std::move(message), {}, std::move(help)}}; }

void need(bool holds, const char* code, const std::string& message, const std::string& help, Loc loc) {
    if (!holds) refuse(code, message, help, loc);
}

// ---- arguments

static const Argument* find(const ParamSpec& spec, const Arguments& args) {
    const auto it = args.find(spec.name);
    return it == args.end() ? nullptr : &it->second;
}

static std::optional<Diagnostic> missing(const Pass& pass, const ParamSpec& spec) {
    if (!spec.required) return {};
    return Diagnostic{"param.missing", {}, fmt::format("`{}` needs its parameter `{}`", pass.name, spec.name), {}, std::string(spec.doc)};
}

static Diagnostic wrong_kind(const Pass& pass, const ParamSpec& spec, std::string_view expected) {
    return {"param.kind", {}, fmt::format("`{}` of `{}` is {}", spec.name, pass.name, expected), {}, std::string(spec.doc)};
}

static std::optional<Diagnostic> in_range(const Pass& pass, const ParamSpec& spec, int64_t x) {
    if (x >= spec.domain.low && x <= spec.domain.high) return {};
    return Diagnostic{"param.domain", {}, fmt::format("`{}` of `{}` is {}, outside {} to {}", spec.name, pass.name, x, spec.domain.low, spec.domain.high), {}, std::string(spec.doc)};
}

std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, int64_t& out) {
    const Argument* a = find(spec, args);
    if (!a) return missing(pass, spec);
    if (!std::holds_alternative<int64_t>(*a)) return wrong_kind(pass, spec, "a whole number");
    out = std::get<int64_t>(*a);
    return in_range(pass, spec, out);
}

std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, std::string& out) {
    const Argument* a = find(spec, args);
    if (!a) return missing(pass, spec);
    if (!std::holds_alternative<std::string>(*a)) return wrong_kind(pass, spec, spec.domain.kind == Domain::Word ? fmt::format("one of {}", fmt::join(spec.domain.words, ", ")) : "a name");
    out = std::get<std::string>(*a);
    if (spec.domain.kind != Domain::Word || std::ranges::find(spec.domain.words, out) != spec.domain.words.end()) return {};
    return Diagnostic{"param.domain", {}, fmt::format("`{}` of `{}` is `{}`, not one of {}", spec.name, pass.name, out, fmt::join(spec.domain.words, ", ")), {},
                      did_you_mean(out, {spec.domain.words.begin(), spec.domain.words.end()})};
}

std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, std::vector<std::string>& out) {
    const Argument* a = find(spec, args);
    if (!a) return missing(pass, spec);
    if (const auto* one = std::get_if<std::string>(a)) out = {*one};
    else if (const auto* list = std::get_if<std::vector<std::string>>(a)) out = *list;
    else return wrong_kind(pass, spec, "a list of names");
    return {};
}

std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, Sizes& out) {
    const Argument* a = find(spec, args);
    if (!a) return missing(pass, spec);
    if (!std::holds_alternative<Sizes>(*a)) return wrong_kind(pass, spec, "a list of names with sizes, as in `[m: 128, n: 256]`");
    out = std::get<Sizes>(*a);
    for (const auto& [name, x] : out)
        if (auto bad = in_range(pass, spec, x)) return bad;
    return {};
}

std::optional<Diagnostic> unknown_argument(const Pass& pass, const Arguments& args) {
    for (const auto& [name, value] : args) {
        if (std::ranges::find(pass.params, name, &ParamSpec::name) != pass.params.end()) continue;
        std::vector<std::string> known;
        for (const ParamSpec& s : pass.params) known.emplace_back(s.name);
        return Diagnostic{"param.unknown", {}, fmt::format("`{}` has no parameter `{}`", pass.name, name), {},
                          nearest(name, known).empty() ? (known.empty() ? std::string(pass.doc) : fmt::format("it has {}", fmt::join(known, ", "))) : did_you_mean(name, known)};
    }
    return {};
}

const Pass* pass_named(std::string_view name) {
    const auto it = std::ranges::find(all_passes(), name, &Pass::name);
    return it == all_passes().end() ? nullptr : &*it;
}

}  // namespace acu::ir::pass
