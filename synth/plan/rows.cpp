#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"
#include "synth/plan/row.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Where a row stays while its statements run: nowhere (it is read again), in registers, in shared memory.
enum class Home { Memory, Registers, Shared };

constexpr int64_t most_registers_bytes = 64 * 1024, most_shared_bytes = 192 * 1024;
/// Vectors that a lane takes of a row that has one warp, which joins its lanes without a barrier.
constexpr int64_t most_of_a_warp = 2;
/// Rows of which nothing wide is kept and that are longer go in slices; others where a block cannot hold them, or where there are too few to fill the device.
constexpr int64_t least_sliced_bytes = 32 * 1024, least_sliced_bytes_kept = 96 * 1024;
/// Rows of which something wide is kept and that are longer have a cluster of blocks each.
constexpr int64_t least_of_a_cluster = 128 * 1024;
/// Rows of 32-bit elements that are longer have two blocks, whose registers hold them; those of 16-bit ones fit into one.
constexpr int64_t least_of_a_pair = 64 * 1024;

/// Whole warps that share the vectors evenly, each thread between half and twice as many as wanted; 0: no such number.
int64_t even_threads(int64_t vectors, int64_t each, int64_t warp, int64_t most) {
    int64_t best = 0;
    for (int64_t t = warp; t <= most; t += warp)
        if (vectors % t == 0 && 2 * vectors >= each * t && vectors <= 2 * each * t && (best == 0 || std::abs(vectors - each * t) * best < std::abs(vectors - each * best) * t)) best = t;
    return best;
}

bool is_few(const Row& r, const Target& target) { return r.rows && *r.rows < target.multiprocessors; }

/// Threads for a row, so that each has about four vectors on their way: one warp if that is enough; long rows in one pass have more threads, and so have rows that are too few to fill the device.
int64_t threads_of(const Row& r, const Target& target) {
    if (!r.points) return 256;
    if (r.threads) return r.threads;
    if (r.vectors() <= most_of_a_warp * target.warp) return target.warp;
    const bool few = is_few(r, target), long_row = r.bytes >= 100 * 1024;
    const int64_t most = few || (long_row && r.reread) ? (target.platform == Platform::Hip ? 512 : 1024) : r.reread || long_row ? 512 : 256;
    const int64_t each = few ? 1 : r.reread && r.bytes <= 2 * 1024 ? 2 : 4;    // where a block has a multiprocessor for itself, latency is all
    if (const int64_t exact = even_threads(r.vectors(), each, target.warp, most)) return exact;
    const int64_t wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (r.vectors() + each - 1) / each))));
    return std::clamp<int64_t>(wanted, target.warp, most);
}

/// Of a row that a thread keeps in registers: with more, the compiler has too few left to load ahead.
constexpr int64_t most_of_a_thread = 32;

/// 16-bit elements share one.
int64_t registers_for(const Row& r, int64_t points) { return points * (r.bytes / *r.points) / 4; }

/// With so many, a second row of intermediate values is kept beside the first; with more it is computed again.
constexpr int64_t most_kept_twice = 16;

/// Do two rows or more fit into the registers of a multiprocessor: what a thread keeps, what it loads ahead for the last statement, and addresses?
bool fits_registers(const Draft& d, const Group& g, const Row& r) {
    constexpr int64_t besides = 40;
    const int64_t threads = threads_of(r, d.target()), points = (r.vectors() + threads - 1) / threads * r.width;
    int64_t ahead = 0;
    for (const std::string& t : inputs_of(d.program(), g))
        if (!is_of_rows(d.program(), g, t)) ahead += points * static_cast<int64_t>(info(d.program().find(t)->type).bytes) / 4;
    const int64_t kept = registers_for(r, points);
    return points <= most_of_a_thread && 2 * threads * (kept + ahead + besides) <= register_file;
}

/// Of this row alone, and not more than an addition and a product.
bool is_cheap(const Program& p, const Group& g, const std::string& tensor) {
    int operations = 0;
    bool plain = true;
    for (const Value& v : block_named(p, tensor)->vals)
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) plain &= is_of_rows(p, g, n.name);
            else if (n.op != Op::Const && n.op != Op::Cast) ++operations;
            plain &= n.op != Op::Call && n.op != Op::Div;
        });
    return plain && operations <= 2;
}

