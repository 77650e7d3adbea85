#include "runtime/emulation/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/device.h"
#include "runtime/guarded_buffer.h"

namespace acu::runtime::emulation {

namespace {

/// Reserved address space of which pages appear when they are first touched; shared with children.
uint8_t* reserve_shared(uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}

Diagnostic no_memory(const std::string& what) {
    return {.code = "device.memory", .message = "cannot emulate: " + what, .help = "choose smaller sizes", .exit = Exit::Lacking};
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::reserve() {
    uint8_t* region = reserve_shared(region_bytes);
    uint8_t* written = reserve_shared(region_bytes / 4);
    if (!region || !written) return no_memory("no address space for the device's memory");
    return std::unique_ptr<Memory>(new Memory(region, written));
}

Memory::Memory(uint8_t* region, uint8_t* written) : region_(region), written_(written), extents_(1), owners_((region_bytes - global_start) / chunk_bytes) {}

Memory::~Memory() {
    munmap(region_, region_bytes);
    munmap(written_, region_bytes / 4);
}

uint64_t Memory::find_room(uint64_t chunks) {
    uint64_t free = 0;
    for (uint64_t c = 0; c < owners_.size(); ++c) {
        free = owners_[c] ? 0 : free + 1;
        if (free == chunks) return c + 1 - chunks;
    }
    return owners_.size();
}

Result<size_t> Memory::add(size_t bytes, size_t shift) {
    if (bytes > region_bytes) return no_memory(fmt::format("a buffer of {} bytes; emulated devices have {} GiB", bytes, region_bytes >> 30));
    Extent e;
    e.bytes = bytes;
    e.chunks = (bytes + shift + 2 * guard_bytes + chunk_bytes - 1) / chunk_bytes;
    e.chunk = find_room(e.chunks);
    const auto unused = std::find_if(extents_.begin() + 1, extents_.end(), [](const Extent& x) { return x.chunks == 0; });
    const auto number = static_cast<size_t>(unused - extents_.begin());
    if (e.chunk == owners_.size() || number > UINT16_MAX) return no_memory(fmt::format("no room for {} bytes; emulated devices have {} GiB", bytes, region_bytes >> 30));
    std::fill_n(owners_.begin() + static_cast<ptrdiff_t>(e.chunk), e.chunks, static_cast<uint16_t>(number));
    e.first = region_ + global_start + e.chunk * chunk_bytes + guard_bytes + shift;
    used_chunks_ = std::max(used_chunks_, e.chunk + e.chunks);
    fill(e);
    if (unused == extents_.end()) extents_.push_back(std::move(e));
    else *unused = std::move(e);
    return number;
}

/// Guard zones, poison, and nothing written yet.
void Memory::fill(const Extent& e) {
    for (size_t i = 0; i < guard_bytes; ++i) e.first[e.bytes + i] = *(e.first - guard_bytes + i) = std::to_integer<uint8_t>(guard_byte(i));
    for (size_t i = 0; i < e.bytes; ++i) e.first[i] = std::to_integer<uint8_t>(poison_byte(i));
    std::memset(written_ + (e.first - region_) / 4, 0, (e.bytes + 3) / 4);
}

void Memory::remove(size_t number) {
    Extent& e = extents_[number];
    std::fill_n(owners_.begin() + static_cast<ptrdiff_t>(e.chunk), e.chunks, uint16_t{0});
    madvise(region_ + global_start + e.chunk * chunk_bytes, e.chunks * chunk_bytes, MADV_REMOVE);
    e = Extent();
}

Extent* Memory::owner(const void* address) {
    const uint64_t at = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - region_);
    if (at < global_start || at >= region_bytes) return nullptr;
    const uint16_t number = owners_[(at - global_start) / chunk_bytes];
    return number ? &extents_[number] : nullptr;
}

void Memory::mark_written(const Extent& e, size_t bytes) {
    uint8_t* masks = written_ + (e.first - region_) / 4;
    std::memset(masks, 15, bytes / 4);
    if (bytes % 4) masks[bytes / 4] |= static_cast<uint8_t>((1u << bytes % 4) - 1);
}

size_t Memory::first_unwritten(const Extent& e, size_t bytes) const {
    const uint8_t* masks = written_ + (e.first - region_) / 4;
    if (e.written) return bytes;
    for (size_t i = 0; i < bytes; ++i)
        if (!(masks[i / 4] >> i % 4 & 1)) return i;
    return bytes;
}

}  // namespace acu::runtime::emulation
