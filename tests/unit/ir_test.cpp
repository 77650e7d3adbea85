#include <doctest/doctest.h>

#include <algorithm>

#include "ir/interpret.h"
#include "ir/lower/lower.h"

using namespace acu::ir;

namespace {

Program parsed(const std::string& text) {
    auto p = parse_program(text);
    REQUIRE_MESSAGE(p, text << "\n" << p.why().message);
    return std::move(*p);
}

const std::string head = "program f(M, N) {\n  x: in f32[M, N]\n  y: out f32[M, N]\n  s: temp f32[M]\n  k: in i32[M]\n";

std::string rules_broken(const std::string& body) {
    std::string rules;
    for (const Violation& v : verify(parsed(head + body + "}\n")))
        if (rules.find(v.rule) == std::string::npos) rules += (rules.empty() ? "" : " ") + v.rule;
    return rules;
}

std::string fault(const std::string& body, int64_t m = 2, int64_t n = 3) {
    Arrays arrays{{"x", Array::zeros(DType::F32, {m, n})}, {"k", Array::zeros(DType::I32, {m})}};
    const auto done = interpret(parsed(head + body + "}\n"), {{{"M", m}, {"N", n}}, {}}, arrays);
    return done ? "" : done.why().code;
}

const std::string copy = "  y: y[m, n] = x[m, n]  over m in M, n in N\n";

}  // namespace

TEST_CASE("the verifier accepts a sound program and names the rule that each wrong one breaks") {
    CHECK(rules_broken(copy) == "");
    CHECK(rules_broken(copy + copy) == "V1");
    CHECK(rules_broken("  y: y[m, n] = x[m, n]  over m in M, m in M, n in N\n") == "V2");
    CHECK(rules_broken("  y: y[m, M] = x[m, M]  over m in M, M in N\n") == "V2");
    CHECK(rules_broken("  y: y[m, n] = x[m, j]  over m in M, n in N\n") == "V3");
    CHECK(rules_broken("  y: y[m, n] = x[m, n]  over m in M, n in L\n") == "V3");
    CHECK(rules_broken("  y: y[m, n] = x[m, n]  over m in M, n! in N\n") == "V4");
    CHECK(rules_broken("  s: s[n] += x[m, n]  over m in M, n! in N\n") == "V4");
    CHECK(rules_broken("  for u in M grid {\n    t: register f32[]\n    t: t[] = 0.0\n  }\n  y: y[m, n] = t[]  over m in M, n in N\n") == "V5");
    CHECK(rules_broken("  y: y[m, n] = x[m]  over m in M, n in N\n") == "V5");
    CHECK(rules_broken("  x: x[m, n] = 0.0  over m in M, n in N\n") == "V5");
    CHECK(rules_broken("  for u! in M grid { y: y[u, n] = x[u, n]  over n in N }\n") == "V7");
    CHECK(rules_broken("  s: s[m], y[m, n] argmax= x[m, n]  over m in M, n! in N\n").find("V4") == 0);
}

TEST_CASE("a reduction inside a value belongs to the tensor level") {
    const std::string body = "  y: y[m, n] = (sum(j in N) x[m, j])  over m in M, n in N\n}\n";
    CHECK(verify(parsed("tensor" + head.substr(7) + body)).empty());
    CHECK(verify(parsed(head + body)).size() == 1);
}

TEST_CASE("the interpreter finds what a machine would get silently wrong") {
    CHECK(fault(copy) == "");
    CHECK(fault("  y: y[m, n] = x[m, n + 1]  over m in M, n in N\n") == "run.D1");
    CHECK(fault("  y: y[m, n + 1] = x[m, n]  over m in M, n in N\n") == "run.D1");
    CHECK(fault("  y: y[m, n] = s[m]  over m in M, n in N\n") == "run.D2");
    CHECK(fault("  s: s[m] += x[m, n]  over m in M, n! in N\n" + copy) == "run.D2");
    CHECK(fault("  y: y[m, 0] = x[m, n]  over m in M, n in N\n") == "run.D4");
    CHECK(fault("  y: y[m, n] = x[m, n]  over m in M, n in N - 1\n") == "run.D9");
    CHECK(fault("  y: y[m, n] = (x[m, n + 1] default 0.0)  over m in M, n in N\n") == "");
}

TEST_CASE("a reduction becomes a fill and an accumulation, a selection around it a guard") {
    const Program p = lower::lower_reductions(parsed("tensor f(M, N) {\n  x: in f32[M, N]\n  y: out f32[M]\n  y: y[m] = ((sum(n in N) x[m, n]) if m < 1l else 0.0)  over m in M\n}\n"));
    const std::string text = print(p);
    CHECK(text.find("y.acc.init: y.acc[m] = 0.0  over m in M\n") != std::string::npos);
    CHECK(text.find("y.acc: y.acc[m] += x[m, n]  over m in M, n! in N  where m < 1l\n") != std::string::npos);
    CHECK(text.find("y: y[m] = (y.acc[m] if m < 1l else 0.0)  over m in M\n") != std::string::npos);
}

TEST_CASE("what an index-only condition makes -inf is absent after an exp") {
    const Program p = lower::lower_reductions(
        parsed("tensor f(N) {\n  x: in f32[N]\n  y: out f32[N]\n  e: temp f32[N, N]\n  e: e[i, j] = exp((-inf if j > i else x[j]))  over i in N, j in N\n  y: y[i] = (sum(j in N) e[i, j]*x[j])  over i in N\n}\n"));
    CHECK(print(p).find("over i in N, j! in N  where j <= i\n") != std::string::npos);
}

TEST_CASE("a rewrite that changes nothing answers the same node") {
    const Program p = parsed(head + copy + "}\n");
    const Block& b = std::get<Block>(p.body[0]->node);
    CHECK(substitute(b.vals[0], {{"unused", constant(1)}}) == b.vals[0]);
    CHECK(map_bodies(p.body[0], [](const Body& x) { return x; }) == p.body[0]);
    CHECK(substitute(b.outs[0].subscripts[0], {{"unused", constant(1)}}) == b.outs[0].subscripts[0]);
}

TEST_CASE("IR text that is wrong gets a place and a reason") {
    const auto at = [](const std::string& text) {
        const auto p = parse_program(text);
        REQUIRE_FALSE(p);
        return p.why().code + " " + std::to_string(p.why().loc.line) + ":" + std::to_string(p.why().loc.column);
    };
    CHECK(at("") == "ir.syntax 1:1");
    CHECK(at("program f() {\n  y: out f32[3\n}") == "ir.syntax 3:1");
    CHECK(at("program f() {\n  y: y[i] = z[i]  over i in 3\n}").starts_with("ir.name 2:"));
    CHECK(at("program f() {\n  y: out f33[3]\n}") == "ir.syntax 2:10");
}
