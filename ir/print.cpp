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
    std::string s = fmt::format("{}: {} {}{}[{}]", d.name, name_of(d.scope), d.strided ? "strided " : "", name_of(d.type),
                                join(d.dims, ", ", [](const Window& w) { return print(w); }));
    if (d.ring.versions) s += fmt::format(" ring({}) by {}", d.ring.versions, fmt::join(d.ring.keys, ", "));
    if (d.ring.readers != 1) s += fmt::format(" readers({})", d.ring.readers);
    if (d.swizzle) s += fmt::format(" swizzle({}{})", d.swizzle, d.swizzle_rows > 1 ? fmt::format(", {}", d.swizzle_rows) : "");
    if (d.panels) s += " panels";
    if (d.layout) s += " layout " + print(*d.layout);
    return s;
}

static std::string print_version(const std::vector<Index>& version) {
    return version.empty() ? "" : fmt::format("{{{}}}", join(version, ", ", [](const Index& i) { return print(i); }));
}

static std::string print(const Access& a) {
    return fmt::format("{}{}[{}]", a.tensor, print_version(a.version), join(a.subscripts, ", ", [](const Index& i) { return print(i); }));
}

static std::string print(const Block& b) {
    const auto values = [](const std::vector<Value>& v, std::string_view sign) { return join(v, sign, [](const Value& x) { return print(x); }); };
    std::string assign(info(b.monoid).assign);
    if (b.monoid == Monoid::TopK) assign = fmt::format("topk({})=", b.k);
    std::string s = fmt::format("{}: {} {}{} {}", b.label, join(b.outs, ", ", [](const Access& a) { return print(a); }),
                                b.exclusive ? "exclusive " : "", assign, values(b.vals, ", "));
    if (!b.axes.empty()) s += "  over " + join(b.axes, ", ", [](const Axis& a) { return print(a); });
    if (!b.guards.empty()) s += "  where " + values(b.guards, "; ");
    if (!b.via.empty()) s += "  via " + b.via;
    if (b.pending) s += fmt::format(" pending({})", b.pending);
    return s;
}

namespace {

class Printer {
  public:
    explicit Printer(bool locations) : locations_(locations) {}

    void body(const Body& stmts, int depth) {
        for (const Stmt& s : stmts) statement(s, depth);
    }

    void line(int depth, const std::string& text, Loc loc = {}, const std::vector<int>& decisions = {}) {
        out += std::string(2 * static_cast<size_t>(depth), ' ') + text;
        if (locations_ && (loc || !decisions.empty())) out += "  //";
        if (locations_ && loc) out += fmt::format(" @{}:{}:{}", loc.file, loc.line, loc.column);
        for (const int d : decisions)
            if (locations_) out += fmt::format(" d{}", d);
        out += '\n';
    }

    void statement(const Stmt& s, int depth) {
        match(
            s, [&](const Block& b) { line(depth, print(b), s->loc, s->decisions); },
            [&](const Loop& l) {
                const char* mark = l.order == AxisKind::Par ? "" : l.order == AxisKind::Red ? "!" : "^";
                const std::string lets = join(l.lets, "", [](const Let& x) { return fmt::format(", {} = {}", x.name, print(x.value)); });
                std::string kind = l.kind == LoopKind::Serial ? "" : fmt::format(" {}", name_of(l.kind));
                if (l.early) kind += " early";
                if (l.threads) kind += fmt::format(" threads({})", l.threads);
                line(depth, fmt::format("for {}{} in {}{}{} {{", l.var, mark, print(l.extent), kind, lets), s->loc, s->decisions);
                for (const Decl& d : l.allocs) line(depth + 1, print(d));
                body(l.body, depth + 1);
                line(depth, "}");
            },
            [&](const If& i) {
                line(depth, fmt::format("if {} {{", print(i.condition)), s->loc, s->decisions);
                body(i.body, depth + 1);
                if (!i.otherwise.empty()) {
                    line(depth, "} else {");
                    body(i.otherwise, depth + 1);
                }
                line(depth, "}");
            },
            [&](const Roles& r) { roles(s, r, depth); },
            [&](const Sync& y) { line(depth, fmt::format("{}{}{}{}", name_of(y.op), y.name.empty() ? "" : " ", y.name, print_version(y.key)), s->loc, s->decisions); });
    }

    void roles(const Stmt& s, const Roles& r, int depth) {
        line(depth, "roles {", s->loc, s->decisions);
        for (const Role& role : r.roles) {
            const std::string threads = role.threads ? fmt::format(" threads({})", role.threads) : "", registers = role.registers ? fmt::format(" registers({})", role.registers) : "";
            line(depth + 1, fmt::format("role {}{}{} {{", role.name, threads, registers));
            body(role.body, depth + 2);
            line(depth + 1, "}");
        }
        line(depth, "}");
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
