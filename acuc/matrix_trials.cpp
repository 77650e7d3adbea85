// Trials of matrix products: every type, order of the operands, number of columns and pattern of the shared memory, against sums in f64.
#include <algorithm>

#include "acuc/microkernel_data.h"
#include "acuc/microkernel_trials.h"
#include "ir/layout_use.h"
#include "ir/scalar.h"
#include "microkernels/catalogue.h"

namespace acu {

using ir::DType;

namespace {

const char* const product_text = R"(
extern "C" __global__ void __launch_bounds__($threads) $name(const $T* a, const $U* b, $S* out, int rounds) {
    typedef $A A;
    typedef $B B;
    ACU_SHARED($T, x, 0, $M * $K);
    ACU_SHARED($U, y, ($M * $K * sizeof($T) + 1023) / 1024 * 1024, $N * $K);
    $S d[$R];
#pragma unroll
    for (int r = 0; r < $R; ++r) d[r] = 0;
    for (int round = 0; round < rounds; ++round) {
        for (int i = threadIdx.x; i < $M * $K; i += blockDim.x) x[A::offset(i / $K, i % $K)] = a[round * $M * $K + i];
        for (int i = threadIdx.x; i < $N * $K; i += blockDim.x) y[B::offset(i / $K, i % $K)] = b[round * $N * $K + i];
        $fence block_barrier();
        $first$function<A, B, $deep, $wide, $K, $columns>(d, x, y, (int)threadIdx.x);
        block_barrier();
    }
#pragma unroll
    for (int r = 0; r < $R; ++r) out[threadIdx.x * $R + r] = d[r];
}
)";

/// The first factor in registers, as they are laid out in memory: thread by thread.
const char* const rows_text = R"(
extern "C" __global__ void __launch_bounds__($threads) $name(const float* a, const $U* b, $S* out, int rounds) {
    typedef $B B;
    ACU_SHARED($U, y, 0, $N * $K);
    $S d[$R];
#pragma unroll
    for (int r = 0; r < $R; ++r) d[r] = 0;
    for (int round = 0; round < rounds; ++round) {
        float x[$M * $K / $threads];
#pragma unroll
        for (int r = 0; r < $M * $K / $threads; ++r) x[r] = a[(round * $threads + threadIdx.x) * ($M * $K / $threads) + r];
        for (int i = threadIdx.x; i < $N * $K; i += blockDim.x) y[B::offset(i / $K, i % $K)] = b[round * $N * $K + i];
        $fence block_barrier();
        $function<B, $deep, $wide, $K, $columns>(d, x, y, (int)threadIdx.x);
        block_barrier();
    }
#pragma unroll
    for (int r = 0; r < $R; ++r) out[threadIdx.x * $R + r] = d[r];
}
)";

/// One kernel: a tile of m x n results from k terms a round.
struct Product {
    DType type;
    bool deep_a, deep_b;    ///< k lies along lines
    int64_t k;
    ir::MatrixTiles tiles;
    int64_t swizzle;
    int64_t alike = 1;
    DType other = type;    ///< of the second factor
};

const char* device_name(DType t) {
    switch (t) {
        case DType::Tf32:
        case DType::F32: return "float";
        case DType::F16: return "f16";
        case DType::BF16: return "bf16";
        case DType::I8: return "i8";
        case DType::F8E4M3: return "f8e4m3";
        default: return "f8e5m2";
    }
}
size_t size_of(DType t) { return t == DType::Tf32 ? 4 : ir::info(t).bytes; }

