#include "ir/lower/protocol.h"

#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"

using namespace acu;

namespace {

/// A producer and a consumer that share a ring of two slots, over tiles that each block takes in turn.
const std::string specialised = R"(program p(M, K) {
  x: in f16[M, K]
  w: in f16[128, K]
  y: out f32[M, 128]
  for u.c in 4 grid threads(128) {
    x.t: shared f16[64*(u.c + 4*u.t) +: 64, 64*k.o +: 64] ring(2) by u.t, k.o swizzle(128)
    roles {
      role producer threads(32) {
        for u.t in ((M + 63)/64 - u.c + 3)/4, m.o = u.c + 4*u.t {
          for k.o! in (K + 63)/64 {
            acquire x.t{u.t, k.o}
            x.t: x.t{u.t, k.o}[m, k] = (x[m, k] default 0.0)  over m in 64*m.o +: 64, k in 64*k.o +: 64
            commit x.t{u.t, k.o}
          }
        }
      }
      role consumer {
        for u.t in ((M + 63)/64 - u.c + 3)/4, m.o = u.c + 4*u.t {
          y.t: register f32[64*m.o +: 64, 128]
          y.init: y.t[m, n] = 0.0  over m in 64*m.o +: 64, n in 128
          for k.o! in (K + 63)/64 {
            wait x.t{u.t, k.o}
            y: y.t[m, n] += x.t{u.t, k.o}[m, k] * w[n, k]  over m in 64*m.o +: 64, n in 128, k! in 64*k.o +: 64  where k < K  via sm90.wgmma_f16 pending(1)
            if 0l < k.o {
              release x.t{u.t, k.o - 1}
            }
          }
          if 0l < ((K + 63)/64) {
            release x.t{u.t, (K + 63)/64 - 1}
          }
          y.store: y[m, n] = y.t[m, n]  over m in 64*m.o +: 64, n in 128  where m < M
        }
      }
    }
  }
}
)";

/// Copies of a loop that go two iterations ahead in a ring of three.
const std::string pipelined = R"(program p(K) {
  x: in f32[K]
  y: out f32[K]
  for b in 1 grid {
    x.t: shared f32[4*k.o +: 4] ring(3) by k.o
    for k.o.pre^ in min(2, (K + 3)/4) {
      x.t.pre: x.t{k.o.pre}[k] = (x[k] default 0.0)  over k in 4*k.o.pre +: 4
    }
    for k.o^ in (K + 3)/4 {
      if (k.o + 2) < ((K + 3)/4) {
        x.t: x.t{k.o + 2}[k] = (x[k] default 0.0)  over k in 4*(k.o + 2) +: 4
      }
      y: y[k] = x.t{k.o}[k]  over k in 4*k.o +: 4  where k < K
    }
  }
}
)";

/// Two readers of a ring take its versions in turn.
const std::string turns = R"(program p(K) {
  x: in f32[K]
  y: out f32[K]
  for b in 1 grid threads(64) {
    x.t: shared f32[4*k.o +: 4] ring(2) by k.o
    pass turn.0
    roles {
      role producer threads(32) {
        for k.o! in (K + 3)/4 {
          acquire x.t{k.o}
          x.t: x.t{k.o}[k] = (x[k] default 0.0)  over k in 4*k.o +: 4
          commit x.t{k.o}
        }
      }
      role even threads(32) {
        for e in ((K + 3)/4 + 1)/2 {
          take turn.0
          wait x.t{2*e}
          a.store: y[k] = x.t{2*e}[k]  over k in 8*e +: 4  where k < K
          release x.t{2*e}
          pass turn.1
        }
      }
      role odd threads(32) {
        for o in (K + 3)/4/2 {
          take turn.1
          wait x.t{2*o + 1}
          b.store: y[k] = x.t{2*o + 1}[k]  over k in 8*o + 4 +: 4  where k < K
          release x.t{2*o + 1}
          pass turn.0
        }
      }
    }
  }
}
)";

/// The code of the fault once `from` reads `to`; empty: none.
std::string fault_with(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    const auto p = ir::parse_program(text.replace(at, from.size(), to));
    REQUIRE(p);
    const Status s = ir::lower::check_protocol(*p);
    if (s) return "";
    CHECK_MESSAGE(!s.why().notes.empty(), "a trace of the roles");
    CHECK(s.why().message.find("(at ") != std::string::npos);
    return s.why().code;
}

}  // namespace

TEST_CASE("turns: the first is given before the roles start") {
    CHECK(fault_with(turns, "", "").empty());
    CHECK(fault_with(turns, "    pass turn.0\n    roles", "    roles") == "protocol.stuck");
    CHECK(fault_with(turns, "          pass turn.1\n", "") == "protocol.stuck");
}

TEST_CASE("a specialised loop: each broken protocol is found") {
    CHECK(fault_with(specialised, "ring(2)", "ring(2)") == "");
    CHECK(fault_with(specialised, "ring(2)", "ring(5)") == "");
    CHECK(fault_with(specialised, "release x.t{u.t, k.o - 1}", "release x.t{u.t, k.o}") == "protocol.release");                     // a product still reads it
    CHECK(fault_with(specialised, "            if 0l < k.o {\n              release x.t{u.t, k.o - 1}\n            }\n", "") == "protocol.stuck");
    CHECK(fault_with(specialised, "release x.t{u.t, (K + 63)/64 - 1}", "release x.t{u.t, 0}") == "protocol.release");               // back twice, the last never
    CHECK(fault_with(specialised, "            commit x.t{u.t, k.o}\n", "") == "protocol.stuck");
    CHECK(fault_with(specialised, "            wait x.t{u.t, k.o}\n", "") == "protocol.read");
    CHECK(fault_with(specialised, "            acquire x.t{u.t, k.o}\n", "") == "protocol.order");
    CHECK(fault_with(specialised, "acquire x.t{u.t, k.o}", "acquire x.t{u.t, k.o + 1}") == "protocol.order");
    CHECK(fault_with(specialised, "wait x.t{u.t, k.o}", "wait x.t{u.t, k.o + 1}") == "protocol.stuck");
}

TEST_CASE("only the second tile of a block shows it") {
    // the last version of a tile is never given back: one tile is fine
    CHECK(fault_with(specialised, "          if 0l < ((K + 63)/64) {\n            release x.t{u.t, (K + 63)/64 - 1}\n          }\n", "") == "protocol.stuck");
}

TEST_CASE("a pipelined loop: a slot is read after it was filled again, or before") {
    CHECK(fault_with(pipelined, "ring(3)", "ring(3)") == "");
    CHECK(fault_with(pipelined, "ring(3)", "ring(2)") == "protocol.read");
    CHECK(fault_with(pipelined, "min(2, (K + 3)/4)", "min(1, (K + 3)/4)") == "protocol.read");
    CHECK(fault_with(pipelined, "x.t{k.o + 2}[k] =", "x.t{k.o + 3}[k] =") == "protocol.read");
}
