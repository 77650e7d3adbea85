#pragma once
#include "runtime/emulation/machine.h"

namespace acu::runtime::emulation {

enum class Access { Read, Write, Atomic };

/// What is known of 4 bytes of shared memory; masks say which of the 4.
struct Cell {
    uint32_t write_clock, read_clock[2];
    uint32_t in_flight;  ///< number of the site that issued an unfinished copy into these bytes
    uint16_t writer, reader[2], async_readers;
    uint8_t valid, init, write_mask, read_mask[2];
    uint8_t generic;     ///< written by a thread and not by the copy engine
};

/// What is known of 4 bytes of global memory in this launch. `run` is the number of the cluster, from 1.
struct GlobalCell {
    uint32_t write_run, read_run, write_clock, read_clock;
    uint16_t writer, reader;
    uint8_t write_mask, read_mask;
};

/// Every access of emitted text comes here: `size` bytes at p, with the alignment of its size when `aligned`.
void check(const void* p, uint32_t size, Access kind, bool aligned, Site site);

void start_shadow();
void clear_window(const Cta& c);  ///< a block starts: nothing in its shared memory is initialised
void allow(const Cta& c, uint32_t from, uint64_t bytes);  ///< these bytes of its window may be accessed

/// `record` is false for accesses that take effect later.
void check_shared(Thread* t, const void* p, uint32_t size, Access kind, Site site, bool record = true);
void check_global(Thread* t, const void* p, uint32_t size, Access kind, Site site);
void fence_global();                  ///< __threadfence by the running thread
void synchronise(const void* atomic); ///< the running thread updated this word atomically

/// The copy engine or wgmma reads these bytes (`how`: "with wgmma"): a thread that stored them must have had a fence behind that.
void check_fenced(const Cell& c, const void* p, std::string_view how, Site site);

/// "`tile` + 12 bytes", or "shared memory + 12 bytes" where no buffer is.
std::string shared_name(const void* p);
uint32_t offset_in_window(const void* p);

uint32_t number_of(Site site);  ///< from 1
Site site_of(uint32_t number);

extern Cell* cells;
/// The cells of `bytes` bytes at p, which are a multiple of 4.
template <class F>
void each_cell(const void* p, uint32_t bytes, F f) {
    Cell* c = cells + (static_cast<const uint8_t*>(p) - machine.region) / 4;
    for (uint32_t i = 0; i < bytes / 4; ++i) f(c[i]);
}

}  // namespace acu::runtime::emulation