constexpr int kinds = 4;
/// Small integers, whose sums are exact; random numbers; those of many sizes; a few that are infinite or NaN.
double drawn_number(int kind, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    switch (kind) {
        case 0: return static_cast<double>(random() % 9) - 4;
        case 1: return normal(random);
        case 2: return std::ldexp(normal(random), static_cast<int>(random() % 13) - 8);
        default: return random() % 97 ? normal(random) : random() % 2 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
}

/// Elements as they are stored, and their values.
struct Numbers {
    std::vector<std::byte> bytes;
    std::vector<double> values;
};
Numbers drawn_numbers(DType type, int kind, size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    Numbers out{std::vector<std::byte>(count * size_of(type)), std::vector<double>(count)};
    for (size_t i = 0; i < count; ++i) {
        double x = drawn_number(type == DType::I8 ? 0 : kind, random);
        if (type == DType::I8) x = kind ? static_cast<double>(random() % 256) - 128 : x;
        const DType stored = type == DType::Tf32 ? DType::F32 : type;
        if (type == DType::I8) ir::store_int(out.bytes.data(), static_cast<int64_t>(i), type, static_cast<int64_t>(x));
        else ir::store_float(out.bytes.data(), static_cast<int64_t>(i), stored, x);
        out.values[i] = type == DType::I8 ? x : ir::load_float(out.bytes.data(), static_cast<int64_t>(i), stored);
    }
    return out;
}

/// Of one factor, in the arithmetic of the instruction, relative to its size; and of an addition of `magnitude` in all.
double relative_error(const ir::Microkernel& m, DType type) {
    if (type == DType::I8) return 0;
    if (type == DType::F32 || m.matrix.mixed) return 0x1p-20;
    if (type == DType::Tf32) return m.group == ir::ThreadGroup::Warpgroup ? 0x1p-9 : 0x1p-10;
    return m.group == ir::ThreadGroup::Warpgroup && ir::info(type).bytes == 1 ? 0x1p-9 : 0x1p-18;    // sums of 8-bit floats keep fewer bits
}

std::string operand_text(const Product& p, DType type, bool deep, int64_t along) {
    const int64_t lines = deep ? along : p.k, pitch = deep ? p.k : along;
    const bool panels = p.swizzle && pitch * static_cast<int64_t>(size_of(type)) > p.swizzle && p.alike == 1;
    return fmt::format("Operand<{}, {}, {}, {}, {}, {}, {}>", device_name(type), deep, lines, pitch, p.swizzle, p.alike, panels);
}

std::string fault_of(const ir::Microkernel& m, const Product& p, const ir::Layout& layout, const Numbers& a, const Numbers& b, int64_t rows, int64_t columns, int rounds, int kind, std::span<const std::byte> bytes) {
    const auto threads = static_cast<size_t>(layout.size("warp") * layout.size("lane")), registers = static_cast<size_t>(layout.size("reg"));
    const auto floats = m.matrix.sum == DType::I32 ? std::vector<float>() : values_of<float>(bytes);
    const auto whole = m.matrix.sum == DType::I32 ? values_of<int32_t>(bytes) : std::vector<int32_t>();
    const bool exact = kind == 0 || m.matrix.sum == DType::I32;
    for (size_t t = 0; t < threads; ++t)
        for (size_t r = 0; r < registers; ++r) {
            const auto at = layout.at({{"reg", static_cast<int64_t>(r)}, {"lane", static_cast<int64_t>(t) % layout.size("lane")}, {"warp", static_cast<int64_t>(t) / layout.size("lane")}});
            long double sum = 0, magnitude = 0;
            for (int round = 0; round < rounds; ++round)
                for (int64_t k = 0; k < p.k; ++k) {
                    const long double x = a.values[static_cast<size_t>((round * rows + at[0]) * p.k + k)] * static_cast<long double>(b.values[static_cast<size_t>((round * columns + at[1]) * p.k + k)]);
                    sum += x, magnitude += std::fabs(x);
                }
            const double got = m.matrix.sum == DType::I32 ? whole[t * registers + r] : static_cast<double>(floats[t * registers + r]);
            const long double tolerance = exact ? 0 : magnitude * relative_error(m, p.type) + 1e-30L;
            const bool undefined = std::isnan(sum) || std::isinf(sum);
            if (undefined ? !(std::isnan(got) || std::isinf(got)) : !near(got, sum, tolerance)) return fmt::format("row {}, column {}: {} instead of {}", at[0], at[1], got, static_cast<double>(sum));
        }
    return "";
}

/// MFMA takes factors of 16 bits that are subnormal as zero: AMD CDNA2 ISA.
void flush(DType type, std::vector<double>& values) {
    const double least = type == DType::F16 ? 0x1p-14 : type == DType::BF16 ? 0x1p-126 : 0;
    for (double& x : values)
        if (std::fabs(x) < least) x = 0;
}

/// The rows of each thread, as sums of `k` columns lie, one round after another; not quite the values: they are rounded to them.
std::vector<std::byte> in_registers(const ir::Microkernel& m, const Product& p, const Numbers& a, int64_t rows, int rounds) {
    const ir::Layout layout = matrix_layout(*ir::fragment_named(m.matrix.accumulator), {m.matrix.rows, m.matrix.columns}, {p.tiles.deep, p.k / m.matrix.columns, p.tiles.rows, 1});
    const int64_t threads = layout.size("warp") * layout.size("lane"), registers = layout.size("reg");
    std::vector<float> out;
    for (int round = 0; round < rounds; ++round)
        for (int64_t t = 0; t < threads; ++t)
            for (int64_t r = 0; r < registers; ++r) {
                const auto at = layout.at({{"reg", r}, {"lane", t % layout.size("lane")}, {"warp", t / layout.size("lane")}});
                const auto value = static_cast<float>(a.values[static_cast<size_t>((round * rows + at[0]) * p.k + at[1])]);
                out.push_back(value * (r % 2 ? 1 + 0x1p-15F : 1));
            }
    const auto bytes = std::as_bytes(std::span(out));
    return {bytes.begin(), bytes.end()};
}

void product_trials(const ir::Microkernel& m, const Product& p, TrialSet& set) {
    const ir::MatrixShape& x = m.matrix;
    const ir::Layout layout = matrix_layout(*ir::fragment_named(x.accumulator), {x.rows, x.columns}, p.tiles);
    const int64_t rows = x.rows * p.tiles.deep * p.tiles.rows, columns = x.columns * p.tiles.wide * p.tiles.columns, threads = m.most_threads * p.tiles.rows * p.tiles.columns;
    const std::string name = fmt::format("product_{}_{}", ir::name_of(p.type), set.kernels.size());
    const bool engine = m.group == ir::ThreadGroup::Warpgroup;
    set.kernels.push_back(filled(x.rows_in_registers ? rows_text : product_text, {{"threads", std::to_string(threads)}, {"name", name}, {"function", m.function}, {"fence", engine ? "async_fence();" : ""}, {"first", m.function == "warpgroup_tile" ? fmt::format("if (round == 0) warpgroup_tile<A, B, {}, {}, {}, {}, 0, true>(d, x, y, (int)threadIdx.x);\n        else ", p.tiles.deep, p.tiles.wide, p.k, p.tiles.columns) : ""}, {"deep", std::to_string(p.tiles.deep)}, {"wide", std::to_string(p.tiles.wide)},
                                                {"columns", std::to_string(p.tiles.columns)}, {"T", device_name(p.type)}, {"U", device_name(p.other)}, {"S", x.sum == DType::I32 ? "int" : "float"}, {"A", operand_text(p, p.type, p.deep_a, rows)}, {"B", operand_text(p, p.other, p.deep_b, columns)},
                                                {"M", std::to_string(rows)}, {"N", std::to_string(columns)}, {"K", std::to_string(p.k)}, {"R", std::to_string(layout.size("reg"))}}));
    for (int kind = 0; kind < kinds; ++kind) {
        if (kind > 1 && p.type == DType::I8) continue;
        const int rounds = kind == 1 ? 3 : 1;
        Numbers a = drawn_numbers(p.type, kind, static_cast<size_t>(rounds * rows * p.k), 1 + static_cast<uint64_t>(kind)), b = drawn_numbers(p.other, kind, static_cast<size_t>(rounds * columns * p.k), 7 + static_cast<uint64_t>(kind));
        const auto bytes = static_cast<int64_t>(size_of(p.type)), other = static_cast<int64_t>(size_of(p.other));
        if (m.on("gfx90a")) flush(p.type, a.values), flush(p.other, b.values);
        Trial t{.kernel = name, .what = fmt::format("{} by {}, {}x{}x{}, a {} and b {} k, swizzle {} of {} lines, data {}", ir::name_of(p.type), ir::name_of(p.other), rows, columns, p.k, p.deep_a ? "along" : "across", p.deep_b ? "along" : "across", p.swizzle, p.alike, kind), .block = static_cast<uint32_t>(threads),
                .shared = static_cast<uint32_t>((rows * p.k * bytes + 1023) / 1024 * 1024 + columns * p.k * other), .inputs = {x.rows_in_registers ? in_registers(m, p, a, rows, rounds) : a.bytes, b.bytes}, .output_bytes = static_cast<size_t>(rows * columns * 4), .numbers = {rounds}};
        t.fault = [&m, p, layout, a = std::move(a), b = std::move(b), rows, columns, rounds, kind](std::span<const std::byte> out) { return fault_of(m, p, layout, a, b, rows, columns, rounds, kind, out); };
        set.trials.push_back(std::move(t));
    }
}

std::vector<std::pair<bool, bool>> orders(const ir::Microkernel& m) {
    std::vector<std::pair<bool, bool>> out{{true, true}};
    if (m.matrix.across) out.emplace_back(true, false);
    if (m.matrix.across && !m.matrix.rows_in_registers) out.insert(out.end(), {{false, true}, {false, false}});
    return out;
}

/// Lines as long as the pattern where k lies along them; panels of that width elsewhere.
void warpgroup_trials(const ir::Microkernel& m, TrialSet& set) {
    for (const DType type : m.types) {
        const auto bytes = static_cast<int64_t>(size_of(type));
        for (int64_t n = 1; n <= 32; ++n) {
            if (type == DType::I8 && n > 4 && n % 2) continue;    // there is no such instruction
            product_trials(m, {type, true, true, 128 / bytes, {1, n, 1, 1}, 128}, set);
        }
        product_trials(m, {type, true, true, 256 / bytes, {1, 8, 2, 1}, 128}, set);    // k in two panels
        for (const auto& [a, b] : orders(m))
            for (const int64_t swizzle : {32, 64, 128}) {
                const int64_t unit = swizzle / bytes, wide = b ? 6 : unit / 8;
                for (const ir::MatrixTiles& t : {ir::MatrixTiles{1, wide, 1, 1}, {2, 2 * wide, 1, 1}, {1, wide, 2, 1}})
                    product_trials(m, {type, a, b, std::max(a && b ? unit : std::max<int64_t>(unit, 16), m.matrix.depth), t, swizzle}, set);
            }
    }
}

void warp_trials(const ir::Microkernel& m, const Target& target, TrialSet& set) {
    for (const DType type : m.types)
        for (const auto& [a, b] : orders(m))
            for (const int64_t swizzle : {0, 32, 64, 128})
                for (const ir::MatrixTiles& t : {ir::MatrixTiles{1, 1, 1, 1}, {1, 3, 1, 2}, {2, 4, 2, 1}, {4, 4, 2, 2}, {2, 8, 1, 4}}) {
                    if (m.matrix.rows_in_registers && t.columns > 1) continue;
                    const int64_t bytes = static_cast<int64_t>(size_of(type)), unit = std::max<int64_t>(1, swizzle / bytes), k = std::max<int64_t>({2 * m.matrix.depth, unit, 16 / bytes});
                    if (m.matrix.rows * m.matrix.columns * t.deep * t.wide > 128 * m.most_threads) continue;    // more registers than a thread has
                    const int64_t rows = m.matrix.rows * t.deep * t.rows, columns = m.matrix.columns * t.wide * t.columns;
                    const auto fits = [&](bool deep, int64_t along) { return !swizzle || ((deep ? k : along) % unit == 0 && (deep ? along : k) % 8 == 0); };
                    const int64_t pitch = std::max(a ? k : rows, b ? k : columns) * bytes;
                    if (!fits(a, rows) || !fits(b, columns) || (rows + columns) * k * bytes + 1024 > target.shared_bytes) continue;
                    const int64_t alike = pitch > 128 ? pitch / 128 : 1;
                    product_trials(m, {type, a, b, k, t, swizzle, alike}, set);
                    if (!m.matrix.mixed || bytes < 4) continue;
                    for (const DType other : {DType::F16, DType::I8})
                        if (!swizzle) product_trials(m, {type, a, b, std::max<int64_t>(k, 16), t, swizzle, alike, other}, set);
                    if (swizzle == 128 && alike == 1) product_trials(m, {type, a, b, k, t, swizzle, 4}, set);
                }
}

}  // namespace

TrialSet matrix_trials(const ir::Microkernel& m, const Target& target) {
    TrialSet set{microkernels::headers_of(m), {}, {}};
    if (m.group == ir::ThreadGroup::Warpgroup) warpgroup_trials(m, set);
    else warp_trials(m, target, set);
    return set;
}

}  // namespace acu
