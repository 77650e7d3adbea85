#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Where a row stays while its statements run: nowhere (it is read again), in registers, in shared memory, or tile by tile in registers while running sums go on (online).
enum class Home { Memory, Registers, Shared, Tiles };

/// What the tables need to know of the rows of a group.
struct Row {
    std::optional<int64_t> points;    ///< of one row
    std::optional<int64_t> rows;
    int64_t width = 1;                ///< elements a thread takes together
    int64_t bytes = 0;                ///< of the widest input's row; 0: not known
    bool reread = false;              ///< an input or an intermediate row is used by more than one statement
    int64_t vectors() const { return (*points + width - 1) / width; }
};

constexpr int64_t most_registers_bytes = 64 * 1024, most_shared_bytes = 192 * 1024;
/// Vectors that a lane takes of a row that has one warp, which joins its lanes without a barrier.
constexpr int64_t most_of_a_warp = 2;
/// Of a tile that a thread holds; longer rows of which nothing is kept go by tiles.
constexpr int64_t tile_points = 16, least_tiled_bytes = 32 * 1024;

bool is_wide(const Block& b, const Group& g) {
    return std::ranges::any_of(b.axes, [&](const Axis& a) { return std::ranges::find(g.rows, a.name) == g.rows.end(); });
}

/// Buffers whose row is not one cell: the subscripts name an axis that is not one of the rows.
bool is_row_wide(const Program& p, const Group& g, const std::string& tensor) {
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        for (const analysis::Touch& t : analysis::touches(b))
            if (t.tensor == tensor)
                for (const Index& i : t.subscripts)
                    for (const std::string& n : analysis::names_in(i))
                        if (analysis::axis_of(b, n) && std::ranges::find(g.rows, n) == g.rows.end()) return true;
    }
    return false;
}

int readers_of(const Program& p, const Group& g, const std::string& tensor) {
    int n = 0;
    for (const std::string& label : g.labels) n += !analysis::loads_of(*block_named(p, label), tensor).empty();
    return n;
}

std::vector<std::string> inputs_of(const Program& p, const Group& g) {
    std::vector<std::string> out;
    for (const std::string& label : g.labels)
        for (const analysis::Touch& t : analysis::touches(*block_named(p, label)))
            if (const Decl* d = p.find(t.tensor); d && d->scope == Scope::In && !t.write && is_row_wide(p, g, t.tensor) && std::ranges::find(out, t.tensor) == out.end()) out.push_back(t.tensor);
    return out;
}

/// Inputs of which each row has its own part.
bool is_of_rows(const Program& p, const Group& g, const std::string& tensor) {
    for (const std::string& label : g.labels)
        for (const Value& v : analysis::loads_of(*block_named(p, label), tensor)) {
            std::set<std::string> names;
            for (const Index& i : v->subscripts) names.merge(analysis::names_in(i));
            if (std::ranges::any_of(g.rows, [&](const std::string& r) { return names.contains(r); })) return true;
        }
    return false;
}

Row row_of(const Draft& d, const Group& g) {
    const Program& p = d.program();
    Row r;
    int64_t points = 1;
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        int64_t mine = 1;
        bool known = true;
        for (const Axis& a : b.axes) {
            if (std::ranges::find(g.rows, a.name) != g.rows.end()) continue;
            const auto n = size_of(p, a.size);
            known &= n.has_value();
            mine *= n.value_or(1);
        }
        if (!known) points = 0;
        if (points) points = std::max(points, mine);
    }
    if (points) r.points = points;
    int64_t rows = 1;
    for (const std::string& a : g.rows) rows *= size_of(p, analysis::axis_of(*block_named(p, g.labels[0]), a)->size).value_or(0);
    if (rows) r.rows = rows;
    std::vector<std::string> wide;
    std::optional<int64_t> inner;
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        if (is_wide(b, g)) wide.push_back(label);
        if (const Axis* a = analysis::axis_of(b, g.inner); a && !inner) inner = size_of(p, a->size);
    }
    r.width = vector_width(d, wide, inner);
    while (r.points && r.width > 2 && r.width * d.target().warp > *r.points) r.width /= 2;    // narrower, so that every lane has some
    for (const std::string& t : inputs_of(p, g)) {
        if (!is_of_rows(p, g, t)) continue;
        if (r.points) r.bytes = std::max(r.bytes, *r.points * static_cast<int64_t>(info(p.find(t)->type).bytes));
        r.reread |= readers_of(p, g, t) > 1;
    }
    for (const std::string& t : results_of(p, g.labels)) r.reread |= is_row_wide(p, g, t) && readers_of(p, g, t) > 0;
    return r;
}

