// What emitted text asks of its block: shared memory, barriers, fences.
#include <algorithm>
#include <bit>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

using namespace acu::runtime::emulation;

namespace acu::runtime::emulation {

namespace {

constexpr uint32_t red_zone = 1024;                // also the strongest alignment that a buffer may need
constexpr uint64_t addressable = uint64_t{1} << 18;  // wgmma's descriptors hold 18-bit addresses

/// Guard mode: the buffer apart from all others, at the emitter's offset modulo the strongest alignment. Names of the same bytes stay together.
uint32_t place_apart(uint32_t offset, uint64_t bytes, Site site) {
    Machine& m = machine;
    for (const Placed& p : m.placed)
        if (p.offset == offset && p.bytes == bytes) return p.at;
    const uint32_t at = (m.placed_end + 2 * red_zone - 1) / red_zone * red_zone + offset % red_zone;
    if (at + bytes > addressable) fail("emu.launch", site, "has too much shared memory for guard mode");
    m.placed_end = at + static_cast<uint32_t>(bytes);
    for (const Cta& c : m.ctas) allow(c, at, bytes);
    return at;
}

bool is_placed(const char* name, uint32_t offset, uint64_t bytes) {
    return std::any_of(machine.placed.begin(), machine.placed.end(), [&](const Placed& p) { return p.offset == offset && p.bytes == bytes && std::string_view(p.name) == name; });
}

/// The last thread came: every one of the block now knows what the others did.
void open_barrier(Cta& c) {
    Machine& m = machine;
    for (Thread* t : c.members)
        if (t->epoch == c.epoch) join(c.base, t->clocks);
    for (Thread* t : c.members) {
        c.base[static_cast<size_t>(t->id)] = clock_of(t)++;
        if (t != m.running) make_ready(t);
    }
    const auto atomics = static_cast<size_t>(m.atomic_agent);
    c.base[atomics] = m.clock_of[atomics];
    ++c.epoch;
    c.at_barrier = 0;
}

}  // namespace

}  // namespace acu::runtime::emulation

