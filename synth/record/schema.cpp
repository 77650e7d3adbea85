#include "synth/record/schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frontend/step_words.h"
#include "synth/record/plan.h"
#include "target/target.h"

namespace acu::synth::record {

using Json = nlohmann::ordered_json;
using ir::pass::Domain;
using ir::pass::ParamSpec;
using ir::pass::Pass;

static Json refer(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

static Json line(size_t limit) { return {{"type", "string"}, {"maxLength", limit}, {"pattern", "^([^\\x00-\\x20\\x7f]([^\\x00-\\x1f\\x7f]*[^\\x00-\\x20\\x7f])?)?$"}}; }

static Json range(int64_t low, int64_t high) { return {{"type", "integer"}, {"minimum", low}, {"maximum", high}}; }

/// An object whose members are all listed.
static Json record(const Json& properties, const std::vector<std::string>& required) {
    Json j{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
    if (!required.empty()) j["required"] = required;
    return j;
}

/// An object from names to values.
static Json dictionary(const Json& value) { return {{"type", "object"}, {"propertyNames", refer("name")}, {"additionalProperties", value}, {"maxProperties", most_items}}; }

// ---- parameters

static Json domain(const Domain& d) {
    Json j;
    switch (d.kind) {
        case Domain::Integer: j = range(d.low, d.high); break;
        case Domain::Word: j = {{"enum", d.words}}; break;
        case Domain::Name: j = refer("name"); break;
        case Domain::Names: j = {{"anyOf", {refer("names"), refer("name")}}}; break;
        case Domain::Sizes: j = dictionary(range(d.low, d.high)), j["minProperties"] = 1; break;
        case Domain::Text: j = refer("text"); break;
    }
    if (!d.choices.empty() && d.kind == Domain::Integer) j["examples"] = d.choices;
    return j;
}

static Json params_schema(const Pass& pass) {
    Json properties = Json::object();
    std::vector<std::string> required;
    for (const ParamSpec& s : pass.params) {
        Json one{{"description", s.doc}};
        one.update(domain(s.domain));
        properties[std::string(s.name)] = one;
        if (s.required) required.emplace_back(s.name);
    }
    return record(properties, required);
}

// ---- decisions

static Json record_members() {
    return {{"by", {{"type", "string"}, {"pattern", "^[a-z_]{1,40}(:[a-z_]{1,40})?$"}}}, {"why", line(most_text)}, {"status", {{"enum", {"applied", "rejected", "blamed", "kept"}}}},
            {"diagnostic", record({{"code", line(most_name)}, {"message", line(most_text)}, {"help", line(most_text)}}, {"code", "message"})}, {"predicted", refer("measures")}, {"measured", refer("measures")}};
}

static Json decision_schema(const Pass& pass) {
    Json properties{{"id", range(1, 1'000'000)}, {"pass", {{"const", pass.name}}}};
    properties["scope"] = {{"type", "array"}, {"items", refer("name")}, {"minItems", pass.sites.least}, {"maxItems", std::min<int64_t>(pass.sites.most, most_items)}};
    properties["params"] = params_schema(pass);
    properties.update(record_members());
    std::vector<std::string> required{"pass"};
    if (pass.sites.least > 0) required.emplace_back("scope");
    if (properties["params"].contains("required")) required.emplace_back("params");
    Json j = record(properties, required);
    j["description"] = pass.doc;
    return j;
}

static Json definitions() {
    Json defs;
    defs["name"] = {{"type", "string"}, {"maxLength", most_name}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]*([./]([A-Za-z_][A-Za-z0-9_]*|[0-9]+))*$"},
                    {"not", {{"pattern", fmt::format("(^|[./])({})($|[./])", fmt::join(frontend::keywords(), "|"))}}}};
    defs["names"] = {{"type", "array"}, {"items", refer("name")}, {"maxItems", most_items}};
    defs["text"] = {{"type", "string"}, {"maxLength", most_name}, {"pattern", "^[A-Za-z0-9_.,:/+*%<>=!&|()-]([A-Za-z0-9_ .,:/+*%<>=!&|()-]*[A-Za-z0-9_.,:/+*%<>=!&|()-])?$"}};
    defs["measures"] = dictionary({{"anyOf", {{{"type", "number"}}, line(most_name)}}});
    Json all = Json::array();
    for (const Pass& p : ir::pass::all_passes()) {
        defs[std::string(p.name)] = decision_schema(p);
        all.push_back(refer(std::string(p.name)));
    }
    defs["decision"] = {{"anyOf", all}};
    return defs;
}

Json plan_schema() {
    std::vector<std::string_view> types, target_names;
    for (const ir::TypeInfo& t : ir::all_types()) types.push_back(t.name);
    for (const Target& t : targets()) target_names.push_back(t.name);
    const Json integer = range(INT64_MIN, INT64_MAX), size = range(0, INT64_MAX);
    Json properties{{"schema", {{"const", schema_version}}}, {"compiler", line(most_name)}, {"operator", refer("name")}, {"case", refer("name")},
                    {"definition", {{"type", "string"}, {"pattern", "^[0-9a-f]{16}$"}}}, {"target", {{"enum", target_names}}}, {"types", dictionary({{"enum", types}})}, {"values", dictionary(integer)},
                    {"dims", dictionary(size)}, {"scalars", dictionary({{"type", "number"}})}, {"when", line(500)}, {"toolchain", line(most_name)}, {"doc", line(most_text)}};
    Json condition = line(500);
    condition["minLength"] = 1;
    const Json decisions{{"type", "array"}, {"items", refer("decision")}, {"maxItems", most_steps}};
    properties["variants"] = {{"type", "array"}, {"items", record({{"when", condition}, {"doc", line(most_text)}, {"decisions", decisions}}, {"when", "decisions"})}, {"maxItems", most_variants}};
    properties["decisions"] = decisions;
    Json j{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "a plan of AlphaCu"}};
    j.update(record(properties, {"schema", "operator", "target", "decisions"}));
    j["$defs"] = definitions();
    return j;
}

// ---- the catalogue

static Json param_json(const ParamSpec& s) {
    static constexpr std::string_view kinds[] = {"integer", "word", "name", "names", "sizes", "text"};
    Json j{{"name", s.name}, {"doc", s.doc}, {"required", s.required}, {"kind", kinds[s.domain.kind]}};
    if (s.domain.kind == Domain::Integer || s.domain.kind == Domain::Sizes) j["low"] = s.domain.low, j["high"] = s.domain.high;
    if (!s.domain.choices.empty()) j["choices"] = s.domain.choices;
    if (!s.domain.words.empty()) j["words"] = s.domain.words;
    return j;
}

Json passes_json() {
    Json all = Json::array();
    for (const Pass& p : ir::pass::all_passes()) {
        Json j{{"name", p.name}, {"doc", p.doc}, {"picture", p.picture}, {"rounding", name_of(p.rounding)}};
        j["sites"] = {{"kinds", Json::array()}, {"least", p.sites.least}, {"most", p.sites.most}};
        for (const auto kind : p.sites.kinds) j["sites"]["kinds"].push_back(name_of(kind));
        j["params"] = Json::array();
        for (const ParamSpec& s : p.params) j["params"].push_back(param_json(s));
        j["schema"] = params_schema(p);
        all.push_back(j);
    }
    return all;
}

}  // namespace acu::synth::record
