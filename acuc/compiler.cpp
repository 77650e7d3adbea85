#include "acuc/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "acuc/plans.h"
#include "frontend/schedule.h"
#include "ir/lower/lower.h"
#include "support/hash.h"
#include "synth/record/words.h"

namespace acu {

using frontend::Module;

const Module* Session::open(const std::string& path) { return modules.load_file(path, found); }

bool Session::failed() const {
    return std::ranges::any_of(found, [](const Diagnostic& d) { return !d.warning; });
}

static nlohmann::ordered_json json_of(const SourceMap& sources, const Diagnostic& d) {
    nlohmann::ordered_json j;
    j["code"] = d.code;
    j["severity"] = d.warning ? "warning" : "error";
    j["message"] = d.message;
    if (d.loc.file >= 0) j["file"] = sources[d.loc.file].name, j["line"] = d.loc.line, j["column"] = d.loc.column;
    if (!d.help.empty()) j["help"] = d.help;
    return j;
}

int Session::report(bool json) const {
    std::vector<Diagnostic> sorted = found;
    std::ranges::stable_sort(sorted, [](const Diagnostic& a, const Diagnostic& b) { return std::tuple(a.loc.file, a.loc.line, a.loc.column) < std::tuple(b.loc.file, b.loc.line, b.loc.column); });
    Exit worst = Exit::Done;
    for (const Diagnostic& d : sorted) {
        std::fputs(json ? (json_of(sources, d).dump() + "\n").c_str() : sources.render(d).c_str(), stderr);
        if (!d.warning) worst = std::max(worst, d.exit);
    }
    return static_cast<int>(worst);
}

// ---- instances

static const frontend::OpDecl* find_op(Session& s, const Module& m, const std::string& name, Loc loc) {
    if (const auto it = m.ops.find(name); it != m.ops.end()) return it->second.first;
    std::vector<std::string> names;
    for (const auto& [n, o] : m.ops) names.push_back(n);
    s.found.push_back({"name.op", loc, fmt::format("no operator `{}` is declared or imported", name), {},
                       nearest(name, names).empty() ? (names.empty() ? "" : fmt::format("there are {}", fmt::join(names, ", "))) : did_you_mean(name, names)});
    return nullptr;
}

static const Module& home_of(const Module& m, const std::string& op) { return *m.ops.at(op).second; }

static std::string spec_of(const frontend::Operator& op, const std::string& case_name) {
    std::string s;
    const auto add = [&](const std::string& x) { s += (s.empty() ? "" : ", ") + x; };
    for (const auto& [n, t] : op.bindings.types) add(fmt::format("{} = {}", n, ir::name_of(t)));
    for (const auto& [n, v] : op.bindings.values) add(fmt::format("{} = {}", n, v));
    for (const ir::Dim& d : op.program.dims)
        if (d.value) add(fmt::format("{} = {}", d.name, *d.value));
    return fmt::format("{}{}{}{}", op.program.name, case_name.empty() ? "" : fmt::format(" (case {})", case_name), s.empty() ? "" : ": ", s);
}

/// With open sizes, so that plans for several of them agree on it.
static std::string definition_of(const Subject& s) {
    if (s.op.bindings.dims.empty()) return hash_of(ir::print(s.op.program));
    frontend::Bindings open = s.op.bindings;
    open.dims.clear();
    std::vector<Diagnostic> found;
    const frontend::Operator op = frontend::instantiate(*s.home, *s.decl, open, found);
    return hash_of(ir::print(found.empty() ? op.program : s.op.program));
}

static Subject make_subject(Session& s, const Module& m, const frontend::OpDecl& op, const frontend::Settings& settings, const std::string& case_name) {
    Subject out{frontend::instantiate(home_of(m, op.name), op, settings.bindings, s.found), settings.inputs, ""};
    out.spec = spec_of(out.op, case_name);
    out.case_name = case_name;
    out.home = &home_of(m, op.name);
    out.decl = &op;
    if (!s.failed()) out.definition = definition_of(out);
    return out;
}

static const frontend::CaseDecl* find_case(Session& s, const Module& m, const std::string& name) {
    const auto& cases = m.file.cases;
    const auto it = std::ranges::find(cases, name, &frontend::CaseDecl::name);
    if (it != cases.end()) return &*it;
    std::vector<std::string> names;
    for (const auto& c : cases) names.push_back(c.name);
    s.found.push_back({"name.case", {m.file.source}, fmt::format("no case `{}` is declared", name), {},
                       nearest(name, names).empty() ? (names.empty() ? "the file declares no cases" : fmt::format("there are {}", fmt::join(names, ", "))) : did_you_mean(name, names)});
    return nullptr;
}

static void add_subject(Session& s, const Module& m, const frontend::OpDecl& op, frontend::Settings settings, const Selection& selection, std::vector<Subject>& out) {
    if (const Status set = frontend::apply_sets(selection.sets, op, settings); !set) {
        s.found.push_back(set.why());
        return;
    }
    out.push_back(make_subject(s, m, op, settings, selection.case_name));
}

std::vector<Subject> subjects_of(Session& s, const Module& m, const Selection& selection) {
    std::vector<Subject> out;
    if (!selection.case_name.empty()) {
        const frontend::CaseDecl* c = find_case(s, m, selection.case_name);
        const frontend::OpDecl* op = c ? find_op(s, m, c->op, c->op_loc) : nullptr;
        if (op && !selection.op.empty() && selection.op != c->op)
            s.found.push_back({"name.case", c->loc, fmt::format("the case `{}` is for `{}`, not for `{}`", c->name, c->op, selection.op), {}, {}, Exit::Usage});
        else if (op) add_subject(s, m, *op, frontend::settings_of(*c, *op, s.found), selection, out);
        return out;
    }
    if (!selection.op.empty()) {
        if (const frontend::OpDecl* op = find_op(s, m, selection.op, {m.file.source})) add_subject(s, m, *op, {}, selection, out);
        return out;
    }
    for (const frontend::OpDecl& op : m.file.ops) add_subject(s, m, op, {}, selection, out);
    if (m.file.ops.empty() && s.found.empty()) s.found.push_back({"name.op", {m.file.source}, "the file declares no operator"});
    return out;
}

Subject at_sizes(Subject s, const ir::Env& dims) {
    for (ir::Dim& d : s.op.program.dims) d.value = dims.at(d.name);
    return s;
}

// ---- check

/// Every combination of the types of a signature, at most 64; values without a default are 1 and false.
static std::vector<frontend::Bindings> combinations(const frontend::OpDecl& op) {
    std::vector<frontend::Bindings> all(1);
    for (const frontend::Generic& g : op.generics) {
        if (frontend::value_generic(op, g)) {
            if (!g.otherwise)
                for (auto& b : all) b.values[g.name] = g.types[0] == "int";
            continue;
        }
        std::vector<frontend::Bindings> next;
        for (const auto& b : all)
            for (const ir::DType t : frontend::type_set(g))
                if (next.size() < 64) next.push_back(b), next.back().types[g.name] = t;
        if (!next.empty()) all = std::move(next);
    }
    return all;
}

static void add_new(std::vector<Diagnostic>& found, std::vector<Diagnostic> more) {
    for (Diagnostic& d : more)
        if (std::ranges::none_of(found, [&](const Diagnostic& f) { return f.code == d.code && f.loc == d.loc; })) found.push_back(std::move(d));
}

static void check_op(Session& s, const Module& m, const frontend::OpDecl& op) {
    for (const frontend::Bindings& b : combinations(op)) {
        std::vector<Diagnostic> mine;
        frontend::instantiate(home_of(m, op.name), op, b, mine);
        add_new(s.found, std::move(mine));
    }
}

/// A list of values has as many as its tensor has elements.
static void check_lists(const ir::Program& p, const frontend::Settings& settings, std::vector<Diagnostic>& found) {
    const ir::Env known = ir::known_dims(p);
    for (const auto& [name, d] : settings.inputs) {
        const ir::Decl* decl = p.find(name);
        if (d.kind != "list" || !decl || known.size() != p.dims.size()) continue;
        int64_t count = 1;
        for (const ir::Window& w : decl->dims) count *= ir::evaluate(w.size, known);
        if (count != static_cast<int64_t>(d.list.size())) found.push_back({"case.value", d.loc, fmt::format("`{}` has {} elements, but {} values are listed", name, count, d.list.size())});
    }
}

static void check_case(Session& s, const Module& m, const frontend::CaseDecl& c) {
    const frontend::OpDecl* op = find_op(s, m, c.op, c.op_loc);
    if (!op) return;
    std::vector<Diagnostic> mine;
    const frontend::Settings settings = frontend::settings_of(c, *op, mine);
    if (mine.empty()) {
        const frontend::Operator instance = frontend::instantiate(home_of(m, op->name), *op, settings.bindings, mine);
        if (mine.empty()) check_lists(instance.program, settings, mine);
        for (Diagnostic& d : mine) d.notes.push_back({c.loc, fmt::format("in the case `{}`", c.name)});
    }
    add_new(s.found, std::move(mine));
}

void check_module(Session& s, const Module& m) {
    if (s.failed()) return;
    for (const frontend::FnDecl& fn : m.file.fns) frontend::check_fn(m, fn, s.found);
    for (const frontend::OpDecl& op : m.file.ops) check_op(s, m, op);
    if (s.failed()) return;
    for (const frontend::CaseDecl& c : m.file.cases) check_case(s, m, c);
    for (const frontend::ScheduleDecl& d : m.file.schedules) {
        const frontend::OpDecl* op = find_op(s, m, d.op, d.op_loc);
        if (!op) continue;
        std::vector<Diagnostic> ignored;
        const auto bindings = combinations(*op);
        frontend::check_schedule(d, *op, frontend::instantiate(home_of(m, op->name), *op, bindings[0], ignored), s.found);
        synth::record::plan_of(d, s.found);
    }
}

// ---- compile

ir::Program planned(const ir::Program& tensor) { return ir::lower::fallback_plan(ir::lower::lower_reductions(tensor)); }

}  // namespace acu