/// Computed from 16-bit inputs, which take half the registers, without choosing among them.
bool is_of_narrow(const Program& p, const std::string& tensor) {
    bool narrow = true;
    for (const Value& v : block_named(p, tensor)->vals)
        visit(v, [&](const ValueNode& n) {
            const Decl* d = n.op == Op::Load ? p.find(n.name) : nullptr;
            narrow &= n.op != Op::Select && (!d || d->dims.size() < 2 || (d->scope == Scope::In && info(d->type).bytes == 2));
        });
    return narrow;
}

std::string why_home(Home h, const Row& r) {
    if (h == Home::Registers) return fmt::format("a row of {} bytes fits into registers: it is read once", r.bytes);
    return fmt::format("a row of {} bytes fits into shared memory: it is read once", r.bytes);
}

class RowKernel {
  public:
    RowKernel(Draft d, const Group& g, const Row& r, Home home) : d_(std::move(d)), g_(g), r_(r), home_(home) {}

    std::optional<Draft> run() {
        const int64_t threads = threads_of(r_, d_.target());
        inline_wide();
        if (!d_.step("fuse", g_.labels, {{"over", tiles_of_rows(g_)}, {"kind", "grid"}}, "one block a row: every sum along the row stays in the block")) return {};
        loop_ = loop_around(d_.program(), g_.labels[0]);
        if (!keep()) return {};
        if (home_ != Home::Memory && !stage()) return {};
        const std::string why = r_.points ? fmt::format("{} threads for {} vectors of {} elements", threads, r_.vectors(), r_.width) : fmt::format("vectors of {} elements", r_.width);
        if (!vectorize_inside(d_, loop_, r_.width, threads, why)) return {};
        approximate_calls(d_, loop_);
        bind_reductions(d_, loop_, threads, r_.cluster);
        return all_bound() ? std::optional(d_) : std::nullopt;
    }

  private:
    /// A reduction that no microkernel joins would run in one thread.
    bool all_bound() const {
        bool all = true;
        for_each_block(d_.program().body, [&](const Block& b, Loc) {
            const bool mine = std::ranges::find(g_.labels, b.label) != g_.labels.end();
            all &= !mine || b.monoid == Monoid::None || !b.via.empty();
        });
        return all;
    }

    /// What would have to be stored, or costs less than the registers that it takes, is computed again where it is used.
    void inline_wide() {
        const bool stored = home_ == Home::Memory;
        const int64_t blocks = std::max<int64_t>(1, r_.threads / block_of_cluster);
        const int64_t threads = threads_of(r_, d_.target()), each = r_.points ? (r_.vectors() + threads - 1) / threads * r_.width : 0;
        int64_t room = blocks * most_shared_bytes / 2 - r_.bytes;    // beside a row of the input, so that two blocks fit
        for (const std::string& t : wide_temporaries(d_.program(), g_)) {
            const bool once = readers_of(d_.program(), g_, t) == 1, cheap = is_cheap(d_.program(), g_, t);
            const int64_t bytes = r_.points.value_or(0) * static_cast<int64_t>(info(d_.program().find(t)->type).bytes);
            const bool fits = home_ != Home::Shared || bytes <= room;
            const bool crowds = home_ == Home::Registers && each > most_kept_twice && is_of_narrow(d_.program(), t);
            if (!stored && !once && !cheap && fits && !crowds) {
                room -= bytes;
                continue;
            }
            const char* why = once ? "it has one use" : stored || !fits ? "computed again where it is used, so that no row of it has to be stored" : "computed again where it is used: that costs less than registers for a row of it";
            if (d_.step("inline", {t}, {}, why)) std::erase(g_.labels, t);
        }
    }

    /// Results of sums in registers; rows in between where the row is at home.
    bool keep() {
        for (const std::string& t : results_of(d_.program(), g_.labels)) {
            const bool wide = is_row_wide(d_.program(), g_, t), temporary = d_.program().find(t)->scope == Scope::Temp;
            const bool used = readers_of(d_.program(), g_, t) > 0 || block_named(d_.program(), t + ".init");
            if (!used) continue;
            const bool done = d_.step("keep", {t}, {{"at", loop_}, {"in", wide && home_ == Home::Shared ? "shared" : "register"}}, wide ? why_home(home_, r_) : "it belongs to the row of the block");
            if (!done && temporary && wide) return false;
        }
        return true;
    }

    bool stage() {
        const std::string in = home_ == Home::Shared ? "shared" : "register";
        for (const std::string& t : inputs_of(d_.program(), g_)) {
            if (readers_of(d_.program(), g_, t) < 2 || !is_of_rows(d_.program(), g_, t)) continue;
            if (!d_.step("stage", {t}, {{"at", loop_}, {"in", in}}, why_home(home_, r_))) return false;
        }
        return true;
    }

