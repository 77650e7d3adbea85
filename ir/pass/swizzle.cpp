#include <fmt/format.h>

#include <bit>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// x.t: shared f16[128, 64]  ->  x.t: shared f16[128, 64] swizzle(128)
struct Swizzle {
    static constexpr std::string_view name = "swizzle", doc = "permute the 16-byte chunks of the rows of a shared buffer against bank conflicts: `swizzle(x.t, pattern = 128)`";
    static constexpr std::string_view picture = "x.t: shared f16[128, 64]\n-> x.t: shared f16[128, 64] swizzle(128)";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Buffer}, 1, 1}; }

    struct Params {
        std::string pattern, panels = "no";
        int64_t rows = 1;
        static constexpr auto fields = std::tuple{required("pattern", &Params::pattern, +[] { return words({"128", "64", "32", "none"}); }, "bytes that are permuted together: the longest that divides a row is best"),
            optional("rows", &Params::rows, +[] { return integers(1, 16, {1, 4, 8, 16}); }, "so many rows in a row are permuted alike (a power of 2), for threads that read that many rows each down a column: 1 without it"),
            optional("panels", &Params::panels, +[] { return words({"no", "yes"}); }, "whether longer rows are cut into panels as wide as the pattern, one after another, as the copy engine and wgmma want them")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Decl& d = find_buffer(site.program, site.name());
        const int64_t pattern = p.pattern == "none" ? 0 : std::stoll(p.pattern);
        need(d.scope == Scope::Shared, "swizzle.scope", fmt::format("`{}` is {}: only shared memory has banks that a block chooses", d.name, name_of(d.scope)), "", d.loc);
        if (pattern) fits(site.program, d, pattern);
        need(std::has_single_bit(static_cast<uint64_t>(p.rows)), "swizzle.alike", fmt::format("{} rows alike are no power of 2", p.rows), "take 4, 8 or 16");
        const bool panels = p.panels == "yes" && pattern;
        need(!panels || p.rows == 1, "swizzle.panels", "the rows of panels are permuted one by one", "leave out `rows`");
        return {edit_decls(site.program, d.name, [&](Decl& x) { x.swizzle = pattern, x.swizzle_rows = pattern ? p.rows : 1, x.panels = panels; }), {}};
    }

    /// ir/layout_use.h, shared_tile: panels of rows of `pattern` bytes, eight rows an atom.
    static void fits(const Program& p, const Decl& d, int64_t pattern) {
        need(d.dims.size() >= 2, "swizzle.rank", fmt::format("`{}` has {} dimension{}: it has no rows to tell apart", d.name, d.dims.size(), d.dims.size() == 1 ? "" : "s"), "", d.loc);
        const Facts facts = facts_at(p, {});
        const auto columns = facts.value(d.dims.back().size);
        std::optional<int64_t> rows = 1;    // of all dimensions before the last, as they lie in memory
        for (size_t i = 0; i + 1 < d.dims.size(); ++i) {
            const auto n = facts.value(d.dims[i].size);
            rows = rows && n ? std::optional(*rows * *n) : std::nullopt;
        }
        need(columns && rows, "swizzle.size", fmt::format("the rows of `{}`, {} by {}, have no length known at compile time", d.name, print(d.dims[d.dims.size() - 2].size), print(d.dims.back().size)), "tile its axes first", d.loc);
        const int64_t bytes = *columns * static_cast<int64_t>(ir::info(d.type).bytes);
        need(bytes % pattern == 0 && bytes > 0, "swizzle.row", fmt::format("a row of `{}` has {} bytes, no multiple of {}", d.name, bytes, pattern), "take a smaller pattern or a longer tile", d.loc);
        need(*rows % 8 == 0, "swizzle.rows", fmt::format("`{}` has {} rows, no multiple of 8, over which the pattern repeats", d.name, *rows), "take a tile of a multiple of 8 rows", d.loc);
    }
};

}  // namespace

Pass swizzle_pass() { return make_pass<Swizzle>(); }

}  // namespace acu::ir::pass
