// Trials of what lanes and warps do with each other: shuffles, votes, named barriers, ring barriers.
#include <algorithm>

#include "acuc/microkernel_data.h"
#include "acuc/microkernel_trials.h"
#include "microkernels/catalogue.h"

namespace acu {

using ir::DType;

namespace {

// ---- shuffles: every mask, lane and distance known at run time, and the powers of two as constants

const char* const shuffle_text = R"(
extern "C" __global__ void shuffle_$T(const $T* in, $T* out) {
    const i64 all = (i64)gridDim.x * blockDim.x, at = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = lane_id();
    const $T x = in[at];
    for (int p = 0; p < ACU_WARP; ++p) {
        out[(4 * p) * all + at] = warp_shuffle_xor(x, p);
        out[(4 * p + 1) * all + at] = warp_shuffle_up(x, p);
        out[(4 * p + 2) * all + at] = warp_shuffle_down(x, p);
        out[(4 * p + 3) * all + at] = warp_shuffle(x, (lane * 5 + p) % ACU_WARP);
    }
    int row = 4 * ACU_WARP;
#pragma unroll
    for (int mask = 1; mask < ACU_WARP; mask *= 2) out[row++ * all + at] = warp_shuffle_xor(x, mask);
}
)";

/// The lane that lane `l` receives from in row `row` of the output.
int source_lane(int row, int l, int warp) {
    if (row >= 4 * warp) return l ^ (1 << (row - 4 * warp));
    const int p = row / 4, from = row % 4 == 0 ? l ^ p : row % 4 == 1 ? l - p : row % 4 == 2 ? l + p : (l * 5 + p) % warp;
    return from < 0 || from >= warp ? l : from;
}

template <class T>
void shuffle_trial(TrialSet& set, const std::string& type, int warp, uint32_t threads) {
    std::mt19937_64 random(threads);
    const int kind = std::is_floating_point_v<T> ? 2 : 0;
    const auto in = drawn<T>(kind, threads * 2, random);
    const int rows = 4 * warp + (warp == 64 ? 6 : 5);
    Trial t{.kernel = "shuffle_" + type, .what = fmt::format("{}, {} threads", type, threads), .grid = 2, .block = threads, .inputs = {bytes_of(in)}, .output_bytes = static_cast<size_t>(rows) * in.size() * sizeof(T)};
    t.fault = [in, warp, rows](std::span<const std::byte> bytes) -> std::string {
        const auto out = values_of<T>(bytes);
        for (int row = 0; row < rows; ++row)
            for (size_t i = 0; i < in.size(); ++i) {
                const size_t lane = i % static_cast<size_t>(warp), from = i - lane + static_cast<size_t>(source_lane(row, static_cast<int>(lane), warp));
                if (!same_bits(out[static_cast<size_t>(row) * in.size() + i], in[from])) return fmt::format("row {}: thread {} does not receive what thread {} has", row, i, from);
            }
        return "";
    };
    set.trials.push_back(std::move(t));
}

void shuffle_trials(const Target& target, TrialSet& set) {
    for (const char* type : {"float", "double", "int", "unsigned", "i64"}) set.kernels.push_back(filled(shuffle_text, {{"T", type}}));
    const uint32_t warp = static_cast<uint32_t>(target.warp);
    for (const uint32_t threads : {warp, 3 * warp, 1024u}) {
        shuffle_trial<float>(set, "float", target.warp, threads);
        shuffle_trial<double>(set, "double", target.warp, threads);
        shuffle_trial<int32_t>(set, "int", target.warp, threads);
        shuffle_trial<int32_t>(set, "unsigned", target.warp, threads);
        shuffle_trial<int64_t>(set, "i64", target.warp, threads);
    }
}

// ---- votes

const char* const vote_text = R"(
extern "C" __global__ void vote(const int* in, unsigned long long* out) {
    const i64 all = (i64)gridDim.x * blockDim.x, at = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const bool x = in[at] != 0;
    out[at] = warp_ballot(x), out[all + at] = warp_any(x), out[2 * all + at] = warp_all(x);
}
)";

void vote_trials(const Target& target, TrialSet& set) {
    set.kernels.push_back(vote_text);
    const size_t warp = static_cast<size_t>(target.warp);
    for (const size_t threads : {warp, 3 * warp, size_t{1024}}) {
        std::vector<int32_t> in;
        std::mt19937_64 random(threads);
        for (const int kind : {0, 4, 5, 6, 7}) {  // any, many, none, few, nearly all
            const auto row = drawn<int32_t>(kind, threads, random);
            in.insert(in.end(), row.begin(), row.end());
        }
        in.resize(in.size() + threads, 1);
        Trial t{.kernel = "vote", .what = fmt::format("{} threads", threads), .grid = 6, .block = static_cast<uint32_t>(threads), .inputs = {bytes_of(in)}, .output_bytes = 3 * in.size() * 8};
        t.fault = [in, warp](std::span<const std::byte> bytes) -> std::string {
            const auto out = values_of<uint64_t>(bytes);
            for (size_t i = 0; i < in.size(); ++i) {
                uint64_t votes = 0;
                for (size_t l = 0; l < warp; ++l) votes |= static_cast<uint64_t>(in[i / warp * warp + l] != 0) << l;
                const uint64_t every = warp == 64 ? ~uint64_t{0} : (uint64_t{1} << warp) - 1;
                if (out[i] != votes || out[in.size() + i] != (votes != 0) || out[2 * in.size() + i] != (votes == every)) return fmt::format("thread {} receives {:#x} instead of {:#x}", i, out[i], votes);
            }
            return "";
        };
        set.trials.push_back(std::move(t));
    }
}