/// Whole warps that share the vectors evenly, each thread between half and twice as many as wanted; 0: no such number.
int64_t even_threads(int64_t vectors, int64_t each, int64_t warp, int64_t most) {
    int64_t best = 0;
    for (int64_t t = warp; t <= most; t += warp)
        if (vectors % t == 0 && 2 * vectors >= each * t && vectors <= 2 * each * t && (best == 0 || std::abs(vectors - each * t) * best < std::abs(vectors - each * best) * t)) best = t;
    return best;
}

/// Threads for a row, so that each has about four vectors on their way: one warp if that is enough; long rows in one pass have more threads, and so have rows that are too few to fill the device.
int64_t threads_of(const Row& r, const Target& target) {
    if (!r.points) return 256;
    if (r.vectors() <= most_of_a_warp * target.warp) return target.warp;
    const bool few = r.rows && *r.rows <= 2 * target.multiprocessors, long_row = r.bytes >= 100 * 1024;
    const int64_t most = few && long_row ? 1024 : r.reread || long_row ? 512 : 256;
    const bool short_row = r.bytes <= 2 * 1024, even = std::has_single_bit(static_cast<uint64_t>(r.vectors())), middle = even && r.bytes > 8 * 1024 && r.bytes <= 16 * 1024;
    const int64_t each = r.reread && (short_row || middle) ? 2 : 4;
    if (const int64_t exact = even_threads(r.vectors(), each, target.warp, most)) return exact;
    const int64_t wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (r.vectors() + each - 1) / each))));
    return std::clamp<int64_t>(wanted, target.warp, most);
}

