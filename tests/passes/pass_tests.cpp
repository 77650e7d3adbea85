// Golden tests of passes: each file of tests/passes/ is a list of cases: a program, steps, and the program or the refusal that they lead to.
//
//   ### a title
//   program p(M) { … }
//   --- step {"pass": …}                    one or more; all but the last only prepare
//   --- target sm_80                        optional
//   --- run M = 3, N = 5                    optional, repeated: both programs are run there and must agree (bit for bit where the last pass is exact)
//   --- extreme                             optional: the runs are repeated with inputs whose rows hold -inf, inf, NaN and huge numbers
//   --- becomes
//   program p(M) { … }
//   or  --- refused CODE: part of the message
//
// `pass_tests --update` writes what the steps really lead to (look at the difference before you commit it).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "ir/interpret.h"
#include "ir/lower/lower.h"
#include "ir/pass/driver.h"
#include "microkernels/catalogue.h"
#include "synth/record/step.h"

using namespace acu;
using namespace acu::ir;

struct Case {
    std::string title, program, target;
    std::vector<std::string> steps, runs;
    std::string expected, refused;    ///< one of them
    bool extreme = false;
};

static std::string trimmed(std::string s) {
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.pop_back();
    size_t i = 0;
    while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i]))) ++i;
    return s.substr(i);
}

static std::vector<Case> cases_of(std::istream& in) {
    std::vector<Case> out;
    std::string* text = nullptr;
    for (std::string line; std::getline(in, line);) {
        const auto rest = [&](std::string_view mark) { return trimmed(line.substr(mark.size())); };
        if (line.starts_with("### ")) out.push_back({rest("### "), "", "", {}, {}, "", ""}), text = &out.back().program;
        else if (out.empty()) continue;
        else if (line.starts_with("--- step ")) out.back().steps.push_back(rest("--- step "));
        else if (line.starts_with("--- target ")) out.back().target = rest("--- target ");
        else if (line.starts_with("--- run ")) out.back().runs.push_back(rest("--- run "));
        else if (line.starts_with("--- extreme")) out.back().extreme = true;
        else if (line.starts_with("--- refused ")) out.back().refused = rest("--- refused ");
        else if (line.starts_with("--- becomes")) text = &out.back().expected;
        else *text += line + "\n";
    }
    return out;
}

static std::string text_of(const Case& c) {
    std::string s = fmt::format("### {}\n{}\n", c.title, trimmed(c.program));
    for (const std::string& x : c.steps) s += "--- step " + x + "\n";
    if (!c.target.empty()) s += "--- target " + c.target + "\n";
    for (const std::string& x : c.runs) s += "--- run " + x + "\n";
    if (c.extreme) s += "--- extreme\n";
    return s + (c.refused.empty() ? "--- becomes\n" + trimmed(c.expected) : "--- refused " + c.refused) + "\n\n";
}

// ---- running

static Arrays drawn(const Program& p, const Env& dims, uint64_t seed) {
    std::mt19937_64 random(seed);
    Arrays out;
    for (const Decl& d : p.decls) {
        if (d.scope != Scope::In) continue;
        Array a = Array::zeros(d.type, sizes_of(d, dims));
        const bool offsets = print(p).find("segment(" + d.name + ",") != std::string::npos;    // they do not decrease
        for (int64_t i = 0, sum = 0; i < a.count(); ++i) {
            if (is_float(d.type)) a.set(i, static_cast<double>(static_cast<int>(random() % 33) - 16) / 8);
            else a.set(i, static_cast<double>(offsets ? sum += static_cast<int64_t>(random() % 4) : static_cast<int64_t>(random() % 3)));
        }
        out[d.name] = std::move(a);
    }
    return out;
}

/// Each row ordinary, or with a few or only numbers of one kind that is not.
static void make_extreme(const Program& p, Arrays& arrays, uint64_t seed) {
    std::mt19937_64 random(seed);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::array<double, 5> odd{-infinity, -infinity, infinity, std::numeric_limits<double>::quiet_NaN(), 1e30};
    for (const Decl& d : p.decls) {
        if (d.scope != Scope::In || !is_float(d.type)) continue;
        Array& a = arrays.at(d.name);
        const int64_t row = a.sizes.empty() ? 1 : std::max<int64_t>(1, a.sizes.back());
        for (int64_t i = 0, share = 0, kind = 0; i < a.count(); ++i) {
            if (i % row == 0) share = static_cast<int64_t>(random() % 4), kind = static_cast<int64_t>(random() % odd.size());
            if (static_cast<int64_t>(random() % 3) < share) a.set(i, odd[static_cast<size_t>(kind)]);
        }
    }
}