    Draft d_;
    Group g_;
    Row r_;
    Home home_;
    std::string loop_;
};

}  // namespace

/// The first way to hold a row that can be lowered.
static std::optional<Draft> whole_rows(const Draft& draft, const Group& g, const Row& r) {
    std::vector<Home> homes;
    if (r.reread && r.points && r.bytes && r.bytes <= most_registers_bytes && fits_registers(draft, g, r)) homes.push_back(Home::Registers);
    if (r.reread && r.points && r.bytes && r.bytes <= std::min(most_shared_bytes, draft.target().shared_bytes) && r.threads == 0) homes.push_back(Home::Shared);
    homes.push_back(Home::Memory);
    for (const Home h : homes)
        if (auto done = RowKernel(draft, g, r, h).run(); done && done->lowers()) return done;
    return {};
}

/// Do the registers of so many blocks hold a row?
static bool hold(int64_t blocks, const Row& r) { return registers_for(r, *r.points) <= blocks * block_of_cluster * most_of_a_thread; }

/// A row that is too long for one block: a cluster has it, in registers, so that nothing stands between its loads and its sums, or in shared memory, so that several clusters take turns.
static std::optional<Draft> rows_of_clusters(const Draft& draft, const Group& g, Row r, Home home, int64_t blocks) {
    if (draft.target().most_cluster < blocks || !r.reread || (home == Home::Registers && !hold(blocks, r))) return {};
    r.threads = block_of_cluster * blocks;
    r.cluster = true;
    auto done = RowKernel(draft, g, r, home).run();
    return done && done->lowers() ? done : std::nullopt;
}

/// Of which something wide is kept: as many blocks as there can be where each cluster stands alone; two where these hold a row of 32-bit elements.
static std::optional<Draft> rows_in_registers_of_clusters(const Draft& draft, const Group& g, const Row& r) {
    const int64_t most = draft.target().most_cluster;
    const bool alone = r.rows && *r.rows * most <= draft.target().multiprocessors;
    if (most > 1 && alone && r.bytes > least_of_a_cluster) return rows_of_clusters(draft, g, r, Home::Registers, most);
    return r.bytes >= least_of_a_pair && r.bytes >= 4 * *r.points ? rows_of_clusters(draft, g, r, Home::Registers, 2) : std::nullopt;
}

/// Long rows: several blocks for each, of which there are many or few.
static std::optional<Draft> long_rows(const Draft& draft, const Group& g, const Row& r) {
    const auto lowered = [](std::optional<Draft> done) { return done && done->lowers() ? std::move(done) : std::nullopt; };
    const bool few = is_few(r, draft.target());
    if (few && (!r.points || r.bytes >= least_sliced_bytes))
        if (auto done = lowered(sliced_scans(draft, g, r.points, r.width))) return done;
    if (!r.points || r.bytes < least_sliced_bytes) return {};
    const bool kept = std::ranges::any_of(results_of(draft.program(), g.labels), [&](const std::string& t) { return draft.program().find(t)->scope == Scope::Out && is_row_wide(draft.program(), g, t); });
    if (kept)
        if (auto done = rows_in_registers_of_clusters(draft, g, r)) return done;
    if (r.bytes >= (!kept ? least_sliced_bytes : few ? least_sliced_bytes_kept : most_shared_bytes + 1))
        if (auto done = lowered(sliced_rows(draft, g, *r.points, r.width))) return done;
    if (r.bytes > most_shared_bytes)
        if (auto done = lowered(sliced_moments(draft, g, r.bytes, r.width))) return done;
    if (few)
        if (auto done = lowered(sliced_sums(draft, g, *r.points, r.width))) return done;
    return kept && r.bytes > least_of_a_cluster ? rows_of_clusters(draft, g, r, Home::Shared, r.bytes <= 256 * 1024 ? 4 : 8) : std::nullopt;
}

std::optional<Draft> rows_kernel(const Draft& draft, const Group& g) {
    const Row r = row_of(draft, g, false), part = row_of(draft, g, true);
    if (part.threads)
        if (auto done = whole_rows(draft, g, part)) return done;
    if (auto done = long_rows(draft, g, r)) return done;
    return whole_rows(draft, g, r);
}

}  // namespace acu::synth::plan