std::vector<std::string> wide_temporaries(const Program& p, const Group& g) {
    std::vector<std::string> out;
    for (const std::string& t : results_of(p, g.labels))
        if (p.find(t)->scope == Scope::Temp && is_row_wide(p, g, t) && block_named(p, t) && block_named(p, t)->monoid == Monoid::None) out.push_back(t);
    return out;
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

bool reads(const Value& v, const std::string& tensor) {
    bool found = false;
    visit(v, [&](const ValueNode& n) { found |= n.op == Op::Load && n.name == tensor; });
    return found;
}

/// A maximum, and a sum of exponentials of what it is the maximum of.
struct Running {
    std::string top, sum;
};
std::optional<Running> running_of(const Program& p, const Group& g) {
    for (const std::string& top : g.labels)
        for (const std::string& sum : g.labels) {
            const Block &m = *block_named(p, top), &s = *block_named(p, sum);
            bool exponential = false;
            for (const Value& v : s.vals)
                visit(v, [&](const ValueNode& n) { exponential |= n.op == Op::Call && n.name == "exp" && reads(n.args[0], m.outs[0].tensor); });
            if (m.monoid == Monoid::Max && s.monoid == Monoid::Sum && exponential) return Running{top, sum};
        }
    return {};
}

std::string why_home(Home h, const Row& r) {
    if (h == Home::Tiles) return "a tile is read once for the maximum and the sum";
    if (h == Home::Registers) return fmt::format("a row of {} bytes fits into registers: it is read once", r.bytes);
    return fmt::format("a row of {} bytes fits into shared memory: it is read once", r.bytes);
}

class RowKernel {
  public:
    RowKernel(Draft d, const Group& g, const Row& r, Home home) : d_(std::move(d)), g_(g), r_(r), home_(home) {}

    std::optional<Draft> run() {
        const int64_t threads = home_ == Home::Tiles ? 512 : threads_of(r_, d_.target());
        inline_wide();
        std::optional<Running> running;
        if (home_ == Home::Tiles && !(running = apart())) return {};
        pass::Sizes over;
        for (const std::string& a : g_.rows) over.emplace_back(a, 1);
        if (!d_.step("fuse", g_.labels, {{"over", over}, {"kind", "grid"}}, "one block a row: every sum along the row stays in the block")) return {};
        loop_ = loop_around(d_.program(), g_.labels[0]);
        if (running && !go_online(*running, threads * tile_points)) return {};
        if (!keep()) return {};
        if (home_ != Home::Memory && !stage()) return {};
        if (running && !d_.step("inline", {exponential_}, {}, "where it is added")) return {};
        const std::string why = r_.points ? fmt::format("{} threads for {} vectors of {} elements", threads, r_.vectors(), r_.width) : fmt::format("vectors of {} elements", r_.width);
        if (!vectorize_inside(d_, loop_, r_.width, threads, why)) return {};
        approximate_calls(d_, loop_);
        bind_reductions(d_, loop_, threads);
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
        const bool stored = home_ == Home::Memory || home_ == Home::Tiles;
        for (const std::string& t : wide_temporaries(d_.program(), g_)) {
            if (!stored && !is_cheap(d_.program(), g_, t)) continue;
            const char* why = stored ? "computed again where it is used, so that no row has to be stored" : "computed again where it is used: that costs less than registers for a row of it";
            if (d_.step("inline", {t}, {}, why)) std::erase(g_.labels, t);
        }
    }

    /// The exponential as a statement of its own, which `online` moves.
    std::optional<Running> apart() {
        const auto running = running_of(d_.program(), g_);
        if (!running) return {};
        exponential_ = running->sum + ".e";
        if (!d_.step("outline", {running->sum}, {{"call", "exp"}, {"into", exponential_}}, "so that it can follow the running maximum")) return {};
        g_.labels.insert(std::ranges::find(g_.labels, running->sum), exponential_);
        return running;
    }

    bool go_online(const Running& x, int64_t tile) {
        const std::string axis = axes_of_kind(*block_named(d_.program(), x.top), false)[0].name;
        const int64_t size = r_.points ? std::min<int64_t>(tile, *r_.points) : tile;
        if (!d_.step("online", {x.top}, {{"over", pass::Sizes{{axis, size}}}, {"exp", exponential_}}, fmt::format("maximum and sum in one pass over the row, by tiles of {}", size))) return false;
        tiles_ = loop_around(d_.program(), x.top);
        return true;
    }

    /// Results of sums in registers; rows in between where the row is at home.
    bool keep() {
        for (const std::string& t : results_of(d_.program(), g_.labels)) {
            const bool wide = is_row_wide(d_.program(), g_, t), temporary = d_.program().find(t)->scope == Scope::Temp;
            const bool used = readers_of(d_.program(), g_, t) > 0 || block_named(d_.program(), t + ".init");
            if (!used) continue;
            const std::string& at = t == exponential_ ? tiles_ : loop_;
            const bool done = d_.step("keep", {t}, {{"at", at}, {"in", wide && home_ == Home::Shared ? "shared" : "register"}}, wide ? why_home(home_, r_) : "it belongs to the row of the block");
            if (!done && temporary && wide) return false;
        }
        return true;
    }

    bool stage() {
        const std::string in = home_ == Home::Shared ? "shared" : "register";
        for (const std::string& t : inputs_of(d_.program(), g_)) {
            if (readers_of(d_.program(), g_, t) < 2 || !is_of_rows(d_.program(), g_, t)) continue;
            if (!d_.step("stage", {t}, {{"at", home_ == Home::Tiles ? tiles_ : loop_}, {"in", in}}, why_home(home_, r_))) return false;
        }
        return true;
    }

    Draft d_;
    Group g_;
    Row r_;
    Home home_;
    std::string loop_;
    std::string tiles_, exponential_;    ///< of `Tiles`: the loop over tiles, and what is added
};

}  // namespace

std::optional<Draft> rows_kernel(const Draft& draft, const Group& g) {
    const Row r = row_of(draft, g);
    std::vector<Home> homes;
    const bool kept = std::ranges::any_of(results_of(draft.program(), g.labels), [&](const std::string& t) { return draft.program().find(t)->scope == Scope::Out && is_row_wide(draft.program(), g, t); });
    if (!kept && r.bytes >= least_tiled_bytes) homes.push_back(Home::Tiles);
    if (r.reread && r.points && r.bytes && r.bytes <= most_registers_bytes) homes.push_back(Home::Registers);
    if (r.reread && r.points && r.bytes && r.bytes <= std::min(most_shared_bytes, draft.target().shared_bytes)) homes.push_back(Home::Shared);
    if (kept && r.bytes > most_shared_bytes) homes.push_back(Home::Tiles);
    homes.push_back(Home::Memory);
    for (const Home h : homes)
        if (auto done = RowKernel(draft, g, r, h).run(); done && done->lowers()) return done;
    return {};
}

}  // namespace acu::synth::plan
