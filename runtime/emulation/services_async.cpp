// Copies that land later: cp.async at its wait, the copy engine's when an mbarrier completes.
#include <algorithm>
#include <cstring>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

using namespace acu::runtime::emulation;

namespace acu::runtime::emulation {

namespace {

const char* const waits_for_mbarrier = "an mbarrier";

MBarrier& mbarrier(uint32_t bar, Site site) {
    const uint32_t rank = bar >> 24 ? (bar >> 24) - 1 : static_cast<uint32_t>(machine.running->cta->rank);
    if (rank >= machine.ctas.size()) fail("emu.bounds", site, "uses an mbarrier of block {} of its cluster, which has {}", rank, machine.ctas.size());
    auto& all = machine.ctas[rank].mbarriers;
    const auto it = all.find(bar & 0xffffff);
    if (it == all.end()) fail("emu.mbarrier", site, "uses an mbarrier at offset {} of shared memory, where none was initialised", bar & 0xffffff);
    return it->second;
}

/// Completes the phase when all arrivals and bytes have come.
void check_phase(MBarrier& b) {
    if (b.pending || b.bytes) return;
    ++b.phase;
    b.pending = b.count;
    join(b.done, b.arriving);
    b.arriving.clear();
    for (size_t i = 0; i < static_cast<size_t>(machine.copy_agent); ++i)
        if (Thread* t = machine.threads[i].get(); t->waiting == waits_for_mbarrier) make_ready(t);
}

// ---- the copy engine

uint32_t box_bytes(const acu::TensorMap& m) {
    uint32_t bytes = m.element;
    for (int d = 0; d < m.rank; ++d) bytes *= m.box[d];
    return bytes;
}

/// Calls f(offset in the box, address or null outside the tensor) for each element of the box.
template <class F>
void each_element(const acu::TensorMap& m, const int* at, F f) {
    uint32_t index[5] = {};
    const uint32_t count = box_bytes(m) / m.element;
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t* p = static_cast<const uint8_t*>(m.base);
        for (int d = 0; d < m.rank; ++d) {
            const int64_t x = int64_t{at[d]} + index[d];
            if (x < 0 || static_cast<uint64_t>(x) >= m.dims[d]) p = nullptr;
            if (p) p += static_cast<uint64_t>(x) * (d ? m.strides[d - 1] : m.element);
        }
        f(i * m.element, p);
        for (int d = 0; d < m.rank && ++index[d] == m.box[d]; ++d) index[d] = 0;
    }
}

/// Bits 4 to 6 of a shared address, or fewer of them, are xored with bits 7 to 9.
uint32_t swizzled(uint32_t address, uint32_t swizzle) { return swizzle ? address ^ (address >> 3 & (swizzle - 16)) : address; }

/// What of the box lies inside of the tensor: neighbours in memory are one access.
void check_in_tensor(const acu::TensorMap& m, const int* at, Access kind, Site site) {
    if (m.rank < 1 || m.rank > 5 || !m.element) fail("emu.bounds", site, "copies through something that is no tensor map");
    if (at[0] * m.element % 16) fail("emu.misaligned", site, "copies a box from {} on along its lines, no multiple of 16 bytes", at[0]);    // an illegal instruction on an H200
    const uint8_t* first = nullptr;
    uint32_t bytes = 0;
    const auto check_run = [&] {
        if (bytes) check_global(machine.running, first, bytes, kind, site);
        bytes = 0;
    };
    each_element(m, at, [&](uint32_t, const uint8_t* p) {
        if (!p) return;
        if (!bytes || p != first + bytes) check_run(), first = p;
        bytes += m.element;
    });
    check_run();
}

void write_box(const EngineCopy& k, uint8_t* base) {
    each_element(k.map, k.at, [&](uint32_t offset, const uint8_t* p) {
        uint8_t* to = base + swizzled(k.dst + offset, k.map.swizzle);
        if (p) std::memcpy(to, p, k.map.element);
        else std::memset(to, 0, k.map.element);
    });
}

/// The copy is under way: nobody may touch the bytes until it has landed.
void start_copy(const EngineCopy& k, Site site) {
    const uint32_t alignment = k.mapped ? 128 : 16;
    if (k.dst % alignment) fail("emu.misaligned", site, "copies to shared address {}, which is no multiple of {}", k.dst, alignment);
    for (const Cta& c : machine.ctas) {
        if (!(k.ctas >> c.rank & 1)) continue;
        mbarrier(static_cast<uint32_t>(c.rank + 1) << 24 | k.bar, site);
        const uint8_t* to = window(&c) + k.dst;
        check_shared(machine.running, to, k.bytes, Access::Write, site, false);
        each_cell(to, k.bytes, [&](Cell& x) { x.in_flight = number_of(site); });
    }
    machine.engine.push_back(k);
}

void arrive_as_engine(MBarrier& b, uint32_t now) {
    b.arriving.resize(machine.clock_of.size());
    b.arriving[static_cast<size_t>(machine.copy_agent)] = now;
    check_phase(b);
}

void land_in(const EngineCopy& k, Cta& c, uint32_t now) {
    uint8_t* base = window(&c);
    if (k.mapped) write_box(k, base);
    else std::memcpy(base + k.dst, k.src, k.bytes);
    const auto agent = static_cast<size_t>(machine.copy_agent);
    each_cell(base + k.dst, k.bytes, [&](Cell& x) {
        x.in_flight = 0, x.writer = static_cast<uint16_t>(agent), x.write_clock = now;
        x.write_mask = x.init = 15, x.generic = 0, x.read_mask[0] = x.read_mask[1] = 0;
    });
    MBarrier& b = c.mbarriers[k.bar];
    b.bytes -= k.bytes;
    arrive_as_engine(b, now);
}

void put_copy(const Thread* t, const PendingCopy& c, uint16_t writer, uint32_t now) {
    uint8_t* to = window(t->cta) + (c.dst & 0xffffff);
    std::memcpy(to, c.src, c.src_bytes);
    std::memset(to + c.src_bytes, 0, c.bytes - c.src_bytes);
    each_cell(to, c.bytes, [&](Cell& x) {
        x.in_flight = 0, x.writer = writer, x.write_clock = now;
        x.write_mask = x.init = 15, x.generic = 1, x.read_mask[0] = x.read_mask[1] = 0;
    });
}

/// The copies of a thread up to a number, then its arrival: who waits for that knows of the copies and of nothing else that the thread did.
void land_arrival(const EngineCopy& k, uint32_t now) {
    const auto started = [&](const PendingCopy& c) { return c.number <= k.bytes; };
    for (const PendingCopy& c : k.owner->copies)
        if (started(c)) put_copy(k.owner, c, static_cast<uint16_t>(machine.copy_agent), now);
    std::erase_if(k.owner->copies, started);
    MBarrier& b = k.owner->cta->mbarriers[k.bar];
    if (!b.pending) fail("emu.mbarrier", k.site, "copies of {} arrive at an mbarrier whose {} arrivals of this phase have all come", describe(k.owner), b.count);
    --b.pending;
    arrive_as_engine(b, now);
}

}  // namespace

