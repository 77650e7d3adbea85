#include "synth/record/words.h"

#include <fmt/format.h>

#include <sstream>

#include "frontend/guard.h"
#include "frontend/step_words.h"
#include "synth/record/members.h"
#include "target/target.h"

namespace acu::synth::record {

// ---- comments to JSON

/// The tags of a comment as members, and the other lines joined under `rest`.
static Json tags_of(const std::string& doc, const char* rest) {
    Json out = Json::object();
    std::string text;
    std::istringstream lines(doc);
    for (std::string line; std::getline(lines, line);) {
        const size_t from = line.find_first_not_of(' '), to = line.find_last_not_of(" \r");
        if (from == std::string::npos) continue;
        line = line.substr(from, to - from + 1);
        if (line[0] != '@') {
            text += (text.empty() ? "" : " ") + line;
            continue;
        }
        const size_t space = std::min(line.find(' '), line.size());
        const std::string value = line.substr(std::min(space + 1, line.size()));
        Json parsed = value.starts_with('{') ? Json::parse(value, nullptr, false) : Json(value);
        out[line.substr(1, space - 1)] = parsed.is_discarded() ? Json(value) : std::move(parsed);
    }
    if (!text.empty()) out[rest] = text;
    return out;
}

static Diagnostic bad_tag(const Diagnostic& why, Loc loc) { return {"schedule.tag", loc, "in the comment of this: " + why.message, {}, "lines that start with `@` are for the record of a plan"}; }

/// Only what the words themselves do not say may stand in tags.
static bool has_only(const Json& tags, const std::vector<std::string>& allowed, Loc loc, std::vector<Diagnostic>& found) {
    for (const auto& [key, x] : tags.items()) {
        if (std::ranges::find(allowed, key) != allowed.end()) continue;
        found.push_back({"schedule.tag", loc, fmt::format("`@{}` in a comment means nothing", key), {}, did_you_mean(key, allowed)});
        return false;
    }
    return true;
}

static Decision decision_of(const frontend::Step& s, std::vector<Diagnostic>& found) {
    Decision d;
    Json tags = tags_of(s.doc, "why");
    if (has_only(tags, {"id", "by", "why", "status", "diagnostic", "predicted", "measured"}, s.loc, found)) {
        if (tags.contains("id") && tags["id"].is_string()) tags["id"] = std::atoi(tags["id"].get<std::string>().c_str());
        tags["pass"] = s.pass;
        auto read = decision_from_json(tags);
        if (read) d = std::move(*read);
        else found.push_back(bad_tag(read.why(), s.loc));
    }
    ir::pass::Step words = frontend::step_of(s);
    words.by = d.step.by, words.why = d.step.why;
    d.step = std::move(words);
    return d;
}

Plan plan_of(const frontend::ScheduleDecl& block, std::vector<Diagnostic>& found) {
    Plan p;
    Json tags = tags_of(block.doc, "doc");
    if (has_only(tags, {"compiler", "case", "definition", "types", "values", "dims", "scalars", "toolchain", "doc"}, block.op_loc, found)) {
        tags["schema"] = schema_version, tags["operator"] = block.op, tags["target"] = target_named(block.target) ? block.target : "cpu", tags["decisions"] = Json::array();
        auto read = plan_from_json(tags);
        if (read) p = std::move(*read);
        else found.push_back(bad_tag(read.why(), block.op_loc));
    }
    p.op = block.op, p.target = block.target, p.loc = block.op_loc;
    if (block.when) p.when = frontend::condition_text(*block.when);
    for (const frontend::Step& s : block.steps) {
        p.decisions.push_back(decision_of(s, found));
        Decision& d = p.decisions.back();
        const int last = p.decisions.size() > 1 ? p.decisions[p.decisions.size() - 2].id : 0;
        if (d.id == 0) d.id = last + 1;
        if (d.id <= last) found.push_back({"schedule.tag", s.loc, fmt::format("`@id` follows {}, but ids grow", last)});
    }
    return p;
}

// ---- plan to comments and words

static std::string comment(const char* indent, const std::string& text) { return text.empty() ? "" : fmt::format("{}/// {}\n", indent, text); }

static std::string tag(const char* indent, const std::string& name, const Json& value) {
    return comment(indent, fmt::format("@{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
}

/// Text of its own, unless it could be read as a tag.
static std::string prose(const char* indent, const std::string& name, const std::string& text) {
    return text.starts_with('@') ? tag(indent, name, text) : comment(indent, text);
}

static std::string step_text(const Decision& d, int expected) {
    static constexpr const char* indent = "  ";
    const Json j = to_json(d);
    std::string s;
    if (d.id != expected) s += tag(indent, "id", d.id);
    if (d.step.by != "user") s += tag(indent, "by", d.step.by);
    for (const char* name : {"status", "diagnostic", "predicted", "measured"})
        if (j.contains(name)) s += tag(indent, name, j[name]);
    return s + prose(indent, "why", d.step.why) + indent + frontend::words_of(d.step) + "\n";
}

std::string print_schedule(const Plan& p) {
    if (!p.variants.empty()) {
        std::string all;
        for (const Plan& one : alternatives_of(p)) all += (all.empty() ? "" : "\n") + print_schedule(one);
        return all;
    }
    const Json j = to_json(p);
    std::string s = prose("", "doc", p.doc);
    for (const char* name : {"compiler", "case", "definition", "types", "values", "dims", "scalars", "toolchain"})
        if (j.contains(name) && !j[name].empty()) s += tag("", name, j[name]);
    s += fmt::format("schedule {} for {}{} {{\n", p.op, p.target, p.when.empty() ? "" : " when " + p.when);
    int expected = 1;
    for (const Decision& d : p.decisions) {
        s += step_text(d, expected);
        expected = d.id + 1;
    }
    return s + "}\n";
}

}  // namespace acu::synth::record
