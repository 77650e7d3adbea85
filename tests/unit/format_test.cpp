#include "frontend/format.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "frontend/parse.h"

namespace fs = std::filesystem;
using namespace acu::frontend;

namespace {

/// Every `.acu` file that the project ships.
std::vector<fs::path> sources() {
    const char* named = std::getenv("ACU_SOURCE_ROOT");
    const fs::path root = named ? fs::path(named) : fs::current_path();
    std::vector<fs::path> out;
    for (const char* folder : {"benchmarks/suite", "stdlib", "examples"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder))
            if (entry.path().extension() == ".acu") out.push_back(entry.path());
    return out;
}

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The tokens, with one line end for a run of them and none at the beginning.
std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> out;
    for (const SourceToken& t : tokenize(text)) {
        const bool end = t.kind == SourceToken::LineEnd;
        if (end && (out.empty() || out.back() == "\n")) continue;
        const std::string shown = t.text.substr(0, t.text.find_last_not_of(" \t") + 1);
        out.push_back(end ? "\n" : shown + (t.generic ? " generic" : "") + (t.reduction ? " reduction" : ""));
    }
    if (!out.empty() && out.back() != "\n") out.push_back("\n");
    return out;
}

/// The text with white space that says nothing: no indentation, wide gaps, many blank lines.
std::string uglified(const std::string& text) {
    std::string out;
    bool line_start = true;
    for (const char c : text) {
        if (line_start && c == ' ') continue;
        line_start = c == '\n';
        out += c == '\n' ? " \t\r\n" : c == ' ' ? "  " : std::string(1, c);
    }
    return out;
}

struct Golden { const char *name, *ugly, *pretty; };

