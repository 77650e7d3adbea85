#include <doctest/doctest.h>

#include "codegen/alignment.h"
#include "ir/analysis/facts.h"

using namespace acu::ir;
using analysis::Facts;

namespace {

Index n(const char* s) { return name(s); }
Index c(int64_t v) { return constant(v); }
Value equal_to(const Index& a, const Index& b) { return binary(Op::Eq, of_index(a), of_index(b)); }
Value less_than(const Index& a, const Index& b) { return binary(Op::Lt, of_index(a), of_index(b)); }
bool inside(const Facts& f, const Index& e, const Index& size) { return f.nonnegative(e) && f.less(e, size); }

Facts with(std::initializer_list<const char*> dims) {
    Facts f;
    for (const char* d : dims) f.add_dim(d);
    return f;
}

}  // namespace

TEST_CASE("a plain subscript is inside its own range and no other") {
    Facts f = with({"M", "N"});
    f.add_range("i", c(0), n("N"));
    CHECK(inside(f, n("i"), n("N")));
    CHECK_FALSE(inside(f, n("i") + c(1), n("N")));
    CHECK_FALSE(inside(f, n("i"), n("M")));
}

TEST_CASE("a group's head: h / (H / G) < G where G divides H") {
    Facts f = with({"H", "G"});
    f.add_range("h", c(0), n("H"));
    f.add_nonnegative(n("G") - c(1));
    CHECK_FALSE(inside(f, div(n("h"), div(n("H"), n("G"))), n("G")));
    f.add(equal_to(mod(n("H"), n("G")), c(0)));
    CHECK(inside(f, div(n("h"), div(n("H"), n("G"))), n("G")));
}

TEST_CASE("half split: the condition of the path bounds both branches") {
    Facts f = with({"D"});
    f.add_range("d", c(0), n("D"));
    const Index half = div(n("D"), c(2));
    Facts low = f, high = f;
    low.add(less_than(n("d"), half));
    high.add_negation(less_than(n("d"), half));
    CHECK(inside(low, n("d") + half, n("D")));
    CHECK_FALSE(inside(f, n("d") + half, n("D")));
    CHECK(inside(high, n("d") - half, n("D")));
    CHECK_FALSE(inside(f, n("d") - half, n("D")));
}

TEST_CASE("packed subscripts need divisibility") {
    for (const int64_t factor : {2, 3, 128}) {
        Facts f = with({"K"});
        f.add_range("k", c(0), n("K"));
        CHECK_FALSE(inside(f, div(n("k"), c(factor)), div(n("K"), c(factor))));
        f.add(equal_to(mod(n("K"), c(factor)), c(0)));
        CHECK(inside(f, div(n("k"), c(factor)), div(n("K"), c(factor))));
    }
}

TEST_CASE("channels of a group: g*(C/G) + c < C where G divides C") {
    Facts f = with({"C", "G"});
    f.add_nonnegative(n("G") - c(1));
    f.add(equal_to(mod(n("C"), n("G")), c(0)));
    f.add_range("g", c(0), n("G"));
    f.add_range("c", c(0), div(n("C"), n("G")));
    CHECK(inside(f, n("g") * div(n("C"), n("G")) + n("c"), n("C")));
    CHECK_FALSE(inside(f, n("g") * div(n("C"), n("G")) + n("c") + c(1), n("C")));
}

TEST_CASE("flattened axes: m / W < H and m % W < W") {
    Facts f = with({"H", "W"});
    f.add_nonnegative(n("W") - c(1));
    f.add_range("m", c(0), n("H") * n("W"));
    CHECK(inside(f, div(n("m"), n("W")), n("H")));
    CHECK(inside(f, mod(n("m"), n("W")), n("W")));
    CHECK_FALSE(inside(f, div(n("m"), n("W")) + c(1), n("H")));
}

TEST_CASE("bounds come out as expressions of dimensions") {
    Facts f = with({"N"});
    f.add_range("i", c(0), n("N"));
    CHECK(print(*f.upper_bound(n("i") + c(8))) == "N - 1 + 8");
    CHECK(print(*f.lower_bound(c(2) * n("i") - c(1))) == "-1");
}

TEST_CASE("known sizes decide at once") {
    Facts f({{"M", 16}, {"N", 4}});
    f.add_range("i", c(0), n("N"));
    CHECK(inside(f, c(4) * n("i") + c(3), n("M")));
    CHECK_FALSE(inside(f, c(4) * n("i") + c(4), n("M")));
    CHECK(f.value(n("M") * n("N")) == 64);
}

TEST_CASE("multiples are proven from definitions and fixed sizes, or asked of free ones") {
    Program p;
    p.dims = {Dim{"N", {}}, Dim{"K", 96}};
    Facts facts(known_dims(p));
    const Index lanes = c(256) * n("r") + c(8) * mod(n("t"), c(32));
    facts.define("c", lanes);
    std::map<std::string, int64_t> dims;
    const auto proven = [&](const Index& e, int64_t of) { return acu::codegen::is_multiple(e, of, p, facts, dims); };
    CHECK(proven(n("c"), 8));
    CHECK_FALSE(proven(n("c"), 16));
    CHECK(proven(n("m") * n("K") + n("c"), 8));
    CHECK(proven(n("m") * n("K"), 32));
    CHECK_FALSE(proven(n("m") * n("K"), 64));
    CHECK_FALSE(proven(n("c") + c(4), 8));
    CHECK_FALSE(proven(n("t"), 2));
    CHECK(dims.empty());
    CHECK_FALSE(proven(n("m") * n("N") + n("t"), 8));
    CHECK(dims.empty());
    CHECK(proven(n("m") * n("N") + n("c"), 8));
    CHECK(dims == std::map<std::string, int64_t>{{"N", 8}});
    facts.add_range("c", c(0), c(8));    // a new meaning of the name
    CHECK_FALSE(proven(n("c"), 8));
}

TEST_CASE("a defined name has the sign of its definition") {
    Facts f;
    f.add_range("b", c(0), c(1));
    f.define("x", n("b") - c(1));
    CHECK_FALSE(f.obviously_nonnegative(n("x")));
    CHECK_FALSE(f.nonnegative(n("x")));
    f.define("y", n("b") + c(1));
    CHECK(f.obviously_nonnegative(n("y")));
}
