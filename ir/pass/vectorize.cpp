#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// y[m, n] = x[m, n] over m, n  ->  y[m, n] = x[m, n] over m, n vec(8)
struct Vectorize {
    static constexpr std::string_view name = "vectorize", doc = "how many neighbours along an axis one thread takes together: `vectorize(y, n, width = 8, threads = 128)`";
    static constexpr std::string_view picture = "y[m, n] = x[m, n] over m in M, n in N\n-> y[m, n] = x[m, n] over m in M, n in N vec(8)";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement, SiteKind::Axis}, 1, 2}; }

    struct Params {
        int64_t width = 1, threads = 0;
        static constexpr auto fields = std::tuple{
            required("width", &Params::width, +[] { return integers(1, 64, {1, 2, 4, 8, 16}); }, "elements, a power of two; of what lies in memory at most 32 bytes"),
            optional("threads", &Params::threads, +[] { return integers(0, 8192, {64, 128, 256, 512}); }, "threads of a block of this kernel; a part of a warp: of several; more than 1024: of a cluster of blocks; 0: not decided here")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context& context) {
        const Place at = find_block(site.program, site.name());
        Block b = block_of(at);
        need(std::has_single_bit(static_cast<uint64_t>(p.width)), "vectorize.power", fmt::format("a width of {} is no power of two", p.width), "take 1, 2, 4, 8 or 16");
        need(b.via.empty(), "vectorize.bound", fmt::format("`{}` is done by the microkernel `{}`, which decides that", b.label, b.via), "", at.stmt->loc);
        Axis& a = *axis_for(b, site.names, at.stmt->loc);
        const auto size = facts_at(site.program, {}).value(a.size);
        need(!size || *size % p.width == 0, "vectorize.size", fmt::format("`{}` of `{}` has {} points, no multiple of {}", a.name, b.label, size.value_or(0), p.width), "take a smaller width, or tile by a multiple of it", at.stmt->loc);
        if (p.width > 1) contiguous(site.program, at, b, a, p.width);
        a.vector = p.width;
        Program out = replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(b))});
        if (p.threads) out = with_threads(std::move(out), at, p.threads, context.target ? context.target->warp : 32);
        return {std::move(out), {}};
    }

    static constexpr int64_t most_bytes = 32;    ///< two accesses of 16 bytes

    static int64_t bytes_of(DType t) { return static_cast<int64_t>(ir::info(t).bytes); }

    static Axis* axis_for(Block& b, const std::vector<std::string>& names, Loc loc) {
        if (names.size() > 1) {
            const auto it = std::ranges::find(b.axes, names[1], &Axis::name);
            need(it != b.axes.end(), "vectorize.axis", fmt::format("`{}` has no axis `{}`", b.label, names[1]), "", loc);
            return &*it;
        }
        Axis* last = nullptr;
        for (Axis& a : b.axes)
            if (a.kind == AxisKind::Par) last = &a;
        need(last, "vectorize.axis", fmt::format("`{}` has no parallel axis", b.label), "name the axis", loc);
        return last;
    }

    static void contiguous(const Program& p, const Place& at, const Block& b, const Axis& a, int64_t width) {
        bool last = false, memory = false;
        for (const Touch& t : touches(b)) {
            const Decl* d = buffer_at(p, at, t.tensor);
            if (!d || t.subscripts.empty()) continue;
            const auto e = affine(t.subscripts.back(), a.name);
            const bool next = e && is_const(e->coefficient, 1);
            last |= next;
            if (d->scope == Scope::Register || d->scope == Scope::Param) continue;
            memory |= next;
            need(!next || width * bytes_of(d->type) <= most_bytes, "vectorize.width", fmt::format("{} elements of `{}`, which is {}, are {} bytes: a thread reaches at most {} at once", width, d->name, name_of(d->type), width * bytes_of(d->type), most_bytes),
                 fmt::format("take width = {}", most_bytes / bytes_of(d->type)), at.stmt->loc);
        }
        need(last, "vectorize.last", fmt::format("`{}` is not the last subscript of any buffer of `{}`: its points do not lie next to each other", a.name, b.label), "name another axis", at.stmt->loc);
    }

    static Program with_threads(Program p, const Place& at, int64_t threads, int warp) {
        const auto loops = loops_of(at.above);
        const auto grid = std::ranges::find_if(loops, [](const Stmt& s) { return as_loop(s)->kind == LoopKind::Grid; });
        need(grid != loops.end(), "vectorize.grid", fmt::format("`{}` stands in no grid loop whose blocks could have {} threads", block_of(at).label, threads), "bind a loop around it to grid first", at.stmt->loc);
        need(threads % warp == 0 || warp % threads == 0, "vectorize.warp", fmt::format("{} threads are no multiple of the {} that run in step, and no even part of them", threads, warp), "");
        const std::string var = as_loop(*grid)->var;
        const int64_t before = as_loop(*grid)->threads;
        need(before == 0 || before == threads, "vectorize.threads", fmt::format("the blocks of `{}` have {} threads already, not {}", var, before, threads), "all statements of a kernel have the same threads: give the number once");
        return edit(std::move(p), [&](const Stmt& s) -> std::optional<Body> {
            if (!as_loop(s) || as_loop(s)->var != var) return {};
            Loop l = *as_loop(s);
            l.threads = threads;
            return Body{with_node(s, std::move(l))};
        });
    }
};

}  // namespace

Pass vectorize_pass() { return make_pass<Vectorize>(); }

}  // namespace acu::ir::pass
