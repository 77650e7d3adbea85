#include "synth/record/step.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace acu::synth::record {

using Json = nlohmann::ordered_json;
using ir::pass::Argument;
using ir::pass::Sizes;
using ir::pass::Step;

static Diagnostic wrong(const std::string& what) { return {"plan.step", {}, what, {}, R"(a step is {"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 64}}})"}; }

static Result<std::vector<std::string>> texts(const Json& j, const std::string& what) {
    std::vector<std::string> out;
    if (!j.is_array()) return wrong(fmt::format("{} is a list of names", what));
    for (const Json& x : j) {
        if (!x.is_string()) return wrong(fmt::format("{} is a list of names", what));
        out.push_back(x.get<std::string>());
    }
    return out;
}

static Result<Argument> argument(const std::string& name, const Json& j) {
    if (j.is_number_integer()) return Argument(j.get<int64_t>());
    if (j.is_string()) return Argument(j.get<std::string>());
    if (j.is_array()) {
        auto list = texts(j, fmt::format("the parameter `{}`", name));
        if (!list) return list.why();
        return Argument(*list);
    }
    if (!j.is_object()) return wrong(fmt::format("the parameter `{}` is neither a whole number, a text, a list of names nor an object of numbers", name));
    Sizes sizes;
    for (const auto& [key, x] : j.items()) {
        if (!x.is_number_integer()) return wrong(fmt::format("`{}` in the parameter `{}` is not a whole number", key, name));
        sizes.emplace_back(key, x.get<int64_t>());
    }
    return Argument(sizes);
}

/// A text member, which may be missing.
static Status text(const Json& j, const char* name, std::string& out) {
    if (!j.contains(name)) return ok();
    if (!j[name].is_string()) return wrong(fmt::format("`{}` of a step is a text", name));
    out = j[name].get<std::string>();
    return ok();
}

static Status known_members(const Json& j) {
    static const std::vector<std::string> known{"id", "pass", "scope", "params", "by", "why", "status", "diagnostic", "predicted", "measured"};
    for (const auto& [key, x] : j.items())
        if (std::ranges::find(known, key) == known.end()) return Diagnostic{"plan.step", {}, fmt::format("a step has no member `{}`", key), {}, did_you_mean(key, known)};
    return ok();
}

Result<Step> step_from_json(const Json& j) {
    if (!j.is_object()) return wrong("a step is an object");
    if (const Status s = known_members(j); !s) return s.why();
    Step step;
    for (const auto& [name, member] : {std::pair{"pass", &step.pass}, {"by", &step.by}, {"why", &step.why}})
        if (const Status s = text(j, name, *member); !s) return s.why();
    if (step.pass.empty()) return wrong("a step names its `pass`");
    if (j.contains("scope")) {
        auto sites = texts(j["scope"], "`scope`");
        if (!sites) return sites.why();
        step.sites = std::move(*sites);
    }
    if (!j.contains("params")) return step;
    if (!j["params"].is_object()) return wrong("`params` of a step is an object");
    for (const auto& [name, x] : j["params"].items()) {
        auto a = argument(name, x);
        if (!a) return a.why();
        step.args.emplace(name, std::move(*a));
    }
    return step;
}

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

}  // namespace acu::synth::record
