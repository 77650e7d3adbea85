#pragma once
// The SIMT machine of one launch: threads are fibers of one OS thread, so nothing is locked and a run depends on its seed only. A launch has a process of
// its own, so the machine is a global. Only the engine's files include this.
#include <deque>
#include <memory>

#include "runtime/emulation/launch.h"
#include "runtime/emulation/thread.h"

namespace acu::runtime::emulation {

/// A copy by the copy engine that has not landed. The map is null for a bulk copy, which `src` and `bytes` describe; `owner`: an arrival of that thread, when its copies
/// up to number `bytes` have landed.
struct EngineCopy {
    Thread* owner;
    Site site;
    bool mapped;
    acu::TensorMap map;
    int at[5];
    const uint8_t* src;
    uint32_t dst, bar, ctas, bytes;
};

/// A named shared buffer: the emitter's offset, and where it lies (elsewhere in guard mode).
struct Placed {
    const char* name;
    uint32_t offset;
    uint64_t bytes;
    uint32_t at;
};

struct Machine {
    const Job* job = nullptr;
    Finding* finding = nullptr;
    uint8_t* region = reinterpret_cast<uint8_t*>(uintptr_t{1} << 63);  ///< before a launch: far from every address
    std::unique_ptr<Stacks> stacks;
    Fiber main;
    Thread* running = nullptr;
    std::vector<std::unique_ptr<Thread>> threads;
    std::vector<Warp> warps;
    std::vector<Cta> ctas;
    Clocks clock_of;
    int warp_size = 32;
    int copy_agent = 0, atomic_agent = 0;  ///< the numbers behind the last thread's
    int live = 0;
    size_t current_warp = 0;
    bool has_accumulators = false;
    std::deque<EngineCopy> engine;
    int cluster_arrived = 0;
    Clocks cluster_clocks;
    std::vector<Placed> placed;
    uint32_t placed_end = 0;  ///< bytes of the shared window that may be in use
    uint32_t run = 0;         ///< which cluster of the grid this is, from 1
    uint64_t random_state = 0;

    bool random() const { return job->options.seed != 0; }
    uint32_t draw(uint32_t below);
};
extern Machine machine;

// ---- scheduler.cpp
void make_ready(Thread* t);
void stop(const char* why, Site site);  ///< the running thread waits until somebody makes it ready
void yield();                           ///< others may run before the running thread goes on
/// Gives the processor to another thread, for ever: the running one has ended.
[[noreturn]] void leave();
void run_cluster(uint32_t first_block);

// ---- clocks: what happens before what. They are flat between block barriers; finer synchronisation materialises them a thread at a time.
inline uint32_t known(const Thread* t, int of) { return t->epoch == t->cta->epoch ? t->clocks[static_cast<size_t>(of)] : t->cta->base[static_cast<size_t>(of)]; }
Clocks& clocks_of(Thread* t);
void join(Clocks& into, const Clocks& from);
void release(Thread* t, Clocks& into);

inline uint32_t& clock_of(const Thread* t) { return machine.clock_of[static_cast<size_t>(t->id)]; }
inline uint8_t* window(const Cta* c) { return machine.region + static_cast<uint64_t>(c->rank) * window_bytes; }

/// Lets the copy engine's copy number `i` arrive (services_async.cpp).
void land(size_t i);

}  // namespace acu::runtime::emulation
