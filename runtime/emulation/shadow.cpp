#include "runtime/emulation/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "runtime/emulation/report.h"

namespace acu::runtime::emulation {

Cell* cells;

namespace {

GlobalCell* global_cells;  // of the region from global_start on
std::vector<Site> sites(1);

/// Zeroed memory of which pages appear when they are first touched.
template <class T>
T* reserve_cells(uint64_t count) {
    void* p = mmap(nullptr, sizeof(T) * std::max<uint64_t>(count, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) report("emu.memory", nullptr, "needs more shadow memory than there is");
    return static_cast<T*>(p);
}

const char* verb(Access kind) { return kind == Access::Read ? "reads" : kind == Access::Write ? "writes" : "updates"; }

std::string bytes_text(uint32_t size) { return size == 1 ? "1 byte" : fmt::format("{} bytes", size); }

// ---- order between blocks: they run one after another, so only atomics and fences say what may be seen

/// Clusters whose stores are visible to the running one, because it updated an atomic behind their fence.
std::unordered_set<uint32_t> visible_runs;
std::unordered_map<const void*, std::vector<uint32_t>> releases;  // by atomic: the clusters that updated it behind a fence
bool fenced = false;                                             // no store of this cluster since its last fence
uint32_t fenced_run = 0;

}  // namespace

uint32_t number_of(Site site) {
    static std::unordered_map<Site, uint32_t> numbers;
    const auto [it, added] = numbers.try_emplace(site, static_cast<uint32_t>(sites.size()));
    if (added) sites.push_back(site);
    return it->second;
}
Site site_of(uint32_t number) { return sites[number]; }

uint32_t offset_in_window(const void* p) { return static_cast<uint32_t>(static_cast<uint64_t>(static_cast<const uint8_t*>(p) - machine.region) % window_bytes); }

std::string shared_name(const void* p) {
    const uint32_t at = offset_in_window(p);
    for (auto b = machine.placed.rbegin(); b != machine.placed.rend(); ++b)
        if (at >= b->at && at < b->at + b->bytes) return at == b->at ? fmt::format("the start of `{}`", b->name) : fmt::format("offset {} of `{}`", at - b->at, b->name);
    return fmt::format("offset {} of shared memory", at);
}

void start_shadow() {
    cells = reserve_cells<Cell>(global_start / 4);
    global_cells = reserve_cells<GlobalCell>((machine.job->memory->end() - global_start) / 4);
}

void allow(const Cta& c, uint32_t from, uint64_t bytes) {
    Cell* base = cells + static_cast<uint64_t>(c.rank) * window_bytes / 4;
    for (uint64_t b = from; b < from + bytes; ++b) base[b / 4].valid |= static_cast<uint8_t>(1u << b % 4);
}

void clear_window(const Cta& c) {
    const uint32_t used = machine.job->options.guard ? machine.placed_end : machine.job->shared;
    std::memset(window(&c), 0xff, used);  // NaN, and -1
    std::memset(static_cast<void*>(cells + static_cast<uint64_t>(c.rank) * window_bytes / 4), 0, sizeof(Cell) * ((used + 3) / 4));
    if (!machine.job->options.guard) allow(c, 0, used);
    else
        for (const Placed& p : machine.placed) allow(c, p.at, p.bytes);
    visible_runs.clear();
}

// ---- shared memory

namespace {

/// One access to one cell.
struct SharedAccess {
    Thread* t;
    const void* p;
    uint32_t size;
    Access kind;
    Site site;
    uint32_t mask;
};

[[noreturn]] void shared_race(const SharedAccess& a, int other, const char* did) {
    const std::string who = other == machine.copy_agent ? "the copy engine" : other == machine.atomic_agent ? "an atomic" : "thread " + std::to_string(machine.threads[static_cast<size_t>(other)]->index);
    fail("emu.race", a.site, "{} {}, which {} {} with nothing in between that orders the two", verb(a.kind), shared_name(a.p), who, did);
}

void order(const SharedAccess& a, int other, uint32_t clock, const char* did) {
    if (other == a.t->id || (other == machine.atomic_agent && a.kind == Access::Atomic) || clock <= known(a.t, other)) return;
    shared_race(a, other, did);
}

[[noreturn]] void outside_shared(const SharedAccess& a) {
    const uint32_t at = offset_in_window(a.p);
    const Placed* before = nullptr;
    for (const Placed& p : machine.placed)
        if (p.at <= at && (!before || p.at > before->at)) before = &p;
    if (!before) fail("emu.bounds", a.site, "{} {} at offset {} of shared memory; the launch has {} bytes", verb(a.kind), bytes_text(a.size), at, machine.job->shared);
    fail("emu.bounds", a.site, "{} {} at offset {} of `{}` in shared memory, which has {} bytes", verb(a.kind), bytes_text(a.size), at - before->at, before->name, before->bytes);
}

void check_state(const SharedAccess& a, const Cell& c) {
    if ((c.valid & a.mask) != a.mask) outside_shared(a);
    if (c.in_flight) fail("emu.missing-wait", a.site, "{} {} while the copy issued in {} is unfinished", verb(a.kind), shared_name(a.p), place_of(site_of(c.in_flight)).text);
    if (a.kind == Access::Read && (c.init & a.mask) != a.mask) fail("emu.uninitialised", a.site, "reads {} at {}, which nothing wrote", bytes_text(a.size), shared_name(a.p));
    if (a.kind != Access::Read && c.async_readers) fail("emu.missing-wait", a.site, "{} {} while an unfinished wgmma or store of the copy engine reads it", verb(a.kind), shared_name(a.p));
}

/// Which of the two reader slots to take: the thread's own, a free one, one that is ordered before, or either.
int reader_slot(const Cell& c, const Thread* t) {
    for (int s = 0; s < 2; ++s)
        if (c.reader[s] == t->id || !c.read_mask[s]) return s;
    for (int s = 0; s < 2; ++s)
        if (c.read_clock[s] <= known(t, c.reader[s])) return s;
    return static_cast<int>((c.read_clock[0] + static_cast<uint32_t>(t->id)) & 1);
}

void record_read(const SharedAccess& a, Cell& c) {
    const int s = reader_slot(c, a.t);
    const bool same = c.reader[s] == a.t->id && c.read_clock[s] == clock_of(a.t);
    c.read_mask[s] = static_cast<uint8_t>(same ? c.read_mask[s] | a.mask : a.mask);
    c.reader[s] = static_cast<uint16_t>(a.t->id);
    c.read_clock[s] = clock_of(a.t);
}

void record_write(const SharedAccess& a, Cell& c) {
    const int id = a.kind == Access::Atomic ? machine.atomic_agent : a.t->id;
    uint32_t& clock = machine.clock_of[static_cast<size_t>(id)];
    if (a.kind == Access::Atomic) ++clock;
    const bool same = c.writer == id && c.write_clock == clock;
    c.write_mask = static_cast<uint8_t>(same ? c.write_mask | a.mask : a.mask);
    c.writer = static_cast<uint16_t>(id);
    c.write_clock = clock;
    c.init |= static_cast<uint8_t>(a.mask);
    c.generic = 1;
}

/// Calls f(word, mask) for each 4 bytes that [at, at + size) touches.
template <class F>
void each_word(uint64_t at, uint32_t size, F f) {
    for (uint64_t w = at / 4; w <= (at + size - 1) / 4; ++w) {
        const uint32_t low = w * 4 < at ? at & 3 : 0, high = static_cast<uint32_t>(std::min<uint64_t>(4, at + size - w * 4));
        f(w, (1u << high) - (1u << low));
    }
}

uint64_t region_offset(const void* p) { return static_cast<uint64_t>(static_cast<const uint8_t*>(p) - machine.region); }

}  // namespace

void check_shared(Thread* t, const void* p, uint32_t size, Access kind, Site site, bool record) {
    each_word(region_offset(p), size, [&](uint64_t word, uint32_t mask) {
        Cell& c = cells[word];
        const SharedAccess a{t, p, size, kind, site, mask};
        check_state(a, c);
        if (c.write_mask & mask) order(a, c.writer, c.write_clock, "wrote");
        if (kind == Access::Read) {
            if (record) record_read(a, c);
            return;
        }
        for (int s = 0; s < 2; ++s) {
            if (!(c.read_mask[s] & mask)) continue;
            order(a, c.reader[s], c.read_clock[s], "read");
            if (record) c.read_mask[s] &= static_cast<uint8_t>(~mask);
        }
        if (record) record_write(a, c);
    });
}

void check_fenced(const Cell& c, const void* p, std::string_view how, Site site) {
    if (c.generic && c.init && c.writer < machine.copy_agent && c.write_clock > machine.threads[c.writer]->fenced)
        fail("emu.missing-fence", site, "reads {} {}, stored by thread {} without fence.proxy.async behind it", shared_name(p), how, machine.threads[c.writer]->index);
}

// ---- global memory

namespace {

struct GlobalAccess {
    Thread* t;
    const Extent* e;
    int64_t offset;
    Access kind;
    Site site;
};

std::string buffer_name(const Extent& e) { return e.name.empty() ? "a buffer" : "`" + e.name + "`"; }

/// An earlier access of another thread or another block to the same bytes.
void order_global(const GlobalAccess& a, int other, uint32_t run, uint32_t clock, const char* did) {
    const bool atomics = other == machine.atomic_agent && a.kind == Access::Atomic;
    if (atomics) return;
    if (run == machine.run) {
        if (other == a.t->id || clock <= known(a.t, other)) return;
        const std::string who = other == machine.atomic_agent ? "an atomic" : fmt::format("thread {}", machine.threads[static_cast<size_t>(other)]->index);
        fail("emu.race", a.site, "{} offset {} of {}, which {} {} with nothing in between that orders the two", verb(a.kind), a.offset, buffer_name(*a.e), who, did);
    }
    if (visible_runs.contains(run)) return;
    const uint32_t block = (run - 1) * machine.job->cluster + (other < machine.copy_agent ? static_cast<uint32_t>(other) / machine.job->block : 0);
    fail("emu.race", a.site, "{} offset {} of {}, which block {} of the same launch {}; blocks have no order", verb(a.kind), a.offset, buffer_name(*a.e), block, did);
}

void record_global(const GlobalAccess& a, GlobalCell& c, uint32_t mask) {
    const uint32_t clock = clock_of(a.t);
    if (a.kind == Access::Read) {
        const bool same = c.read_run == machine.run && c.reader == a.t->id && c.read_clock == clock;
        // one slot: the first reader stays until it is ordered before the next, or a random one
        if (c.read_run == machine.run && c.read_mask && c.reader != a.t->id && c.read_clock > known(a.t, c.reader) && machine.random() && machine.draw(2)) return;
        c.read_mask = static_cast<uint8_t>(same ? c.read_mask | mask : mask);
        c.reader = static_cast<uint16_t>(a.t->id);
        c.read_run = machine.run;
        c.read_clock = clock;
        return;
    }
    const int id = a.kind == Access::Atomic ? machine.atomic_agent : a.t->id;
    uint32_t& now = machine.clock_of[static_cast<size_t>(id)];
    if (a.kind == Access::Atomic) ++now;
    const bool same = c.write_run == machine.run && c.writer == id && c.write_clock == now;
    c.write_mask = static_cast<uint8_t>(same ? c.write_mask | mask : mask);
    c.writer = static_cast<uint16_t>(id);
    c.write_run = machine.run;
    c.write_clock = now;
}

void check_cell(const GlobalAccess& a, uint64_t word, uint32_t mask) {
    uint8_t& written = machine.job->memory->written()[word];
    if (a.kind == Access::Write) written |= static_cast<uint8_t>(mask);
    else if (!a.e->written && (written & mask) != mask) fail("emu.uninitialised", a.site, "{} offset {} of {}, which nothing wrote", verb(a.kind), a.offset, buffer_name(*a.e));
    GlobalCell& c = global_cells[word - global_start / 4];
    if (c.write_mask & mask) order_global(a, c.writer, c.write_run, c.write_clock, "wrote");
    if (a.kind != Access::Read && c.read_mask & mask) order_global(a, c.reader, c.read_run, c.read_clock, "read");
    record_global(a, c, mask);
}

}  // namespace

void check_global(Thread* t, const void* p, uint32_t size, Access kind, Site site) {
    const Extent* e = machine.job->memory->owner(p);
    if (!e) fail("emu.bounds", site, "{} {} at an address in no buffer", verb(kind), bytes_text(size));
    const int64_t offset = static_cast<const uint8_t*>(p) - e->first;
    if (offset < 0 || offset + size > static_cast<int64_t>(e->bytes))
        fail("emu.bounds", site, "{} {} at offset {} of {}, which has {} bytes", verb(kind), bytes_text(size), offset, buffer_name(*e), e->bytes);
    if (kind == Access::Write) fenced = false;
    const GlobalAccess a{t, e, offset, kind, site};
    each_word(region_offset(p), size, [&](uint64_t word, uint32_t mask) { check_cell(a, word, mask); });
}

void fence_global() {
    fenced = true;
    fenced_run = machine.run;
}

void synchronise(const void* atomic) {
    std::vector<uint32_t>& released = releases[atomic];
    visible_runs.insert(released.begin(), released.end());
    if (fenced && fenced_run == machine.run) released.insert(released.end(), visible_runs.begin(), visible_runs.end()), released.push_back(machine.run);
}

// ---- every access

namespace {

/// A thread's own memory is free, but for registers that an unfinished wgmma writes.
void check_own(const void* p, uint32_t size, Access kind, Site site) {
    const auto* at = static_cast<const uint8_t*>(p);
    for (const Accumulator& a : machine.running->accumulators) {
        const auto* first = reinterpret_cast<const uint8_t*>(a.registers);
        if (a.pending && at < first + a.count * 4 && at + size > first)
            fail("emu.missing-wait", site, "{} a register that the unfinished wgmma issued in {} writes", verb(kind), place_of(a.site).text);
    }
}

}  // namespace

void check(const void* p, uint32_t size, Access kind, bool aligned, Site site) {
    const uint64_t at = region_offset(p);
    if (at >= region_bytes) {
        if (machine.has_accumulators) check_own(p, size, kind, site);
        return;
    }
    if (aligned && (at & (size - 1))) fail("emu.misaligned", site, "{} {} at an address that is {} modulo {}", verb(kind), bytes_text(size), at & (size - 1), size);
    if (at < global_start) check_shared(machine.running, p, size, kind, site);
    else check_global(machine.running, p, size, kind, site);
    if (const unsigned every = machine.job->options.preempt; every && machine.draw(every) == 0) yield();
}

}  // namespace acu::runtime::emulation
