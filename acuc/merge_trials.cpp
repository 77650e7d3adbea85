// Trials of states that merge: online softmax and Welford.
#include <algorithm>

#include "acuc/microkernel_data.h"
#include "acuc/microkernel_trials.h"
#include "microkernels/catalogue.h"

namespace acu {

using ir::DType;

namespace {

constexpr int most_values = 3;  ///< that a thread holds: thread t has t % (most_values + 1)

const char* const online_text = R"(
extern "C" __global__ void $name(const $T* in, $T* out) {
    ACU_SHARED($T, scratch, 0, 64);
    const int t = threadIdx.x, n = blockDim.x;
    const i64 all = (i64)gridDim.x * n, at = (i64)blockIdx.x * n + t;
    $T state[2] = {Extremes<$T>::least(), $T(0)};
    for (int j = 0; j < t % 4; ++j) online_merge<$Exp>(state[0], state[1], in[3 * at + j], $T(1));
    $T warp[2] = {state[0], state[1]};
    warp_merge<OnlineMerge<$Exp>>(warp);
    block_merge<OnlineMerge<$Exp>>(state, scratch, t, n);
    out[at] = warp[0], out[all + at] = warp[1], out[2 * all + at] = state[0], out[3 * all + at] = state[1];
}
)";
const char* const welford_text = R"(
extern "C" __global__ void $name(const $T* in, $T* out) {
    ACU_SHARED($T, scratch, 0, 96);
    const int t = threadIdx.x, n = blockDim.x;
    const i64 all = (i64)gridDim.x * n, at = (i64)blockIdx.x * n + t;
    $T state[3] = {$T(0), $T(0), $T(0)};
    for (int j = 0; j < t % 4; ++j) welford_push(state[0], state[1], state[2], in[3 * at + j]);
    $T warp[3] = {state[0], state[1], state[2]};
    warp_merge<WelfordMerge>(warp);
    block_merge<WelfordMerge>(state, scratch, t, n);
    for (int i = 0; i < 3; ++i) out[i * all + at] = warp[i], out[(3 + i) * all + at] = state[i];
}
)";

/// Numbers whose exponentials relative to the maximum are computed to a few units, and the special ones.
template <class T>
std::vector<T> online_data(int kind, size_t count, std::mt19937_64& random) {
    auto values = drawn<T>(kind, count, random);
    if (kind == 1 || kind == 9)
        for (T& v : values) v = static_cast<T>(std::fmod(static_cast<double>(v), 40.0));
    return values;
}

template <class T>
struct Rows {
    std::vector<T> values;    ///< most_values a thread
    uint32_t threads, warp;
    bool binary;
};

/// The values of threads `from` to `to` of a block.
template <class T>
std::vector<T> values_held(const Rows<T>& r, size_t block, uint32_t from, uint32_t to) {
    std::vector<T> held;
    for (uint32_t t = from; t < to; ++t)
        for (uint32_t j = 0; j < t % (most_values + 1); ++j) held.push_back(r.values[(block * r.threads + t) * most_values + j]);
    return held;
}

template <class T>
std::string online_fault(const Rows<T>& r, const std::vector<T>& held, T m, T l) {
    ir::Monoid max = ir::Monoid::Max;
    Fold<T> largest(max);
    long double most = -std::numeric_limits<long double>::infinity(), sum = 0;
    for (const T x : held) largest.add(x), most = std::isnan(x) || std::isnan(most) ? std::numeric_limits<long double>::quiet_NaN() : std::max<long double>(most, x);
    if (auto fault = largest.fault(m); !fault.empty()) return "maximum: " + fault;
    for (const T x : held) {
        const long double distance = static_cast<long double>(x) - (std::isinf(most) && most < 0 ? 0 : most);
        sum += r.binary ? std::exp2(distance) : std::exp(distance);
    }
    if (std::isnan(most)) sum = most;
    const long double tolerance = 2048 * std::numeric_limits<T>::epsilon() * std::fabs(sum);
    return near(l, sum, tolerance) ? "" : fmt::format("sum of exponentials: {} instead of {}", l, static_cast<double>(sum));
}

