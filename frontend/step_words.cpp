#include "frontend/step_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "frontend/guard.h"
#include "ir/pass/catalogue.h"

namespace acu::frontend {

using ir::pass::Argument;
using ir::pass::Domain;
using ir::pass::ParamSpec;
using ir::pass::Pass;
using ir::pass::Sizes;

// ---- words to data

static const ParamSpec* axes_of(const Pass& pass) {
    const ParamSpec* s = ir::pass::param_named(pass, "axes");
    return s && s->domain.kind == Domain::Sizes ? s : nullptr;
}

/// The first parameter that is a number and that no word has taken.
static const ParamSpec* next_number(const Pass& pass, const Step& step, const std::vector<std::optional<Slot>>& slots) {
    for (const ParamSpec& s : pass.params) {
        const bool named = std::ranges::any_of(step.arguments, [&](const StepArgument& a) { return a.name == s.name; });
        const bool taken = std::ranges::any_of(slots, [&](const auto& slot) { return slot && slot->spec == &s; });
        if (s.domain.kind == Domain::Integer && !named && !taken) return &s;
    }
    return nullptr;
}

static std::optional<Slot> slot_of(const Pass& pass, const Step& step, const StepArgument& a, const std::vector<std::optional<Slot>>& before) {
    const ParamSpec* spec = a.name.empty() ? next_number(pass, step, before) : ir::pass::param_named(pass, a.name);
    if (spec) return Slot{std::string(spec->name), spec};
    if (!a.name.empty() && axes_of(pass)) return Slot{"axes", axes_of(pass), true};
    return {};
}

std::vector<std::optional<Slot>> slots_of(const Step& step) {
    const Pass* pass = ir::pass::pass_named(step.pass);
    std::vector<std::optional<Slot>> out;
    for (const StepArgument& a : step.arguments) {
        const bool site = a.name.empty() && a.value.kind == StepValue::Path;
        if (site) out.emplace_back();
        else if (pass) out.push_back(slot_of(*pass, step, a, out));
        else out.push_back(Slot{a.name.empty() ? "count" : a.name});
    }
    return out;
}

/// IR text writes `and` and `or`.
static std::string with_words(const std::string& condition) {
    std::string out;
    for (size_t i = 0; i < condition.size(); ++i) {
        const std::string_view pair = std::string_view(condition).substr(i, 2);
        if (pair != "&&" && pair != "||") out += condition[i];
        else out += pair == "&&" ? "and" : "or", ++i;
    }
    return out;
}

static std::string with_signs(const std::string& text) {
    std::string out;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ' ');) out += (out.empty() ? "" : " ") + (word == "and" ? "&&" : word == "or" ? "||" : word);
    return out;
}

