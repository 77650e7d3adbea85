#include "synth/record/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/guard.h"
#include "frontend/step_words.h"
#include "ir/pass/catalogue.h"
#include "synth/record/members.h"
#include "target/target.h"

namespace acu::synth::record {

static constexpr int most_depth = 12;
static constexpr const char* schema_help = "`acuc passes --json` prints its schema";

// ---- text to JSON

namespace {

/// Watches the parser: how deep it is, and that an object names each member once.
class Watch {
  public:
    bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > most_depth) wrong = fmt::format("it is nested more than {} deep", most_depth);
        if (event == Json::parse_event_t::object_start) keys_.emplace_back();
        if (event == Json::parse_event_t::object_end) keys_.pop_back();
        if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) wrong = fmt::format("the member `{}` stands twice in one object", parsed.get<std::string>());
        return wrong.empty();
    }
    std::string wrong;

  private:
    std::vector<std::set<std::string>> keys_;
};

}  // namespace

static Diagnostic not_json(std::string_view text, size_t byte, const std::string& what) {
    const std::string_view before = text.substr(0, std::min(byte, text.size()));
    const auto line = std::ranges::count(before, '\n') + 1;
    return {"plan.syntax", {}, fmt::format("the plan is not JSON: {} in line {}", what, line), {}, "`acuc compile --emit plan` writes one"};
}

static Result<Json> json_of(std::string_view text) {
    if (text.size() > most_bytes) return Diagnostic{"plan.schema", {}, fmt::format("a plan has at most {} bytes", most_bytes)};
    Watch watch;
    bool stopped = false;
    try {
        Json j = Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
            stopped = stopped || !watch(depth, event, parsed);
            return true;
        });
        if (!stopped) return j;
    } catch (const Json::parse_error& e) {
        if (!stopped) return not_json(text, e.byte, "a sign is missing or wrong");
    } catch (const Json::exception&) {
        if (!stopped) return not_json(text, 0, "a number does not fit");
    }
    return Diagnostic{"plan.syntax", {}, "the plan cannot be read: " + watch.wrong};
}

// ---- JSON to plan

/// An object whose values `one` reads.
template <class T>
static void read_map(Members& m, const char* name, const char* what, std::map<std::string, T>& out, const std::function<std::optional<T>(const Json&)>& one) {
    const Json* j = m.take(name);
    if (!j) return;
    if (!j->is_object() || j->size() > most_items) return m.wrong(fmt::format("`{}` of the plan is an object of at most {} {}", name, most_items, what));
    for (const auto& [key, x] : j->items()) {
        auto value = one(x);
        if (!frontend::is_path(key) || !value) return m.wrong(fmt::format("`{}` in `{}` of the plan is not one of {}", key.substr(0, 80), name, what));
        out.emplace(key, std::move(*value));
    }
}

static std::optional<int64_t> size_of(const Json& j) {
    const auto n = whole(j);
    return n && *n >= 0 ? n : std::nullopt;
}
static std::optional<std::string> type_of(const Json& j) { return j.is_string() && ir::type_named(j.get<std::string>()) ? std::optional(j.get<std::string>()) : std::nullopt; }
static std::optional<double> real_of(const Json& j) { return j.is_number() ? std::optional(j.get<double>()) : std::nullopt; }

