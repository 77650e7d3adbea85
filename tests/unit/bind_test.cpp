#include <doctest/doctest.h>

#include "ir/microkernel.h"
#include "ir/pass/driver.h"

using namespace acu;
using namespace acu::ir;

namespace {

Program rows() {
    const auto p = parse_program(
        "program rows(M, N) {\n  x: in f32[M, N]\n  y: out f32[M]\n  for m in M grid threads(64) {\n    s: register f32[]\n    s.init: s[] = 0.0\n"
        "    s: s[] += x[m, n]  over n! in N\n    y: y[m] = s[]\n  }\n}\n");
    REQUIRE(p);
    return *p;
}

const Microkernel* one(std::string_view id) {
    static const Microkernel m{.id = "test.reduce", .function = "f", .doc = "", .kind = MicrokernelKind::Reduce, .targets = {{"sm_80", "", ""}}, .types = {DType::F32}, .monoids = {Monoid::Sum},
                               .operands = {{"x", {Scope::Register}, true}}, .group = ThreadGroup::Block, .most_threads = 64, .headers = {}, .source = ""};
    return id == m.id ? &m : nullptr;
}

std::string answer(const char* target, bool stamped) {
    const pass::Context context{target_named(target), &one, stamped ? +[](const Microkernel&, const Target&) { return true; } : +[](const Microkernel&, const Target&) { return false; }};
    const pass::Step step{"bind_reduce", {"s"}, {{"via", std::string("test.reduce")}}};
    const auto done = pass::apply_step(rows(), 1, step, context);
    if (const auto* f = std::get_if<pass::Failure>(&done)) return f->why.code;
    return print(std::get<pass::Applied>(done).program).find("via test.reduce") != std::string::npos ? "bound" : "not bound";
}

}  // namespace

TEST_CASE("a microkernel is bound on a target that has it, once it is stamped there") {
    CHECK(answer("sm_80", true) == "bound");
    CHECK(answer("sm_80", false) == "bind.stamp");
    CHECK(answer("sm_90a", true) == "bind.target");
}