namespace emu {

unsigned char* dynamic_shared() { return window(machine.running->cta); }

void* shared_buffer(const char* name, uint32_t offset, uint64_t bytes) {
    Machine& m = machine;
    if (offset + bytes > m.job->shared)
        fail("emu.bounds", EMU_SITE, "places the shared buffer `{}` at bytes {} to {}, outside the launch's {} bytes", name, offset, offset + bytes, m.job->shared);
    const uint32_t at = m.job->options.guard ? place_apart(offset, bytes, EMU_SITE) : offset;
    if (!is_placed(name, offset, bytes)) m.placed.push_back({name, offset, bytes, at});
    return window(m.running->cta) + at;
}

uint32_t to_shared(const void* p) {
    const auto rank = static_cast<uint64_t>(static_cast<const uint8_t*>(p) - machine.region) / window_bytes;
    if (rank >= most_blocks) fail("emu.bounds", EMU_SITE, "takes the shared address of memory that is not shared");
    return offset_in_window(p) | (rank == static_cast<uint64_t>(machine.running->cta->rank) ? 0 : static_cast<uint32_t>(rank + 1) << 24);
}

void* from_shared(uint32_t address) {
    const uint32_t rank = address >> 24 ? (address >> 24) - 1 : static_cast<uint32_t>(machine.running->cta->rank);
    if (rank >= machine.job->cluster) fail("emu.bounds", EMU_SITE, "uses a shared address of block {} of its cluster, which has {}", rank, machine.job->cluster);
    return machine.region + rank * window_bytes + (address & 0xffffff) % window_bytes;
}

void block_barrier_at(const void* site) {
    Cta& c = *machine.running->cta;
    if (c.exited) fail("emu.divergent-barrier", site, "waits at a barrier that {} threads of its block never reach: they have ended", c.exited);
    if (c.at_barrier++ == 0) c.barrier_site = site, c.barrier_first = machine.running;
    else if (!same_site(c.barrier_site, site))
        fail("emu.divergent-barrier", site, "waits at a barrier while {} waits at another one, in {}", describe(c.barrier_first), place_of(c.barrier_site).text);
    if (c.at_barrier < c.threads) return stop("the block's barrier", site);
    open_barrier(c);
}

void block_barrier() { block_barrier_at(EMU_SITE); }

namespace {

/// What one call of a numbered barrier must fulfil.
void check_call(const NamedBarrier& b, int id, int threads, bool wait, Site site) {
    const int most = machine.running->cta->threads;
    if (id < 0 || id > 15) fail("emu.divergent-barrier", site, "comes to barrier {}: there are 16", id);
    if (threads % machine.warp_size || threads <= 0) fail("emu.divergent-barrier", site, "comes to barrier {} for {} threads, which are not whole warps", id, threads);
    if (threads > most) fail("emu.divergent-barrier", site, "comes to barrier {} for {} threads, but its block has {}", id, threads, most);
    if (b.arrived && b.threads != threads) fail("emu.divergent-barrier", site, "comes to barrier {} for {} threads, others came for {}", id, threads, b.threads);
    if (wait && !b.waiting.empty() && !same_site(b.site, site))
        fail("emu.divergent-barrier", site, "waits at barrier {} while {} waits there at another one, in {}", id, describe(b.waiting.front()), place_of(b.site).text);
}

/// Hardware counts whole warps: all lanes of one come, or none.
void check_warps(const NamedBarrier& b, int id, Site site) {
    std::map<const Warp*, int> lanes;
    for (const Thread* t : b.waiting) ++lanes[t->warp];
    for (const auto& [w, n] : lanes)
        if (n != std::popcount(w->exists)) fail("emu.divergent-barrier", site, "opens barrier {} with {} lanes of a warp that has {}", id, n, std::popcount(w->exists));
}

}  // namespace

void named_barrier(int id, int threads, bool wait, const void* site) {
    if (id == 0 && threads == machine.running->cta->threads && wait) return block_barrier_at(site);
    NamedBarrier& b = machine.running->cta->named[id];
    check_call(b, id, threads, wait, site);
    b.threads = threads;
    release(machine.running, b.clocks);
    if (wait && b.waiting.empty()) b.site = site;
    if (wait) b.waiting.push_back(machine.running);
    if (++b.arrived < threads) {
        if (wait) stop("a named barrier", site);
        return;
    }
    check_warps(b, id, site);
    for (Thread* t : b.waiting) {
        join(clocks_of(t), b.clocks);
        if (t != machine.running) make_ready(t);
    }
    b = NamedBarrier();
}

uint32_t cluster_rank() { return static_cast<uint32_t>(machine.running->cta->rank); }
uint32_t cluster_size() { return machine.job->cluster; }
uint32_t cluster_address(uint32_t local, uint32_t rank) { return (local & 0xffffff) | (rank + 1) << 24; }

void cluster_barrier(const void* site) {
    Machine& m = machine;
    release(m.running, m.cluster_clocks);
    if (++m.cluster_arrived < static_cast<int>(m.job->cluster * m.job->block)) return stop("the cluster's barrier", site);
    for (size_t i = 0; i < m.job->cluster * m.job->block; ++i) {
        Thread* t = m.threads[i].get();
        if (t->done) fail("emu.divergent-barrier", site, "waits at a barrier of the cluster that {} never reaches: it has ended", describe(t));
        join(clocks_of(t), m.cluster_clocks);
        if (t != m.running) make_ready(t);
    }
    m.cluster_arrived = 0;
    m.cluster_clocks.clear();
}

void thread_fence() { fence_global(); }

void trap(const char* what) { fail("emu.trap", EMU_SITE, "stops at {}", what); }

}  // namespace emu