static bool is_hash(const std::string& s) {
    return s.size() == 16 && std::ranges::all_of(s, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

static const std::string the_plan = "the plan";

static void read_head(Members& m, Plan& p) {
    int64_t version = 0;
    m.number("schema", version, schema_version, schema_version);
    p.compiler.clear();
    m.text("compiler", p.compiler, most_name);
    for (const auto& [name, member] : {std::pair{"operator", &p.op}, {"case", &p.case_name}, {"target", &p.target}}) {
        m.text(name, *member, most_name);
        if (m.has(name) && !frontend::is_path(*member)) m.wrong(fmt::format("`{}` of the plan is not a name", name));
    }
    if (m.has("target") && !target_named(p.target)) m.wrong(fmt::format("no target `{}` is known", p.target));
    m.text("definition", p.definition, most_name);
    if (m.has("definition") && !is_hash(p.definition)) m.wrong("`definition` of the plan is a hash of 16 hexadecimal digits");
    for (const char* name : {"schema", "operator", "target", "decisions"}) m.require(name);
    read_map<std::string>(m, "types", "types", p.types, type_of);
    read_map<int64_t>(m, "values", "whole numbers", p.values, whole);
    read_map<int64_t>(m, "dims", "sizes", p.dims, size_of);
    read_map<double>(m, "scalars", "numbers", p.scalars, real_of);
    m.text("when", p.when, 500);
    m.text("toolchain", p.toolchain, most_name);
    m.text("doc", p.doc, most_text);
}

/// `of`: whose list it is, for messages.
static Status read_decisions(const Json& list, Plan& p, const std::string& of) {
    if (!list.is_array()) return Diagnostic{"plan.schema", {}, fmt::format("`decisions` of {} is a list of steps", of)};
    if (list.size() > most_steps) return Diagnostic{"plan.schema", {}, fmt::format("a plan has at most {} steps", most_steps)};
    for (const Json& j : list) {
        auto d = decision_from_json(j);
        if (!d) {
            Diagnostic why = d.why();
            why.message = fmt::format("step {}{}: {}", p.decisions.size() + 1, of == the_plan ? "" : " of " + of, why.message);
            return why;
        }
        p.decisions.push_back(std::move(*d));
    }
    return ok();
}

static Status read_guard(Plan& p) {
    if (p.when.empty()) return ok();
    const auto condition = frontend::parse_condition(p.when);
    if (!condition) return condition.why();
    p.when = frontend::condition_text(**condition);
    return ok();
}

/// `{"when": "M <= 64", "decisions": […]}`
static Status read_variant(const Json& j, const std::string& of, Plan& p) {
    Members m(j, of.c_str(), "plan.schema", schema_help);
    for (const char* name : {"when", "decisions"}) m.require(name);
    m.text("when", p.when, 500);
    m.text("doc", p.doc, most_text);
    const Json* decisions = m.take("decisions");
    if (const Status s = m.done(); !s) return s;
    if (p.when.empty()) return Diagnostic{"plan.schema", {}, fmt::format("`when` of {} is empty: what is for every size is the plan itself", of)};
    if (const Status s = read_decisions(*decisions, p, of); !s) return s;
    return read_guard(p);
}

static Status read_variants(const Json& list, Plan& p) {
    if (!list.is_array() || list.size() > most_variants) return Diagnostic{"plan.schema", {}, fmt::format("`variants` of the plan is a list of at most {}", most_variants)};
    for (const Json& j : list) {
        p.variants.emplace_back();
        if (const Status s = read_variant(j, fmt::format("variant {}", p.variants.size()), p.variants.back()); !s) return s;
    }
    return ok();
}

Result<Plan> plan_from_json(const Json& j) {
    Plan p;
    Members m(j, the_plan.c_str(), "plan.schema", schema_help);
    read_head(m, p);
    const Json *variants = m.take("variants"), *decisions = m.take("decisions");
    if (const Status s = m.done(); !s) return s.why();
    if (variants)
        if (const Status s = read_variants(*variants, p); !s) return s.why();
    if (const Status s = read_decisions(*decisions, p, the_plan); !s) return s.why();
    if (const Status s = read_guard(p); !s) return s.why();
    if (const Status s = check_steps(p); !s) return s.why();
    return p;
}

Result<Plan> parse_plan(std::string_view text) {
    const auto j = json_of(text);
    if (!j) return j.why();
    return plan_from_json(*j);
}

std::vector<Plan> alternatives_of(const Plan& p) {
    std::vector<Plan> out;
    for (const Plan& v : p.variants) {
        out.push_back(p);
        Plan& one = out.back();
        one.when = v.when, one.doc = v.doc, one.decisions = v.decisions, one.loc = v.loc;
    }
    out.push_back(p);
    for (Plan& one : out) one.variants.clear();
    return out;
}

Plan joined(std::vector<Plan> alternatives) {
    Plan out = std::move(alternatives.back());
    alternatives.pop_back();
    out.variants = std::move(alternatives);
    return out;
}

Status check_steps(Plan& p) {
    for (Plan& v : p.variants)
        if (const Status s = check_steps(v); !s) return s;
    int last = 0;
    for (Decision& d : p.decisions) {
        if (d.id == 0) d.id = last + 1;
        if (d.id <= last) return Diagnostic{"plan.step", d.step.loc, fmt::format("{}: its `id` follows {}, but ids grow", name_of(d), last)};
        last = d.id;
        for (auto& [name, a] : d.step.args) {
            auto* text = std::get_if<std::string>(&a);
            const auto canonical = text ? frontend::canonical_text(*text) : std::nullopt;
            if (text && !canonical) return Diagnostic{"plan.step", d.step.loc, fmt::format("step {}: the parameter `{}` is neither a name nor a condition", d.id, name)};
            if (text) *text = *canonical;
        }
        if (auto bad = ir::pass::misfit(d.step); bad && is_replayed(d)) {
            bad->message = fmt::format("{}: {}", name_of(d), bad->message);
            return *bad;
        }
    }
    return ok();
}

std::string name_of(const Decision& d) { return fmt::format("step {}, `{}`", d.id, frontend::words_of(d.step)); }

// ---- writing

template <class T>
static void write_map(Json& j, const char* name, const std::map<std::string, T>& map) {
    if (map.empty()) return;
    j[name] = Json::object();
    for (const auto& [key, x] : map) j[name][key] = x;
}

static void write_text(Json& j, const char* name, const std::string& text) {
    if (!text.empty()) j[name] = text;
}

static Json decisions_json(const Plan& p) {
    Json list = Json::array();
    for (const Decision& d : p.decisions) list.push_back(to_json(d));
    return list;
}

static Json variant_json(const Plan& p) {
    Json j{{"when", p.when}};
    write_text(j, "doc", p.doc);
    j["decisions"] = decisions_json(p);
    return j;
}

Json to_json(const Plan& p) {
    Json j;
    j["schema"] = schema_version;
    write_text(j, "compiler", p.compiler);
    j["operator"] = p.op;
    write_text(j, "case", p.case_name);
    write_text(j, "definition", p.definition);
    j["target"] = p.target;
    write_map(j, "types", p.types);
    write_map(j, "values", p.values);
    j["dims"] = Json(p.dims);
    write_map(j, "scalars", p.scalars);
    write_text(j, "when", p.when);
    write_text(j, "toolchain", p.toolchain);
    write_text(j, "doc", p.doc);
    for (const Plan& v : p.variants) j["variants"].push_back(variant_json(v));
    j["decisions"] = decisions_json(p);
    return j;
}

/// `  "decisions": [` and one decision a line: so that a difference of two plans reads well.
static std::string decision_lines(const Plan& p, const std::string& indent) {
    std::string s = indent + "\"decisions\": [";
    for (size_t i = 0; i < p.decisions.size(); ++i) s += fmt::format("{}\n{}  {}", i == 0 ? "" : ",", indent, to_json(p.decisions[i]).dump());
    return s + (p.decisions.empty() ? "]" : "\n" + indent + "]");
}

static std::string variant_lines(const Plan& v) {
    Json head = variant_json(v);
    head.erase("decisions");
    std::string s = head.dump();
    s.pop_back();
    return "    " + s + ",\n" + decision_lines(v, "      ") + "\n    }";
}

std::string print(const Plan& p) {
    Json head = to_json(p);
    head.erase("decisions");
    head.erase("variants");
    std::string s = head.dump(2);
    s.erase(s.size() - 2);
    for (size_t i = 0; i < p.variants.size(); ++i) s += (i == 0 ? ",\n  \"variants\": [\n" : ",\n") + variant_lines(p.variants[i]);
    return s + (p.variants.empty() ? ",\n" : "\n  ],\n") + decision_lines(p, "  ") + "\n}\n";
}

}  // namespace acu::synth::record
