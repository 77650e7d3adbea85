#include "synth/record/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/step_words.h"
#include "synth/record/members.h"

namespace acu::synth::record {

using ir::pass::Argument;
using ir::pass::Sizes;
using ir::pass::Step;

static constexpr const char* example = R"(a step is {"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 64}}})";

static Diagnostic wrong(const std::string& what) { return {"plan.step", {}, what, {}, example}; }

// ---- reading

static Result<std::string> name_in(const Json& j, const std::string& what) {
    if (!j.is_string()) return wrong(fmt::format("{} is a list of names", what));
    const std::string s = j.get<std::string>();
    if (!frontend::is_path(s)) return wrong(fmt::format("`{}` in {} is not a name", s.substr(0, 80), what));
    return s;
}

static Result<std::vector<std::string>> names(const Json& j, const std::string& what) {
    std::vector<std::string> out;
    if (!j.is_array()) return wrong(fmt::format("{} is a list of names", what));
    if (j.size() > most_items) return wrong(fmt::format("{} has more than {} names", what, most_items));
    for (const Json& x : j) {
        auto name = name_in(x, what);
        if (!name) return name.why();
        out.push_back(std::move(*name));
    }
    return out;
}

static Result<Argument> sizes(const std::string& name, const Json& j) {
    Sizes out;
    if (j.empty() || j.size() > most_items) return wrong(fmt::format("the parameter `{}` has 1 to {} names", name, most_items));
    for (const auto& [key, x] : j.items()) {
        const auto n = whole(x);
        if (!frontend::is_path(key)) return wrong(fmt::format("`{}` in the parameter `{}` is not a name", key.substr(0, 80), name));
        if (!n) return wrong(fmt::format("`{}` in the parameter `{}` is not a whole number", key, name));
        out.emplace_back(key, *n);
    }
    return Argument(out);
}

/// Never a path of a file, a flag or a piece of a command.
static bool is_text(const std::string& s) {
    static constexpr std::string_view signs = "_ .,:/+-*%<>=!&|()";
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || signs.find(c) != std::string_view::npos; };
    return !s.empty() && is_line(s, most_name) && std::ranges::all_of(s, plain);
}

static Result<Argument> argument(const std::string& name, const Json& j) {
    if (const auto n = whole(j)) return Argument(*n);
    if (j.is_string()) {
        const auto s = j.get<std::string>();
        if (!is_text(s)) return wrong(fmt::format("the parameter `{}` is neither a name nor a condition", name));
        return Argument(s);
    }
    if (j.is_object()) return sizes(name, j);
    if (!j.is_array()) return wrong(fmt::format("the parameter `{}` is neither a whole number, a text, a list of names nor an object of numbers", name));
    auto list = names(j, fmt::format("the parameter `{}`", name));
    if (!list) return list.why();
    return Argument(*list);
}

static Status arguments(const Json& j, ir::pass::Arguments& out) {
    if (!j.is_object()) return wrong("`params` of a step is an object");
    for (const auto& [name, x] : j.items()) {
        if (!frontend::is_path(name) && name != "in" && name != "when") return wrong(fmt::format("`{}` is not the name of a parameter", name.substr(0, 80)));
        auto a = argument(name, x);
        if (!a) return a.why();
        out.emplace(name, std::move(*a));
    }
    return ok();
}

/// Who decided: `user`, `default`, `search`, `replay`, `plan`, or a stage of a model such as `llm:strategy`.
static bool is_author(const std::string& by) {
    const size_t colon = by.find(':');
    const auto lower = [](const std::string& s) { return !s.empty() && s.size() <= 40 && std::ranges::all_of(s, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; }); };
    return lower(by.substr(0, colon)) && (colon == std::string::npos || lower(by.substr(colon + 1)));
}

