#include <fmt/format.h>

#include "ir/pass/producer.h"

namespace acu::ir::pass {
namespace {

/// for at { … for k { x.t = x[…]; c += x.t[…] } }
/// ->  for at { roles { role producer { … for k { acquire x.t{k}; x.t{k} = x[…]; commit x.t{k} } } role consumer { … for k { wait x.t{k}; c += x.t{k}[…]; release x.t{k} } } } }
struct WarpSpecialize {
    static constexpr std::string_view name = "warp_specialize", doc = "give copies to a role of their own, which runs ahead of the rest as far as the rings allow";
    static constexpr std::string_view picture =
        "for at { … for k { x.t = x[…]; c += x.t[…] } }\n-> for at { roles { role producer { … for k { acquire x.t{k}; x.t{k} = x[…]; commit x.t{k} } } role consumer { … for k { wait x.t{k}; c += x.t{k}[…]; release x.t{k} } } } }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        std::vector<std::string> copies;
        int64_t stages = 2, threads = 32, lag = 0;
        static constexpr auto fields = std::tuple{
            required("copies", &Params::copies, +[] { return names(); }, "the copies that the producer makes, all of one loop"),
            required("stages", &Params::stages, +[] { return integers(1, 16, {2, 3, 4, 5, 6}); }, "versions of each ring"),
            optional("threads", &Params::threads, +[] { return integers(32, 1024, {32, 128}); }, "threads of the producer, whole warps"),
            optional("lag", &Params::lag, +[] { return integers(0, 1, {0, 1}); }, "iterations whose wgmma products stay in flight while those of the next begin: with 1, a version is released one iteration later")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context& context) {
        need(!context.target || context.target->mbarrier, "warp_specialize.target", fmt::format("{} has no barriers in shared memory by which roles could wait for each other", context.target ? context.target->name : ""), "see pipeline, which needs no roles");
        need(p.threads % 32 == 0, "warp_specialize.threads", fmt::format("{} threads are no whole warps of 32", p.threads));
        return split_producer(site.program, {site.name(), p.copies, p.stages, p.threads, p.lag});
    }
};

}  // namespace

Pass warp_specialize_pass() { return make_pass<WarpSpecialize>(); }

}  // namespace acu::ir::pass
