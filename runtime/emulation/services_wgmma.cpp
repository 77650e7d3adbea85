// wgmma: a warpgroup meets at issue, and the product is computed when its group is waited for.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

using namespace acu::runtime::emulation;

namespace acu::runtime::emulation {

namespace {

constexpr int warpgroup = 128;
emu::Span spans[4096];

/// Calls f(address, bytes) for each piece of shared memory that the product reads.
template <class F>
void each_span(const Cta* c, const emu::WgmmaOp& op, emu::WgmmaSpans list, F f) {
    int n = 0;
    list(op, spans, &n);
    for (int i = 0; i < n; ++i) f(window(c) + spans[i].offset, spans[i].bytes);
}

Accumulator& accumulator_of(Thread* t, float* registers) { return *std::find_if(t->accumulators.begin(), t->accumulators.end(), [&](const Accumulator& a) { return a.registers == registers; }); }

/// The registers hold NaN until the last product into them was waited for.
void claim_registers(Thread* t, float* d, int count, Site site) {
    if (std::none_of(t->accumulators.begin(), t->accumulators.end(), [&](const Accumulator& a) { return a.registers == d; })) t->accumulators.push_back({d, count, 0, {}, site});
    Accumulator& a = accumulator_of(t, d);
    if (!a.pending++) {
        a.value.assign(d, d + count);
        std::fill_n(d, count, std::nanf(""));
    }
    a.site = site;
    machine.has_accumulators = true;
}

/// Did all threads wait for the bytes, and are those that threads stored visible to wgmma?
void check_operand(const WarpgroupMeeting& g, uint8_t* p, uint32_t bytes, uint32_t landed, Site site) {
    bool by_threads = false;
    each_cell(p, bytes, [&](Cell& c) {
        const bool copied = c.writer == machine.copy_agent && !c.generic && c.init == 15 && !c.in_flight;
        if (copied && c.write_clock > landed) fail("emu.missing-wait", site, "reads {} with wgmma, copied by the copy engine, and not every thread of the warpgroup waited for it", shared_name(p));
        by_threads |= !copied || !c.valid;
        check_fenced(c, p, "with wgmma", site);
        c.async_readers = static_cast<uint16_t>(c.async_readers + warpgroup / 32);
    });
    if (!by_threads) return;
    for (Thread* t : g.threads) check_shared(t, p, bytes, Access::Read, site, false);
}

void check_operands(const WarpgroupMeeting& g, const emu::WgmmaOp& op, emu::WgmmaSpans list, Site site) {
    uint32_t landed = ~0u;
    for (const Thread* t : g.threads) landed = std::min(landed, known(t, machine.copy_agent));
    each_span(machine.running->cta, op, list, [&](uint8_t* p, uint32_t bytes) { check_operand(g, p, bytes, landed, site); });
}

struct Wait {
    Thread* t;
    int pending;
};

/// The warp's part of its oldest product.
void compute(void* const* lanes, const PendingWgmma& p) {
    Thread* first = static_cast<Wait*>(lanes[0])->t;
    float* d[32];
    const unsigned* a[32];
    for (int l = 0; l < 32; ++l) {
        Thread* t = static_cast<Wait*>(lanes[l])->t;
        d[l] = accumulator_of(t, t->wgmmas.front().registers).value.data();
        a[l] = t->wgmmas.front().rows.data();
    }
    if (p.rows_tile) p.rows_tile(p.op, first->index / 32 % 4, window(first->cta), d, a);
    else p.tile(p.op, first->index / 32 % 4, window(first->cta), d);
    for (int l = 0; l < 32; ++l) {
        Thread* t = static_cast<Wait*>(lanes[l])->t;
        Accumulator& a = accumulator_of(t, t->wgmmas.front().registers);
        if (!--a.pending) std::copy_n(d[l], a.count, a.registers);
    }
    each_span(first->cta, p.op, p.spans, [&](uint8_t* at, uint32_t bytes) {
        each_cell(at, bytes, [&](Cell& c) {
            const int k = first->index / 32 & 1;
            --c.async_readers;
            c.reader[k] = static_cast<uint16_t>(first->id), c.read_clock[k] = clock_of(first), c.read_mask[k] = 15;
        });
    });
    for (int l = 0; l < 32; ++l) static_cast<Wait*>(lanes[l])->t->wgmmas.erase(static_cast<Wait*>(lanes[l])->t->wgmmas.begin());
}

void finish(void* const* lanes) {
    Thread* first = static_cast<Wait*>(lanes[0])->t;
    const int pending = static_cast<Wait*>(lanes[0])->pending;
    while (!first->wgmmas.empty() && static_cast<int>(first->wgmma_group - first->wgmmas.front().group) > pending) compute(lanes, PendingWgmma(first->wgmmas.front()));
    for (int l = 0; l < 32; ++l) static_cast<Wait*>(lanes[l])->t->wgmma_fenced = false;
}

}  // namespace

}  // namespace acu::runtime::emulation

namespace emu {

void wgmma_fence() { machine.running->wgmma_fenced = true; }

namespace {

void issue(const PendingWgmma& p, const void* site) {
    Thread* t = machine.running;
    WarpgroupMeeting& g = t->cta->groups[t->index / warpgroup];
    if (!t->wgmma_fenced) fail("emu.missing-fence", site, "issues wgmma without wgmma.fence since its registers were last waited for");
    if (t->cta->threads / warpgroup <= t->index / warpgroup) fail("emu.divergent-warp", site, "issues wgmma from a warp that is in no whole warpgroup");
    if (g.arrived == 0) g.site = site, g.op = p.op;
    else if (!same_site(g.site, site) || !(g.op == p.op)) fail("emu.divergent-warp", site, "issues wgmma with other operands than the rest of its warpgroup, in {}", place_of(g.site).text);
    claim_registers(t, p.registers, p.op.n / 2, site);
    t->wgmmas.push_back(p);
    g.threads.push_back(t);
    if (++g.arrived < warpgroup) return stop("wgmma", site);
    check_operands(g, p.op, p.spans, site);
    for (Thread* other : g.threads)
        if (other != t) make_ready(other);
    g = WarpgroupMeeting();
}

}  // namespace

void wgmma_issue(float* d, const WgmmaOp& op, WgmmaSpans list, WgmmaTile tile, const void* site) { issue({op, list, tile, machine.running->wgmma_group, site, d}, site); }

void wgmma_issue_rows(float* d, const WgmmaOp& op, const unsigned* a, WgmmaSpans list, WgmmaRowsTile tile, const void* site) {
    issue({op, list, nullptr, machine.running->wgmma_group, site, d, tile, {a[0], a[1], a[2], a[3]}}, site);
}

void wgmma_commit(const void*) { ++machine.running->wgmma_group; }

void wgmma_wait(int pending, const void* site) {
    Wait me{machine.running, pending};
    warp_meet("wgmma.wait_group", ~uint64_t{0} >> 32, &me, finish, site);
}

}  // namespace emu
