#include "acuc/microkernel_trials.h"

#include <algorithm>
#include <bit>

#include "acuc/microkernel_data.h"
#include "microkernels/catalogue.h"

namespace acu {

using ir::DType;
using ir::Monoid;

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& names) {
    for (const auto& [name, value] : names)
        for (size_t at = 0; (at = text.find("$" + name, at)) != std::string::npos; at += value.size()) text.replace(at, name.size() + 1, value);
    return text;
}

std::string TrialSet::source(bool only_last) const {
    std::string text = headers;
    for (size_t i = only_last && !kernels.empty() ? kernels.size() - 1 : 0; i < kernels.size(); ++i) text += kernels[i];
    return text;
}

TrialSet trials_of(const ir::Microkernel& m, const Target& target) {
    switch (m.kind) {
        case ir::MicrokernelKind::Copy: return copy_trials(m, target);
        case ir::MicrokernelKind::Reduce:
        case ir::MicrokernelKind::Scan: return reduction_trials(m, target);
        case ir::MicrokernelKind::Mma: return matrix_trials(m, target);
        case ir::MicrokernelKind::Merge: return merge_trials(m, target);
        default: return exchange_trials(m, target);
    }
}

// ---- reductions and scans

namespace {

const char* device_name(DType t) { return t == DType::F32 ? "float" : t == DType::F64 ? "double" : t == DType::I64 ? "i64" : "int"; }
const char* tag_of(Monoid m) {
    static constexpr const char* names[] = {"", "Sum", "Prod", "Max", "Min", "Any", "All", "ArgMax", "ArgMin"};
    return names[static_cast<size_t>(m)];
}

/// Every number of threads that a block may have; a few for what a warp does alone, and for clusters, of which large ones are slow to emulate.
std::vector<uint32_t> thread_counts(const ir::Microkernel& m, const Target& target, uint32_t cluster) {
    const uint32_t warp = static_cast<uint32_t>(target.warp);
    if (m.group == ir::ThreadGroup::Cluster) return cluster > 2 ? std::vector{warp, 3 * warp} : std::vector{warp, 5 * warp, 512u};
    if (m.group != ir::ThreadGroup::Block) return {warp, 3 * warp, 1024};
    std::vector<uint32_t> counts;
    for (uint32_t n = warp; n <= 1024; n += warp) counts.push_back(n);
    return counts;
}

struct Shape {
    const ir::Microkernel& m;
    DType type;
    uint32_t threads, cluster, unit;    ///< unit: threads that share a result
};

std::string described(const Shape& s) {
    return fmt::format("{}, {} threads{}", ir::name_of(s.type), s.threads, s.cluster > 1 ? fmt::format(", {} blocks", s.cluster) : "");
}

/// Rows of every kind of data, each twice: the same data must give the same bits.
template <class T>
std::vector<T> rows(const Shape& s) {
    std::mt19937_64 random(s.threads * 31 + static_cast<uint32_t>(s.type));
    std::vector<T> all;
    for (int kind = 0; kind < data_kinds; ++kind)
        for (uint32_t b = 0; b < s.cluster; ++b) {
            const auto row = drawn<T>(kind, s.threads, random);
            all.insert(all.end(), row.begin(), row.end());
        }
    const size_t half = all.size();
    all.resize(2 * half);
    std::copy_n(all.begin(), half, all.begin() + static_cast<std::ptrdiff_t>(half));
    return all;
}

/// Where a result differs between the two copies of the data, or between threads that share it.
template <class T>
std::string bits_fault(std::span<const T> got, size_t shared_by) {
    const size_t half = got.size() / 2;
    for (size_t i = 0; i < half; ++i)
        if (!same_bits(got[i], got[i + half])) return fmt::format("element {} is {} and, from the same data, {}", i, got[i], got[i + half]);
    for (size_t i = 0; shared_by && i < half; ++i)
        if (!same_bits(got[i], got[i / shared_by * shared_by])) return fmt::format("threads of one group receive {} and {}", got[i], got[i / shared_by * shared_by]);
    return "";
}

/// One reduction a monoid, the results one after another.
template <class T>
std::string reduce_fault(const std::vector<T>& in, const std::vector<T>& out, const Shape& s) {
    for (size_t k = 0; k < s.m.monoids.size(); ++k) {
        const std::span<const T> got(out.data() + k * in.size(), in.size());
        std::string fault = bits_fault(got, s.unit);
        for (size_t row = 0; fault.empty() && row < in.size() / 2; row += s.unit) {
            Fold<T> f(s.m.monoids[k]);
            for (uint32_t t = 0; t < s.unit; ++t) f.add(in[row + t]);
            fault = f.fault(got[row]);
            if (!fault.empty()) fault = fmt::format("row {}: {}", row / s.unit, fault);
        }
        if (!fault.empty()) return fmt::format("{}: {}", ir::info(s.m.monoids[k]).name, fault);
    }
    return "";
}

/// Of each monoid the inclusive prefixes, the exclusive ones and, where a block does it, the totals.
template <class T>
std::string scan_fault(const std::vector<T>& in, const std::vector<T>& out, const Shape& s) {
    const size_t n = in.size(), parts = s.m.group == ir::ThreadGroup::Block ? 3 : 2;
    for (size_t k = 0; k < s.m.monoids.size(); ++k) {
        const T* const got = out.data() + k * parts * n;
        for (size_t p = 0; p < parts; ++p)
            if (auto fault = bits_fault(std::span(got + p * n, n), p == 2 ? s.unit : 0); !fault.empty()) return fault;
        for (size_t row = 0; row < n / 2; row += s.unit) {
            Fold<T> f(s.m.monoids[k]);
            std::string fault;
            for (size_t i = row; i < row + s.unit && fault.empty(); ++i) {
                fault = f.fault(got[n + i]);
                f.add(in[i]);
                if (fault.empty()) fault = f.fault(got[i]);
                if (!fault.empty()) return fmt::format("{}: thread {} of row {}: {}", ir::info(s.m.monoids[k]).name, i - row, row / s.unit, fault);
            }
            if (parts == 3) fault = f.fault(got[2 * n + row]);
            if (!fault.empty()) return fmt::format("{}: total of row {}: {}", ir::info(s.m.monoids[k]).name, row / s.unit, fault);
        }
    }
    return "";
}

/// Positions: distinct in a row, in a shuffled order, some places empty; rows may be wholly empty.
std::vector<int64_t> drawn_positions(size_t count, size_t row) {
    std::vector<int64_t> all(count);
    std::mt19937_64 random(count * 7 + row);
    for (size_t i = 0; i < count / 2; i += row) {
        for (size_t j = 0; j < row; ++j) all[i + j] = static_cast<int64_t>(j * 3 + 1) << (i % 3 ? 0 : 33);
        std::shuffle(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i + row), random);
        for (size_t j = 0; j < row; ++j)
            if ((i / row) % 4 == 1 && (random() % 4 == 0 || (i / row) % 8 == 5)) all[i + j] = -1;
    }
    std::copy_n(all.begin(), count / 2, all.begin() + static_cast<std::ptrdiff_t>(count / 2));
    return all;
}

