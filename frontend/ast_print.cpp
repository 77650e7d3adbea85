#include "frontend/ast_print.h"

#include <fmt/format.h>

namespace acu::frontend {
namespace {

class Printer {
  public:
    std::string out;

    void file(const File& f) {
        for (const ImportDecl& d : f.imports) line("import", fmt::format("{}", fmt::join(d.path, ".")), d.loc);
        for (const FnDecl& d : f.fns) fn(d);
        for (const OpDecl& d : f.ops) op(d);
        for (const CaseDecl& d : f.cases) instance(d);
        for (const ScheduleDecl& d : f.schedules) schedule(d);
    }

  private:
    void line(std::string_view kind, std::string_view text, Loc loc) {
        out += fmt::format("{:{}}{}{}{}  @{}:{}\n", "", 2 * depth_, kind, text.empty() ? "" : " ", text, loc.line, loc.column);
    }

    template <class F>
    void inside(F f) {
        ++depth_;
        f();
        --depth_;
    }

    static std::string_view kind_of(const Expr& e) {
        switch (e.kind) {
            case Expr::Name: return e.pack ? "pack" : "name";
            case Expr::Integer: return "integer";
            case Expr::Float: return "float";
            case Expr::Boolean: return "boolean";
            case Expr::Access: return "access";
            case Expr::Call: return "call";
            case Expr::Unary: return "unary";
            case Expr::Infix: return "infix";
            case Expr::If: return "if";
            case Expr::Or: return "or";
            case Expr::Reduction: return "reduction";
        }
        return "?";
    }

    void expr(const ExprPtr& e) {
        if (!e) return;
        line(kind_of(*e), e->text, e->loc);
        inside([&] {
            for (const AxisSpec& a : e->axes) axis(a);
            for (const auto& [name, value] : e->generics) line("generic", name, value->loc), inside([&] { expr(value); });
            for (const ExprPtr& a : e->args) expr(a);
        });
    }

    void axis(const AxisSpec& a) {
        line("axis", a.name, a.loc);
        inside([&] { expr(a.extent); });
    }

    void fn(const FnDecl& d) {
        line("fn", fmt::format("{}({})", d.name, fmt::join(d.params, ", ")), d.loc);
        inside([&] { expr(d.body); });
    }

    void param(std::string_view kind, const Param& p) {
        line(kind, fmt::format("{}: {}{}", p.name, p.strided ? "strided " : "", p.type), p.loc);
        inside([&] {
            for (const ExprPtr& d : p.shape.dims) expr(d);
            expr(p.otherwise);
        });
    }

    void op(const OpDecl& d) {
        line("op", d.name, d.loc);
        inside([&] {
            for (const Generic& g : d.generics) line("generic", fmt::format("{}: {}", g.name, fmt::join(g.types, " | ")), g.loc), inside([&] { expr(g.otherwise); });
            for (const Param& p : d.params) param("parameter", p);
            for (const Param& p : d.outputs) param("output", p);
            for (const ExprPtr& w : d.where) line("where", "", w->loc), inside([&] { expr(w); });
            for (const Statement& s : d.body) statement(s);
        });
    }

    void statement(const Statement& s) {
        static constexpr std::string_view kinds[] = {"define", "scatter", "scan", "topk"};
        line(kinds[s.kind], s.kind == Statement::Scan ? (s.exclusive ? "exclusive " : "") + s.monoid : "", s.loc);
        inside([&] {
            for (const Target& t : s.targets) {
                line("target", t.name, t.loc);
                inside([&] {
                    for (const ExprPtr& i : t.subscripts) expr(i);
                });
            }
            if (!s.axis.name.empty()) axis(s.axis);
            expr(s.count);
            expr(s.value);
        });
    }

    void instance(const CaseDecl& d) {
        line("case", fmt::format("{} for {}", d.name, d.op), d.loc);
        inside([&] {
            for (const Setting& s : d.settings) {
                line("set", s.name, s.loc);
                inside([&] {
                    for (const ExprPtr& v : s.values) expr(v);
                });
            }
        });
    }

    void schedule(const ScheduleDecl& d) {
        line("schedule", fmt::format("{} for {}", d.op, d.target), d.op_loc);
        inside([&] {
            expr(d.when);
            for (const Step& s : d.steps) {
                line("step", s.pass, s.loc);
                inside([&] {
                    for (const StepArgument& a : s.arguments) line("argument", a.name.empty() ? a.value.text : a.name + " = " + a.value.text, a.loc);
                });
            }
        });
    }

    size_t depth_ = 0;
};

}  // namespace

std::string print(const File& file) {
    Printer p;
    p.file(file);
    return p.out;
}

}  // namespace acu::frontend
