#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "microkernels/catalogue.h"
#include "runtime/device.h"
#include "runtime/emulation/tensor_map.h"
#include "runtime/emulation/text.h"

using namespace acu;
using namespace acu::runtime;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Text with the device headers that it names before it, as the emitter does.
std::string whole_text(const std::string& headers, const std::string& kernel) {
    std::string out(microkernels::texts().at("device"));
    for (size_t from = 0; from < headers.size();) {
        const size_t end = std::min(headers.find(' ', from), headers.size());
        out += microkernels::texts().at(headers.substr(from, end - from));
        from = end + 1;
    }
    return out + "\n" + kernel;
}

KernelArgument argument_of(const void* p, size_t n) {
    KernelArgument a;
    a.bytes.resize(n);
    std::memcpy(a.bytes.data(), p, n);
    return a;
}
template <class T>
KernelArgument argument(T v) { return argument_of(&v, sizeof v); }

std::string kernel_text(const std::string& name, const std::string& body) {
    return "extern \"C\" __global__ void __launch_bounds__(1024) " + name + "(const float* __restrict__ x, float* __restrict__ y) {\n    const int t = threadIdx.x;\n" + body + "\n}\n";
}

/// One kernel on 256 floats x and y each, where x[i] = i.
struct Bench {
    std::string target = "sm_80", headers, body;
    uint32_t grid = 1, block = 128, shared = 4096, cluster = 1;
    EmulationOptions options = {};
    std::vector<float> y = std::vector<float>(256);

    Status run() {
        const auto device = open_device({DeviceId::Kind::Emulated, 0, target}, {}, options);
        if (!device) return device.why();
        const auto module = (*device)->load(whole_text(headers, kernel_text("k", body)), target == "gfx90a" ? "k.hip" : "k.cu");
        if (!module) return module.why();
        return launch(**device, **module, "k");
    }
    Status launch(Device& device, Module& module, const std::string& kernel) {
        std::vector<float> x(256);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
        const auto in = device.allocate(1024), out = device.allocate(1024);
        REQUIRE(in);
        REQUIRE(out);
        REQUIRE((*in)->upload(std::as_bytes(std::span(x))));
        REQUIRE((*out)->upload(std::as_bytes(std::span(y))));
        if (const Status done = device.launch(module, {kernel, grid, block, {argument((*in)->address()), argument((*out)->address())}, shared, cluster}); !done) return done;
        REQUIRE((*out)->check_guards("y"));
        return (*out)->download(std::as_writable_bytes(std::span(y)));
    }
    std::string code() {
        const Status s = run();
        return s ? "none" : s.why().code;
    }
};

bool compiler_here() {
    const auto device = open_device({DeviceId::Kind::Emulated, 0, "sm_80"}, {});
    return device || device.why().code != "toolkit.missing";
}

/// A planted bug, and the same text without it.
struct Planted {
    std::string name;
    const char* code;  ///< that the bug must be found with
    Bench wrong, right;
};

Bench body(const std::string& text) {
    Bench b;
    b.body = text;
    return b;
}
Bench body(const std::string& headers, const std::string& text, const std::string& target = "sm_80") {
    Bench b;
    b.headers = headers, b.body = text, b.target = target;
    return b;
}
Bench with_block(Bench b, uint32_t block) { return b.block = block, b; }
Bench with_grid(Bench b, uint32_t grid) { return b.grid = grid, b; }
Bench with_shared(Bench b, uint32_t shared) { return b.shared = shared, b; }
Bench guarded(Bench b) { return b.options.guard = true, b; }

const std::string tile = "    ACU_SHARED(float, s, 0, 128);\n";

