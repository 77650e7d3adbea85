#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

namespace emu {
View* self;
dim3 block_dim, grid_dim;
}  // namespace emu

namespace acu::runtime::emulation {

Machine machine;

uint32_t Machine::draw(uint32_t below) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return static_cast<uint32_t>(random_state >> 11) % below;
}

// ---- clocks

Clocks& clocks_of(Thread* t) {
    if (t->epoch != t->cta->epoch) t->clocks = t->cta->base, t->epoch = t->cta->epoch;
    t->clocks[static_cast<size_t>(t->id)] = clock_of(t);
    return t->clocks;
}

void join(Clocks& into, const Clocks& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void release(Thread* t, Clocks& into) {
    join(into, clocks_of(t));
    ++clock_of(t);
}

// ---- who runs next

namespace {

/// Threads that wait, by what and where: one line each.
[[noreturn]] void deadlock() {
    struct Waiters {
        int count = 0;
        const Thread* last = nullptr;
    };
    std::map<std::pair<std::string, std::string>, Waiters> by;
    const Thread* any = nullptr;
    for (const auto& t : machine.threads) {
        if (t->done) continue;
        Waiters& w = by[{t->waiting, place_of(t->site).text}];
        ++w.count;
        w.last = any = t.get();
    }
    std::string lines;
    for (const auto& [key, w] : by) lines += fmt::format("{} {} for {} in {}, such as {}\n", w.count, w.count == 1 ? "thread waits" : "threads wait", key.first, key.second, describe(w.last));
    machine.running = nullptr;
    report("emu.deadlock", any->site, "cannot go on: every thread waits", lines);
}

/// A warp with a thread that can run; copies land when there is none. Null when nothing is left to do.
Warp* next_warp() {
    Machine& m = machine;
    for (;;) {
        Warp* w = &m.warps[m.current_warp];
        if (w->ready && !(m.random() && m.draw(8) == 0)) return w;
        const size_t n = m.warps.size(), from = m.random() ? m.draw(static_cast<uint32_t>(n)) : m.current_warp;
        for (size_t i = 0; i < n; ++i) {
            const size_t at = (from + i) % n;
            if (m.warps[at].ready) return m.current_warp = at, &m.warps[at];
        }
        if (m.engine.empty()) return nullptr;
        land(m.random() ? m.draw(static_cast<uint32_t>(m.engine.size())) : 0);
    }
}

Thread* next_thread() {
    Machine& m = machine;
    if (m.random() && !m.engine.empty() && m.draw(8) == 0) land(m.draw(static_cast<uint32_t>(m.engine.size())));
    Warp* w = next_warp();
    if (!w) return nullptr;
    uint64_t ready = w->ready;
    if (m.random())
        if (const uint64_t high = ready & (~uint64_t{0} << m.draw(64))) ready = high;
    const int lane = std::countr_zero(ready);
    w->ready &= ~(uint64_t{1} << lane);
    return w->lanes[lane];
}

void go(Thread* next) {
    Thread* t = machine.running;
    if (next == t) return;
    if (!next && machine.live) deadlock();
    machine.running = next;
    if (!next) return switch_fiber(t->fiber, machine.main);
    emu::self = next;
    switch_fiber(t->fiber, next->fiber);
}

}  // namespace

void make_ready(Thread* t) {
    t->waiting = nullptr;
    t->warp->ready |= uint64_t{1} << t->lane;
}

void stop(const char* why, Site site) {
    machine.running->waiting = why;
    machine.running->site = site;
    go(next_thread());
}

void yield() {
    make_ready(machine.running);
    go(next_thread());
}

void leave() {
    go(next_thread());
    std::abort();
}

// ---- a cluster from start to end

namespace {

/// What must not be left open when a thread ends.
void check_exit(Thread* t) {
    Cta& c = *t->cta;
    if (c.at_barrier) fail("emu.divergent-barrier", c.barrier_site, "ends while {} threads of its block wait at the barrier in {}", c.at_barrier, place_of(c.barrier_site).text);
    for (const Meeting& m : t->warp->meetings)
        if (m.op && m.mask >> t->lane & 1) fail("emu.divergent-warp", m.site, "ends while other lanes of its warp wait for it in {}", m.op);
    for (const auto& [id, b] : c.named)
        if (std::ranges::find(b.waiting, t->warp, &Thread::warp) != b.waiting.end()) fail("emu.divergent-barrier", b.site, "ends while threads of its warp wait at barrier {} in {}", id, place_of(b.site).text);
    if (!t->boxes_read.empty()) fail("emu.missing-wait", t->site, "ends while the copy engine may still read {} boxes that it stores", t->boxes_read.size());
    if (!t->copies.empty()) fail("emu.missing-wait", t->copies[0].site, "ends with {} asynchronous copies that it did not wait for", t->copies.size());
    if (!t->wgmmas.empty()) fail("emu.missing-wait", t->wgmmas[0].site, "ends with the results of a wgmma not waited for");
}

void thread_main() {
    machine.job->call(const_cast<void**>(machine.job->arguments.data()));
    Thread* t = machine.running;
    check_exit(t);
    t->done = true;
    ++t->cta->exited;
    --machine.live;
    t->warp->exists &= ~(uint64_t{1} << t->lane);
    leave();
}

void start_thread(Thread& t, Cta& c, int index, uint32_t block) {
    const int size = machine.warp_size, per_block = (c.threads + size - 1) / size;
    t.cta = &c;
    t.warp = &machine.warps[static_cast<size_t>(c.rank * per_block + index / size)];
    t.id = c.rank * c.threads + index;
    t.index = index;
    t.lane = index % size;
    t.done = t.wgmma_fenced = false;
    t.waiting = nullptr;
    t.epoch = t.fenced = t.copy_group = t.copies_started = t.wgmma_group = 0;
    t.copies.clear();
    t.boxes_read.clear();
    t.wgmmas.clear();
    t.accumulators.clear();
    t.thread = dim3{static_cast<unsigned>(index), 0, 0};
    t.block = dim3{block, 0, 0};
    t.warp->lanes[t.lane] = &t;
    t.warp->exists |= uint64_t{1} << t.lane;
    t.warp->ready |= uint64_t{1} << t.lane;
    c.members.push_back(&t);
    machine.stacks->prepare(t.fiber, static_cast<size_t>(t.id), thread_main);
}

void reset(size_t blocks, size_t threads_per_block) {
    Machine& m = machine;
    const size_t total = blocks * threads_per_block, size = static_cast<size_t>(m.warp_size);
    m.copy_agent = static_cast<int>(total);
    m.atomic_agent = static_cast<int>(total) + 1;
    m.live = static_cast<int>(total);
    m.current_warp = 0;
    m.has_accumulators = false;
    m.engine.clear();
    m.cluster_arrived = 0;
    m.cluster_clocks.clear();
    m.clock_of.assign(total + 2, 1);
    m.warps.assign((threads_per_block + size - 1) / size * blocks, Warp());
    m.ctas.assign(blocks, Cta());
    while (m.threads.size() < total) m.threads.push_back(std::make_unique<Thread>());
}

}  // namespace

void run_cluster(uint32_t first_block) {
    Machine& m = machine;
    const Job& job = *m.job;
    reset(job.cluster, job.block);
    ++m.run;
    for (uint32_t rank = 0; rank < job.cluster; ++rank) {
        Cta& c = m.ctas[rank];
        c.rank = static_cast<int>(rank);
        c.threads = static_cast<int>(job.block);
        c.base.assign(m.clock_of.size(), 0);
        clear_window(c);
        for (int i = 0; i < c.threads; ++i) start_thread(*m.threads[static_cast<size_t>(c.rank * c.threads + i)], c, i, first_block + rank);
    }
    m.running = next_thread();
    emu::self = m.running;
    switch_fiber(m.main, m.running->fiber);
    m.running = nullptr;
}

void run_job(const Job& job, Finding& finding) {
    Machine& m = machine;
    m.job = &job;
    m.finding = &finding;
    m.region = job.memory->region();
    m.warp_size = job.target->warp;
    m.random_state = job.options.seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 8; ++i) m.draw(2);
    catch_crashes();
    m.stacks = std::make_unique<Stacks>(static_cast<size_t>(job.block) * job.cluster);
    start_shadow();
    emu::block_dim = dim3{job.block, 1, 1};
    emu::grid_dim = dim3{job.grid, 1, 1};
    for (uint32_t b = 0; b < job.grid; b += job.cluster) run_cluster(b);
    finding.state = Finding::Done;
    _exit(0);
}

}  // namespace acu::runtime::emulation
