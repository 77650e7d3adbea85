#include "tests/faults/faults.h"

namespace acu::faults {

static Scene rows_on(const std::string& target) {
    Scene s = rows();
    s.target = target;
    return s;
}

static void replace_first(std::string& text, const std::string& from, const std::string& to, const std::string& behind) {
    const size_t start = text.find(behind), at = start == std::string::npos ? start : text.find(from, start);
    if (at != std::string::npos) text.replace(at, from.size(), to);
}

std::vector<Fault> text_faults() {
    const std::string reduce = "ACU_DEVICE T block_reduce(";
    return {
        {"block_reduce: a removed barrier", rows(), {"emu.uninitialised", Cause::Microkernel, {3}, "common.block_reduce"}, {}, {}, {}, [=](std::string& t) { replace_first(t, "    block_barrier();\n", "", reduce); }},
        {"block_reduce: 32 lanes of a wave of 64", rows_on("gfx90a"), {"emu.lane-mask", Cause::Microkernel, {3}, "common.block_reduce"}, {}, {}, {},
         [](std::string& t) { replace_all(t, "const T other = warp_shuffle_xor(x, mask);", "const T other = __shfl_xor_sync(0xffffffffu, x, mask);"); }},
        {"block_reduce: one exchange too few", rows(), {"values", Cause::Microkernel, {3}, "common.block_reduce"}, {}, {}, {},
         [](std::string& t) { replace_first(t, "mask < ACU_WARP", "mask < ACU_WARP / 2", "ACU_DEVICE T warp_reduce("); }},
        {"copy_async: a half of the bytes", asynchronous(), {"values", Cause::Microkernel, {6}, "common.copy_async"}, {}, {}, {},
         [](std::string& t) {
             replace_all(t, "copy_async_bytes(shared_dst, global_src, Bytes, valid_bytes)", "copy_async_bytes(shared_dst, global_src, Bytes, valid_bytes / 2)");
             replace_all(t, "copy_async_bytes(shared_dst, global_src, Bytes, Bytes)", "copy_async_bytes(shared_dst, global_src, Bytes, Bytes / 2)");
         }},
        {"text: guard off by one", product(), {"emu.bounds", Cause::Text, {1}, ""}, {}, {}, {}, [](std::string& t) { replace_all(t, "(m < 5)", "(m <= 5)"); }},
        {"text: one arrival too many is waited for", roles(), {"emu.deadlock", Cause::Text, {5}, ""}, {}, {}, {}, [](std::string& t) { replace_all(t, "rings_begin(x_t_full, 2, 1);", "rings_begin(x_t_full, 2, 2);"); }},
        {"text: a slot that nobody waits for", roles(), {"emu.deadlock", Cause::Text, {5}, ""}, {}, {}, {}, [](std::string& t) { replace_first(t, "ring_wait(x_t_empty", "(void)(x_t_empty", "role producer"); }},
        {"text: a removed barrier", product(), {"emu.race", Cause::Text, {4}, ""}, {}, {}, {}, [](std::string& t) { replace_first(t, "block_barrier();", "", "__global__"); }},
        {"text: a removed barrier where a pipeline keeps its sums", product(), {"emu.race", Cause::Text, {3, 5}, ""}, {}, {}, {},
         [](std::string& t) {
             if (t.find("k_o_pre") != std::string::npos && t.find("y_t") != std::string::npos) replace_first(t, "block_barrier();", "", "__global__");
         }},
    };
}

}  // namespace acu::faults