std::vector<Planted> barriers() {
    const std::string reverse = tile + "    s[t] = x[t];\n    __syncthreads();\n    y[t] = s[127 - t];";
    return {
        {"removed barrier", "emu.uninitialised", body(tile + "    s[t] = x[t];\n    y[t] = s[127 - t];"), body(reverse)},
        {"removed barrier, write after read", "emu.race", body(tile + "    s[t] = x[t];\n    __syncthreads();\n    y[t] = s[127 - t];\n    s[t] = 0;"),
         body(tile + "    s[t] = x[t];\n    __syncthreads();\n    y[t] = s[127 - t];\n    __syncthreads();\n    s[t] = 0;")},
        {"barrier in a branch", "emu.divergent-barrier", body(tile + "    s[t] = x[t];\n    if (t < 64) __syncthreads();\n    y[t] = 0;"), body(reverse)},
        {"thread that ends before a barrier", "emu.divergent-barrier", body("    if (t == 100) return;\n    __syncthreads();\n    y[t] = 0;"), body("    __syncthreads();\n    if (t == 100) return;\n    y[t] = 0;")},
        {"two barriers taken for one", "emu.divergent-barrier", body("    if (t < 64) {\n        __syncthreads();\n        y[t] = 1;\n    } else {\n        y[t] = 2;\n        __syncthreads();\n    }"),
         body("    __syncthreads();\n    y[t] = t < 64 ? 1 : 2;")},
        {"lane to lane without a warp barrier", "emu.race", body(tile + "    s[t] = 0;\n    __syncthreads();\n    s[t] = x[t];\n    y[t] = s[t ^ 1];"),
         body(tile + "    s[t] = 0;\n    __syncthreads();\n    s[t] = x[t];\n    __syncwarp();\n    y[t] = s[t ^ 1];")},
        {"shared counter without an atomic", "emu.race", body(tile + "    if (t == 0) s[0] = 0;\n    __syncthreads();\n    if (t % 32 == 0) s[0] += 1;\n    __syncthreads();\n    y[t] = s[0];"),
         body(tile + "    if (t == 0) s[0] = 0;\n    __syncthreads();\n    if (t % 32 == 0) atomicAdd(&s[0], 1.f);\n    __syncthreads();\n    y[t] = s[0];")},
        {"uninitialised shared read", "emu.uninitialised", body(tile + "    if (t < 64) s[t] = x[t];\n    __syncthreads();\n    y[t] = s[t];"), body(tile + "    if (t < 64) s[t] = x[t];\n    __syncthreads();\n    y[t] = s[t & 63];")},
    };
}

std::vector<Planted> parts_of_a_block() {
    const Bench meet = body("group", "    group_barrier(1, 128);\n    y[t] = 0;");
    const std::string ring = "    ACU_SHARED(float, s, 0, 512);\n    ACU_SHARED(RingBarrier, bars, 2048, 2);\n    if (t == 0) rings_begin(bars, 2, 2);\n    block_barrier();\n    if (t < 64) {\n        s[t] = x[t];\n",
                      filled = ring + "        warp_arrive(bars[0]);\n    } else {\n", read = "        y[t - 64] = s[127 - t];\n    }\n", rest = "    if (t >= 64) y[t] = 0;\n    block_barrier();\n    if (t == 0) rings_end(bars, 2);";
    const std::string headers = "group copy async ring roles", waits = "        ring_wait(bars[0], 0);\n";
    const Bench good = body(headers, filled + waits + read + rest);
    const std::string copies = "    ACU_SHARED(float, s, 0, 512);\n    ACU_SHARED(RingBarrier, bars, 2048, 1);\n    if (t == 0) rings_begin(bars, 1, 128);\n    block_barrier();\n"
                               "    copy_async<16>(s + 4 * t, x + 4 * (t & 63), 16);\n    ring_arrive_copies(bars[0]);\n";
    return {
        {"named barrier for two numbers of threads", "emu.divergent-barrier", body("group", "    group_barrier(1, t < 64 ? 128 : 64);\n    y[t] = 0;"), meet},
        {"named barrier for a half warp", "emu.divergent-barrier", body("group", "    if (t < 16) group_barrier(1, 32);\n    y[t] = 0;"), meet},
        {"named barrier by half warps", "emu.divergent-barrier", body("group", "    if (t % 32 < 16) group_barrier(1, 64);\n    y[t] = 0;"), meet},
        {"named barrier that a warp skips", "emu.deadlock", body("group", "    if (t < 96) group_barrier(1, 128);\n    y[t] = 0;"), meet},
        {"two named barriers taken for one", "emu.divergent-barrier", body("group", "    if (t < 64) {\n        group_barrier(1, 128);\n    } else {\n        group_barrier(1, 128);\n    }\n    y[t] = 0;"), meet},
        {"named barrier that is none of 16", "emu.divergent-barrier", body("group", "    group_barrier(16, 128);\n    y[t] = 0;"), meet},
        {"role that does not wait for another", "emu.uninitialised", body(headers, filled + read + rest), good},
        {"role that waits for an arrival that never comes", "emu.deadlock", body(headers, ring + "    } else {\n" + waits + read + rest), good},
        {"mbarrier that is left and used", "emu.mbarrier", body(headers, filled + waits + read + rest + "\n    if (t == 0) ring_arrive(bars[1]);"), good},
        {"copies that nobody waits for", "emu.missing-wait", body(headers, copies + "    y[t] = s[4 * t];"), body(headers, copies + "    ring_wait(bars[0], 0);\n    y[t] = s[127 - t];")},
    };
}

