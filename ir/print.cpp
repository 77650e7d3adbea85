#include <fmt/format.h>

#include "ir/program.h"

namespace acu::ir {

template <class List, class F>
static std::string join(const List& list, std::string_view sign, F f) {
    std::string s;
    for (const auto& x : list) {
        if (!s.empty()) s += sign;
        s += f(x);
    }
    return s;
}

static std::string print(const Window& w) {
    return is_const(w.origin, 0) ? print(w.size) : fmt::format("{} +: {}", print(w.origin), print(w.size));
}

static std::string print(const Decl& d) {
    return fmt::format("{}: {} {}{}[{}]", d.name, name_of(d.scope), d.strided ? "strided " : "", name_of(d.type),
                       join(d.dims, ", ", [](const Window& w) { return print(w); }));
}

static std::string print(const Access& a) {
    return fmt::format("{}[{}]", a.tensor, join(a.subscripts, ", ", [](const Index& i) { return print(i); }));
}

static std::string print(const Block& b) {
    const auto values = [](const std::vector<Value>& v, std::string_view sign) { return join(v, sign, [](const Value& x) { return print(x); }); };
    std::string assign(info(b.monoid).assign);
    if (b.monoid == Monoid::TopK) assign = fmt::format("topk({})=", b.k);
    std::string s = fmt::format("{}: {} {}{} {}", b.label, join(b.outs, ", ", [](const Access& a) { return print(a); }),
                                b.exclusive ? "exclusive " : "", assign, values(b.vals, ", "));
    if (!b.axes.empty()) s += "  over " + join(b.axes, ", ", [](const Axis& a) { return print(a); });
    if (!b.guards.empty()) s += "  where " + values(b.guards, "; ");
    return s;
}

namespace {

class Printer {
  public:
    explicit Printer(bool locations) : locations_(locations) {}

    void body(const Body& stmts, int depth) {
        for (const Stmt& s : stmts) statement(s, depth);
    }

    void line(int depth, const std::string& text, Loc loc = {}) {
        out += std::string(2 * static_cast<size_t>(depth), ' ') + text;
        if (locations_ && loc) out += fmt::format("  // @{}:{}:{}", loc.file, loc.line, loc.column);
        out += '\n';
    }

    void statement(const Stmt& s, int depth) {
        match(
            s, [&](const Block& b) { line(depth, print(b), s->loc); },
            [&](const Loop& l) {
                const char* mark = l.order == AxisKind::Par ? "" : l.order == AxisKind::Red ? "!" : "^";
                const std::string lets = join(l.lets, "", [](const Let& x) { return fmt::format(", {} = {}", x.name, print(x.value)); });
                const std::string kind = l.kind == LoopKind::Serial ? "" : fmt::format(" {}", name_of(l.kind));
                line(depth, fmt::format("for {}{} in {}{}{} {{", l.var, mark, print(l.extent), kind, lets), s->loc);
                for (const Decl& d : l.allocs) line(depth + 1, print(d));
                body(l.body, depth + 1);
                line(depth, "}");
            },
            [&](const If& i) {
                line(depth, fmt::format("if {} {{", print(i.condition)), s->loc);
                body(i.body, depth + 1);
                if (!i.otherwise.empty()) {
                    line(depth, "} else {");
                    body(i.otherwise, depth + 1);
                }
                line(depth, "}");
            });
    }

    std::string out;

  private:
    bool locations_;
};

}  // namespace

std::string print(const Stmt& s, int depth) {
    Printer p(false);
    p.statement(s, depth);
    return p.out;
}

std::string print(const Program& p, bool with_locations) {
    Printer out(with_locations);
    const std::string dims = join(p.dims, ", ", [](const Dim& d) { return (d.pack ? ".." : "") + d.name + (d.value ? fmt::format(" = {}", *d.value) : ""); });
    const std::string facts = join(p.facts, "; ", [](const Value& v) { return print(v); });
    out.line(0, fmt::format("{} {}({}){} {{", p.level == Level::Tensor ? "tensor" : "program", p.name, dims, facts.empty() ? "" : " where " + facts));
    for (const Decl& d : p.decls) out.line(1, print(d), d.loc);
    out.body(p.body, 1);
    out.line(0, "}");
    return out.out;
}

}  // namespace acu::ir