const Golden goldens[] = {
    {"spaces", "fn f( x,y )=x+y*-x/(1-exp( - y))\n", "fn f(x, y) = x + y * -x / (1 - exp(-y))\n"},
    {"white space at line ends", "\n\nfn f(x) = x \t\r\n\r\n\r\n\r\nfn g(x) = x\r\n\r\n", "fn f(x) = x\n\nfn g(x) = x\n"},
    {"no line end at the end", "import  std . nn{gelu ,silu}", "import std.nn { gelu, silu }\n"},
    {"an operator",
     "op f < T:f16|bf16,relu:bool=false > (x:T[M,2 * F],s : strided  T [ .. B , K / 2 ])->y : T[M]\nwhere K%2==0,P==( H+2 * pad-R )/stride+1{\ny[ m ]=sum( k )x[m,k]\n}\n",
     "op f<T: f16 | bf16, relu: bool = false>(x: T[M, 2*F], s: strided T[..B, K/2]) -> y: T[M]\n"
     "where K % 2 == 0, P == (H + 2*pad - R) / stride + 1 {\n  y[m] = sum(k) x[m, k]\n}\n"},
    {"continued lines",
     "op f<T: float>(\nx: T[M],\nw: T[M]) -> y: T[M]\n  where M > 0,\nM < 9\n{\ny[m] = sum(k) (\nx[k] +\nw[k]\n) *\n2\nz = if a\nthen b\nelse c\n}\n",
     "op f<T: float>(\n    x: T[M],\n    w: T[M]) -> y: T[M]\nwhere M > 0,\n    M < 9\n{\n  y[m] = sum(k) (\n    x[k] +\n    w[k]\n  ) *\n    2\n"
     "  z = if a\n    then b\n    else c\n}\n"},
    {"products", "fn f(x) = x[a*b, a*b+c, (a + b)*c, c/(C / G), (a+b)/c*d + e, x[i]*2-1] + a*b + D / 2 - x / D/2 + N/g(x)\n",
     "fn f(x) = x[a * b, a*b + c, (a + b) * c, c / (C/G), (a + b) / c * d + e, x[i]*2 - 1] + a * b + D/2 - x / D / 2 + N / g(x)\n"},
    {"reductions and calls", "fn f(x) = max(x,0)+(max (n)-x[n])+sum(r in 3,j where j<=i)(x[r] or-inf)+conv<stride=2>(x)\n",
     "fn f(x) = max(x, 0) + (max(n) -x[n]) + sum(r in 3, j where j <= i) (x[r] or -inf) + conv<stride = 2>(x)\n"},
    {"statements", "op f()->(y:T[M],i:i64[]){v[m,j],i[m,j]=topk( n,8 )x[m,n]\nout[idx[i],d]+=src[i,d]\ny[m]=scan  exclusive sum(n)x[m,n]\nb = !a&&~c>1 }\n",
     "op f() -> (y: T[M], i: i64[]) { v[m, j], i[m, j] = topk(n, 8) x[m, n]\n  out[idx[i], d] += src[i, d]\n  y[m] = scan exclusive sum(n) x[m, n]\n"
     "  b = !a && ~c > 1 }\n"},
    {"blank lines", "// file\n\n\nop f() -> y: T[M] {\n\n  a = 1\n\n\n  b = 2\n\n}\n// next\nop g() -> y: T[M] {\n  // first\n\n  a = 1\n}\n",
     "// file\n\nop f() -> y: T[M] {\n  a = 1\n\n  b = 2\n}\n\n// next\nop g() -> y: T[M] {\n  // first\n\n  a = 1\n}\n"},
    {"declarations", "import a { b }\nimport c { d }\nfn f(x) = x\nfn g(x) = x fn h(x) = x\n", "import a { b }\nimport c { d }\n\nfn f(x) = x\n\nfn g(x) = x\n\nfn h(x) = x\n"},
    {"cases", "case a for f { T=f16,B=[ 8,128 ] }\ncase b for f{}\n\n\ncase c for f {\nM = 1,\n x = [\n1, 2,\n3]\n}\nschedule f for sm_90a { }\n",
     "case a for f { T = f16, B = [8, 128] }\ncase b for f {}\n\ncase c for f {\n  M = 1,\n  x = [\n    1, 2,\n    3]\n}\n\nschedule f for sm_90a {}\n"},
    {"schedules", "schedule f for sm_90a when M>=512{\nfuse(acc,y,over=[m : 128,k . o:-2],in=shared)\nstage( x,at=k / o )\n}\n",
     "schedule f for sm_90a when M >= 512 {\n  fuse(acc, y, over = [m: 128, k.o: -2], in = shared)\n  stage(x, at = k/o)\n}\n"},
    {"comments", "op f(// none\n// at all\n) -> y: T[M] {// body\n      // indented\na = /*one*/1+/* two */2 // end\n   // last\n}//after\n",
     "op f(  // none\n    // at all\n) -> y: T[M] {  // body\n  // indented\n  a = /*one*/ 1 + /* two */ 2  // end\n  // last\n}  //after\n"},
    {"documentation stays attached", "fn f(x) = x\n/// about g\n\n\nfn g(x) = x\n/* many\n     lines */\n\ncase a for f {}\n/// about b\ncase b for f {}\n",
     "fn f(x) = x\n\n/// about g\nfn g(x) = x\n\n/* many\n     lines */\n\ncase a for f {}\n/// about b\ncase b for f {}\n"},
    {"aligned assignments", "op f() -> y: T[M] {\nacc[m,n]   = 1\ny[m]       = 2\nz   = 3\nz2     = 4\n\nlong_name = 5\nw = 6\n}\n",
     "op f() -> y: T[M] {\n  acc[m, n] = 1\n  y[m]      = 2\n  z = 3\n  z2 = 4\n\n  long_name = 5\n  w = 6\n}\n"},
    {"nothing", " \n\n", ""},
};

}  // namespace

TEST_CASE("format: ugly to pretty") {
    for (const Golden& g : goldens) {
        CAPTURE(g.name);
        CHECK(format(g.ugly) == g.pretty);
        CHECK(format(g.pretty) == g.pretty);
    }
}

TEST_CASE("format: the project's sources keep their tokens and settle at once") {
    const std::vector<fs::path> files = sources();
    REQUIRE(files.size() > 20);
    for (const fs::path& file : files) {
        CAPTURE(file.string());
        const std::string text = read(file);
        for (const std::string& input : {text, uglified(text)}) {
            const std::string once = format(input);
            CHECK(words(once) == words(input));
            CHECK(format(once) == once);
        }
    }
}