std::vector<Planted> accesses() {
    const std::string ticket = "    ACU_SHARED(unsigned, place, 0, 1);\n    __syncthreads();\n    if (t == 0) *place = atomicAdd((unsigned*)(y + 255), 1u);\n    __syncthreads();\n"
                               "    if (*place == 1) y[128 + t] = y[t] + y[64 + t];";
    const std::string two = "    ACU_SHARED(float, a, 0, 128);\n    ACU_SHARED(float, b, 512, 128);\n";
    return {
        {"guard off by one, load", "emu.bounds", with_block(body("    if (t <= 256) y[t & 255] = x[t];"), 288), with_block(body("    if (t < 256) y[t & 255] = x[t];"), 288)},
        {"guard off by one, store", "emu.bounds", with_block(body("    if (t <= 256) y[t] = 1;"), 288), with_block(body("    if (t < 256) y[t] = 1;"), 288)},
        {"store before the buffer", "emu.bounds", body("    y[t - 1] = 1;"), body("    y[t] = 1;")},
        {"address in no buffer", "emu.bounds", body("    y[t] = x[(1ll << 29) + t];"), body("    y[t] = x[t];")},
        {"misaligned float4", "emu.misaligned", body("    y[t] = reinterpret_cast<const float4*>(x + t)->x;"), body("    y[t] = reinterpret_cast<const float4*>(x + (t & ~3))->x;")},
        {"misaligned vector copy", "emu.misaligned", body("group copy", "    Pack16 p;\n    load_bytes(&p, x + t, 16);\n    y[t] = float_of(p.word[0]);"),
         body("group copy", "    Pack16 p;\n    load_bytes(&p, x + t / 4 * 4, 16);\n    y[t] = float_of(p.word[0]);")},
        {"shared buffer past the allocation", "emu.bounds", with_shared(body("    ACU_SHARED(float, s, 256, 128);\n    s[t] = 1;\n    y[t] = s[t];"), 512),
         with_shared(body("    ACU_SHARED(float, s, 256, 128);\n    s[t] = 1;\n    y[t] = s[t];"), 768)},
        {"too large a shared allocation", "emu.shared-limit", with_shared(body("    y[t] = 0;"), 166913), with_shared(body("    y[t] = 0;"), 166912)},
        {"write into the neighbour buffer", "emu.bounds", guarded(body(two + "    b[t] = 0;\n    __syncthreads();\n    a[t + 1] = x[t];\n    y[t] = b[t];")),
         guarded(body(two + "    b[t] = 0;\n    __syncthreads();\n    a[t] = x[t];\n    y[t] = b[t];"))},
        {"index that wraps", "emu.overflow", body("    y[t] = x[(t * 858993460) & 127];"), body("    y[t] = x[(t * 8589934) & 127];")},
        {"race in global memory within a block", "emu.race", body("    y[t] = 1;\n    y[t ^ 1] = 2;"), body("    y[t] = 1;\n    __syncthreads();\n    y[t ^ 1] = 2;")},
        {"last block without a fence", "emu.race", with_grid(with_block(body("    y[t + 64 * blockIdx.x] = x[t];\n" + ticket), 64), 2), with_grid(with_block(body("    y[t + 64 * blockIdx.x] = x[t];\n    __threadfence();\n" + ticket), 64), 2)},
        {"race in global memory between blocks", "emu.race", with_grid(body("    y[t] = (float)blockIdx.x;"), 2), with_grid(body("    y[t + 128 * blockIdx.x] = (float)blockIdx.x;"), 2)},
    };
}