static Arguments arguments_of(const Program& p, const std::string& run) {
    Arguments a;
    std::string text = run;
    std::ranges::replace(text, ',', ' ');
    std::istringstream in(text);
    std::string name, equals;
    for (double x; in >> name >> equals >> x;) a.dims[name] = static_cast<int64_t>(x), a.scalars[name] = x;
    for (const auto& [n, v] : known_dims(p)) a.dims[n] = v;
    return a;
}

static std::string differs(const Array& want, const Array& got, bool exact) {
    for (int64_t i = 0; i < want.count(); ++i) {
        const double x = want.get(i), y = got.get(i);
        const bool same = x == y || (std::isnan(x) && std::isnan(y)) || (!exact && std::abs(x - y) <= 1e-9 * (1 + std::abs(x)));
        if (!same) return fmt::format("element {}: expected {}, got {}", i, x, y);
    }
    return {};
}

/// Both in f64, in two orders; where the pass is exact also in the declared types, bit for bit. Seeds from 3 on are extreme.
static std::string compare(const Program& before, const Program& after, const std::string& run, pass::Rounding rounding, bool extreme) {
    const Arguments args = arguments_of(before, run);
    for (uint64_t seed = 0; seed < (extreme ? 40 : 3); ++seed) {
        const bool exact = seed == 2;
        if (exact && rounding != pass::Rounding::Exact) continue;
        Arrays want = drawn(before, args.dims, seed + 5);
        if (seed > 2) make_extreme(before, want, seed);
        Arrays got = want;
        const Program a = exact ? before : lower::in_float64(before), b = exact ? after : lower::in_float64(after);
        if (const Status s = interpret(a, args, want); !s) return fmt::format("at {}: before: {} [{}]", run, s.why().message, s.why().code);
        if (const Status s = interpret(b, args, got, {seed == 1 ? uint64_t{7} : 0}); !s) return fmt::format("at {}: after: {} [{}]", run, s.why().message, s.why().code);
        for (const Decl& d : before.decls)
            if (d.scope == Scope::Out)
                if (const std::string bad = differs(want.at(d.name), got.at(d.name), exact); !bad.empty()) return fmt::format("at {}: `{}` {}", run, d.name, bad);
    }
    return {};
}

/// The fixed lowering, for a warp of 32 and one of 64: every step answers a program that verifies and gives the same result. What does not fit a target is refused, which is fine here, but roles are not where they could wait for each other.
static std::string check_lowering(const Program& before, const Program& after, const std::string& run) {
    const Arguments args = arguments_of(before, run);
    Program fixed = after;
    for (Dim& d : fixed.dims)
        if (const auto it = args.dims.find(d.name); it != args.dims.end()) d.value = it->second;
    Arrays want = drawn(before, args.dims, 5);
    if (const Status s = interpret(lower::in_float64(before), args, want); !s) return {};
    for (const char* target : {"sm_80", "gfx90a"}) {
        std::string bad;
        const auto step = [&](const lower::LoweringStep& step_done, const Program& p) {
            if (!bad.empty()) return;
            const std::string where = fmt::format("at {}, {}, after the lowering step {}: ", run, target, step_done.name);
            Arrays got = drawn(before, args.dims, 5);
            if (const auto v = verify(p); !v.empty()) bad = where + v[0].rule + " " + v[0].what;
            else if (const Status s = interpret(lower::in_float64(p), args, got, {step_done.ordered ? uint64_t{3} : 0, step_done.ordered}); !s) bad = fmt::format("{}{} [{}]", where, s.why().message, s.why().code);
            for (const Decl& d : before.decls)
                if (d.scope == Scope::Out && bad.empty())
                    if (const std::string other = differs(want.at(d.name), got.at(d.name), false); !other.empty()) bad = fmt::format("{}`{}` {}", where, d.name, other);
            if (!bad.empty()) bad += "\n" + print(p);
        };
        const auto done = lower::schedule_to_kernels(fixed, *target_named(target), step);
        const bool must = target_named(target)->mbarrier;
        if (!done && done.why().code == "lower.roles" && must) return fmt::format("at {}, {}: {} [lower.roles]", run, target, done.why().message);
        if (!bad.empty()) return bad;
    }
    return {};
}

