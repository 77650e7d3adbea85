#include "ir/pass/keeper.h"

namespace acu::ir::pass {
namespace {

/// for m.o { acc.init: acc[m] = 0; acc: acc[m] += …; y: y[m] = acc[m] }
/// ->  for m.o { acc.t: register f32[4*m.o +: 4]  acc.init: acc.t[m] = 0; acc: acc.t[m] += …; y: y[m] = acc.t[m] }
struct Keep {
    static constexpr std::string_view name = "keep", doc = "a temporary or an output gets a window of its own in each iteration of a loop; an output, or what is read after the loop, is stored from it once it is complete";
    static constexpr std::string_view picture = "for m.o { acc[m] = 0; acc[m] += …; y[m] = acc[m] }\n-> for m.o { acc.t: register f32[4*m.o +: 4]  acc.t[m] = 0; acc.t[m] += …; y[m] = acc.t[m] }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Buffer}, 1, 1}; }

    struct Params {
        std::string at, in = "register";
        static constexpr auto fields = std::tuple{optional("at", &Params::at, +[] { return a_name(); }, "the loop; left out, the innermost one that holds all uses"),
                                                  optional("in", &Params::in, +[] { return words({"register", "shared", "cluster"}); }, "the memory")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return keep_buffer(site.program, site.name(), p.at, scope_named(p.in)); }
};

}  // namespace

Pass keep_pass() { return make_pass<Keep>(); }

}  // namespace acu::ir::pass