std::vector<Planted> warps_and_copies() {
    const std::string copy = "    ACU_SHARED(float, s, 0, 512);\n    copy_async<16>(s + 4 * t, x + 4 * (t & 63), 16);\n    copy_async_commit();\n";
    const std::string ring = "    ACU_SHARED(float, s, 0, 256);\n    ACU_SHARED(RingBarrier, bar, 1024, 1);\n    if (t == 0) ring_init(*bar, 1);\n    block_barrier();\n"
                             "    if (t == 0) {\n        ring_arrive_expect(*bar, 1024);\n        bulk_copy(s, x, 1024, bar);\n    }\n    block_barrier();\n";
    return {
        {"32 lanes of a wave of 64", "emu.lane-mask", body("", "    y[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);", "gfx90a"), body("", "    y[t] = __shfl_xor(x[t], 1);", "gfx90a")},
        {"shuffle that not all lanes reach", "emu.deadlock", body("    float v = x[t];\n    if (t % 32 < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);\n    else\n        while (v < 0) v += x[t];\n    __syncthreads();\n    y[t] = v;"),
         body("    float v = x[t];\n    v = __shfl_xor_sync(0xffffffffu, v, 1);\n    __syncthreads();\n    y[t] = v;")},
        {"different shuffles of one warp", "emu.divergent-warp", body("    float v = x[t];\n    if (t & 1)\n        v = __shfl_xor_sync(0xffffffffu, v, 1);\n    else\n        v = __shfl_down_sync(0xffffffffu, v, 1);\n    y[t] = v;"),
         body("    float v = x[t];\n    v = __shfl_xor_sync(0xffffffffu, v, 1);\n    v = __shfl_down_sync(0xffffffffu, v, 1);\n    y[t] = v;")},
        {"removed wait for an asynchronous copy", "emu.missing-wait", body("group copy async", copy + "    block_barrier();\n    y[t] = s[t];"), body("group copy async", copy + "    copy_async_wait<0>();\n    block_barrier();\n    y[t] = s[t];")},
        {"asynchronous copy that nobody waits for", "emu.missing-wait", body("group copy async", copy + "    y[t] = 0;"), body("group copy async", copy + "    copy_async_wait<0>();\n    y[t] = 0;")},
        {"missing wait for an mbarrier", "emu.missing-wait", body("group copy async ring", ring + "    y[t] = s[t];", "sm_90a"), body("group copy async ring", ring + "    ring_wait(*bar, 0);\n    y[t] = s[t];", "sm_90a")},
        {"wrong parity: deadlock", "emu.deadlock", body("group copy async ring", ring + "    ring_wait(*bar, 0);\n    ring_wait(*bar, 1);\n    y[t] = s[t];", "sm_90a"), body("group copy async ring", ring + "    ring_wait(*bar, 0);\n    ring_wait(*bar, 0);\n    y[t] = s[t];", "sm_90a")},
        {"mbarrier that was not initialised", "emu.mbarrier", body("group copy async ring", "    ACU_SHARED(RingBarrier, bar, 0, 1);\n    ring_arrive(*bar);\n    y[t] = 0;", "sm_90a"),
         body("group copy async ring", "    ACU_SHARED(RingBarrier, bar, 0, 1);\n    if (t == 0) ring_init(*bar, 128);\n    block_barrier();\n    ring_arrive(*bar);\n    ring_wait(*bar, 0);\n    y[t] = 0;", "sm_90a")},
    };
}

/// All kernels of a target in one module: `wrong0`, `right0`, …; compiling is what takes long.
std::map<std::string, std::unique_ptr<Module>> modules_of(const std::vector<Planted>& all) {
    std::map<std::string, std::string> texts;
    for (size_t i = 0; i < all.size(); ++i)
        texts[all[i].right.target] += kernel_text("wrong" + std::to_string(i), all[i].wrong.body) + kernel_text("right" + std::to_string(i), all[i].right.body);
    std::map<std::string, std::unique_ptr<Module>> modules;
    for (const auto& [target, text] : texts) {
        const auto device = open_device({DeviceId::Kind::Emulated, 0, target}, {});
        REQUIRE(device);
        auto module = (*device)->load(whole_text(target == "gfx90a" ? "group" : "group copy async ring roles", text), "planted.cu");
        REQUIRE_MESSAGE(module, (module ? "" : module.why().message + module.why().notes[0].text));
        modules[target] = std::move(*module);
    }
    return modules;
}

Status launch_with(const EmulationOptions& options, Bench b, Module& module, const std::string& kernel) {
    const auto device = open_device({DeviceId::Kind::Emulated, 0, b.target}, {}, options);
    return device ? b.launch(**device, module, kernel) : device.why();
}

