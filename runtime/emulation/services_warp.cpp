// What emitted text asks of its warp: meetings, shuffles, votes; and atomics.
#include <cstring>

#include "runtime/emulation/report.h"
#include "runtime/emulation/shadow.h"

using namespace acu::runtime::emulation;

namespace acu::runtime::emulation {

namespace {

constexpr uint64_t every_lane = ~uint64_t{0};

/// The meeting that this operation belongs to: one that lanes of its mask wait in, or a new one.
Meeting& meeting_for(const char* op, uint64_t mask, Site site) {
    Warp& w = *machine.running->warp;
    for (Meeting& m : w.meetings) {
        if (!m.op || !(m.mask & mask)) continue;
        if (m.op != op || m.mask != mask || !same_site(m.site, site))
            fail("emu.divergent-warp", site, "executes {} while other lanes of its mask are in {}, in {}", op, m.op, place_of(m.site).text);
        return m;
    }
    for (Meeting& m : w.meetings) {
        if (m.op) continue;
        m.op = op, m.site = site, m.mask = mask, m.arrived = 0;
        std::memset(m.arguments, 0, sizeof m.arguments);
        return m;
    }
    fail("emu.divergent-warp", site, "executes {} while two other groups of lanes of its warp wait", op);
}

struct ShuffleArgument {
    emu::Shuffle kind;
    uint64_t bits;
    int parameter, width;
    uint64_t result;
};

/// The lane that lane i reads, by the rules of the CUDA C++ Programming Guide, "Warp Shuffle Functions".
int source_lane(const ShuffleArgument& s, int i) {
    const int low = i & ~(s.width - 1), high = low + s.width - 1;
    int from = low + (s.parameter & (s.width - 1));
    if (s.kind == emu::shfl_xor) from = i ^ s.parameter;
    if (s.kind == emu::shfl_down) from = i + s.parameter;
    if (s.kind == emu::shfl_up) from = i - s.parameter;
    return from < low && s.kind == emu::shfl_up ? i : from > high ? i : from;
}

void shuffle_lanes(void* const* lanes) {
    constexpr uint64_t undefined = 0x7fc0dead7fc0deadu;  // from a lane that does not take part
    for (int i = 0; i < machine.warp_size; ++i) {
        auto* s = static_cast<ShuffleArgument*>(lanes[i]);
        if (!s) continue;
        const auto* from = static_cast<const ShuffleArgument*>(lanes[source_lane(*s, i)]);
        s->result = from ? from->bits : undefined;
    }
}

/// The lanes of a mask learn what the others did.
void synchronise_lanes(void* const* lanes) {
    Clocks all;
    for (int i = 0; i < machine.warp_size; ++i)
        if (lanes[i]) join(all, clocks_of(static_cast<Thread*>(lanes[i])));
    for (int i = 0; i < machine.warp_size; ++i) {
        auto* t = static_cast<Thread*>(lanes[i]);
        if (!t) continue;
        t->clocks = all;
        ++clock_of(t);
    }
}

}  // namespace

}  // namespace acu::runtime::emulation

namespace emu {

int lane() { return machine.running->lane; }
int warp_width() { return machine.warp_size; }

void warp_meet(const char* op, uint64_t mask, void* mine, void (*f)(void* const*), const void* site) {
    Thread* t = machine.running;
    Warp& w = *t->warp;
    const uint64_t me = uint64_t{1} << t->lane;
    if (!(mask & me)) fail("emu.lane-mask", site, "executes {} whose mask {:#x} does not name its lane; warps have {} lanes here", op, mask, machine.warp_size);
    mask &= w.exists;
    Meeting& m = meeting_for(op, mask, site);
    m.arguments[t->lane] = mine;
    m.arrived |= me;
    if (m.arrived != mask) return stop(op, site);
    f(m.arguments);
    m.op = nullptr;
    for (uint64_t rest = mask & ~me; rest; rest &= rest - 1) make_ready(w.lanes[__builtin_ctzll(rest)]);
}

void warp_sync_at(uint64_t mask, const void* site) { warp_meet("__syncwarp", mask, machine.running, synchronise_lanes, site); }
void warp_sync(uint64_t mask) { warp_sync_at(mask, EMU_SITE); }

uint64_t shuffle(Shuffle kind, uint64_t mask, uint64_t bits, int parameter, int width) {
    if (width < 1 || width > machine.warp_size || (width & (width - 1))) fail("emu.lane-mask", EMU_SITE, "shuffles with a width of {}; warps have {} lanes here", width, machine.warp_size);
    ShuffleArgument a{kind, bits, parameter, width, 0};
    warp_meet("a shuffle", mask, &a, shuffle_lanes, EMU_SITE);
    return a.result;
}

uint64_t ballot(uint64_t mask, bool predicate) {
    struct Vote {
        bool yes;
        uint64_t result;
    } mine{predicate, 0};
    const auto count = [](void* const* lanes) {
        uint64_t result = 0;
        for (int i = 0; i < machine.warp_size; ++i)
            if (lanes[i] && static_cast<Vote*>(lanes[i])->yes) result |= uint64_t{1} << i;
        for (int i = 0; i < machine.warp_size; ++i)
            if (lanes[i]) static_cast<Vote*>(lanes[i])->result = result;
    };
    warp_meet("a vote", mask, &mine, count, EMU_SITE);
    return mine.result;
}

uint64_t atomic(void* p, uint32_t size, uint64_t (*f)(uint64_t, uint64_t), uint64_t argument) {
    synchronise(p);
    check(p, size, Access::Atomic, true, EMU_SITE);
    uint64_t old = 0;
    std::memcpy(&old, p, size);
    const uint64_t now = f(old, argument);
    std::memcpy(p, &now, size);
    return old;
}

uint64_t compare_and_swap(void* p, uint32_t size, uint64_t expected, uint64_t desired) {
    synchronise(p);
    check(p, size, Access::Atomic, true, EMU_SITE);
    uint64_t old = 0;
    std::memcpy(&old, p, size);
    if (old == expected) std::memcpy(p, &desired, size);
    return old;
}

void access(const void* p, uint32_t size, bool write, const void* site) { check(p, size, write ? Access::Write : Access::Read, true, site); }

}  // namespace emu