template <class T>
struct Best {
    T value{};
    int64_t position = -1;
};
/// The best of values in a row at distinct positions, -1 for an empty place: NaN wins, then the lower position.
template <class T>
Best<T> best_of(std::span<const T> row, std::span<const int64_t> at, bool smallest) {
    Best<T> best;
    for (size_t j = 0; j < row.size(); ++j) {
        if (at[j] < 0) continue;
        const bool nan = row[j] != row[j], held = best.value != best.value, wins = smallest ? row[j] < best.value : row[j] > best.value;
        const bool tie = nan ? held : row[j] == best.value;
        if (best.position < 0 || (nan && !held) || (!held && wins) || (tie && at[j] < best.position)) best = {row[j], at[j]};
    }
    return best;
}

/// Of each monoid the values, then of each the positions; where all places are empty, the value means nothing.
template <class T>
std::string pair_fault(const std::vector<T>& in, const std::vector<int64_t>& at, std::span<const std::byte> bytes, const Shape& s) {
    const size_t n = in.size(), monoids = s.m.monoids.size();
    const auto values = values_of<T>(bytes.first(monoids * n * sizeof(T)));
    const auto positions = values_of<int64_t>(bytes.subspan((monoids * n * sizeof(T) + 7) / 8 * 8));
    for (size_t k = 0; k < monoids; ++k)
        for (size_t row = 0; row < n; row += s.unit) {
            const auto best = best_of(std::span(in).subspan(row, s.unit), std::span(at).subspan(row, s.unit), s.m.monoids[k] == Monoid::ArgMin);
            for (size_t i = k * n + row; i < k * n + row + s.unit; ++i) {
                const bool same = values[i] == best.value || (values[i] != values[i] && best.value != best.value);
                if (positions[i] != best.position || (best.position >= 0 && !same))
                    return fmt::format("{}: row {}: {} at {} instead of {} at {}", ir::info(s.m.monoids[k]).name, row / s.unit, values[i], positions[i], best.value, best.position);
            }
        }
    return "";
}

