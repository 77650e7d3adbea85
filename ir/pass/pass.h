#pragma once
#include <concepts>
#include <map>
#include <tuple>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "target/target.h"

namespace acu::ir {
struct Microkernel;
}

namespace acu::ir::pass {

// ---- a step of a plan

/// Sizes or counts by name, in the order written: `[m: 128, n: 256]`.
using Sizes = std::vector<std::pair<std::string, int64_t>>;
/// What a plan gives for a parameter: in JSON a number, a string, a list of strings, an object of numbers.
using Argument = std::variant<int64_t, std::string, std::vector<std::string>, Sizes>;
using Arguments = std::map<std::string, Argument, std::less<>>;

/// One decision as data. `sites`: the names in front of the parameters.
struct Step {
    std::string pass;
    std::vector<std::string> sites = {};
    Arguments args = {};
    std::string by = "user", why = {};
    Loc loc = {};
};

// ---- what a pass declares

enum class SiteKind { Statement, Loop, Buffer, Axis, Role };
std::string_view name_of(SiteKind kind);

/// The kinds of the sites, in order; the last kind may repeat up to `most` sites in all.
struct SiteRule {
    std::vector<SiteKind> kinds;
    int least, most;
};

/// `Exact`: the float result does not change, a difference is a bug. `Reassociates`: equal in real arithmetic, the checker's tolerance follows.
/// `Approximates`: within an error bound that the step names.
enum class Rounding { Exact, Reassociates, Approximates };
std::string_view name_of(Rounding r);

/// What a parameter may be. `Integer`: low..high, of which `choices` are worth trying. `Word`: one of `words`. `Name`: of something in the program or
/// a new name. `Names`: a list of those. `Sizes`: an object of integers low..high. `Number`: any text of a condition or number (checked by the pass).
struct Domain {
    enum Kind { Integer, Word, Name, Names, Sizes, Text } kind = Integer;
    int64_t low = 0, high = 0;
    std::vector<int64_t> choices = {};
    std::vector<std::string_view> words = {};
};
Domain integers(int64_t low, int64_t high, std::vector<int64_t> choices = {});
Domain words(std::vector<std::string_view> list);
Domain a_name();
Domain names();
Domain sizes(int64_t low, int64_t high, std::vector<int64_t> choices = {});
Domain a_text();

struct ParamSpec {
    std::string_view name;
    Domain domain;
    std::string_view doc;
    bool required;
};

template <class P, class V>
struct Field {
    std::string_view name;
    V P::*member;
    Domain (*domain)();
    std::string_view doc;
    bool required;
};
/// A parameter that may be left out: then it has the value that `Params{}` gives it.
template <class P, class V>
constexpr Field<P, V> optional(std::string_view name, V P::*member, Domain (*domain)(), std::string_view doc) { return {name, member, domain, doc, false}; }
template <class P, class V>
constexpr Field<P, V> required(std::string_view name, V P::*member, Domain (*domain)(), std::string_view doc) { return {name, member, domain, doc, true}; }

// ---- what a pass is given and answers

/// What a check may ask about: the target (null: none in particular) and the microkernels (null functions: none).
struct Context {
    const Target* target = nullptr;
    const Microkernel* (*microkernel)(std::string_view id) = nullptr;
    bool (*stamped)(const Microkernel& m, const Target& t) = nullptr;
};

/// The program and the names that were resolved against it, one a site. A site is a name, resolved anew each time: nothing keeps a pointer.
struct Site {
    const Program& program;
    std::vector<std::string> names;
    const std::string& name() const { return names.front(); }
};

enum class Part { Outer, Inner, Copy, Partial, Join, Clone, Derived };
std::string_view name_of(Part part);
/// Which name came from which.
struct Lineage {
    std::string from, to;
    Part part;
};

struct Rewrite {
    Program program;
    std::vector<Lineage> lineage = {};
};

/// The precondition that does not hold. Thrown by `refuse` and `need`, caught by the driver only: nothing was touched, since programs are immutable.
struct Refusal {
    Diagnostic why;
};
[[noreturn]] void refuse(std::string code, std::string message, std::string help = {}, Loc loc = {});
void need(bool holds, const char* code, const std::string& message, const std::string& help = {}, Loc loc = {});

/// What the author of a pass writes; all else is derived from it. `apply` either refuses before it answers or answers a whole new program: checking is
/// applying and dropping the result, so the two can never disagree.
template <class T>
concept Transform = requires(const Site& site, const typename T::Params& p, const Context& c) {
    { T::name } -> std::convertible_to<std::string_view>;
    { T::doc } -> std::convertible_to<std::string_view>;
    { T::picture } -> std::convertible_to<std::string_view>;    ///< before -> after, in two lines
    { T::sites() } -> std::same_as<SiteRule>;
    { T::rounding } -> std::convertible_to<Rounding>;
    T::Params::fields;
    { T::apply(site, p, c) } -> std::same_as<Rewrite>;
};

// ---- what planners, driver and documentation see: one uniform row a pass

/// Whose fault a failure is: the planner's (the first three) or ours.
enum class Stage { Resolve, Domain, Precondition, Apply, Verify };
std::string_view name_of(Stage stage);
struct Failure {
    Stage at;
    Diagnostic why;
};

struct Pass {
    std::string_view name, doc, picture;
    SiteRule sites;
    Rounding rounding;
    std::vector<ParamSpec> params;
    std::variant<Rewrite, Failure> (*run)(const Site& site, const Arguments& args, const Context& context);
};

/// Reads one argument into a member, or says why not.
std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, int64_t& out);
std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, std::string& out);
std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, std::vector<std::string>& out);
std::optional<Diagnostic> read_argument(const Pass& pass, const ParamSpec& spec, const Arguments& args, Sizes& out);
std::optional<Diagnostic> unknown_argument(const Pass& pass, const Arguments& args);

template <Transform T>
Pass make_pass();

template <Transform T>
std::variant<Rewrite, Failure> run_pass(const Site& site, const Arguments& args, const Context& context) {
    static const Pass row = make_pass<T>();
    typename T::Params params{};
    std::optional<Diagnostic> bad = unknown_argument(row, args);
    size_t i = 0;
    std::apply([&](const auto&... f) { ((bad = bad ? bad : read_argument(row, row.params[i], args, params.*(f.member)), ++i), ...); }, T::Params::fields);
    if (bad) return Failure{Stage::Domain, *bad};
    try {
        return T::apply(site, params, context);
    } catch (const Refusal& r) {
        return Failure{Stage::Precondition, r.why};
    }
}

template <Transform T>
Pass make_pass() {
    std::vector<ParamSpec> specs;
    std::apply([&](const auto&... f) { (specs.push_back({f.name, f.domain(), f.doc, f.required}), ...); }, T::Params::fields);
    return {T::name, T::doc, T::picture, T::sites(), T::rounding, std::move(specs), &run_pass<T>};
}

/// Every pass, in alphabetical order (registry.cpp is the one list).
const std::vector<Pass>& all_passes();
const Pass* pass_named(std::string_view name);

}  // namespace acu::ir::pass
