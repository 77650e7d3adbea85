#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulation/memory.h"
#include "runtime/emulation/options.h"
#include "target/target.h"

namespace acu::runtime::emulation {

/// A kernel of a loaded module, ready to run.
struct Job {
    Memory* memory = nullptr;
    const Target* target = nullptr;
    EmulationOptions options;
    std::string library;    ///< the shared object that holds the kernel
    std::string file_name;  ///< of the emitted text, as it stands in the debug information
    uint32_t grid = 1, block = 1, shared = 0, cluster = 1;
    void (*call)(void** arguments) = nullptr;
    std::vector<void*> arguments;
};

/// What a launch found, in memory that parent and child share. Texts are cut to fit.
struct Finding {
    enum State : uint32_t { Running, Done, Found } state;
    char code[40];
    char message[1600];
    char where[400];    ///< "softmax.cu:31", or empty
    char thread[200];   ///< "block 3, thread 125 (warp 3, lane 29)", or empty
    char more[4000];    ///< further lines: who waits where
    int line;           ///< in the emitted text, 0 for unknown
};

/// Runs the job in this process to its end, and ends the process; the first finding ends it earlier.
[[noreturn]] void run_job(const Job& job, Finding& finding);

}  // namespace acu::runtime::emulation
