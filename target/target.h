#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace acu {

enum class Platform { Cpu, Cuda, Hip };

/// 32-bit registers of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
inline constexpr int64_t register_file = 65536;

/// What a chip can do, as data.
struct Target {
    std::string_view name;
    std::string_view chip;
    Platform platform;
    int warp;                     ///< threads that run in step
    int64_t max_grid;             ///< blocks in one launch, first dimension
    int64_t shared_bytes;         ///< of one block, with opt-in
    int64_t multiprocessors;      ///< of the whole chip; compute units of CDNA
    bool bf16_arithmetic;
    bool fp8_conversion;          ///< in hardware
    int64_t most_cluster;         ///< blocks that reach each other's shared memory; 1: none do
    bool early_launch;            ///< of a kernel, while the one before it still ends
    bool mbarrier;                ///< barriers in shared memory that count arrivals, phase by phase
    bool passes_registers;        ///< from one warpgroup of a block to another
};

/// Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; AMD CDNA2 ISA; NVIDIA V100, A100 and H100 architecture white papers (SXM); AMD Instinct MI210 data sheet; HIP limits a grid to 2^32 - 1 threads.
const std::vector<Target>& targets();
const Target* target_named(std::string_view name);

}  // namespace acu
