// Trials of copies: vectors, asynchronous and bulk copies, the shared memory of a cluster. Bytes must arrive as they were.
#include <algorithm>
#include <functional>

#include "acuc/microkernel_data.h"
#include "acuc/microkernel_trials.h"
#include "microkernels/catalogue.h"

namespace acu {

using ir::DType;
using Bytes = std::vector<std::byte>;

namespace {

std::string device_name(DType t) {
    switch (t) {
        case DType::F32: return "float";
        case DType::F64: return "double";
        case DType::I32: return "int";
        default: return std::string(ir::name_of(t));
    }
}

Bytes drawn_bytes(size_t count, DType type = DType::U8) {
    Bytes all(count);
    std::mt19937_64 random(count + static_cast<size_t>(type));
    for (std::byte& b : all) b = static_cast<std::byte>(type == DType::Bool ? random() % 2 : random());
    return all;
}

std::string first_difference(std::span<const std::byte> got, const Bytes& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i)
        if (got[i] != wanted[i]) return fmt::format("byte {} is {:#04x} instead of {:#04x}", i, static_cast<int>(got[i]), static_cast<int>(wanted[i]));
    return "";
}

/// A trial whose output must be exactly `wanted`.
Trial exact(Trial t, Bytes wanted) {
    t.output_bytes = wanted.size();
    t.fault = [wanted = std::move(wanted)](std::span<const std::byte> out) { return first_difference(out, wanted); };
    return t;
}

// ---- vectors: global memory, registers, shared memory, a neighbour's registers, global memory

const char* const vector_text = R"(
extern "C" __global__ void $name(const $T* in, $T* out) {
    ACU_SHARED($T, tile, 0, blockDim.x * $N);
    const int t = threadIdx.x;
    const i64 at = ((i64)blockIdx.x * blockDim.x + t) * $N;
    $T v[$N];
    load_vector<$N>(v, in + at);
    store_vector(tile + t * $N, v);
    block_barrier();
    load_vector<$N>(v, tile + (t ^ 1) * $N);
    store_vector(out + at, v);
}
)";

void vector_trials(const ir::Microkernel& m, const Target& target, TrialSet& set) {
    for (const DType type : m.types)
        for (const int bytes : m.bytes) {
            const size_t size = ir::info(type).bytes, count = static_cast<size_t>(bytes) / size;
            if (count == 0) continue;
            const std::string name = fmt::format("copy_{}_{}", ir::name_of(type), bytes);
            set.kernels.push_back(filled(vector_text, {{"name", name}, {"T", device_name(type)}, {"N", std::to_string(count)}}));
            for (const uint32_t threads : {static_cast<uint32_t>(target.warp), 3 * static_cast<uint32_t>(target.warp), 1024u}) {
                const size_t unit = static_cast<size_t>(bytes), all = 3 * threads * unit;
                const Bytes in = drawn_bytes(all, type);
                Bytes wanted(all);
                for (size_t i = 0; i < all; ++i) wanted[i] = in[((i / unit) ^ 1) * unit + i % unit];
                set.trials.push_back(exact({.kernel = name, .what = fmt::format("{}, {} bytes, {} threads", ir::name_of(type), bytes, threads), .grid = 3, .block = threads,
                                            .shared = static_cast<uint32_t>(threads * unit), .inputs = {in}}, wanted));
            }
        }
}

// ---- asynchronous copies: tiles through a ring of three slots, every number of valid bytes

const char* const async_text = R"(
ACU_DEVICE void $name_issue(u8* slots, const u8* in, int j) {
    const int t = threadIdx.x, n = blockDim.x, valid = (t * 5 + j) % ($B + 1);
    u8* const to = slots + ((j % 3) * n + t) * $B;
    const u8* const from = in + ((i64)j * n + t) * $B;
    if (valid == $B) copy_async<$B>(to, from);
    else copy_async<$B>(to, from, valid);
}
extern "C" __global__ void $name(const u8* in, u8* out, int tiles) {
    ACU_SHARED(u8, slots, 0, 3 * blockDim.x * $B);
    const int t = threadIdx.x, n = blockDim.x;
    for (int j = 0; j < 2; ++j) {
        if (j < tiles) $name_issue(slots, in, j);
        copy_async_commit();
    }
    for (int j = 0; j < tiles; ++j) {
        if (j + 2 < tiles) $name_issue(slots, in, j + 2);
        copy_async_commit();
        copy_async_wait<2>();
        block_barrier();
        for (int i = 0; i < $B; ++i) out[((i64)j * n + t) * $B + i] = slots[((j % 3) * n + (t ^ 1)) * $B + i];
        block_barrier();
    }
    copy_async_wait<0>();
}
)";

