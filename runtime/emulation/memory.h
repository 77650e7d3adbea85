#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/result.h"

namespace acu::runtime::emulation {

// One reserved address region holds the shared windows of a cluster's blocks and behind them all device buffers, so that one comparison tells
// an address that is checked from a thread's own.
constexpr uint64_t region_bytes = uint64_t{16} << 30;
constexpr uint64_t window_bytes = uint64_t{512} << 10;  ///< more than any target's shared memory, for guard mode
constexpr uint64_t most_blocks = 16;                    ///< of a cluster
constexpr uint64_t global_start = window_bytes * most_blocks;
constexpr uint64_t chunk_bytes = uint64_t{64} << 10;    ///< buffers own whole chunks

/// A device buffer: where its usable bytes lie, between its guard zones.
struct Extent {
    uint8_t* first = nullptr;
    size_t bytes = 0;
    uint64_t chunk = 0, chunks = 0;
    bool written = false;  ///< every byte has been
    std::string name;      ///< by the kernel parameter that it was last given to
};

/// The memory of an emulated device. It lies in mappings that a forked child shares; what the child changes, the parent sees.
class Memory {
  public:
    /// Code `device.memory`.
    static Result<std::unique_ptr<Memory>> reserve();
    ~Memory();
    Memory(const Memory&) = delete;

    /// A filled buffer; answers its number. Code `device.memory`.
    Result<size_t> add(size_t bytes, size_t shift);    ///< `shift`: bytes behind an aligned address
    void remove(size_t number);
    Extent& extent(size_t number) { return extents_[number]; }
    /// The buffer that owns the chunk of this address; null when none does.
    Extent* owner(const void* address);
    void mark_written(const Extent& e, size_t bytes);
    /// The first byte below `bytes` that nobody wrote, or `bytes`.
    size_t first_unwritten(const Extent& e, size_t bytes) const;

    uint8_t* region() const { return region_; }
    uint8_t* written() const { return written_; }  ///< for each 4 bytes of the region a mask of those that somebody wrote
    uint64_t end() const { return global_start + used_chunks_ * chunk_bytes; }

  private:
    Memory(uint8_t* region, uint8_t* written);
    uint64_t find_room(uint64_t chunks);
    void fill(const Extent& e);

    uint8_t* region_;
    uint8_t* written_;
    uint64_t used_chunks_ = 0;
    std::vector<Extent> extents_;   // number 0 owns nothing
    std::vector<uint16_t> owners_;  // of each chunk
};

}  // namespace acu::runtime::emulation
