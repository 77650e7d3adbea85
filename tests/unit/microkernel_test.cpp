#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "acuc/microkernel_data.h"
#include "acuc/validate_microkernels.h"
#include "microkernels/catalogue.h"

using namespace acu;
using ir::Microkernel;
using ir::Monoid;
namespace mk = acu::microkernels;

TEST_CASE("descriptors are complete") {
    static const std::vector<std::string> order{"group", "copy", "async", "swizzle", "cluster", "ring", "tensor_copy", "tensor_store", "multicast", "reduce", "lanes", "rows", "top", "scan", "online", "operand", "pairs", "fma", "mma", "mma_rows", "wgmma", "wgmma_order", "wgmma_rows", "quads", "mfma"};
    std::set<std::string> ids;
    for (const Microkernel& m : mk::catalogue()) {
        INFO(m.id);
        CHECK(ids.insert(m.id).second);
        CHECK(mk::find(m.id) == &m);
        CHECK(!m.doc.empty());
        CHECK(!m.source.empty());
        CHECK(!m.targets.empty());
        for (const auto& t : m.targets) {
            CHECK(target_named(t.name) != nullptr);
            CHECK_NOTHROW(std::regex(t.instruction));
            CHECK_NOTHROW(std::regex(t.ptx));
        }
        CHECK((m.group == ir::ThreadGroup::Thread) == (m.most_threads == 1));
        auto last = order.begin();
        for (const std::string& h : m.headers) {  // each exists and stands behind those that it may rely on
            CHECK(mk::texts().contains(h));
            last = std::find(last, order.end(), h);
            CHECK(last != order.end());
        }
        const std::string name = m.function.substr(0, m.function.find('<'));
        CHECK(mk::headers_of(m).find(" " + name + "(") != std::string::npos);
    }
    CHECK(mk::find("common.nothing") == nullptr);
}

TEST_CASE("every microkernel has a valid stamp for each of its targets") {
    for (const Microkernel& m : mk::catalogue())
        for (const auto& t : m.targets)
            CHECK_MESSAGE(mk::stamped(m, *target_named(t.name)), m.id << " on " << t.name << " was changed since it was validated; run `acuc microkernels validate --device emu:" << t.name << " --id " << m.id
                                                                     << " --write microkernels/stamps.json`");
    for (const mk::Stamp& s : mk::stamps())
        CHECK_MESSAGE(mk::valid(s), "the stamp of " << s.id << " on " << s.device << " is out of date; any `acuc microkernels validate … --write microkernels/stamps.json` drops it");
    CHECK_FALSE(mk::stamped(*mk::find("common.block_reduce"), *target_named("cpu")));
    CHECK_FALSE(mk::stamped(*mk::find("common.copy_async"), *target_named("sm_70")));
}

TEST_CASE("a stamp vouches for text and descriptor") {
    Microkernel m = *mk::find("common.warp_reduce");
    const std::string hash = mk::hash_of(m);
    CHECK(hash.size() == 16);
    m.most_threads = 32;
    CHECK(mk::hash_of(m) != hash);
    m = *mk::find("common.warp_reduce");
    m.headers.push_back("scan");
    CHECK(mk::hash_of(m) != hash);
    mk::Stamp s{m.id, "sm_80", "emulated sm_80", hash, "g++ 12.2", "2026-01-31", 7};
    CHECK(mk::valid(s));
    s.hash[0] = s.hash[0] == '0' ? '1' : '0';
    CHECK_FALSE(mk::valid(s));
    s.hash = hash, s.target = "cpu";
    CHECK_FALSE(mk::valid(s));
}

TEST_CASE("stamps are written and read") {
    const std::string hash = mk::hash_of(*mk::find("common.warp_scan"));
    const std::vector<mk::Stamp> old{{"common.warp_scan", "sm_80", "a", hash, "x", "2026-01-01", 1}, {"common.warp_scan", "sm_70", "b", "gone", "x", "2026-01-01", 1}};
    const std::vector<mk::Stamp> made{{"common.warp_scan", "sm_80", "a", hash, "y", "2026-01-02", 2}, {"common.warp_scan", "gfx90a", "c", hash, "y", "2026-01-02", 3}};
    const auto read = mk::parse_stamps(mk::print_stamps(mk::merged(old, made)));
    REQUIRE(read);
    REQUIRE(read->size() == 2);  // the new one in place of its like, and not the one out of date
    CHECK((*read)[0] == made[1]);
    CHECK((*read)[1] == made[0]);
    CHECK(mk::parse_stamps("[]\n")->empty());
    CHECK(mk::print_stamps({}) == "[]\n");
    for (const char* bad : {"", "{", "[1]", R"([{"id": "x"}])"}) {
        const auto parsed = mk::parse_stamps(bad);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.why().code == "stamps.syntax");
    }
}