void async_trials(const ir::Microkernel& m, TrialSet& set) {
    for (const int bytes : m.bytes) {
        const std::string name = fmt::format("copy_async_{}", bytes);
        set.kernels.push_back(filled(async_text, {{"name", name}, {"B", std::to_string(bytes)}}));
        for (const uint32_t threads : {32u, 96u, 1024u})
            for (const int tiles : {1, 2, 3, 4, 8, 17}) {
                const size_t unit = static_cast<size_t>(bytes), all = threads * unit * static_cast<size_t>(tiles);
                const Bytes in = drawn_bytes(all);
                Bytes wanted(all);
                for (size_t i = 0; i < all; ++i) {
                    const size_t tile = i / unit / threads, from = (i / unit % threads) ^ 1, valid = (from * 5 + tile) % (unit + 1);
                    wanted[i] = i % unit < valid ? in[(tile * threads + from) * unit + i % unit] : std::byte{0};
                }
                set.trials.push_back(exact({.kernel = name, .what = fmt::format("{} bytes, {} threads, {} tiles", bytes, threads, tiles), .block = threads, .shared = static_cast<uint32_t>(3 * threads * unit),
                                            .inputs = {in}, .numbers = {tiles}}, wanted));
            }
    }
}

// ---- bulk copies: two slots, each with a barrier that counts its bytes

const char* const bulk_text = R"(
extern "C" __global__ void bulk(const u8* in, u8* out, int bytes, int rounds) {
    ACU_SHARED(u8, slots, 0, 2 * bytes);
    ACU_SHARED(RingBarrier, bars, 2 * bytes, 2);
    const int t = threadIdx.x, n = blockDim.x;
    if (t == 0) ring_init(bars[0], 1), ring_init(bars[1], 1);
    block_barrier();
    for (int r = 0; r < rounds + 1; ++r) {
        if (t == 0 && r < rounds) {
            ring_arrive_expect(bars[r % 2], bytes);
            bulk_copy(slots + (r % 2) * bytes, in + (i64)r * bytes, bytes, &bars[r % 2]);
        }
        if (r > 0) {
            const int last = r - 1;
            ring_wait(bars[last % 2], (last / 2) % 2);
            for (int i = t; i < bytes; i += n) out[(i64)last * bytes + i] = slots[(last % 2) * bytes + bytes - 1 - i];
        }
        block_barrier();
    }
}
)";

void bulk_trials(TrialSet& set) {
    set.kernels.push_back(bulk_text);
    for (const int bytes : {16, 48, 256, 4096, 16384})
        for (const int rounds : {1, 2, 3, 7}) {
            const size_t unit = static_cast<size_t>(bytes), all = unit * static_cast<size_t>(rounds);
            const Bytes in = drawn_bytes(all);
            Bytes wanted(all);
            for (size_t i = 0; i < all; ++i) wanted[i] = in[i / unit * unit + unit - 1 - i % unit];
            set.trials.push_back(exact({.kernel = "bulk", .what = fmt::format("{} bytes, {} rounds", bytes, rounds), .block = 96, .shared = static_cast<uint32_t>(2 * unit + 16), .inputs = {in}, .numbers = {bytes, rounds}}, wanted));
        }
}

// ---- clusters: every thread reads from the next block and writes to the one before

const char* const cluster_text = R"(
extern "C" __global__ void __cluster_dims__($size, 1, 1) $name(const $T* in, $T* out) {
    ACU_SHARED($T, own, 0, blockDim.x);
    ACU_SHARED($T, given, blockDim.x * sizeof($T), blockDim.x);
    const int t = threadIdx.x, n = blockDim.x, rank = cluster_rank(), size = cluster_size();
    const i64 at = (i64)blockIdx.x * n + t;
    own[t] = in[at];
    cluster_barrier();
    out[at] = *cluster_pointer(own + t, (rank + 1) % size);
    *cluster_pointer(given + t, (rank + size - 1) % size) = in[at];
    cluster_barrier();
    out[(i64)gridDim.x * n + at] = given[n - 1 - t];
}
)";

