#include "runtime/emulation/fiber.h"

#include <sys/mman.h>

#include <cstdlib>

namespace acu::runtime::emulation {

namespace {

constexpr size_t stack_bytes = size_t{256} << 10;
constexpr size_t page_bytes = 4096;
constexpr size_t pitch = stack_bytes + page_bytes;

/// Tops of stacks are staggered: at equal offsets in equal strides they would fall into the same cache sets, which makes a switch three times as slow.
size_t stagger(size_t number) { return number * 192 % (size_t{32} << 10); }

}  // namespace

Stacks::Stacks(size_t count) : count_(count) {
    void* p = mmap(nullptr, count * pitch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    memory_ = static_cast<char*>(p);
    for (size_t i = 0; i < count; ++i) mprotect(memory_ + i * pitch, page_bytes, PROT_NONE);
}

Stacks::~Stacks() { munmap(memory_, count_ * pitch); }

bool Stacks::hold(const void* address) const { return address >= memory_ && address < memory_ + count_ * pitch; }

#if defined(__x86_64__)

// Saves the registers that a function must preserve on the old stack, and takes up the new one.
extern "C" void acu_switch_stack(void** save, void* to);
asm(R"(.text
.globl acu_switch_stack
.type acu_switch_stack, @function
acu_switch_stack:
 push %rbp
 push %rbx
 push %r12
 push %r13
 push %r14
 push %r15
 mov %rsp,(%rdi)
 mov %rsi,%rsp
 pop %r15
 pop %r14
 pop %r13
 pop %r12
 pop %rbx
 pop %rbp
 ret
)");

void switch_fiber(Fiber& from, Fiber& to) { acu_switch_stack(&from.stack, to.stack); }

void Stacks::prepare(Fiber& fiber, size_t number, void (*entry)()) {
    void** top = reinterpret_cast<void**>(memory_ + (number + 1) * pitch - stagger(number)) - 2;
    top[0] = reinterpret_cast<void*>(entry);  // where `ret` goes; six registers lie below
    fiber.stack = top - 6;
}

#else

void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

void Stacks::prepare(Fiber& fiber, size_t number, void (*entry)()) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = memory_ + number * pitch + page_bytes;
    fiber.context.uc_stack.ss_size = stack_bytes - stagger(number);
    makecontext(&fiber.context, entry, 0);
}

#endif

}  // namespace acu::runtime::emulation
