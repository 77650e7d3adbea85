#include "microkernels/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::microkernels {

using namespace ir;

namespace {

using Headers = std::vector<std::string>;

const std::vector<DType> numbers{DType::F32, DType::F64, DType::I32, DType::I64};
const std::vector<DType> floats{DType::F32, DType::F64};
const std::vector<DType> words{DType::I32, DType::I64, DType::F32, DType::F64};
const std::vector<DType> all_stored{DType::Bool, DType::I8, DType::U8, DType::I16, DType::I32, DType::I64, DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64};
const std::vector<Monoid> plain_monoids{Monoid::Sum, Monoid::Prod, Monoid::Max, Monoid::Min, Monoid::Any, Monoid::All};
const std::vector<Monoid> scan_monoids{Monoid::Sum, Monoid::Prod, Monoid::Max, Monoid::Min};
const std::vector<Monoid> best{Monoid::ArgMax, Monoid::ArgMin};

const MicrokernelOperand value{"x", {Scope::Register}, true};
const MicrokernelOperand position{"position", {Scope::Register}, true};
const MicrokernelOperand scratch{"scratch", {Scope::Shared}, true};

/// The same operation on every GPU: what NVIDIA's and AMD's compilers must show.
std::vector<MicrokernelTarget> everywhere(const std::string& sass, const std::string& ptx, const std::string& amd) {
    return {{"sm_70", sass, ptx}, {"sm_80", sass, ptx}, {"sm_90a", sass, ptx}, {"gfx90a", amd, amd}};
}
std::vector<MicrokernelTarget> from_sm_80(const std::string& sass, const std::string& ptx) { return {{"sm_80", sass, ptx}, {"sm_90a", sass, ptx}}; }
std::vector<MicrokernelTarget> sm_90a(const std::string& sass, const std::string& ptx) { return {{"sm_90a", sass, ptx}}; }

const char* const shuffle_source = "PTX ISA, shfl.sync; AMD CDNA2 ISA, DPP and ds_bpermute_b32";
std::vector<MicrokernelTarget> by_shuffle() { return everywhere("SHFL", "shfl\\.sync", "ds_bpermute_b32|ds_swizzle_b32|_dpp"); }

void exchanges(std::vector<Microkernel>& all) {
    all.push_back({.id = "common.warp_shuffle", .function = "warp_shuffle", .doc = "a value of another lane: by number, xor, from below or above", .kind = MicrokernelKind::Exchange, .targets = by_shuffle(),
                   .types = words, .operands = {value}, .group = ThreadGroup::Warp, .most_threads = 64, .resources = {.registers = 1}, .headers = {"group"}, .source = shuffle_source});
    all.push_back({.id = "common.warp_vote", .function = "warp_ballot", .doc = "whether a condition holds in any lane, in all, in which", .kind = MicrokernelKind::Exchange,
                   .targets = everywhere("VOTE", "vote\\.sync", "v_cmp_\\w+ (vcc|s\\[)"), .types = {DType::Bool}, .operands = {value}, .group = ThreadGroup::Warp, .most_threads = 64,
                   .resources = {.registers = 1}, .headers = {"group"}, .source = "PTX ISA, vote.sync; AMD CDNA2 ISA, VOPC"});
    all.push_back({.id = "common.group_barrier", .function = "group_barrier", .doc = "some warps of a block meet", .kind = MicrokernelKind::Sync,
                   .targets = {{"sm_70", "BAR\\.SYNC", "bar\\.sync"}, {"sm_80", "BAR\\.SYNC", "bar\\.sync"}, {"sm_90a", "BAR\\.SYNC", "bar\\.sync"}}, .types = {}, .group = ThreadGroup::Group, .most_threads = 1024,
                   .resources = {.barriers = 1}, .headers = {"group"}, .source = "PTX ISA, bar.sync"});
}

void copies(std::vector<Microkernel>& all) {
    const MicrokernelOperand memory{"memory", {Scope::In, Scope::Out, Scope::Temp, Scope::Shared}, true};
    const MicrokernelOperand to_shared{"shared_dst", {Scope::Shared}, true}, from_global{"global_src", {Scope::In, Scope::Temp}, false}, to_global{"global_dst", {Scope::Out, Scope::Temp}, true}, from_shared{"shared_src", {Scope::Shared}, false};
    all.push_back({.id = "common.vector_copy", .function = "load_vector", .doc = "neighbouring elements between memory and registers in one access; store_vector for the other way", .kind = MicrokernelKind::Copy,
                   .targets = everywhere("LDG\\.E\\.128", "ld\\.global\\.(nc\\.)?v4\\.", "global_load_dwordx4"), .types = all_stored, .operands = {memory, value},
                   .bytes = {2, 4, 8, 16}, .resources = {.registers = 1}, .headers = {"group", "copy"}, .source = "PTX ISA, ld and st; AMD CDNA2 ISA, global_load_dwordx4"});
    all.push_back({.id = "common.copy_async", .function = "copy_async", .doc = "global to shared memory past the registers, zeros where fewer bytes are valid", .kind = MicrokernelKind::Copy,
                   .targets = from_sm_80("LDGSTS", "cp\\.async\\.c[ag]\\.shared\\.global"), .types = all_stored, .operands = {to_shared, from_global}, .bytes = {4, 8, 16}, .headers = {"group", "async"},
                   .source = "PTX ISA, cp.async"});
    all.push_back({.id = "common.bulk_copy", .function = "bulk_copy", .doc = "global to shared memory by the copy engine, counted by a ring barrier", .kind = MicrokernelKind::Copy,
                   .targets = sm_90a("UBLKCP", "cp\\.async\\.bulk\\.shared::cluster\\.global"), .types = all_stored, .operands = {to_shared, from_global}, .alignment = 16, .resources = {.scratch_bytes = 8},
                   .headers = {"group", "async", "ring"}, .source = "PTX ISA, cp.async.bulk"});
    all.push_back({.id = "sm90.tensor_copy", .function = "tensor_copy", .doc = "boxes of tensors of 1 to 5 dimensions to shared memory by the copy engine, counted by a ring barrier", .kind = MicrokernelKind::Copy,
                   .targets = sm_90a("UTMALDG", "cp\\.async\\.bulk\\.tensor"), .types = all_stored, .operands = {to_shared, from_global}, .alignment = 16, .resources = {.scratch_bytes = 8},
                   .headers = {"group", "async", "ring", "tensor_copy"}, .source = "PTX ISA, cp.async.bulk.tensor"});
    all.push_back({.id = "sm90.tensor_store", .function = "tensor_store", .doc = "boxes of shared memory to tensors of 1 to 5 dimensions by the copy engine, as far as they lie inside", .kind = MicrokernelKind::Copy,
                   .targets = sm_90a("UTMASTG", "cp\\.async\\.bulk\\.tensor"), .types = all_stored, .operands = {to_global, from_shared}, .alignment = 16,
                   .headers = {"group", "async", "ring", "tensor_copy", "tensor_store"}, .source = "PTX ISA, cp.async.bulk.tensor"});
    all.push_back({.id = "sm90.tensor_multicast", .function = "tensor_multicast", .doc = "boxes of tensors to the shared memory of all blocks of a cluster: each block asks for a part", .kind = MicrokernelKind::Copy,
                   .targets = sm_90a("UTMALDG", "multicast::cluster"), .types = all_stored, .operands = {to_shared, from_global}, .alignment = 16, .resources = {.scratch_bytes = 8},
                   .headers = {"group", "async", "cluster", "ring", "tensor_copy", "multicast"}, .source = "PTX ISA, cp.async.bulk.tensor"});
    all.push_back({.id = "common.cluster_pointer", .function = "cluster_pointer", .doc = "reads and writes of the shared memory of a block of the cluster", .kind = MicrokernelKind::Copy,
                   .targets = sm_90a("\\bLD\\.E\\b", "mapa\\.u64"), .types = words, .operands = {{"shared", {Scope::Cluster}, true}}, .group = ThreadGroup::Thread, .resources = {.registers = 2},
                   .headers = {"group", "cluster"}, .source = "PTX ISA, mapa; barrier.cluster"});
    all.push_back({.id = "common.ring_barrier", .function = "ring_wait", .doc = "phases of a ring of buffers: arrivals and bytes on their way", .kind = MicrokernelKind::Sync,
                   .targets = {{"sm_80", "ATOMS\\.ARRIVE", "mbarrier\\.arrive"}, {"sm_90a", "SYNCS\\.PHASECHK", "mbarrier\\.try_wait"}}, .types = {}, .resources = {.scratch_bytes = 8, .registers = 2},
                   .headers = {"group", "async", "ring"}, .source = "PTX ISA, mbarrier"});
}

void reductions(std::vector<Microkernel>& all) {
    const Headers headers{"group", "reduce"};
    all.push_back({.id = "common.warp_reduce", .function = "warp_reduce", .doc = "over the lanes of a warp, the same bits to all of them", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(), .types = numbers,
                   .monoids = plain_monoids, .operands = {value}, .group = ThreadGroup::Warp, .most_threads = 64, .resources = {.registers = 2}, .headers = headers, .source = shuffle_source});
    all.push_back({.id = "common.lanes_reduce", .function = "lanes_reduce", .doc = "over each group of 2, 4 or more lanes of a warp, the same bits to all of them", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(),
                   .types = numbers, .monoids = plain_monoids, .operands = {value}, .group = ThreadGroup::Lanes, .most_threads = 32, .resources = {.registers = 2}, .headers = {"group", "reduce", "lanes"}, .source = shuffle_source});
    all.push_back({.id = "common.rows_reduce", .function = "rows_reduce", .doc = "over the lanes that have parts of the same rows of a matrix in registers, the same bits to all of them", .kind = MicrokernelKind::Reduce,
                   .targets = by_shuffle(), .types = numbers, .monoids = plain_monoids, .operands = {value}, .group = ThreadGroup::Group, .most_threads = 1024, .resources = {.registers = 2}, .headers = {"group", "reduce", "rows"}, .source = shuffle_source});
    all.push_back({.id = "common.block_reduce", .function = "block_reduce", .doc = "over the threads of a block, the same bits to all of them", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(), .types = numbers,
                   .monoids = plain_monoids, .operands = {value, scratch}, .group = ThreadGroup::Block, .most_threads = 1024, .resources = {.scratch_values = 1, .registers = 3, .barriers = 2}, .headers = headers,
                   .source = shuffle_source});
    all.push_back({.id = "common.cluster_reduce", .function = "cluster_reduce", .doc = "over the blocks of a cluster, from each block's own result", .kind = MicrokernelKind::Reduce,
                   .targets = sm_90a("UCGABAR_ARV", "barrier\\.cluster\\.arrive"), .types = numbers, .monoids = plain_monoids, .operands = {value, {"slot", {Scope::Shared}, true}}, .group = ThreadGroup::Cluster,
                   .most_threads = 8192, .resources = {.registers = 4, .barriers = 2}, .headers = {"group", "cluster", "reduce"}, .source = "PTX ISA, barrier.cluster; mapa"});
    all.push_back({.id = "common.warp_reduce_pair", .function = "warp_reduce_pair", .doc = "the best value of a warp and its position", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(), .types = numbers,
                   .monoids = best, .operands = {value, position}, .group = ThreadGroup::Warp, .most_threads = 64, .resources = {.registers = 6}, .headers = headers, .source = shuffle_source});
    all.push_back({.id = "common.warp_reduce_top", .function = "warp_reduce_top", .doc = "the best values of a warp and their positions: 2, 4, 8 or 16 of them", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(),
                   .types = numbers, .monoids = {Monoid::TopK}, .operands = {value, position}, .group = ThreadGroup::Warp, .most_threads = 64, .resources = {.registers = 48}, .headers = {"group", "reduce", "top"},
                   .source = shuffle_source});
    all.push_back({.id = "common.block_reduce_pair", .function = "block_reduce_pair", .doc = "the best value of a block and its position", .kind = MicrokernelKind::Reduce, .targets = by_shuffle(), .types = numbers,
                   .monoids = best, .operands = {value, position, {"values", {Scope::Shared}, true}, {"positions", {Scope::Shared}, true}}, .group = ThreadGroup::Block, .most_threads = 1024,
                   .resources = {.scratch_values = 1, .scratch_bytes = 8, .registers = 7, .barriers = 2}, .headers = headers, .source = shuffle_source});
}

void scans_and_merges(std::vector<Microkernel>& all) {
    const Headers scan{"group", "reduce", "scan"}, online{"group", "reduce", "online"};
    const char* const chan = "Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979";
    all.push_back({.id = "common.warp_scan", .function = "warp_scan", .doc = "prefixes over the lanes of a warp; warp_scan_exclusive without a lane's own", .kind = MicrokernelKind::Scan,
                   .targets = everywhere("SHFL", "shfl\\.sync\\.up", "ds_bpermute_b32"), .types = numbers, .monoids = scan_monoids, .operands = {value}, .group = ThreadGroup::Warp, .most_threads = 64,
                   .resources = {.registers = 2}, .headers = scan, .source = shuffle_source});
    all.push_back({.id = "common.block_scan", .function = "block_scan", .doc = "prefixes over the threads of a block, and their total; block_scan_exclusive without a thread's own", .kind = MicrokernelKind::Scan,
                   .targets = everywhere("SHFL", "shfl\\.sync\\.up", "ds_bpermute_b32"), .types = numbers, .monoids = scan_monoids, .operands = {value, scratch, {"total", {Scope::Register}, true}},
                   .group = ThreadGroup::Block, .most_threads = 1024, .resources = {.scratch_values = 1, .registers = 5, .barriers = 2}, .headers = scan, .source = shuffle_source});
    all.push_back({.id = "common.online_merge", .function = "block_merge<OnlineMerge<>>", .doc = "maximum and sum of exponentials (base e or 2) over a thread's values, a warp, a block", .kind = MicrokernelKind::Merge,
                   .targets = by_shuffle(), .types = floats, .operands = {{"state", {Scope::Register}, true}, scratch}, .group = ThreadGroup::Block, .most_threads = 1024,
                   .resources = {.scratch_values = 2, .registers = 8, .barriers = 2}, .headers = online, .source = "M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018"});
    all.push_back({.id = "common.welford_merge", .function = "block_merge<WelfordMerge>", .doc = "count, mean and sum of squared differences over a thread's values, a warp, a block", .kind = MicrokernelKind::Merge,
                   .targets = by_shuffle(), .types = floats, .operands = {{"state", {Scope::Register}, true}, scratch}, .group = ThreadGroup::Block, .most_threads = 1024,
                   .resources = {.scratch_values = 3, .registers = 12, .barriers = 2}, .headers = online, .source = chan});
}

/// Products of tiles in shared memory, the sums in registers.
Microkernel matrix_product(std::string id, std::string function, std::string doc, std::vector<MicrokernelTarget> targets, std::vector<DType> types, MatrixShape shape, ThreadGroup group, Headers headers, std::string source, int threads = 32) {
    if (group == ThreadGroup::Warpgroup) threads = 128;
    const Scope first = shape.rows_in_registers ? Scope::Register : Scope::Shared;
    return {.id = std::move(id), .function = std::move(function), .doc = std::move(doc), .kind = MicrokernelKind::Mma, .targets = std::move(targets), .types = std::move(types), .monoids = {Monoid::Sum},
            .operands = {{"d", {Scope::Register}, true}, {"a", {first}, false}, {"b", {Scope::Shared}, false}}, .alignment = 16, .group = group, .most_threads = threads,
            .resources = {.registers = static_cast<int>(shape.rows * shape.columns / threads)}, .headers = std::move(headers), .matrix = std::move(shape), .source = std::move(source)};
}

void matrix_products(std::vector<Microkernel>& all) {
    const Headers mma{"group", "swizzle", "operand", "mma"}, wgmma{"group", "async", "swizzle", "operand", "wgmma"};
    const char *const mma_source = "PTX ISA, mma.sync; ldmatrix", *const wgmma_source = "PTX ISA, wgmma.mma_async";
    const auto by_warp = [&](const char* name, std::vector<DType> types, int64_t depth, const char* sass, const char* ptx, DType sum = DType::F32) {
        all.push_back(matrix_product(fmt::format("sm80.mma_{}", name), "mma_tile", fmt::format("products of tiles in shared memory by mma.sync m16n8k{}", depth), from_sm_80(sass, ptx), std::move(types),
                                     {16, 8, depth, "mma.m16n8.C", sum}, ThreadGroup::Warp, mma, mma_source));
    };
    by_warp("f16", {DType::F16, DType::BF16}, 16, "HMMA\\.16816", "mma\\.sync\\.aligned\\.m16n8k16");
    all.push_back(matrix_product("sm80.mma_rows_f16", "mma_rows", "products of rows in registers, rounded to the type of the other factor, and tiles in shared memory by mma.sync m16n8k16", from_sm_80("HMMA\\.16816", "mma\\.sync\\.aligned\\.m16n8k16"),
                                 {DType::F16, DType::BF16}, {.rows = 16, .columns = 8, .depth = 16, .accumulator = "mma.m16n8.C", .rows_in_registers = true}, ThreadGroup::Warp, {"group", "swizzle", "operand", "pairs", "mma", "mma_rows"}, mma_source));
    all.push_back(matrix_product("common.mma_fma", "fma_tile", "products of tiles in shared memory by multiplications and additions of f32", {{"sm_70", "FFMA", "fma\\.rn\\.f32"}, {"sm_80", "FFMA", "fma\\.rn\\.f32"}, {"sm_90a", "FFMA", "fma\\.rn\\.f32"}},
                                 {DType::F32, DType::F16, DType::BF16, DType::I8, DType::F8E4M3}, {.rows = 16, .columns = 32, .depth = 4, .accumulator = "lanes.16x32", .mixed = true}, ThreadGroup::Warp, {"group", "copy", "swizzle", "operand", "fma"}, "PTX ISA, fma"));
    by_warp("tf32", {DType::Tf32}, 8, "HMMA\\.1688\\.F32\\.TF32", "mma\\.sync\\.aligned\\.m16n8k8");
    by_warp("s8", {DType::I8}, 32, "IMMA\\.16832", "mma\\.sync\\.aligned\\.m16n8k32", DType::I32);
    all.push_back(matrix_product("sm70.mma_f16", "quad_tile", "products of tiles in shared memory by mma.sync m8n8k4", {{"sm_70", "HMMA\\.884", "mma\\.sync\\.aligned\\.m8n8k4"}}, {DType::F16}, {16, 16, 4, "m8n8k4.16x16.C"}, ThreadGroup::Warp,
                                 {"group", "copy", "swizzle", "operand", "quads"}, "PTX ISA, mma.sync m8n8k4"));
    const auto by_wave = [&](const char* name, std::vector<DType> types, int64_t per, int64_t size, const char* assembly, DType sum = DType::F32) {
        all.push_back(matrix_product(fmt::format("gfx90a.mfma_{}_{}", name, size), fmt::format("mfma{}_tile", size), fmt::format("products of tiles in shared memory by MFMA {0}x{0}x{1}", size, per * 64 / size), {{"gfx90a", assembly, assembly}},
                                     std::move(types), {size, size, per * 64 / size, fmt::format("mfma.{0}x{0}.D", size), sum}, ThreadGroup::Warp, {"group", "copy", "swizzle", "operand", "mfma"}, "AMD CDNA2 ISA, matrix arithmetic instructions", 64));
    };
    for (const int64_t size : {32, 16}) {
        by_wave("f16", {DType::F16, DType::BF16}, 4, size, size == 32 ? "v_mfma_f32_32x32x8" : "v_mfma_f32_16x16x16");
        by_wave("f32", {DType::F32}, 1, size, size == 32 ? "v_mfma_f32_32x32x2" : "v_mfma_f32_16x16x4");
        by_wave("i8", {DType::I8}, 4, size, size == 32 ? "v_mfma_i32_32x32x8" : "v_mfma_i32_16x16x16", DType::I32);
    }
    const auto by_warpgroup = [&](const char* name, std::vector<DType> types, int64_t depth, const char* sass, bool across, DType sum = DType::F32, const char* function = "warpgroup_tile") {
        all.push_back(matrix_product(fmt::format("sm90.wgmma_{}", name), function, fmt::format("products of tiles in shared memory by wgmma m64nNk{}{}", depth, depth == 8 ? "; the low 13 bits of factors are not looked at" : ""), sm_90a(sass, "wgmma\\.mma_async"), std::move(types),
                                     {64, 8, depth, "wgmma.D", sum, 256, across, true}, ThreadGroup::Warpgroup, wgmma, wgmma_source));
    };
    by_warpgroup("f16", {DType::F16, DType::BF16}, 16, "HGMMA", true);
    all.push_back(matrix_product("sm90.wgmma_rows_f16", "warpgroup_rows", "products of rows in registers, rounded to the type of the other factor, and tiles in shared memory by wgmma m64nNk16", sm_90a("HGMMA", "wgmma\\.mma_async"), {DType::F16, DType::BF16},
                                 {.rows = 64, .columns = 8, .depth = 16, .accumulator = "wgmma.D", .most_columns = 256, .needs_swizzle = true, .rows_in_registers = true}, ThreadGroup::Warpgroup,
                                 {"group", "async", "swizzle", "operand", "pairs", "wgmma", "wgmma_rows"}, wgmma_source));
    by_warpgroup("tf32", {DType::Tf32}, 8, "HGMMA", false);
    by_warpgroup("s8", {DType::I8}, 32, "IGMMA", false, DType::I32);
    by_warpgroup("f8", {DType::F8E4M3, DType::F8E5M2}, 32, "QGMMA", false, DType::F32, "warpgroup_promoted_tile");
}

}  // namespace

const std::vector<Microkernel>& catalogue() {
    static const std::vector<Microkernel> all = [] {
        std::vector<Microkernel> v;
        exchanges(v), copies(v), reductions(v), scans_and_merges(v), matrix_products(v);
        std::ranges::sort(v, {}, &Microkernel::id);
        return v;
    }();
    return all;
}

const Microkernel* find(std::string_view id) {
    const auto it = std::ranges::find(catalogue(), id, &Microkernel::id);
    return it == catalogue().end() ? nullptr : &*it;
}

std::string headers_of(const Microkernel& m) {
    std::string text(texts().at("device"));
    for (const std::string& h : m.headers) text += "\n" + std::string(texts().at(h));
    return text;
}

}  // namespace acu::microkernels