void cluster_trials(const ir::Microkernel& m, TrialSet& set) {
    for (const DType type : m.types)
        for (const uint32_t size : {1u, 2u, 4u, 8u}) {
            const std::string name = fmt::format("cluster_{}_{}", ir::name_of(type), size);
            set.kernels.push_back(filled(cluster_text, {{"name", name}, {"size", std::to_string(size)}, {"T", device_name(type)}}));
            for (const uint32_t threads : {32u, 160u, 512u}) {
                const size_t unit = ir::info(type).bytes, half = 2 * size * threads;
                const Bytes in = drawn_bytes(half * unit, type);
                Bytes wanted(2 * half * unit);
                for (size_t i = 0; i < half; ++i) {
                    const size_t block = i / threads, first = block / size * size, next = first + (block + 1) % size, t = i % threads;
                    std::copy_n(&in[(next * threads + t) * unit], unit, &wanted[i * unit]);
                    std::copy_n(&in[(next * threads + threads - 1 - t) * unit], unit, &wanted[(half + i) * unit]);
                }
                set.trials.push_back(exact({.kernel = name, .what = fmt::format("{}, {} threads, {} blocks", ir::name_of(type), threads, size), .grid = 2 * size, .block = threads, .cluster = size,
                                            .shared = static_cast<uint32_t>(2 * threads * unit), .inputs = {in}}, wanted));
            }
        }
}

// ---- boxes of tensors: inside, at the edges, half and wholly outside

const char* const box_text = R"(
extern "C" __global__ void box_$rank(const u8* in, u8* out, int bytes$numbers, ACU_MAP map) {
    ACU_SHARED(u8, tile, 0, 32768);
    ACU_SHARED(RingBarrier, bar, 32768, 1);
    const int t = threadIdx.x;
    if (t == 0) ring_init(bar[0], 1);
    block_barrier();
    if (t == 0) {
        ring_expect(bar[0], bytes);
        tensor_copy(tile, map, bar[0]$coordinates);
        ring_arrive(bar[0]);
    }
    ring_wait(bar[0], 0);
    for (int i = t; i < bytes; i += blockDim.x) out[i] = tile[i];
}
)";

/// Where byte `at` of a box lies, whose lines are as long as the pattern.
size_t swizzled_byte(size_t at, size_t swizzle) { return swizzle ? at ^ ((at / 128 & (swizzle / 16 - 1)) << 4) : at; }

/// A box of `rank` dimensions inside, at the edges, half or wholly outside of a tensor.
struct BoxTrial {
    size_t rank, bytes, swizzle;
    int place;
    runtime::TensorMapShape shape = {};
    std::vector<int32_t> at = {};
    size_t all = 0;    ///< bytes of the box

    BoxTrial(size_t rank_, size_t bytes_, size_t swizzle_, int place_) : rank(rank_), bytes(bytes_), swizzle(swizzle_), place(place_) {
        shape.element_bytes = static_cast<uint32_t>(bytes), shape.swizzle_bytes = static_cast<uint32_t>(swizzle);
        const size_t line = swizzle ? swizzle / bytes : 48 / bytes;
        size_t stride = bytes;
        all = bytes;
        for (size_t i = 0; i < rank; ++i) {
            shape.dims.push_back(i == 0 ? 160 / bytes : 5 + 2 * i), shape.box.push_back(static_cast<uint32_t>(i == 0 ? line : i == 1 ? 8 : 3));
            if (i + 1 < rank) shape.strides.push_back(stride *= shape.dims[i]);
            all *= shape.box[i];
            const auto size = static_cast<int32_t>(shape.dims[i]);
            at.push_back(place == 0 ? 0 : place == 1 ? (i == 0 ? static_cast<int32_t>(16 / bytes) : 1) : place == 2 ? size - 2 : place == 3 ? -3 : size + 4);
            if (const auto unit = static_cast<int32_t>(16 / bytes); i == 0 && at[0] % unit) at[0] = place == 2 ? size - 2 * unit : place == 3 ? -unit : size + unit;    // multiples of 16 bytes
        }
    }
    size_t elements() const {
        size_t n = 1;
        for (const uint64_t d : shape.dims) n *= d;
        return n;
    }
    /// f(element of the box, element of the tensor or -1)
    void each(const std::function<void(size_t, int64_t)>& f) const {
        for (size_t e = 0; e < all / bytes; ++e) {
            int64_t from = 0, step = 1;
            bool inside = true;
            for (size_t i = 0, rest = e; i < rank; rest /= shape.box[i], ++i) {
                const int64_t c = at[i] + static_cast<int64_t>(rest % shape.box[i]);
                inside = inside && c >= 0 && c < static_cast<int64_t>(shape.dims[i]);
                from += c * step, step *= static_cast<int64_t>(shape.dims[i]);
            }
            f(e, inside ? from : -1);
        }
    }
    std::vector<int32_t> numbers() const {
        std::vector<int32_t> out{static_cast<int32_t>(all)};
        out.insert(out.end(), at.begin(), at.end());
        return out;
    }
    std::string what() const { return fmt::format("{} dimensions of {} bytes, swizzle {}, place {}", rank, bytes, swizzle, place); }
};

