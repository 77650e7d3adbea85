#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/skew_loop.h"

namespace acu::ir::pass {
namespace {

/// for k in T { x.t = x[k]; acc += x.t }
/// ->  for k.pre in min(2, T) { x.t{k.pre} = x[k.pre] }; for k^ in T { if k + 2 < T { x.t{k + 2} = x[k + 2] }; acc += x.t{k} }
struct Pipeline {
    static constexpr std::string_view name = "pipeline", doc = "start the copies of a loop `stages - 1` iterations before they are read";
    static constexpr std::string_view picture =
        "for k in T { x.t = x[k]; acc += x.t }\n-> for k.pre^ in min(2, T) { x.t{k.pre} = x[k.pre] }; for k^ in T { if k + 2 < T { x.t{k + 2} = x[k + 2] }; acc += x.t{k} }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Loop}, 1, 1}; }

    struct Params {
        int64_t stages = 2, lag = 0;
        static constexpr auto fields = std::tuple{
            required("stages", &Params::stages, +[] { return integers(2, 16, {2, 3, 4, 5}); }, "versions of a copy: one that is read, the others on their way"),
            optional("lag", &Params::lag, +[] { return integers(0, 1, {0, 1}); }, "products that stay in flight when the next begins: 1 gives the copies one more version")};
    };

    /// Copies into the loop's own buffers that read nothing the loop writes.
    static std::vector<Stmt> copies_of(const Loop& l) {
        const std::set<std::string> made = written(l.body);
        std::vector<Stmt> out;
        for (const Stmt& s : l.body) {
            const Block* b = as_block(s);
            if (!b || !is_copy(*b) || meet(tensors_read(*b), made)) continue;
            if (std::ranges::find(l.allocs, b->outs[0].tensor, &Decl::name) != l.allocs.end()) out.push_back(s);
        }
        return out;
    }

    /// Only a product that the hardware runs by itself can still read a version after the statement is through.
    static bool reads_late(const Loop& l, const std::vector<Stmt>& copies) {
        const std::set<std::string> filled = written(Body(copies));
        return std::ranges::any_of(block_stmts(l.body), [&](const Stmt& s) { return as_block(s)->via.find("wgmma") != std::string::npos && meet(tensors_read(*as_block(s)), filled); });
    }

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Loop& l = loop_of(find_loop(site.program, site.name()));
        const std::vector<Stmt> copies = copies_of(l);
        need(!copies.empty(), "pipeline.copies", fmt::format("`{}` has no copies into buffers of its own to start early", l.var), "stage what it reads at this loop first");
        need(p.lag == 0 || reads_late(l, copies), "pipeline.lag", fmt::format("no product of `{}` runs by itself, so that none can stay in flight", l.var), "bind it to a wgmma microkernel first, or leave `lag` out");
        SkewRequest r{site.name(), {}, {}, p.stages - 1, p.lag};
        for (const Stmt& s : copies) r.ahead.push_back(as_block(s)->label);
        return skew_loop(site.program, r, "pipeline");
    }
};

}  // namespace

Pass pipeline_pass() { return make_pass<Pipeline>(); }

}  // namespace acu::ir::pass