/// Bugs are found in order; the twins are silent in order, in guard mode, and in random orders with stops within the threads.
void check_planted(const std::vector<Planted>& all) {
    const auto modules = modules_of(all);
    for (size_t i = 0; i < all.size(); ++i) {
        const Planted& p = all[i];
        Module& module = *modules.at(p.right.target);
        const Status found = launch_with(p.wrong.options, p.wrong, module, "wrong" + std::to_string(i));
        CHECK_MESSAGE(!found, p.name);
        if (!found) CHECK_MESSAGE(found.why().code == p.code, p.name << ": " << found.why().code << ": " << found.why().message);
        for (uint64_t seed = 0; seed < 6; ++seed) {
            const EmulationOptions o{.seed = seed, .guard = p.right.options.guard || seed % 2 == 1, .preempt = seed ? 20u : 0u};
            const Status silent = launch_with(o, p.right, module, "right" + std::to_string(i));
            CHECK_MESSAGE(silent, p.name << ", the correct one, seed " << seed << ": " << (silent ? "" : silent.why().message));
        }
    }
}

}  // namespace

TEST_CASE("emulation: kernels are found in text") {
    using namespace acu::runtime::emulation;
    const std::string text = "#define K extern \"C\" __global__ void\n// __global__ void no(int a)\n/* __global__ void no(int) {} */\n"
                             "extern \"C\" __global__ void declared(int);\n"
                             "extern \"C\" __global__ void __launch_bounds__(128, 2) first(const float* __restrict__ x, unsigned char (&y)[3], Pair<int, 2> pair) {\n}\n"
                             "extern \"C\" __global__ void second() { f(1); }\n";
    const auto kernels = kernels_in(text);
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].name == "first");
    CHECK(kernels[0].launch_bounds == 128);
    CHECK(kernels[0].parameters.size() == 3);
    CHECK(kernels[0].parameters[0] == "x");
    CHECK(kernels[0].parameters[2] == "pair");
    CHECK(kernels[1].name == "second");
    CHECK(kernels[1].parameters.empty());
    CHECK(line_of(text, 5) == "extern \"C\" __global__ void __launch_bounds__(128, 2) first(const float* __restrict__ x, unsigned char (&y)[3], Pair<int, 2> pair) {");
    CHECK(line_of(text, 99).empty());
    CHECK(provenance_of("y[t] = 1;  // @softmax.acu:12:5 d3 d7") == "softmax.acu:12:5, decisions d3 d7");
    CHECK(provenance_of("y[t] = 1;  // @softmax.acu:12:5") == "softmax.acu:12:5");
    CHECK(provenance_of("y[t] = 1;  // a comment").empty());
}

TEST_CASE("emulation: device names") {
    CHECK(parse_device("emu:sm_90a")->target == "sm_90a");
    CHECK(parse_device("emu:gfx90a")->kind == DeviceId::Kind::Emulated);
    for (const char* bad : {"emu", "emu:", "emu:sm_60", "emu:cpu", "emu:0"}) CHECK(parse_device(bad).why().code == "device.unknown");
}

TEST_CASE("emulation: planted bugs are found, and correct twins are not") {
    if (!compiler_here()) {
        MESSAGE("skipped: no host compiler here");
        return;
    }
    SUBCASE("barriers") { check_planted(barriers()); }
    SUBCASE("parts of a block") { check_planted(parts_of_a_block()); }
    SUBCASE("accesses") { check_planted(accesses()); }
    SUBCASE("warps and copies") { check_planted(warps_and_copies()); }
}

TEST_CASE("emulation: values, of every target") {
    if (!compiler_here()) return;
    for (const char* target : {"sm_70", "sm_80", "sm_90a", "gfx90a"}) {
        Bench b = body("group reduce", "    float v = x[t];\n    for (int o = ACU_WARP / 2; o > 0; o /= 2) v += warp_shuffle_xor(v, o);\n    y[t] = v;", target);
        const Status s = b.run();
        REQUIRE_MESSAGE(s, target << ": " << (s ? "" : s.why().message));
        const float want = std::string(target) == "gfx90a" ? 2016.f : 496.f;
        CHECK(b.y[0] == want);
        CHECK(b.y[63] == (want == 496.f ? 1520.f : want));
    }
}