void each_box(const char* text, void (*trial)(size_t, size_t, size_t, int, TrialSet&), TrialSet& set) {
    for (size_t rank = 1; rank <= 5; ++rank) {
        std::string numbers, coordinates;
        for (size_t i = 0; i < rank; ++i) numbers += fmt::format(", int c{}", i), coordinates += fmt::format(", c{}", i);
        set.kernels.push_back(filled(text, {{"rank", std::to_string(rank)}, {"numbers", numbers}, {"coordinates", coordinates}}));
        for (const size_t bytes : {1u, 2u, 4u, 8u})
            for (const size_t swizzle : {0u, 32u, 64u, 128u})
                for (int place = 0; place < 5; ++place)
                    if (rank > 1 || swizzle == 0) trial(rank, bytes, swizzle, place, set);
    }
}

void box_trial(size_t rank, size_t bytes, size_t swizzle, int place, TrialSet& set) {
    const BoxTrial x(rank, bytes, swizzle, place);
    const Bytes in = drawn_bytes(x.elements() * bytes);
    Bytes wanted(x.all);
    x.each([&](size_t e, int64_t from) {
        for (size_t k = 0; from >= 0 && k < bytes; ++k) wanted[swizzled_byte(e * bytes + k, swizzle)] = in[static_cast<size_t>(from) * bytes + k];
    });
    set.trials.push_back(exact({.kernel = fmt::format("box_{}", rank), .what = x.what(), .block = 64, .shared = 32768 + 128, .inputs = {in}, .numbers = x.numbers(), .maps = {x.shape}}, wanted));
}

void box_trials(TrialSet& set) { each_box(box_text, box_trial, set); }

// ---- boxes that go to a tensor

const char* const store_text = R"(
extern "C" __global__ void store_$rank(u8* out, int all, int bytes$numbers, ACU_MAP map) {
    ACU_SHARED(u8, tile, 0, 32768);
    const int t = threadIdx.x;
    for (int i = t; i < all; i += blockDim.x) out[i] = 0;
#if ACU_NATIVE
    asm volatile("fence.proxy.async;" ::: "memory");  // the copy engine writes after that
#endif
    for (int i = t; i < bytes; i += blockDim.x) tile[i] = (u8)(7 * i + (i >> 8) + 1);
    async_fence();
    block_barrier();
    if (t == 0) {
        tensor_store(tile, map$coordinates);
        tensor_stores_commit();
        tensor_stores_read();
    }
    block_barrier();
    for (int i = t; i < bytes; i += blockDim.x) tile[i] = 0;
}
)";

void store_trial(size_t rank, size_t bytes, size_t swizzle, int place, TrialSet& set) {
    const BoxTrial x(rank, bytes, swizzle, place);
    Bytes wanted(x.elements() * bytes);    // what lies beside the box stays
    x.each([&](size_t e, int64_t at) {
        for (size_t k = 0; at >= 0 && k < bytes; ++k) {
            const size_t i = swizzled_byte(e * bytes + k, swizzle);
            wanted[static_cast<size_t>(at) * bytes + k] = static_cast<std::byte>(7 * i + (i >> 8) + 1);
        }
    });
    std::vector<int32_t> numbers = x.numbers();
    numbers.insert(numbers.begin(), static_cast<int32_t>(wanted.size()));
    set.trials.push_back(exact({.kernel = fmt::format("store_{}", rank), .what = x.what(), .block = 64, .shared = 32768, .numbers = numbers, .maps = {x.shape}}, wanted));
}