namespace {

template <class T>
std::string judged(Monoid m, const std::vector<T>& values, T got) {
    Fold<T> f(m);
    for (const T x : values) f.add(x);
    return f.fault(got);
}

}  // namespace

TEST_CASE("the scalar reference tells right from wrong") {
    const float inf = INFINITY, nan = NAN;
    CHECK(judged<float>(Monoid::Sum, {1, 2, 3}, 6).empty());
    CHECK_FALSE(judged<float>(Monoid::Sum, {1, 2, 3}, 5.999f).empty());
    CHECK_FALSE(judged<float>(Monoid::Sum, {1, nan}, 1).empty());
    CHECK(judged<float>(Monoid::Sum, {inf, -inf}, nan).empty());
    CHECK_FALSE(judged<float>(Monoid::Sum, {inf, 1}, 3e38f).empty());
    CHECK_FALSE(judged<float>(Monoid::Sum, {-0.f, -0.f}, 0.f).empty());
    CHECK(judged<float>(Monoid::Sum, {3e38f, 3e38f}, inf).empty());
    CHECK_FALSE(judged<float>(Monoid::Prod, {-2, 3}, 6).empty());
    CHECK(judged<float>(Monoid::Prod, {0, inf}, nan).empty());
    CHECK(judged<float>(Monoid::Max, {1, nan, 2}, nan).empty());
    CHECK_FALSE(judged<float>(Monoid::Max, {1, nan, 2}, 2).empty());
    CHECK_FALSE(judged<float>(Monoid::Min, {-inf, 2}, 2).empty());
    CHECK(judged<int32_t>(Monoid::Sum, {INT32_MAX, 1}, INT32_MIN).empty());
    CHECK(judged<int64_t>(Monoid::Prod, {INT64_MAX, 2}, -2).empty());
    CHECK_FALSE(judged<int32_t>(Monoid::Any, {0, 0}, 1).empty());
    CHECK_FALSE(judged<int32_t>(Monoid::All, {1, 0}, 1).empty());
    CHECK(near(1.f, 1.0L, 0) == true);
    CHECK(near(nan, 1.0L, 1) == false);
    CHECK(near(inf, 1.0L, 1) == false);
}

TEST_CASE("validation on an emulated chip notices a broken microkernel") {
    struct Mutant {
        std::string id, target, from, to;    ///< `from` becomes `to` everywhere
    };
    const Mutant mutants[]{
        {"common.warp_reduce", "sm_80", "mask < ACU_WARP; mask *= 2) x = combine", "mask < ACU_WARP / 2; mask *= 2) x = combine"},  // half a warp
        {"common.warp_reduce", "gfx90a", "mask < ACU_WARP; mask *= 2) x = combine", "mask < 32; mask *= 2) x = combine"},
        {"common.warp_reduce_pair", "sm_70", "if (at >= 0) ", ""},          // an empty place wins
        {"common.warp_scan", "sm_90a", "lane >= distance", "lane > distance"},
        {"common.copy_async", "sm_80", "copy_async_wait<2>", "copy_async_wait<3>"},
        {"common.ring_barrier", "sm_90a", "parity ^ 1", "parity"},
    };
    for (const Mutant& x : mutants) {
        INFO(x.id << " on " << x.target << " with " << x.to);
        const auto on = open_for_validation("emu:" + x.target, {});
        if (!on && on.why().code == "toolkit.missing") {
            MESSAGE("no host compiler: skipped");
            return;
        }
        REQUIRE(on);
        const Microkernel& m = *mk::find(x.id);
        TrialSet set = trials_of(m, *on->target);
        set.trials.resize(std::min<size_t>(set.trials.size(), 3));
        const auto sound = validate(*on, m, set).faults;
        CHECK_MESSAGE(sound.empty(), (sound.empty() ? "" : sound[0]));
        std::string text = set.source();
        REQUIRE(text.find(x.from) != std::string::npos);
        for (size_t at = 0; (at = text.find(x.from, at)) != std::string::npos; at += x.to.size()) text.replace(at, x.from.size(), x.to);
        set.headers = text, set.kernels.clear();
        CHECK_FALSE(validate(*on, m, set).faults.empty());
    }
}