static void read_step(Members& m, Step& step) {
    m.text("pass", step.pass, most_name);
    if (step.pass.empty()) m.wrong("a step names its `pass`");
    else if (!frontend::is_path(step.pass)) m.wrong(fmt::format("`{}` is not the name of a pass", step.pass));
    if (const Json* scope = m.take("scope")) {
        auto sites = names(*scope, "`scope`");
        if (!sites) return m.wrong(sites.why().message);
        step.sites = std::move(*sites);
    }
    if (const Json* params = m.take("params"))
        if (const Status s = arguments(*params, step.args); !s) m.wrong(s.why().message);
    m.text("by", step.by, most_name);
    if (!is_author(step.by)) m.wrong("`by` of a step is user, default, search, replay, plan or a stage of a model such as llm:strategy");
    m.text("why", step.why, most_text);
}

static Measures measures(Members& m, const char* name) {
    Measures out;
    const Json* j = m.take(name);
    if (!j) return out;
    if (!j->is_object() || j->size() > most_items) return m.wrong(fmt::format("`{}` of a step is an object of at most {} numbers and words", name, most_items)), out;
    for (const auto& [key, x] : j->items()) {
        if (!frontend::is_path(key)) m.wrong(fmt::format("`{}` in `{}` is not a name", key.substr(0, 80), name));
        if (const auto n = whole(x)) out.emplace_back(key, *n);
        else if (x.is_number_float()) out.emplace_back(key, x.get<double>());
        else if (x.is_string() && is_line(x.get<std::string>(), most_name)) out.emplace_back(key, x.get<std::string>());
        else m.wrong(fmt::format("`{}` in `{}` is neither a number nor a word", key, name));
    }
    return out;
}

static std::optional<Finding> finding(Members& m) {
    const Json* j = m.take("diagnostic");
    if (!j) return {};
    Finding f;
    Members inner(*j, "`diagnostic` of a step", "plan.step", example);
    for (const char* name : {"code", "message"}) inner.require(name);
    inner.text("code", f.code, most_name);
    inner.text("message", f.message, most_text);
    inner.text("help", f.help, most_text);
    if (const Status s = inner.done(); !s) m.wrong(s.why().message);
    return f;
}

static Result<Decision> read(const Json& j) {
    Members m(j, "a step", "plan.step", example);
    Decision d;
    int64_t id = 0;
    m.number("id", id, 1, 1'000'000);
    d.id = static_cast<int>(id);
    read_step(m, d.step);
    m.word("status", d.status, {"applied", "rejected", "blamed", "kept"});
    d.diagnostic = finding(m);
    d.predicted = measures(m, "predicted");
    d.measured = measures(m, "measured");
    if (const Status s = m.done(); !s) return s.why();
    return d;
}

Result<Step> step_from_json(const Json& j) {
    auto d = read(j);
    if (!d) return d.why();
    return std::move(d->step);
}

Result<Decision> decision_from_json(const Json& j) { return read(j); }

// ---- writing

static Json argument_json(const Argument& a) {
    if (const auto* sizes = std::get_if<Sizes>(&a)) {
        Json j = Json::object();
        for (const auto& [name, x] : *sizes) j[name] = x;
        return j;
    }
    return std::visit(
        []<class T>(const T& x) {
            if constexpr (std::is_same_v<T, Sizes>) return Json();
            else return Json(x);
        },
        a);
}

Json to_json(const Step& step) {
    Json j;
    j["pass"] = step.pass;
    j["scope"] = step.sites;
    j["params"] = Json::object();
    for (const auto& [name, a] : step.args) j["params"][name] = argument_json(a);
    j["by"] = step.by;
    if (!step.why.empty()) j["why"] = step.why;
    return j;
}

static Json measures_json(const Measures& list) {
    Json j = Json::object();
    for (const auto& [name, m] : list) std::visit([&](const auto& x) { j[name] = x; }, m);
    return j;
}

Json to_json(const Decision& d) {
    Json j;
    j["id"] = d.id;
    j.update(to_json(d.step));
    if (!d.status.empty()) j["status"] = d.status;
    if (d.diagnostic) {
        j["diagnostic"] = {{"code", d.diagnostic->code}, {"message", d.diagnostic->message}};
        if (!d.diagnostic->help.empty()) j["diagnostic"]["help"] = d.diagnostic->help;
    }
    if (!d.predicted.empty()) j["predicted"] = measures_json(d.predicted);
    if (!d.measured.empty()) j["measured"] = measures_json(d.measured);
    return j;
}

}  // namespace acu::synth::record