void land(size_t i) {
    const EngineCopy k = machine.engine[i];
    machine.engine.erase(machine.engine.begin() + static_cast<ptrdiff_t>(i));
    const uint32_t now = ++machine.clock_of[static_cast<size_t>(machine.copy_agent)];
    if (k.owner) return land_arrival(k, now);
    for (Cta& c : machine.ctas)
        if (k.ctas >> c.rank & 1) land_in(k, c, now);
}

}  // namespace acu::runtime::emulation

namespace emu {

// ---- cp.async

void async_copy(uint32_t dst, const void* src, uint32_t bytes, uint32_t src_bytes, const void* site) {
    const auto address = reinterpret_cast<uintptr_t>(src);
    if (dst % bytes || (src_bytes && address % bytes))
        fail("emu.misaligned", site, "copies {} bytes asynchronously from an address that is {} modulo {} to one that is {}", bytes, address % bytes, bytes, dst % bytes);
    if (src_bytes > bytes) fail("emu.bounds", site, "copies {} bytes asynchronously into {}", src_bytes, bytes);
    uint8_t* to = static_cast<uint8_t*>(from_shared(dst));
    if (src_bytes) check_global(machine.running, src, src_bytes, Access::Read, site);
    check_shared(machine.running, to, bytes, Access::Write, site, false);
    each_cell(to, bytes, [&](Cell& c) { c.in_flight = number_of(site); });
    machine.running->copies.push_back({dst, src, bytes, src_bytes, machine.running->copy_group, ++machine.running->copies_started, site});
}

void async_commit() { ++machine.running->copy_group; }

void async_arrive(uint32_t bar, const void* site) {
    mbarrier(bar, site);
    EngineCopy k{};
    k.owner = machine.running, k.site = site, k.bar = bar & 0xffffff, k.bytes = machine.running->copies_started;
    machine.engine.push_back(k);
}

void async_wait(int pending) {
    Thread* t = machine.running;
    std::vector<PendingCopy> left;
    for (const PendingCopy& c : t->copies) {
        if (static_cast<int>(t->copy_group - c.group) <= pending) left.push_back(c);
        else put_copy(t, c, static_cast<uint16_t>(t->id), clock_of(t));
    }
    t->copies = std::move(left);
}

// ---- mbarriers

void mbar_init(uint32_t bar, uint32_t count) {
    if (bar % 8) fail("emu.misaligned", EMU_SITE, "initialises an mbarrier at shared address {}, which is no multiple of 8", bar);
    check_shared(machine.running, from_shared(bar), 8, Access::Write, EMU_SITE);
    MBarrier b;
    b.count = b.pending = count;
    if (!machine.running->cta->mbarriers.emplace(bar & 0xffffff, b).second) fail("emu.mbarrier", EMU_SITE, "initialises an mbarrier where one is");
}

void mbar_end(uint32_t bar, const void* site) {
    mbarrier(bar, site);
    check_shared(machine.running, from_shared(bar), 8, Access::Write, site);
    for (const auto& t : machine.threads)
        if (t->cta == machine.running->cta && t->waiting == waits_for_mbarrier) fail("emu.mbarrier", site, "ends an mbarrier while {} waits", describe(t.get()));
    machine.running->cta->mbarriers.erase(bar & 0xffffff);
}

void mbar_expect(uint32_t bar, uint32_t bytes, const void* site) { mbarrier(bar, site).bytes += bytes; }

void mbar_arrive(uint32_t bar, uint32_t expect_bytes, const void* site) {
    MBarrier& b = mbarrier(bar, site);
    if (!b.pending) fail("emu.mbarrier", site, "arrives at an mbarrier whose {} arrivals of this phase have all come", b.count);
    b.bytes += expect_bytes;
    release(machine.running, b.arriving);
    --b.pending;
    check_phase(b);
}

void mbar_wait(uint32_t bar, uint32_t parity, const void* site) {
    const MBarrier& b = mbarrier(bar, site);
    while ((b.phase & 1) == (parity & 1)) stop(waits_for_mbarrier, site);
    join(clocks_of(machine.running), b.done);
}

bool mbar_test(uint32_t bar, uint32_t parity, const void* site) {
    const MBarrier& b = mbarrier(bar, site);
    if ((b.phase & 1) == (parity & 1)) stop(waits_for_mbarrier, site);
    if ((b.phase & 1) == (parity & 1)) return false;
    join(clocks_of(machine.running), b.done);
    return true;
}

// ---- copies by the engine

void tensor_load_nd(uint32_t dst, const acu::TensorMap* m, const int* coordinates, uint32_t bar, uint32_t cta_mask, const void* site) {
    check_in_tensor(*m, coordinates, Access::Read, site);
    EngineCopy k{};
    k.mapped = true;
    k.map = *m;
    std::copy_n(coordinates, m->rank, k.at);
    k.dst = dst & 0xffffff, k.bar = bar & 0xffffff, k.ctas = cta_mask, k.bytes = box_bytes(*m);
    start_copy(k, site);
}

void tensor_load(uint32_t dst, const acu::TensorMap* m, int c0, int c1, uint32_t bar, uint32_t cta_mask, const void* site) {
    const int at[5] = {c0, c1, 0, 0, 0};
    tensor_load_nd(dst, m, at, bar, cta_mask, site);
}

void bulk_load(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar, const void* site) {
    if (bytes % 16 || reinterpret_cast<uintptr_t>(src) % 16) fail("emu.misaligned", site, "copies {} bytes in bulk from an address that is {} modulo 16", bytes, reinterpret_cast<uintptr_t>(src) % 16);
    check_global(machine.running, src, bytes, Access::Read, site);
    EngineCopy k{};
    k.src = static_cast<const uint8_t*>(src);
    k.dst = dst & 0xffffff, k.bar = bar & 0xffffff, k.ctas = 1u << machine.running->cta->rank, k.bytes = bytes;
    start_copy(k, site);
}

void tensor_store_nd(const acu::TensorMap* m, const int* coordinates, uint32_t src, const void* site) {
    check_in_tensor(*m, coordinates, Access::Write, site);
    Thread* t = machine.running;
    const uint32_t from = src & 0xffffff;
    if (from % 128) fail("emu.misaligned", site, "stores a box from shared address {}, which is no multiple of 128", from);
    uint8_t* base = window(t->cta);
    each_element(*m, coordinates, [&](uint32_t offset, const uint8_t* p) {
        if (!p) return;
        uint8_t* at = base + swizzled(from + offset, m->swizzle);
        check_shared(t, at, m->element, Access::Read, site, false);
        each_cell(at, m->element, [&](const Cell& c) { check_fenced(c, at, "by the copy engine", site); });
        std::memcpy(const_cast<uint8_t*>(p), at, m->element);
    });
    each_cell(base + from, box_bytes(*m), [](Cell& c) { ++c.async_readers; });
    t->boxes_read.emplace_back(from, box_bytes(*m));
}

void tensor_stores_read() {
    Thread* t = machine.running;
    for (const auto& [from, bytes] : t->boxes_read) each_cell(window(t->cta) + from, bytes, [](Cell& c) { --c.async_readers; });
    t->boxes_read.clear();
}

void proxy_fence() { machine.running->fenced = clock_of(machine.running)++; }

}  // namespace emu
