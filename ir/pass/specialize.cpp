#include <fmt/format.h>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// program p(N)  ->  program p(N) where (N%8) == 0: a variant for the sizes that its guard lets through
struct Specialize {
    static constexpr std::string_view name = "specialize", doc = "assume a condition on the sizes, which the launcher checks: `specialize(when = \"N % 8 == 0 and N >= 512\")`";
    static constexpr std::string_view picture = "program p(N) { … where n < N }\n-> program p(N) where N % 8 == 0 { … }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{}, 0, 0}; }

    struct Params {
        std::string when;
        static constexpr auto fields = std::tuple{required("when", &Params::when, +[] { return a_text(); }, "comparisons of sizes, joined by `and`")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        std::vector<Value> parts;
        for (const std::string& part : joined_by_and(p.when)) conjuncts(condition(site.program, part), parts);
        Rewrite out{site.program, {}};
        for (const Value& v : parts) {
            comparison(site.program, v);
            const Facts known = facts_at(out.program, {});
            const Value no = unary(Op::Not, v);
            need(!holds(known, no), "specialize.contradiction", fmt::format("`{}` never holds: the program has {}", describe(v), facts_of(out.program)), "", {});
            if (!holds(known, v)) out.program.facts.push_back(v);
        }
        return out;
    }

    /// IR text has no precedence of `and`: what stands between those outside parentheses is read by itself.
    static std::vector<std::string> joined_by_and(const std::string& when) {
        std::vector<std::string> out{""};
        int depth = 0;
        for (size_t i = 0; i < when.size(); ++i) {
            depth += (when[i] == '(') - (when[i] == ')');
            need(depth >= 0, "specialize.syntax", fmt::format("`{}` is no condition: a parenthesis ends before it begins", when));
            if (depth == 0 && when.compare(i, 5, " and ") == 0) out.emplace_back(), i += 4;
            else out.back() += when[i];
        }
        return out;
    }

    /// The parser of IR text reads it as the condition of an empty program of the same dimensions.
    static Value condition(const Program& p, const std::string& when) {
        Program shell;
        shell.level = Level::Loop, shell.name = "c", shell.dims = p.dims;
        const std::string head = print(shell);
        const auto parsed = parse_program(head.substr(0, head.find(" {")) + " where (" + when + ") {\n}");
        const std::string help = "write comparisons of sizes joined by `and`, as in `N % 8 == 0 and M >= 128`";
        if (!parsed) refuse("specialize.syntax", fmt::format("`{}` is no condition: {}", when, parsed.why().message), help);
        need(parsed->facts.size() == 1 && parsed->body.empty() && parsed->decls.empty(), "specialize.syntax", fmt::format("`{}` is no condition", when), help);
        return parsed->facts[0];
    }

    static void conjuncts(const Value& v, std::vector<Value>& out) {
        if (v->op != Op::And) return out.push_back(v);
        for (const Value& a : v->args) conjuncts(a, out);
    }

    static void comparison(const Program& p, const Value& v) {
        const auto side = [](const Value& x) { return x->op == Op::OfIndex || (x->op == Op::Const && is_int(x->type)); };
        const bool compares = v->op >= Op::Eq && v->op <= Op::Ge;
        need(compares && side(v->args[0]) && side(v->args[1]), "specialize.form", fmt::format("`{}` is no comparison of whole-number expressions", describe(v)), "write comparisons of sizes joined by `and`, as in `N % 8 == 0 and M >= 128`");
        std::set<std::string> dims;
        for (const Dim& d : p.dims) dims.insert(d.name);
        for (const std::string& n : names_in(v))
            need(dims.contains(n), "specialize.name", fmt::format("`{}` is no dimension", n), did_you_mean(n, {dims.begin(), dims.end()}));
    }

    static Index side_of(const Value& v) { return v->op == Op::OfIndex ? v->subscripts[0] : constant(v->integer); }

    static bool holds(const Facts& known, const Value& v) {
        const Index a = side_of(v->args[0]), b = side_of(v->args[1]);
        switch (v->op) {
            case Op::Eq: return known.equal(a, b);
            case Op::Ne: return known.less(a, b) || known.less(b, a);
            case Op::Lt: return known.less(a, b);
            case Op::Le: return known.nonnegative(b - a);
            case Op::Gt: return known.less(b, a);
            default: return known.nonnegative(a - b);
        }
    }

    static std::string facts_of(const Program& p) {
        std::string s;
        for (const auto& [n, v] : known_dims(p)) s += fmt::format("{}{} == {}", s.empty() ? "" : ", ", n, v);
        for (const Value& v : p.facts) s += (s.empty() ? "" : ", ") + describe(v);
        return s.empty() ? "sizes that are never negative" : s;
    }
};

}  // namespace

Pass specialize_pass() { return make_pass<Specialize>(); }

}  // namespace acu::ir::pass
