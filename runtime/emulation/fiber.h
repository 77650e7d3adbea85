#pragma once
#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace acu::runtime::emulation {

/// A flow of control with its own stack. On x86-64 a switch is 14 instructions; elsewhere it is swapcontext.
struct Fiber {
#if defined(__x86_64__)
    void* stack = nullptr;
#else
    ucontext_t context;
#endif
};

/// Lets `to` go on; returns when somebody switches back to `from`.
void switch_fiber(Fiber& from, Fiber& to);

/// Stacks with a page behind each that nobody may touch.
class Stacks {
  public:
    explicit Stacks(size_t count);  ///< ends the process's launch when there is no memory
    ~Stacks();
    Stacks(const Stacks&) = delete;
    /// Makes `fiber` start with `entry`, which never returns, on stack `number`.
    void prepare(Fiber& fiber, size_t number, void (*entry)());
    bool hold(const void* address) const;

  private:
    char* memory_;
    size_t count_;
};

}  // namespace acu::runtime::emulation
