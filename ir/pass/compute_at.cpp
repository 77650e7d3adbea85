#include "ir/pass/recompute.h"

namespace acu::ir::pass {
namespace {

/// t[i] = f(i) over i in N;  for i.o { y[i] = t[i - 1] + t[i] over i in 4*i.o +: 4 }
/// ->  for i.o { t.t: register[4*i.o - 1 +: 5]; t.t[i] = f(i) over i in 4*i.o - 1 +: 5 where 0 <= i; y[i] = t.t[i - 1] + t.t[i] … }
struct ComputeAt {
    static constexpr std::string_view name = "compute_at", doc = "compute a temporary inside a loop of its readers, as much of it as an iteration reads: `compute_at(t, at = i.o)`";
    static constexpr std::string_view picture = "t[i] = f(i) over i in N; for i.o { y[i] = t[i - 1] + t[i] over i in 4*i.o +: 4 }\n-> for i.o { t.t[i] = f(i) over i in 4*i.o - 1 +: 5 where 0 <= i; y[i] = t.t[i - 1] + t.t[i] over i in 4*i.o +: 4 }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string at;
        static constexpr auto fields = std::tuple{required("at", &Params::at, +[] { return a_name(); }, "the loop: its iterations compute what they read, also where several read the same")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return recompute(site.program, site.name(), p.at); }
};

}  // namespace

Pass compute_at_pass() { return make_pass<ComputeAt>(); }

}  // namespace acu::ir::pass
