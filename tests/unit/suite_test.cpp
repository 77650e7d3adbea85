#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "acuc/compiler.h"
#include "ir/lower/lower.h"

using namespace acu;

namespace {

std::filesystem::path source_root() {
    const char* root = std::getenv("ACU_SOURCE_ROOT");
    return root ? root : ".";
}

std::vector<std::string> sources_in(const char* folder) {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(source_root() / folder))
        if (e.path().extension() == ".acu") out.push_back(e.path().string());
    return out;
}

void check_round_trip(const ir::Program& p) {
    for (const auto& v : ir::verify(p)) FAIL_CHECK(p.name << ": " << v.rule << " " << v.what);
    const std::string text = ir::print(p);
    const auto back = ir::parse_program(text);
    REQUIRE_MESSAGE(back, p.name << ": " << back.why().message << " at " << back.why().loc.line << ":" << back.why().loc.column << "\n" << text);
    CHECK(ir::print(*back) == text);
}

}  // namespace

TEST_CASE("text of every case reads back as the same text, at every level") {
    int cases = 0;
    for (const std::string& file : sources_in("benchmarks/suite")) {
        Session s;
        const frontend::Module* m = s.open(file);
        REQUIRE(m);
        for (const auto& c : m->file.cases) {
            const auto subjects = subjects_of(s, *m, {"", c.name, {}});
            REQUIRE_MESSAGE(!s.failed(), file << " " << c.name);
            const ir::Program& tensor = subjects[0].op.program;
            for (const ir::Program& p : {tensor, ir::lower::lower_reductions(tensor), planned(tensor), ir::lower::in_float64(tensor), ir::lower::in_float64(planned(tensor))}) check_round_trip(p);
            ++cases;
        }
    }
    CHECK(cases == 208);
}

TEST_CASE("every library source, example and suite file checks clean") {
    for (const char* folder : {"benchmarks/suite", "stdlib", "examples"})
        for (const std::string& file : sources_in(folder)) {
            Session s;
            if (const frontend::Module* m = s.open(file)) check_module(s, *m);
            for (const Diagnostic& d : s.found) FAIL_CHECK(s.sources.render(d));
        }
}
