#include "frontend/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "frontend/excerpt.h"
#include "ir/value.h"

namespace acu::frontend {

const Module* Modules::load_file(const std::string& path, std::vector<Diagnostic>& found) {
    const std::string key = std::filesystem::weakly_canonical(path).string();
    if (const auto it = loaded_.find(key); it != loaded_.end()) return it->second.get();
    auto text = read_text(path, max_source_bytes);
    if (!text) {
        found.push_back(text.why());
        return nullptr;
    }
    return add(key, path, *text, found);
}

const Module* Modules::load_text(const std::string& name, const std::string& text, std::vector<Diagnostic>& found) { return add(name, name, text, found); }

static void twice(const std::string& name, Loc loc, Loc before, std::vector<Diagnostic>& found) {
    found.push_back({"name.twice", loc, fmt::format("`{}` is declared twice", name), {{before, "first declared here"}}});
}

/// Words of the language cannot be declared: the declaration would never be found.
static void refuse_builtin(const std::string& name, Loc loc, std::vector<Diagnostic>& found) {
    const bool callable = name == "argmax" || name == "argmin" || name == "topk";    // as operators, which the standard library has
    const bool monoid = !callable && std::ranges::any_of(ir::monoids(), [&](const ir::MonoidInfo& m) { return m.name == name; });
    const bool word = name == "clamp" || name == "segment" || name == "inf" || name == "nan" || name == "pi";
    if (word || monoid || ir::function_named(name) || ir::type_named(name)) found.push_back({"name.builtin", loc, fmt::format("`{}` is a name of the language", name), {}, "choose another name"});
}

static void declare(Module& m, std::vector<Diagnostic>& found) {
    for (const FnDecl& f : m.file.fns) refuse_builtin(f.name, f.loc, found);
    for (const OpDecl& o : m.file.ops) refuse_builtin(o.name, o.loc, found);
    for (const FnDecl& f : m.file.fns)
        if (const auto [it, fresh] = m.fns.try_emplace(f.name, &f, &m); !fresh) twice(f.name, f.loc, it->second.first->loc, found);
    for (const OpDecl& o : m.file.ops)
        if (const auto [it, fresh] = m.ops.try_emplace(o.name, &o, &m); !fresh) twice(o.name, o.loc, it->second.first->loc, found);
    for (const OpDecl& o : m.file.ops)
        if (const auto fn = m.fns.find(o.name); fn != m.fns.end()) twice(o.name, o.loc, fn->second.first->loc, found);
    for (const FnDecl& f : m.file.fns)
        for (size_t i = 0; i < f.params.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                if (f.params[i] == f.params[j]) twice(f.params[i], f.param_locs[i], f.param_locs[j], found);
    std::map<std::string, Loc> cases;
    for (const CaseDecl& c : m.file.cases)
        if (const auto [it, fresh] = cases.try_emplace(c.name, c.loc); !fresh) twice(c.name, c.loc, it->second, found);
}

const Module* Modules::add(const std::string& key, const std::string& name, const std::string& text, std::vector<Diagnostic>& found) {
    auto owned = std::make_unique<Module>();
    Module& m = *owned;
    loading_.insert(key);
    m.file = parse(sources_, sources_.add(name, text), found);
    declare(m, found);
    for (const ImportDecl& d : m.file.imports) import(m, d, name, found);
    loading_.erase(key);
    return (loaded_[key] = std::move(owned)).get();
}

/// What is imported, and what that needs; a name that the text lacks makes the whole text be read, for the message.
const Module* Modules::library(const std::string& file, std::string_view text, const ImportDecl& d, std::vector<Diagnostic>& found) {
    std::set<std::string> names;
    std::string key = "std." + file;
    for (const auto& [name, loc] : d.names) names.insert(name);
    for (const std::string& n : names) key += " " + n;
    if (const auto known = loaded_.find(key); known != loaded_.end()) return known->second.get();
    const Module* m = add(key, "stdlib/" + file + ".acu", excerpt(text, names), found);
    const bool complete = std::ranges::all_of(names, [&](const std::string& n) { return m->fns.contains(n) || m->ops.contains(n); });
    return complete ? m : add("std." + file, "stdlib/" + file + ".acu", std::string(text), found);
}

const Module* Modules::find(const ImportDecl& d, const std::string& importer, std::vector<Diagnostic>& found) {
    const std::string dotted = fmt::format("{}", fmt::join(d.path, "."));
    if (d.path[0] == "std") {
        const std::string file = dotted.size() > 4 ? dotted.substr(4) : "";
        const auto it = standard_library().find(file);
        if (it != standard_library().end()) {
            return library(file, it->second, d, found);
        }
        std::vector<std::string> names;
        for (const auto& [n, text] : standard_library()) names.push_back("std." + n);
        found.push_back({"import.missing", d.loc, fmt::format("the standard library has no module `{}`", dotted), {},
                         nearest(dotted, names).empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : did_you_mean(dotted, names)});
        return nullptr;
    }
    const auto path = std::filesystem::path(importer).parent_path() / fmt::format("{}.acu", fmt::join(d.path, "/"));
    const std::string key = std::filesystem::weakly_canonical(path).string();
    if (loading_.contains(key)) {
        found.push_back({"import.cycle", d.loc, fmt::format("`{}` imports this file, directly or through others", dotted)});
        return nullptr;
    }
    std::vector<Diagnostic> mine;
    const Module* m = load_file(path.string(), mine);
    for (Diagnostic& why : mine) {
        if (!why.loc) why.loc = d.loc, why.code = "import.missing";
        found.push_back(std::move(why));
    }
    return m;
}

void Modules::import(Module& into, const ImportDecl& d, const std::string& importer, std::vector<Diagnostic>& found) {
    const Module* from = find(d, importer, found);
    if (!from) return;
    for (const auto& [name, loc] : d.names) {
        const auto fn = from->fns.find(name);
        const auto op = from->ops.find(name);
        if (fn != from->fns.end()) {
            if (const auto [it, fresh] = into.fns.emplace(name, fn->second); !fresh) twice(name, loc, it->second.first->loc, found);
        } else if (op != from->ops.end()) {
            if (const auto [it, fresh] = into.ops.emplace(name, op->second); !fresh) twice(name, loc, it->second.first->loc, found);
        } else {
            std::vector<std::string> names;
            for (const auto& [n, f] : from->fns) names.push_back(n);
            for (const auto& [n, o] : from->ops) names.push_back(n);
            found.push_back({"import.name", loc, fmt::format("`{}` has no `{}`", fmt::join(d.path, "."), name), {}, did_you_mean(name, names)});
        }
    }
}

}  // namespace acu::frontend
