#pragma once
#include <cstdint>

namespace acu::runtime {

/// How an emulated launch runs. The same options give the same run.
struct EmulationOptions {
    uint64_t seed = 0;      ///< 0: warps, lanes and copies in order, copies as late as they can; else a random order of all three
    bool guard = false;     ///< named shared buffers apart from each other with red zones, instead of at the emitter's offsets
    unsigned shift = 0;     ///< buffers start so many bytes behind a multiple of 256, as slices of a caller's tensors do; a multiple of 8 below 256
    unsigned preempt = 0;   ///< stop a thread at about one in this many checked accesses; 0: one in 50 under a seed, else only where it waits
    unsigned seconds = 120; ///< of processor time for one launch
    uint64_t memory = uint64_t{6} << 30;  ///< bytes that a launch may take besides its buffers
};

}  // namespace acu::runtime