TEST_CASE("emulation: what a finding says") {
    if (!compiler_here()) return;
    Bench b = with_grid(body("    if (blockIdx.x == 3 && t == 125)\n        y[t + 200] = x[t];  // @softmax.acu:12:5 d3 d7\n    y[128 * blockIdx.x % 256 + t] = 0;"), 4);
    b.body = "    if (blockIdx.x == 3 && t == 125)\n        y[t + 200] = x[t];  // @softmax.acu:12:5 d3 d7";
    const Status s = b.run();
    REQUIRE(!s);
    CHECK(s.why().code == "emu.bounds");
    CHECK(contains(s.why().message, "`k` writes 4 bytes at offset 1300 of `y`, which has 1024 bytes: k.cu:"));
    CHECK(contains(s.why().message, "(block 3, thread 125 (warp 3, lane 29))"));
    std::string notes;
    for (const Note& n : s.why().notes) notes += n.text + "\n";
    CHECK(contains(notes, "y[t + 200] = x[t];"));
    CHECK(contains(notes, "it comes from softmax.acu:12:5, decisions d3 d7"));
}

TEST_CASE("emulation: a crash or a hang costs the launch only") {
    if (!compiler_here()) return;
    Bench hang = body("    while (x[0] == 0) y[t] = 1;");
    hang.options.seconds = 1;
    CHECK(hang.code() == "emu.timeout");
    CHECK(body("    y[t] = *(const float*)(0x1000 + 4 * t);").code() == "emu.bounds");
    CHECK(body("    y[t] = (float)(t / (int)x[0]);").code() == "emu.arithmetic");
    CHECK(body("    y[t] = x[t];").code() == "none");
}

TEST_CASE("emulation: unwritten results, sizes of arguments, limits of launches") {
    if (!compiler_here()) return;
    const auto device = open_device({DeviceId::Kind::Emulated, 0, "sm_80"}, {});
    REQUIRE(device);
    CHECK((*device)->name() == "emulated sm_80");
    CHECK((*device)->architecture() == "sm_80");
    CHECK_FALSE((*device)->toolchain().empty());
    const auto bad = (*device)->load("extern \"C\" __global__ void k() { nonsense }", "k.cu");
    REQUIRE(!bad);
    CHECK(bad.why().code == "compile.failed");
    const auto module = (*device)->load("extern \"C\" __global__ void __launch_bounds__(64) k(float* y, long long n) { if (threadIdx.x < n) y[threadIdx.x] = 1; }", "k.cu");
    REQUIRE(module);
    const auto y = (*device)->allocate(256);
    const auto launch = [&](uint32_t block, std::vector<KernelArgument> a, uint32_t cluster = 1) { return (*device)->launch(**module, {"k", 2, block, std::move(a), 0, cluster}); };
    CHECK(launch(64, {argument((*y)->address())}).why().code == "device.launch");
    CHECK(launch(64, {argument((*y)->address()), argument(1)}).why().code == "device.launch");
    CHECK(launch(128, {argument((*y)->address()), argument(63ll)}).why().code == "device.launch");
    CHECK(launch(64, {argument((*y)->address()), argument(63ll)}, 2).why().code == "device.launch");
    CHECK((*device)->launch(**module, {"other", 1, 64, {}}).why().code == "device.launch");
    REQUIRE((*device)->launch(**module, {"k", 1, 64, {argument((*y)->address()), argument(63ll)}}));
    std::vector<std::byte> result(256);
    const Status partly = (*y)->download(result);
    REQUIRE(!partly);
    CHECK(partly.why().code == "emu.unwritten");
    CHECK(contains(partly.why().message, "offset 252 of `y`"));
    REQUIRE((*device)->launch(**module, {"k", 1, 64, {argument((*y)->address()), argument(64ll)}}));
    CHECK((*y)->download(result));
}

