#pragma once
// Threads, warps and blocks of the SIMT machine, with what they wait for.
#include <array>
#include <map>
#include <vector>

#include "runtime/emulation/fiber.h"
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
    uint32_t bytes, src_bytes, group, number;
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
    emu::WgmmaRowsTile rows_tile = nullptr;    ///< where the first factor lies in registers
    std::array<unsigned, 4> rows = {};
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
    std::vector<std::pair<uint32_t, uint32_t>> boxes_read;    ///< where in shared memory, and bytes: the copy engine stores them
    uint32_t copy_group, copies_started;
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
    Site site = nullptr;    ///< of the first that waits
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

}  // namespace acu::runtime::emulation
