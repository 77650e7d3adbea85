// What compilers call at every access when text is compiled with -fsanitize=thread, and at a misaligned or overflowing operation with
// -fsanitize=alignment,signed-integer-overflow. Emitted text is linked with these functions instead of the sanitizers' run time.
#include <cstring>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

using namespace acu::runtime::emulation;

// clang-format off
extern "C" {
#define ACU_HOOK(N) \
    void __tsan_read##N(void* p) { check(p, N, Access::Read, true, EMU_SITE); } \
    void __tsan_write##N(void* p) { check(p, N, Access::Write, true, EMU_SITE); } \
    void __tsan_unaligned_read##N(void* p) { check(p, N, Access::Read, false, EMU_SITE); } \
    void __tsan_unaligned_write##N(void* p) { check(p, N, Access::Write, false, EMU_SITE); } \
    void __tsan_unaligned_read_write##N(void* p) { check(p, N, Access::Read, false, EMU_SITE); check(p, N, Access::Write, false, EMU_SITE); } \
    void __tsan_read_write##N(void* p) { check(p, N, Access::Read, true, EMU_SITE); check(p, N, Access::Write, true, EMU_SITE); } \
    void __tsan_volatile_read##N(void* p) { check(p, N, Access::Read, true, EMU_SITE); } \
    void __tsan_volatile_write##N(void* p) { check(p, N, Access::Write, true, EMU_SITE); }
ACU_HOOK(1) ACU_HOOK(2) ACU_HOOK(4) ACU_HOOK(8) ACU_HOOK(16)
#undef ACU_HOOK
// clang-format on

void __tsan_read_range(void* p, size_t n) { check(p, static_cast<uint32_t>(n), Access::Read, false, EMU_SITE); }
void __tsan_write_range(void* p, size_t n) { check(p, static_cast<uint32_t>(n), Access::Write, false, EMU_SITE); }

void* __tsan_memcpy(void* to, const void* from, size_t n) {
    if (n) check(from, static_cast<uint32_t>(n), Access::Read, false, EMU_SITE), check(to, static_cast<uint32_t>(n), Access::Write, false, EMU_SITE);
    return std::memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, size_t n) {
    if (n) check(from, static_cast<uint32_t>(n), Access::Read, false, EMU_SITE), check(to, static_cast<uint32_t>(n), Access::Write, false, EMU_SITE);
    return std::memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, size_t n) {
    if (n) check(to, static_cast<uint32_t>(n), Access::Write, false, EMU_SITE);
    return std::memset(to, value, n);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// ---- the layouts that compiler-rt's ubsan_handlers.h documents

struct UbsanPlace {
    const char* file;
    uint32_t line, column;
};
struct UbsanMismatch {
    UbsanPlace place;
    const void* type;
    unsigned char log_alignment, kind;
};
struct UbsanOverflow {
    UbsanPlace place;
    const void* type;
};

void __ubsan_handle_type_mismatch_v1(UbsanMismatch* m, uintptr_t p) {
    const uintptr_t alignment = uintptr_t{1} << m->log_alignment;
    if (machine.running && p % alignment) fail("emu.misaligned", EMU_SITE, "dereferences an address that is {} modulo {}", p % alignment, alignment);
}

static void overflow(Site site, const char* what) {
    if (machine.running) fail("emu.overflow", site, "{} does not fit the signed type", what);
}
void __ubsan_handle_add_overflow(UbsanOverflow*, uintptr_t, uintptr_t) { overflow(EMU_SITE, "a sum"); }
void __ubsan_handle_sub_overflow(UbsanOverflow*, uintptr_t, uintptr_t) { overflow(EMU_SITE, "a difference"); }
void __ubsan_handle_mul_overflow(UbsanOverflow*, uintptr_t, uintptr_t) { overflow(EMU_SITE, "a product"); }
void __ubsan_handle_negate_overflow(UbsanOverflow*, uintptr_t) { overflow(EMU_SITE, "a negated value"); }
void __ubsan_handle_divrem_overflow(UbsanOverflow*, uintptr_t, uintptr_t) { overflow(EMU_SITE, "a quotient"); }
}
