#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "microkernels/catalogue.h"
#include "support/hash.h"

namespace acu::microkernels {

using namespace ir;
using Json = nlohmann::ordered_json;

Json describe(const Microkernel& m) {
    Json j{{"id", m.id}, {"function", m.function}, {"doc", m.doc}, {"kind", name_of(m.kind)}};
    j["targets"] = Json::array();
    for (const auto& t : m.targets) j["targets"].push_back({{"name", t.name}, {"instruction", t.instruction}, {"ptx", t.ptx}});
    j["types"] = Json::array();
    for (const DType t : m.types) j["types"].push_back(name_of(t));
    j["monoids"] = Json::array();
    for (const Monoid o : m.monoids) j["monoids"].push_back(info(o).name);
    j["operands"] = Json::array();
    for (const auto& o : m.operands) {
        Json scopes = Json::array();
        for (const Scope s : o.scopes) scopes.push_back(name_of(s));
        j["operands"].push_back({{"name", o.name}, {"scopes", scopes}, {"written", o.written}});
    }
    j["bytes"] = m.bytes;
    j["alignment"] = m.alignment;
    j["group"] = name_of(m.group);
    j["most_threads"] = m.most_threads;
    j["resources"] = {{"scratch_values", m.resources.scratch_values}, {"scratch_bytes", m.resources.scratch_bytes}, {"registers", m.resources.registers}, {"barriers", m.resources.barriers}};
    if (const MatrixShape& x = m.matrix; x.rows)
        j["matrix"] = {{"rows", x.rows}, {"columns", x.columns}, {"depth", x.depth}, {"accumulator", x.accumulator}, {"sum", name_of(x.sum)}, {"most_columns", x.most_columns}, {"across", x.across}, {"needs_swizzle", x.needs_swizzle}};
    if (m.matrix.mixed) j["matrix"]["mixed"] = true;
    j["headers"] = m.headers;
    j["source"] = m.source;
    return j;
}

// ---- hashes

/// The text without comments, blank ends of lines and empty lines: what a compiler sees, line by line. The headers hold no `//` in strings.
static std::string without_comments(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line = line.substr(0, line.find("//"));
        const size_t last = line.find_last_not_of(" \t");
        if (last != std::string_view::npos) out += std::string(line.substr(0, last + 1)) + "\n";
    }
    return out;
}

std::string hash_of(const Microkernel& m) {
    std::string text = describe(m).dump() + "\n";
    for (const std::string& h : m.headers) text += without_comments(texts().at(h));
    return acu::hash_of(text);
}

// ---- stamps

Result<std::vector<Stamp>> parse_stamps(std::string_view text) {
    try {
        std::vector<Stamp> all;
        for (const auto& j : Json::parse(text))
            all.push_back({j.at("id"), j.at("target"), j.at("device"), j.at("hash"), j.at("toolchain"), j.at("date"), j.at("trials")});
        return all;
    } catch (const Json::exception& e) {
        return Diagnostic{"stamps.syntax", {}, fmt::format("the stamps are not as `acuc microkernels validate --write` writes them: {}", e.what()), {}, "write them to a new file"};
    }
}

std::string print_stamps(std::vector<Stamp> all) {
    std::ranges::sort(all, {}, [](const Stamp& s) { return std::tie(s.id, s.target, s.device); });
    std::string out;
    for (const Stamp& s : all) {
        const Json j{{"id", s.id}, {"target", s.target}, {"device", s.device}, {"hash", s.hash}, {"toolchain", s.toolchain}, {"date", s.date}, {"trials", s.trials}};
        out += (out.empty() ? "[\n" : ",\n") + j.dump();
    }
    return out.empty() ? "[]\n" : out + "\n]\n";
}

const std::vector<Stamp>& stamps() {
    static const std::vector<Stamp> all = [] {
        const auto parsed = parse_stamps(texts().at("stamps"));
        return parsed ? *parsed : std::vector<Stamp>{};
    }();
    return all;
}

bool valid(const Stamp& s) {
    const Microkernel* m = find(s.id);
    return m && m->on(s.target) && s.hash == hash_of(*m);
}

bool stamped(const Microkernel& m, const Target& target) {
    static const std::vector<std::pair<std::string, std::string>> vouched = [] {
        std::vector<std::pair<std::string, std::string>> v;
        for (const Stamp& s : stamps())
            if (valid(s)) v.emplace_back(s.id, s.target);
        return v;
    }();
    return std::ranges::find(vouched, std::pair(m.id, std::string(target.name))) != vouched.end();
}

std::vector<Stamp> merged(const std::vector<Stamp>& old, const std::vector<Stamp>& made) {
    std::vector<Stamp> all = made;
    for (const Stamp& s : old) {
        const bool replaced = std::ranges::any_of(made, [&](const Stamp& n) { return n.id == s.id && n.target == s.target && n.device == s.device; });
        if (!replaced && valid(s)) all.push_back(s);
    }
    return all;
}

}  // namespace acu::microkernels