TEST_CASE("emulation: a box of a tensor, swizzled, to both blocks of a cluster") {
    if (!compiler_here()) return;
    const auto device = open_device({DeviceId::Kind::Emulated, 0, "sm_90a"}, {});
    REQUIRE(device);
    const auto x = (*device)->allocate(4096);
    std::vector<float> values(1024);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    REQUIRE((*x)->upload(std::as_bytes(std::span(values))));
    const std::vector<uint64_t> dims{32, 32}, strides{128};
    const std::vector<uint32_t> box{32, 8};
    const auto map = emulation::encode_tensor_map((*x)->address(), {.dims = dims, .strides = strides, .box = box, .element_bytes = 4, .swizzle_bytes = 128});
    REQUIRE(map);
    CHECK(emulation::encode_tensor_map((*x)->address() + 4, {.dims = dims, .strides = strides, .box = box}).why().code == "device.launch");
    const std::string text = whole_text("group copy async cluster ring", R"(
namespace emu { void tensor_load(uint32_t dst, const acu::TensorMap* m, int c0, int c1, uint32_t bar, uint32_t ctas, const void* site); }
extern "C" __global__ void k(const __grid_constant__ acu::TensorMap map, float* y) {
    ACU_SHARED(float, tile, 0, 256);
    ACU_SHARED(RingBarrier, bar, 1024, 1);
    const int t = threadIdx.x;
    if (t == 0) {
        ring_init(*bar, 1);
        ring_arrive_expect(*bar, 1024);
    }
    cluster_barrier();
    if (t == 0 && blockIdx.x == 0) emu::tensor_load(shared_address(tile), &map, 16, 28, shared_address(bar), 3, 0);
    ring_wait(*bar, 0);
    for (int i = t; i < 256; i += 64) y[256 * blockIdx.x + i] = tile[i / 32 * 32 + ((i % 32 / 4) ^ (i / 32)) * 4 + i % 4];
})");
    const auto module = (*device)->load(text, "k.cu");
    REQUIRE_MESSAGE(module, (module ? "" : module.why().message + module.why().notes[0].text));
    const auto y = (*device)->allocate(2048);
    const Status done = (*device)->launch(**module, {"k", 2, 64, {*map, argument((*y)->address())}, 2048, 2});
    REQUIRE_MESSAGE(done, (done ? "" : done.why().message));
    std::vector<float> out(512);
    REQUIRE((*y)->download(std::as_writable_bytes(std::span(out))));
    for (size_t i = 0; i < out.size(); ++i) {
        const size_t row = 28 + i % 256 / 32, column = 16 + i % 32;
        CHECK(out[i] == (row < 32 && column < 32 ? static_cast<float>(row * 32 + column) : 0.f));
    }
}

/// A box of 8 lines of 32 floats that goes to the last lines of a tensor of 32 x 32, of which half a box lies outside; `fence`, `rest`: of the kernel.
static Status stored_box(const std::string& fence, const std::string& rest, std::vector<float>& out) {
    const auto device = open_device({DeviceId::Kind::Emulated, 0, "sm_90a"}, {});
    REQUIRE(device);
    const auto y = (*device)->allocate(4096);
    out.assign(1024, -1.f);
    REQUIRE((*y)->upload(std::as_bytes(std::span(out))));
    const std::vector<uint64_t> dims{32, 32}, strides{128};
    const std::vector<uint32_t> box{32, 8};
    const auto map = emulation::encode_tensor_map((*y)->address(), {.dims = dims, .strides = strides, .box = box, .element_bytes = 4, .swizzle_bytes = 128});
    REQUIRE(map);
    const std::string text = whole_text("group copy async ring tensor_copy tensor_store", R"(
extern "C" __global__ void k(const __grid_constant__ acu::TensorMap map) {
    ACU_SHARED(float, tile, 0, 256);
    const int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i / 32 * 32 + ((i % 32 / 4) ^ (i / 32)) * 4 + i % 4] = (float)i;
)" + fence + R"(
    block_barrier();
    if (t == 0) tensor_store(tile, map, 0, 28), tensor_stores_commit();
)" + rest + "}");
    const auto module = (*device)->load(text, "k.cu");
    REQUIRE_MESSAGE(module, (module ? "" : module.why().message + module.why().notes[0].text));
    const Status done = (*device)->launch(**module, {"k", 1, 64, {*map}, 1024, 1});
    if (done) REQUIRE((*y)->download(std::as_writable_bytes(std::span(out))));
    return done;
}

TEST_CASE("emulation: the copy engine stores a box") {
    if (!compiler_here()) return;
    const std::string fence = "    async_fence();", read = "    if (t == 0) tensor_stores_read();\n", again = "    block_barrier();\n    tile[t] = 0;\n";
    std::vector<float> out;
    const Status done = stored_box(fence, read + again, out);
    REQUIRE_MESSAGE(done, (done ? "" : done.why().message));
    for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == (i < 28 * 32 ? -1.f : static_cast<float>(i - 28 * 32)));
    CHECK(stored_box("", read + again, out).why().code == "emu.missing-fence");
    CHECK(stored_box(fence, again + read, out).why().code == "emu.missing-wait");    // written while it is read
    CHECK(stored_box(fence, "", out).why().code == "emu.missing-wait");              // its memory ends
}