/// The lists of a warp, one a lane: the values and positions of `lists` lanes, k each.
template <class T>
std::string top_fault(const std::vector<T>& in, const std::vector<int64_t>& at, std::span<const std::byte> bytes, size_t k, size_t lanes) {
    const size_t n = in.size();
    const auto values = values_of<T>(bytes.first(n * sizeof(T)));
    const auto positions = values_of<int64_t>(bytes.subspan((n * sizeof(T) + 7) / 8 * 8));
    for (size_t row = 0; row < n; row += k * lanes) {
        std::vector<T> rest(in.begin() + static_cast<std::ptrdiff_t>(row), in.begin() + static_cast<std::ptrdiff_t>(row + k * lanes));
        std::vector<int64_t> places(at.begin() + static_cast<std::ptrdiff_t>(row), at.begin() + static_cast<std::ptrdiff_t>(row + k * lanes));
        for (size_t j = 0; j < k; ++j) {
            const Best<T> best = best_of<T>(rest, places, false);
            for (size_t lane = 0; lane < lanes; ++lane) {
                const size_t i = row + lane * k + j;
                const bool same = values[i] == best.value || (values[i] != values[i] && best.value != best.value);
                if (positions[i] != best.position || (best.position >= 0 && !same)) return fmt::format("row {}, place {}: {} at {} instead of {} at {}", row / (k * lanes), j, values[i], positions[i], best.value, best.position);
            }
            for (size_t i = 0; i < places.size(); ++i)
                if (best.position >= 0 && places[i] == best.position) places[i] = -1;
        }
    }
    return "";
}

/// A list a lane: sorted by what the kernel inserts.
template <class T>
Trial top_trial(const Shape& s, uint32_t k, std::string kernel) {
    Shape all = s;
    all.threads = s.threads * k;
    const auto in = rows<T>(all);
    const size_t n = in.size(), lanes = s.unit;
    const auto at = drawn_positions(n, lanes * k);
    Trial trial{.kernel = std::move(kernel), .what = fmt::format("{}, {} threads, {} kept", ir::name_of(s.type), s.threads, k), .grid = static_cast<uint32_t>(n / all.threads), .block = s.threads, .inputs = {bytes_of(in), bytes_of(at)}};
    trial.output_bytes = (n * sizeof(T) + 7) / 8 * 8 + n * 8;
    trial.fault = [in, at, k, lanes](std::span<const std::byte> out) { return top_fault(in, at, out, k, lanes); };
    return trial;
}

// ---- their kernels

const char* const top_text = R"(
extern "C" __global__ void $name(const $T* in, const i64* where, $T* out) {
    const i64 all = (i64)gridDim.x * blockDim.x * $k, first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * $k;
    i64* const out_at = (i64*)((char*)out + (all * sizeof($T) + 7) / 8 * 8);
    $T v[$k];
    i64 p[$k];
    for (int j = 0; j < $k; ++j) v[j] = $T(), p[j] = -1;
    for (int j = 0; j < $k; ++j)
        if (where[first + j] >= 0) keep_top<$k>(v, p, in[first + j], where[first + j]);
    warp_reduce_top<$k>(v, p);
    for (int j = 0; j < $k; ++j) out[first + j] = v[j], out_at[first + j] = p[j];
}
)";

