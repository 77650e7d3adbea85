#include "synth/record/members.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::synth::record {

Members::Members(const Json& j, std::string what, std::string code, std::string help) : j_(j), what_(std::move(what)), code_(std::move(code)), help_(std::move(help)) {
    if (!j.is_object()) wrong(fmt::format("{} is an object", what_));
}

void Members::wrong(const std::string& why) {
    if (!bad_) bad_ = Diagnostic{code_, {}, why, {}, help_};
}

const Json* Members::take(const char* name) {
    known_.emplace_back(name);
    return has(name) ? &j_[name] : nullptr;
}

void Members::text(const char* name, std::string& out, size_t limit) {
    const Json* j = take(name);
    if (!j) return;
    if (!j->is_string()) return wrong(fmt::format("`{}` of {} is a text", name, what_));
    out = j->get<std::string>();
    if (!is_line(out, limit)) wrong(fmt::format("`{}` of {} is one line of at most {} characters, without control characters and white space around it", name, what_, limit));
}

void Members::word(const char* name, std::string& out, const std::vector<std::string>& one_of) {
    text(name, out, 100);
    if (has(name) && !failed() && std::ranges::find(one_of, out) == one_of.end()) wrong(fmt::format("`{}` of {} is `{}`, not one of {}", name, what_, out, fmt::join(one_of, ", ")));
}

void Members::number(const char* name, int64_t& out, int64_t low, int64_t high) {
    const Json* j = take(name);
    if (!j) return;
    const auto x = whole(*j);
    if (!x || *x < low || *x > high) return wrong(fmt::format("`{}` of {} is a whole number from {} to {}", name, what_, low, high));
    out = *x;
}

void Members::require(const char* name) {
    if (!has(name)) wrong(fmt::format("{} needs its member `{}`", what_, name));
}

Status Members::done() {
    if (bad_) return *bad_;
    for (const auto& [key, x] : j_.items())
        if (std::ranges::find(known_, key) == known_.end()) return Diagnostic{code_, {}, fmt::format("{} has no member `{}`", what_, key), {}, did_you_mean(key, known_)};
    return ok();
}

std::optional<int64_t> whole(const Json& j) {
    if (!j.is_number_integer()) return {};
    if (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return {};
    return j.get<int64_t>();
}

bool is_line(std::string_view text, size_t limit) {
    if (text.size() > limit) return false;
    if (!text.empty() && (text.front() == ' ' || text.back() == ' ')) return false;
    return std::ranges::none_of(text, [](char c) { return (static_cast<unsigned char>(c) < 0x20) || c == 0x7f; });
}

}  // namespace acu::synth::record
