#pragma once
// The SIMT machine of one launch: threads are fibers of one OS thread, so nothing is locked and a run depends on its seed only. A launch has a process of
// its own, so the machine is a global. Only the engine's files include this.
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/emulation/fiber.h"
#include "runtime/emulation/launch.h"
#include "runtime/emulation/plain.h"

namespace acu::runtime::emulation {

using Site = const void*;               ///< a return address in the emitted text
using Clocks = std::vector<uint32_t>;   ///< by thread of the cluster, then the copy engine, then all atomics together

struct Thread;
struct Cta;

/// Lanes of a warp that came to one operation and wait for the others of its mask.
struct Meeting {
    const char* op = nullptr;
    Site site;
    uint64_t mask, arrived;
    void* arguments[64];
};

struct Warp {
    uint64_t ready = 0, exists = 0;
    Thread* lanes[64] = {};
    Meeting meetings[2];
};

/// A cp.async of a thread that has not landed.
struct PendingCopy {
    uint32_t dst;
    const void* src;
    uint32_t bytes, src_bytes, group;
    Site site;
};

/// Registers that wgmmas accumulate into: they read as NaN until the last one was waited for, so their value is kept here.
struct Accumulator {
    float* registers;
    int count, pending;
    std::vector<float> value;
    Site site;
};
struct PendingWgmma {
    emu::WgmmaOp op;
    emu::WgmmaSpans spans;
    emu::WgmmaTile tile;
    uint32_t group;
    Site site;
    float* registers;
};

struct Thread : emu::View {
    Fiber fiber;
    Cta* cta;
    Warp* warp;
    int id;        ///< in the cluster
    int index;     ///< in the block
    int lane;
    bool done;
    const char* waiting;  ///< for what; null while it can run
    Site site;            ///< where it waits
    uint32_t epoch;       ///< `clocks` holds what it knows of the others while this is its block's epoch; else the block's `base` does
    Clocks clocks;
    uint32_t fenced;      ///< its own stores up to this clock are visible to the copy engine and to wgmma
    std::vector<PendingCopy> copies;
    uint32_t copy_group;
    std::vector<PendingWgmma> wgmmas;
    std::vector<Accumulator> accumulators;
    uint32_t wgmma_group;
    bool wgmma_fenced;
};

struct MBarrier {
    uint32_t count = 0, pending = 0, phase = 0;
    int64_t bytes = 0;
    Clocks arriving, done;
};

struct NamedBarrier {
    int arrived = 0, threads = 0;
    Clocks clocks;
    std::vector<Thread*> waiting;
};

struct WarpgroupMeeting {
    int arrived = 0;
    Site site = nullptr;
    emu::WgmmaOp op{};
    std::vector<Thread*> threads;
};

/// A block.
struct Cta {
    int rank = 0, threads = 0, at_barrier = 0, exited = 0;
    Site barrier_site = nullptr;
    Thread* barrier_first = nullptr;
    uint32_t epoch = 1;
    Clocks base;
    std::map<uint32_t, MBarrier> mbarriers;
    std::map<int, NamedBarrier> named;
    WarpgroupMeeting groups[8];
    std::vector<Thread*> members;
};

/// A copy by the copy engine that has not landed. The map is null for a bulk copy, which `src` and `bytes` describe.
struct EngineCopy {
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