const char* const reduce_text = R"(
extern "C" __global__ void $name(const $T* in, $T* out) {
    ACU_SHARED($T, scratch, 0, 33);
    const int t = threadIdx.x, n = blockDim.x;
    const i64 all = (i64)gridDim.x * n, at = (i64)blockIdx.x * n + t;
    const $T x = in[at];
    (void)scratch;
$calls}
)";
const char* const cluster_text = R"(
extern "C" __global__ void __cluster_dims__($size, 1, 1) $name(const $T* in, $T* out) {
    ACU_SHARED($T, scratch, 0, 33);
    ACU_SHARED($T, slot, 33 * sizeof($T), 1);
    const int t = threadIdx.x, n = blockDim.x;
    const i64 all = (i64)gridDim.x * n, at = (i64)blockIdx.x * n + t;
    const $T x = in[at];
    cluster_open();
$calls    cluster_close();
}
)";
const char* const pair_text = R"(
extern "C" __global__ void $name(const $T* in, const i64* where, $T* out) {
    ACU_SHARED(i64, positions, 0, 32);
    ACU_SHARED($T, values, 256, 32);
    const int t = threadIdx.x, n = blockDim.x;
    const i64 all = (i64)gridDim.x * n, at = (i64)blockIdx.x * n + t;
    i64* const out_at = (i64*)((char*)out + (2 * all * sizeof($T) + 7) / 8 * 8);
    $T v;
    i64 p;
    (void)values, (void)positions, (void)n;
$calls}
)";

/// Lanes that differ in bits of the mask alone stand side by side.
const char* const beside_text = R"(
ACU_DEVICE int beside(int lane, int mask) {
    int at = 0, place = 1;
    for (int in = 1; in >= 0; --in)
        for (int bit = 1; bit < ACU_WARP; bit *= 2)
            if (((mask & bit) != 0) == in) at += lane & bit ? place : 0, place *= 2;
    return at;
}
)";

/// The call of one monoid; `$k` counts them.
std::string call_text(const ir::Microkernel& m) {
    const std::string& f = m.function;
    if (f == "warp_reduce") return "    out[$k * all + at] = warp_reduce<$Op>(x);\n";
    if (f == "lanes_reduce") return "    out[$k * all + at] = lanes_reduce<$Op, $size>(x);\n";
    if (f == "rows_reduce") return "    out[$k * all + at - t % ACU_WARP + beside(t % ACU_WARP, $size)] = rows_reduce<$Op, $size>(in[at - t % ACU_WARP + beside(t % ACU_WARP, $size)]);\n";
    if (f == "block_reduce") return "    out[$k * all + at] = block_reduce<$Op>(x, scratch, t, n);\n";
    if (f == "cluster_reduce") return "    out[$k * all + at] = cluster_reduce<$Op, $size>(block_reduce<$Op>(x, scratch, t, n), slot, t);\n";
    if (f == "warp_reduce_pair") return "    v = in[at], p = where[at];\n    warp_reduce_pair<$Op>(v, p);\n    out[$k * all + at] = v, out_at[$k * all + at] = p;\n";
    if (f == "block_reduce_pair")
        return "    v = in[at], p = where[at];\n    block_reduce_pair<$Op>(v, p, values, positions, t, n);\n    out[$k * all + at] = v, out_at[$k * all + at] = p;\n";
    if (f == "warp_scan") return "    out[2 * $k * all + at] = warp_scan<$Op>(x);\n    out[(2 * $k + 1) * all + at] = warp_scan_exclusive<$Op>(x);\n";
    return "    {\n        $T total, again;\n        out[3 * $k * all + at] = block_scan<$Op>(x, scratch, t, n, total);\n"
           "        out[(3 * $k + 1) * all + at] = block_scan_exclusive<$Op>(x, scratch, t, n, again);\n        out[(3 * $k + 2) * all + at] = total == again || total != total ? total : x;\n    }\n";
}

std::string kernel_text(const ir::Microkernel& m, DType type, const std::string& name, uint32_t cluster) {
    std::string calls;
    for (size_t k = 0; k < m.monoids.size(); ++k) calls += filled(call_text(m), {{"k", std::to_string(k)}, {"Op", tag_of(m.monoids[k])}});
    const char* const text = ir::is_pair(m.monoids[0]) ? pair_text : m.group == ir::ThreadGroup::Cluster ? cluster_text : reduce_text;
    return filled(text, {{"calls", calls}, {"name", name}, {"size", std::to_string(cluster)}, {"T", device_name(type)}});
}