// ---- named barriers: groups of warps rotate values through shared memory, each at a barrier of its own

const char* const group_text = R"(
extern "C" __global__ void groups(const int* in, int* out, int size) {
    ACU_SHARED(int, cells, 0, blockDim.x);
    const int t = threadIdx.x, g = t / size;
    int x = in[t];
    for (int round = 0; round <= g; ++round) {
        cells[t] = x + round;
        group_barrier(1 + g, size);
        x = cells[g * size + (t + 1) % size];
        group_barrier(1 + g, size);
    }
    out[t] = x;
}
)";

void group_trials(TrialSet& set) {
    set.kernels.push_back(group_text);
    for (int warps = 1; warps <= 32; ++warps)
        for (const int groups : {1, std::min(15, 32 / warps)}) {
            const int size = 32 * warps, threads = size * groups;
            std::vector<int32_t> in(static_cast<size_t>(threads)), wanted(in.size());
            for (int t = 0; t < threads; ++t) in[static_cast<size_t>(t)] = t * 1000;
            for (int t = 0; t < threads; ++t) {
                const int g = t / size;
                wanted[static_cast<size_t>(t)] = in[static_cast<size_t>(g * size + (t + g + 1) % size)] + g * (g + 1) / 2;
            }
            Trial trial{.kernel = "groups", .what = fmt::format("{} groups of {} threads", groups, size), .block = static_cast<uint32_t>(threads), .shared = static_cast<uint32_t>(4 * threads), .inputs = {bytes_of(in)},
                        .output_bytes = wanted.size() * 4, .numbers = {size}};
            trial.fault = [wanted](std::span<const std::byte> bytes) {
                const auto out = values_of<int32_t>(bytes);
                const auto at = std::ranges::mismatch(out, wanted).in2 - wanted.begin();
                return out == wanted ? std::string() : fmt::format("thread {} receives {} instead of {}", at, out[static_cast<size_t>(at)], wanted[static_cast<size_t>(at)]);
            };
            set.trials.push_back(std::move(trial));
        }
}

// ---- ring barriers: one warp fills slots, the others read them

const char* const ring_text = R"(
extern "C" __global__ void ring(const int* in, int* out, int trips, int stages) {
    ACU_SHARED(int, slots, 0, 8 * 32);
    ACU_SHARED(RingBarrier, full, 1024, 8);
    ACU_SHARED(RingBarrier, empty, 1088, 8);
    const int t = threadIdx.x, readers = blockDim.x - 32;
    if (t == 0)
        for (int s = 0; s < stages; ++s) ring_init(full[s], 32), ring_init(empty[s], readers);
    block_barrier();
    for (int j = 0; j < trips; ++j) {
        const int s = j % stages, parity = j / stages % 2;
        if (t < 32) {
            ring_wait(empty[s], parity ^ 1);
            slots[s * 32 + t] = in[j * 32 + t];
            ring_arrive(full[s]);
        } else {
            ring_wait(full[s], parity);
            out[j * readers + t - 32] = slots[s * 32 + (t % 32 ^ 5)];
            ring_arrive(empty[s]);
        }
    }
}
)";

void ring_trials(TrialSet& set) {
    set.kernels.push_back(ring_text);
    for (const int threads : {64, 160, 1024})
        for (const int stages : {1, 2, 3, 4, 8})
            for (const int trips : {1, stages, stages + 1, 3 * stages + 2}) {
                std::mt19937_64 random(static_cast<uint64_t>(threads));
                const auto in = drawn<int32_t>(0, static_cast<size_t>(trips * 32), random);
                const size_t readers = static_cast<size_t>(threads - 32);
                Trial t{.kernel = "ring", .what = fmt::format("{} threads, {} stages, {} trips", threads, stages, trips), .block = static_cast<uint32_t>(threads), .shared = 1152, .inputs = {bytes_of(in)},
                        .output_bytes = static_cast<size_t>(trips) * readers * 4, .numbers = {trips, stages}};
                t.fault = [in, readers](std::span<const std::byte> bytes) -> std::string {
                    const auto out = values_of<int32_t>(bytes);
                    for (size_t i = 0; i < out.size(); ++i) {
                        const int32_t wanted = in[i / readers * 32 + (i % readers % 32 ^ 5)];
                        if (out[i] != wanted) return fmt::format("trip {}: reader {} receives {} instead of {}", i / readers, i % readers, out[i], wanted);
                    }
                    return "";
                };
                set.trials.push_back(std::move(t));
            }
}

}  // namespace

TrialSet exchange_trials(const ir::Microkernel& m, const Target& target) {
    TrialSet set{microkernels::headers_of(m)};
    if (m.id == "common.warp_shuffle") shuffle_trials(target, set);
    else if (m.id == "common.warp_vote") vote_trials(target, set);
    else if (m.id == "common.group_barrier") group_trials(set);
    else ring_trials(set);
    return set;
}

}  // namespace acu