// ---- one case

struct Outcome {
    std::string bad;
    Case now;
};

static Outcome run_case(const Case& c) {
    Outcome o{"", c};
    const auto parsed = parse_program(c.program);
    if (!parsed) return {fmt::format("the program: {}:{}: {}", parsed.why().loc.line, parsed.why().loc.column, parsed.why().message), c};
    if (const auto v = verify(*parsed); !v.empty()) return {fmt::format("the program: {} {}", v[0].rule, v[0].what), c};
    Program before = *parsed, after = *parsed;
    const pass::Pass* last = nullptr;
    std::optional<pass::Failure> failure;
    for (size_t i = 0; i < c.steps.size() && !failure; ++i) {
        const auto step = synth::record::step_from_json(nlohmann::ordered_json::parse(c.steps[i]));
        if (!step) return {"the step: " + step.why().message, c};
        const pass::Context context{c.target.empty() ? nullptr : target_named(c.target), &microkernels::find, &microkernels::stamped};
        auto done = pass::apply_step(after, static_cast<int>(i) + 1, *step, context);
        if (auto* f = std::get_if<pass::Failure>(&done)) failure = *f;
        else before = after, after = std::get<pass::Applied>(done).program;
        last = pass::pass_named(step->pass);
    }
    o.now.expected.clear(), o.now.refused.clear();
    if (failure) {
        o.now.refused = failure->why.code + ": " + failure->why.message;
        const std::string code = c.refused.substr(0, c.refused.find(':')), part = c.refused.find(':') == std::string::npos ? "" : trimmed(c.refused.substr(c.refused.find(':') + 1));
        if (c.refused.empty() || failure->why.code != code || failure->why.message.find(part) == std::string::npos)
            o.bad = fmt::format("{}: {} [{}]", pass::name_of(failure->at), failure->why.message, failure->why.code);
        else o.now.refused = c.refused;
        return o;
    }
    o.now.expected = print(after);
    if (!c.refused.empty()) o.bad = "expected a refusal, but it was accepted";
    else if (trimmed(c.expected) != trimmed(o.now.expected)) o.bad = "became\n" + o.now.expected;
    if (const auto again = parse_program(o.now.expected); !again || print(*again) != o.now.expected) o.bad += "\nthe result does not read back as itself";
    for (const std::string& run : c.runs) {
        if (const std::string bad = compare(before, after, run, last->rounding, c.extreme); !bad.empty()) return {bad + "\n" + o.now.expected, c};
        if (const std::string bad = check_lowering(before, after, run); !bad.empty()) return {bad, c};
    }
    return o;
}

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool update = std::ranges::find(words, "--update") != words.end();
    const char* root = std::getenv("ACU_SOURCE_ROOT");
    int passed = 0, failed = 0;
    std::vector<std::filesystem::path> files;
    for (const auto& e : std::filesystem::directory_iterator(std::filesystem::path(root ? root : ".") / "tests/passes"))
        if (e.path().extension() == ".txt") files.push_back(e.path());
    std::ranges::sort(files);
    for (const auto& file : files) {
        const bool chosen = std::ranges::none_of(words, [](const auto& w) { return !w.starts_with("--"); }) || std::ranges::find(words, file.stem().string()) != words.end();
        if (!chosen) continue;
        std::ifstream in(file);
        std::string text;
        for (const Case& c : cases_of(in)) {
            const Outcome o = run_case(c);
            text += text_of(o.now);
            if (o.bad.empty()) ++passed;
            else ++failed, fmt::print("FAILED {}: {}\n  {}\n", file.stem().string(), c.title, o.bad);
        }
        if (update) std::ofstream(file) << text;
    }
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed != 0;
}