void store_trials(TrialSet& set) { each_box(store_text, store_trial, set); }

// ---- the same box to all blocks of a cluster, each of which asks for a part of its lines; then all say that they have read it

const char* const multicast_text = R"(
extern "C" __global__ void everywhere(const u8* in, u8* out, int bytes, int lines, int c0, int c1, ACU_MAP map) {
    ACU_SHARED(u8, tile, 0, 16384);
    ACU_SHARED(RingBarrier, bars, 16384, 2);
    const int t = threadIdx.x, blocks = cluster_size(), rank = cluster_rank(), all = bytes * blocks;
    if (t == 0) ring_init(bars[0], 1), ring_init(bars[1], 2 * blocks);
    cluster_barrier();
    if (t == 0) {
        ring_expect(bars[0], all);
        tensor_multicast(tile + rank * bytes, map, bars[0], (1 << blocks) - 1, c0, c1 + rank * lines);
        ring_arrive(bars[0]);
    }
    ring_wait(bars[0], 0);
    for (int i = t; i < all; i += blockDim.x) out[(i64)blockIdx.x * all + i] = tile[i];
    warp_arrive_at_all(bars[1], blocks);
    ring_wait(bars[1], 0);
    cluster_barrier();
}
)";

void multicast_trials(TrialSet& set) {
    set.kernels.push_back(multicast_text);
    for (const size_t blocks : {2u, 4u})
        for (const size_t swizzle : {0u, 64u, 128u})
            for (const int32_t place : {0, 3, -5}) {
                const size_t line = swizzle ? swizzle / 2 : 32, lines = 8, rows = 50, columns = 80;
                runtime::TensorMapShape shape{{columns, rows}, {2 * columns}, {static_cast<uint32_t>(line), static_cast<uint32_t>(lines)}, 2, static_cast<uint32_t>(swizzle)};
                const Bytes in = drawn_bytes(2 * columns * rows);
                const size_t bytes = line * lines * 2, all = bytes * blocks;
                Bytes wanted(all * blocks);
                for (size_t b = 0; b < blocks; ++b)
                    for (size_t e = 0; e < all / 2; ++e) {
                        const int64_t x = 8 * place + static_cast<int64_t>(e % line), y = place + static_cast<int64_t>(e / line);
                        const bool inside = x >= 0 && y >= 0 && x < static_cast<int64_t>(columns) && y < static_cast<int64_t>(rows);
                        for (size_t k = 0; inside && k < 2; ++k) wanted[b * all + swizzled_byte(2 * e + k, swizzle)] = in[2 * static_cast<size_t>(y * static_cast<int64_t>(columns) + x) + k];
                    }
                set.trials.push_back(exact({.kernel = "everywhere", .what = fmt::format("{} blocks, swizzle {}, at {}", blocks, swizzle, place), .grid = static_cast<uint32_t>(blocks), .block = 64, .cluster = static_cast<uint32_t>(blocks),
                                            .shared = 16384 + 128, .inputs = {in}, .numbers = {static_cast<int32_t>(bytes), static_cast<int32_t>(lines), 8 * place, place}, .maps = {shape}}, wanted));
            }
}

}  // namespace

TrialSet copy_trials(const ir::Microkernel& m, const Target& target) {
    TrialSet set{microkernels::headers_of(m)};
    if (m.id == "common.vector_copy") vector_trials(m, target, set);
    else if (m.id == "common.copy_async") async_trials(m, set);
    else if (m.id == "common.bulk_copy") bulk_trials(set);
    else if (m.id == "sm90.tensor_copy") box_trials(set);
    else if (m.id == "sm90.tensor_store") store_trials(set);
    else if (m.id == "sm90.tensor_multicast") multicast_trials(set);
    else cluster_trials(m, set);
    return set;
}

}  // namespace acu
