#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/kernels.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Where a row stays while its statements run: nowhere (it is read again), in registers, in shared memory.
enum class Home { Memory, Registers, Shared };

/// What the tables need to know of the rows of a group.
struct Row {
    std::optional<int64_t> points;    ///< of one row
    int64_t width = 1;                ///< elements a thread takes together
    int64_t bytes = 0;                ///< of the widest input's row; 0: not known
    bool reread = false;              ///< an input or an intermediate row is used by more than one statement
    int64_t vectors() const { return (*points + width - 1) / width; }
};

constexpr int64_t most_registers_bytes = 64 * 1024, most_shared_bytes = 192 * 1024;

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
    std::vector<std::string> wide;
    std::optional<int64_t> inner;
    for (const std::string& label : g.labels) {
        const Block& b = *block_named(p, label);
        if (is_wide(b, g)) wide.push_back(label);
        if (const Axis* a = analysis::axis_of(b, g.inner); a && !inner) inner = size_of(p, a->size);
    }
    r.width = vector_width(d, wide, inner);
    for (const std::string& t : inputs_of(p, g)) {
        if (!is_of_rows(p, g, t)) continue;
        if (r.points) r.bytes = std::max(r.bytes, *r.points * static_cast<int64_t>(info(p.find(t)->type).bytes));
        r.reread |= readers_of(p, g, t) > 1;
    }
    for (const std::string& t : results_of(p, g.labels)) r.reread |= is_row_wide(p, g, t) && readers_of(p, g, t) > 0;
    return r;
}

/// Threads for a row, so that each has about four vectors on their way; long rows in one pass have more threads.
int64_t threads_of(const Row& r, const Target& target) {
    const int64_t most = r.reread ? 512 : 256;
    if (!r.points) return 256;
    const bool short_row = r.bytes <= 2 * 1024, even = std::has_single_bit(static_cast<uint64_t>(r.vectors())), middle = even && r.bytes > 8 * 1024 && r.bytes <= 16 * 1024;
    const int64_t each = r.reread && (short_row || middle) ? 2 : 4;
    const int64_t wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (r.vectors() + each - 1) / each))));
    const int64_t longer = !r.reread && r.bytes >= 100 * 1024 ? 512 : most;
    return std::clamp<int64_t>(wanted, target.warp, longer);
}

std::vector<std::string> wide_temporaries(const Program& p, const Group& g) {
    std::vector<std::string> out;
    for (const std::string& t : results_of(p, g.labels))
        if (p.find(t)->scope == Scope::Temp && is_row_wide(p, g, t) && block_named(p, t) && block_named(p, t)->monoid == Monoid::None) out.push_back(t);
    return out;
}

std::string why_home(Home h, const Row& r) {
    if (h == Home::Registers) return fmt::format("a row of {} bytes fits into registers: it is read once", r.bytes);
    return fmt::format("a row of {} bytes fits into shared memory: it is read once", r.bytes);
}

class RowKernel {
  public:
    RowKernel(Draft d, const Group& g, const Row& r, Home home) : d_(std::move(d)), g_(g), r_(r), home_(home) {}

    std::optional<Draft> run() {
        if (home_ == Home::Memory) inline_wide();
        pass::Sizes over;
        for (const std::string& a : g_.rows) over.emplace_back(a, 1);
        if (!d_.step("fuse", g_.labels, {{"over", over}, {"kind", "grid"}}, "one block a row: every sum along the row stays in the block")) return {};
        loop_ = loop_around(d_.program(), g_.labels[0]);
        if (!keep()) return {};
        if (home_ != Home::Memory && !stage()) return {};
        const int64_t threads = threads_of(r_, d_.target());
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

    /// What would have to be stored is computed again where it is used.
    void inline_wide() {
        for (const std::string& t : wide_temporaries(d_.program(), g_))
            if (d_.step("inline", {t}, {}, "computed again where it is used, so that no row has to be stored")) std::erase(g_.labels, t);
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
        const std::string in = home_ == Home::Registers ? "register" : "shared";
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

std::optional<Draft> rows_kernel(const Draft& draft, const Group& g) {
    const Row r = row_of(draft, g);
    std::vector<Home> homes;
    if (r.reread && r.points && r.bytes && r.bytes <= most_registers_bytes) homes.push_back(Home::Registers);
    if (r.reread && r.points && r.bytes && r.bytes <= std::min(most_shared_bytes, draft.target().shared_bytes)) homes.push_back(Home::Shared);
    homes.push_back(Home::Memory);
    for (const Home h : homes)
        if (auto done = RowKernel(draft, g, r, h).run(); done && done->lowers()) return done;
    return {};
}

}  // namespace acu::synth::plan