static bool is_number(const std::string& text) {
    const size_t sign = text.starts_with('-');
    return text.size() > sign && text.size() < 19 && std::all_of(text.begin() + static_cast<ptrdiff_t>(sign), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::optional<std::string> canonical_text(const std::string& text) {
    if (is_path(text) || is_number(text)) return text;
    const auto condition = parse_condition(with_signs(text));
    return condition ? std::optional(with_words(condition_text(**condition))) : std::nullopt;
}

/// What a value means by itself.
static Argument plain(const StepValue& v) {
    if (v.kind == StepValue::Integer) return v.integer;
    if (v.kind == StepValue::Condition) return with_words(condition_text(*v.condition));
    if (v.kind != StepValue::List) return v.text;
    const bool sizes = std::ranges::any_of(v.items, [](const auto& i) { return !i.first.empty(); });
    Sizes keyed;
    std::vector<std::string> names;
    for (const auto& [key, item] : v.items) {
        keyed.emplace_back(key.empty() ? item.text : key, key.empty() ? 1 : item.integer);
        names.push_back(item.text);
    }
    if (sizes) return keyed;
    return names;
}

/// What it means for a parameter: `over = m` is a size, `copies = x.t` a list.
static Argument argument(const ParamSpec* spec, const StepValue& v) {
    const auto kind = spec ? spec->domain.kind : Domain::Text;
    const bool word = v.kind == StepValue::Path;
    if (kind == Domain::Integer && v.kind == StepValue::Boolean) return v.integer;
    if (kind == Domain::Names && word) return std::vector{v.text};
    if (kind == Domain::Sizes && word) return Sizes{{v.text, 1}};
    if (kind == Domain::Sizes && v.kind == StepValue::List) {
        Sizes out;
        for (const auto& [key, item] : v.items) out.emplace_back(key.empty() ? item.text : key, key.empty() ? 1 : item.integer);
        return out;
    }
    if (spec && (kind == Domain::Text || kind == Domain::Word) && v.kind == StepValue::Integer) return v.text;
    return plain(v);
}

ir::pass::Step step_of(const Step& step) {
    ir::pass::Step out{step.pass};
    out.loc = step.loc;
    const auto slots = slots_of(step);
    Sizes axes;
    for (size_t i = 0; i < step.arguments.size(); ++i) {
        const StepArgument& a = step.arguments[i];
        if (a.name.empty() && a.value.kind == StepValue::Path) out.sites.push_back(a.value.text);
        else if (slots[i] && slots[i]->axis) axes.emplace_back(a.name, a.value.integer);
        else if (slots[i]) out.args.insert_or_assign(slots[i]->parameter, argument(slots[i]->spec, a.value));
    }
    if (axes.empty()) return out;
    Argument& all = out.args.try_emplace("axes", Sizes{}).first->second;
    if (auto* given = std::get_if<Sizes>(&all)) given->insert(given->end(), axes.begin(), axes.end());
    return out;
}

// ---- data to words

static std::string joined(const Sizes& sizes) {
    std::string s;
    for (const auto& [name, size] : sizes) s += fmt::format("{}{}: {}", s.empty() ? "" : ", ", name, size);
    return s;
}

static std::string value_words(const Argument& a) {
    if (const auto* n = std::get_if<int64_t>(&a)) return std::to_string(*n);
    if (const auto* s = std::get_if<std::string>(&a)) return is_path(*s) || is_number(*s) ? *s : fmt::format("({})", with_signs(*s));
    if (const auto* list = std::get_if<std::vector<std::string>>(&a)) return fmt::format("[{}]", fmt::join(*list, ", "));
    return fmt::format("[{}]", joined(std::get<Sizes>(a)));
}

/// `tile(acc, k = 64)`: axes read better without their parameter, where none of them is the name of one.
static bool as_axes(const Pass* pass, const std::string& name, const Argument& a) {
    const auto* sizes = std::get_if<Sizes>(&a);
    if (!pass || !sizes || name != "axes" || !axes_of(*pass)) return false;
    return std::ranges::all_of(*sizes, [&](const auto& s) { return s.first.find_first_of("./") == std::string::npos && !ir::pass::param_named(*pass, s.first); });
}

std::string words_of(const ir::pass::Step& step) {
    const Pass* pass = ir::pass::pass_named(step.pass);
    std::vector<std::string> words = step.sites;
    const auto add = [&](const std::string& name, const Argument& a) {
        if (!as_axes(pass, name, a)) return words.push_back(fmt::format("{} = {}", name, value_words(a)));
        for (const auto& [axis, size] : std::get<Sizes>(a)) words.push_back(fmt::format("{} = {}", axis, size));
    };
    if (pass)
        for (const ParamSpec& s : pass->params)
            if (const auto it = step.args.find(s.name); it != step.args.end()) add(it->first, it->second);
    for (const auto& [name, a] : step.args)
        if (!pass || !ir::pass::param_named(*pass, name)) add(name, a);
    return fmt::format("{}({})", step.pass, fmt::join(words, ", "));
}

// ---- names

const std::vector<std::string_view>& keywords() {
    static const std::vector<std::string_view> words{"import", "fn", "op", "strided", "where", "scan", "exclusive", "in", "true", "false", "if", "then", "else", "or", "case", "for", "schedule", "when"};
    return words;
}

static bool is_part(std::string_view part, bool first) {
    const auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (part.empty() || (first && digit(part[0])) || std::ranges::find(keywords(), part) != keywords().end()) return false;
    const bool number = digit(part[0]);
    return std::ranges::all_of(part, [&](char c) { return digit(c) || (!number && letter(c)); });
}

bool is_path(std::string_view text) {
    for (size_t from = 0; text.size() <= 200;) {
        const size_t end = std::min(text.find_first_of("./", from), text.size());
        if (!is_part(text.substr(from, end - from), from == 0)) return false;
        if (end == text.size()) return true;
        from = end + 1;
    }
    return false;
}

}  // namespace acu::frontend