template <class T>
Trial reduction_trial(const Shape& s, std::string kernel) {
    const auto in = rows<T>(s);
    const size_t n = in.size(), monoids = s.m.monoids.size();
    Trial trial{.kernel = std::move(kernel), .what = described(s), .grid = static_cast<uint32_t>(n / s.threads), .block = s.threads, .cluster = s.cluster, .shared = 640, .inputs = {bytes_of(in)}};
    if (ir::is_pair(s.m.monoids[0])) {
        const auto at = drawn_positions(n, s.unit);
        trial.inputs.push_back(bytes_of(at));
        trial.output_bytes = (monoids * n * sizeof(T) + 7) / 8 * 8 + monoids * n * 8;
        trial.fault = [in, at, s](std::span<const std::byte> out) { return pair_fault(in, at, out, s); };
    } else if (s.m.kind == ir::MicrokernelKind::Scan) {
        trial.output_bytes = (s.m.group == ir::ThreadGroup::Block ? 3 : 2) * monoids * n * sizeof(T);
        trial.fault = [in, s](std::span<const std::byte> out) { return scan_fault(in, values_of<T>(out), s); };
    } else {
        trial.output_bytes = monoids * n * sizeof(T);
        trial.fault = [in, s](std::span<const std::byte> out) { return reduce_fault(in, values_of<T>(out), s); };
    }
    return trial;
}

/// `make` of a value of the type.
template <class F>
Trial of_type(DType type, F make) {
    switch (type) {
        case DType::F32: return make(float());
        case DType::F64: return make(double());
        case DType::I32: return make(int32_t());
        default: return make(int64_t());
    }
}

}  // namespace

static TrialSet top_trials(const ir::Microkernel& m, const Target& target) {
    TrialSet set{microkernels::headers_of(m)};
    const auto warp = static_cast<uint32_t>(target.warp);
    for (const DType type : m.types)
        for (const uint32_t k : {2u, 4u, 8u, 16u}) {
            const std::string name = fmt::format("{}_{}_{}", m.function, ir::name_of(type), k);
            set.kernels.push_back(filled(top_text, {{"name", name}, {"k", std::to_string(k)}, {"T", device_name(type)}}));
            for (const uint32_t threads : {warp, 3 * warp}) {
                const Shape s{m, type, threads, 1, warp};
                set.trials.push_back(of_type(type, [&](auto zero) { return top_trial<decltype(zero)>(s, k, name); }));
            }
        }
    return set;
}

TrialSet reduction_trials(const ir::Microkernel& m, const Target& target) {
    if (m.monoids[0] == Monoid::TopK) return top_trials(m, target);
    TrialSet set{microkernels::headers_of(m)};
    const bool cluster = m.group == ir::ThreadGroup::Cluster, lanes = m.group == ir::ThreadGroup::Lanes, rows = m.function == "rows_reduce";
    const auto warp = static_cast<uint32_t>(target.warp);
    std::vector<uint32_t> sizes{1};    // of clusters, or of groups of lanes, or masks of lanes
    if (cluster) sizes = {1, 2, 4, 8};
    if (rows) sizes = {1, 3, 4, 10, 12, 15, warp / 2, warp - 1}, set.headers += beside_text;
    if (lanes)
        for (sizes.clear(); sizes.size() < 6 && (2u << sizes.size()) < warp;) sizes.push_back(2u << sizes.size());
    for (const DType type : m.types)
        for (const uint32_t size : sizes) {
            const std::string name = fmt::format("{}_{}_{}", m.function, ir::name_of(type), size);
            const uint32_t blocks = cluster ? size : 1;
            set.kernels.push_back(kernel_text(m, type, name, size));
            for (const uint32_t threads : thread_counts(m, target, blocks)) {
                const Shape s{m, type, threads, blocks, lanes ? size : rows ? 1u << std::popcount(size) : m.group == ir::ThreadGroup::Warp ? warp : threads * blocks};
                set.trials.push_back(of_type(type, [&](auto zero) { return reduction_trial<decltype(zero)>(s, name); }));
            }
        }
    return set;
}

}  // namespace acu