template <class T>
std::string welford_fault(const std::vector<T>& held, T count, T mean, T m2) {
    if (count != static_cast<T>(held.size())) return fmt::format("counts {} instead of {}", count, held.size());
    if (held.empty()) return mean == 0 && m2 == 0 ? "" : "an empty state is not zero";
    long double sum = 0, squares = 0, largest = 0;
    for (const T x : held) sum += x, largest = std::max(largest, std::fabs(static_cast<long double>(x)));
    const long double true_mean = sum / static_cast<long double>(held.size()), unit = std::numeric_limits<T>::epsilon();
    for (const T x : held) squares += (x - true_mean) * (x - true_mean);
    if (!std::isfinite(sum)) return std::isfinite(mean) || std::isfinite(m2) ? fmt::format("mean {} and squares {} of values that are not finite", mean, m2) : "";
    if (largest > std::sqrt(static_cast<long double>(std::numeric_limits<T>::max())) / 64) return "";  // squares overflow
    const long double n = static_cast<long double>(held.size()), slip = 8 * unit * largest;
    const long double least = 64 * static_cast<long double>(std::numeric_limits<T>::denorm_min());
    if (!near(mean, true_mean, 4 * slip + least)) return fmt::format("mean {} instead of {}", mean, static_cast<double>(true_mean));
    const long double tolerance = 64 * unit * squares + 2 * std::sqrt(squares * n) * slip + n * slip * slip + 64 * static_cast<long double>(std::numeric_limits<T>::min());
    return near(m2, squares, tolerance) ? "" : fmt::format("squares {} instead of {}", m2, static_cast<double>(squares));
}

/// `out`: the parts of the state of each thread's warp, then those of its block.
template <class T>
std::string merge_fault(const Rows<T>& r, const std::vector<T>& out, bool welford) {
    const size_t all = r.values.size() / most_values, parts = welford ? 3 : 2;
    for (size_t i = 0; i < all; ++i)
        for (const bool block : {false, true}) {
            const size_t b = i / r.threads, t = i % r.threads, from = block ? 0 : t / r.warp * r.warp, first = b * r.threads + from;
            const auto part = [&](size_t p, size_t thread) { return out[(p + (block ? parts : 0)) * all + thread]; };
            for (size_t p = 0; p < parts; ++p)
                if (!same_bits(part(p, i), part(p, first))) return fmt::format("threads of one group receive {} and {}", part(p, i), part(p, first));
            if (i != first) continue;
            const auto held = values_held(r, b, static_cast<uint32_t>(from), static_cast<uint32_t>(block ? r.threads : from + r.warp));
            const auto fault = welford ? welford_fault(held, part(0, i), part(1, i), part(2, i)) : online_fault(r, held, part(0, i), part(1, i));
            if (!fault.empty()) return fmt::format("{} {}: {}", block ? "block" : "warp", block ? b : i / r.warp, fault);
        }
    return "";
}

template <class T>
Trial merge_trial(const std::string& kernel, uint32_t threads, uint32_t warp, bool welford, bool binary) {
    Rows<T> r{{}, threads, warp, binary};
    std::mt19937_64 random(threads);
    for (int kind = 0; kind < data_kinds; ++kind) {
        const auto row = online_data<T>(kind, threads * most_values, random);
        r.values.insert(r.values.end(), row.begin(), row.end());
    }
    Trial trial{.kernel = kernel, .what = fmt::format("{}, {} threads{}", sizeof(T) == 4 ? "f32" : "f64", threads, welford ? "" : binary ? ", base 2" : ", base e"), .grid = data_kinds, .block = threads,
                .shared = 96 * sizeof(T), .inputs = {bytes_of(r.values)}};
    trial.output_bytes = (welford ? 6 : 4) * r.values.size() / most_values * sizeof(T);
    trial.fault = [r, welford](std::span<const std::byte> out) { return merge_fault(r, values_of<T>(out), welford); };
    return trial;
}

}  // namespace

TrialSet merge_trials(const ir::Microkernel& m, const Target& target) {
    TrialSet set{microkernels::headers_of(m)};
    const bool welford = m.id == "common.welford_merge";
    for (const DType type : m.types)
        for (const bool binary : welford ? std::vector<bool>{false} : std::vector<bool>{false, true}) {
            const std::string name = fmt::format("merge_{}_{}", ir::name_of(type), binary ? "2" : "e");
            set.kernels.push_back(filled(welford ? welford_text : online_text, {{"name", name}, {"Exp", binary ? "BinaryExp" : "NaturalExp"}, {"T", type == DType::F32 ? "float" : "double"}}));
            const uint32_t warp = static_cast<uint32_t>(target.warp);
            for (uint32_t threads = warp; threads <= 1024; threads += warp)
                set.trials.push_back(type == DType::F32 ? merge_trial<float>(name, threads, warp, welford, binary) : merge_trial<double>(name, threads, warp, welford, binary));
        }
    return set;
}

}  // namespace acu
