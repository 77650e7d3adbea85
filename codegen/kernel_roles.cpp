#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/lower/spread.h"
#include "microkernels/catalogue.h"

namespace acu::codegen {

using namespace ir;

/// Of every target that has barriers in shared memory.
constexpr int64_t warp = 32;

/// Each slot of a ring has two barriers: `full`, at which those who fill it arrive, and `empty`, at which those arrive who have read it. A turn is a barrier, too.
static std::string full(const std::string& ring) { return ring + ".full"; }
static std::string empty(const std::string& ring) { return ring + ".empty"; }

/// Rings that a role fills by asynchronous copies.
static void asynchronous(const Role& role, std::set<std::string>& out) {
    for_each_block(role.body, [&](const Block& b, Loc) {
        if (b.via == "common.copy_async") out.insert(b.outs[0].tensor);
    });
}

/// Rings whose versions the tensor cores read past the registers, and those that the copy engine fills.
void KernelWriter::by_engine(const Role& role) {
    for_each_block(role.body, [&](const Block& b, Loc) {
        if (lower::brings_boxes(b)) boxes_.insert(b.outs[0].tensor);
        if (lower::is_multicast(b)) multicast_.insert(b.outs[0].tensor);
        const Microkernel* m = lower::is_matrix_product(b) ? microkernels::find(b.via) : nullptr;
        if (m && m->group == ThreadGroup::Warpgroup)
            for (const std::string& t : tensors_read(b)) read_by_engine_.insert(t);
    });
}

/// Do the rings stand together in every list of statements that has such a signal of one of them?
static bool together(const Body& body, const std::set<std::string>& rings) {
    std::map<SyncOp, std::set<std::string>> here;
    for (const Stmt& s : body) {
        if (const auto* y = std::get_if<Sync>(&s->node); y && rings.contains(y->name)) here[y->op].insert(y->name);
        for (const Body* inner : bodies_of(s))
            if (!together(*inner, rings)) return false;
    }
    return std::ranges::all_of(here, [&](const auto& x) { return x.second == rings; });
}

/// Of the signals of rings that are one: the first wait and the last arrival of a list count.
void KernelWriter::leave_out(const Body& body, const std::set<std::string>& rings) {
    std::map<SyncOp, std::vector<const Sync*>> here;
    for (const Stmt& s : body) {
        if (const auto* y = std::get_if<Sync>(&s->node); y && rings.contains(y->name)) here[y->op].push_back(y);
        for (const Body* inner : bodies_of(s)) leave_out(*inner, rings);
    }
    for (const auto& [op, all] : here) {
        const Sync* counts = op == SyncOp::Acquire || op == SyncOp::Wait ? all.front() : all.back();
        for (const Sync* y : all)
            if (y != counts) left_out_.insert(y);
    }
}

/// Rings that the copy engine fills in the same iterations share their barriers: those of the first.
void KernelWriter::join_rings(const Roles& r) {
    std::map<std::string, std::set<std::string>> alike;
    for (const std::string& name : boxes_) {
        const Ring& ring = writer_.decl(name).ring;
        alike[fmt::format("{} {} {}", ring.versions, ring.readers, fmt::join(ring.keys, " "))].insert(name);
    }
    for (const auto& [what, rings] : alike) {
        if (rings.size() < 2 || !std::ranges::all_of(r.roles, [&](const Role& x) { return together(x.body, rings); })) continue;
        for (const std::string& name : rings) leader_[name] = *rings.begin();
        if (std::ranges::any_of(rings, [&](const std::string& n) { return multicast_.contains(n); })) multicast_.insert(rings.begin(), rings.end());
        for (const Role& x : r.roles) leave_out(x.body, rings);
    }
}

std::string KernelWriter::barriers_of(const std::string& ring) const {
    const auto it = leader_.find(ring);
    return it == leader_.end() ? ring : it->second;
}

/// One arrival a warp; of asynchronous copies, one a thread, too.
void KernelWriter::count_arrivals(const Role& role, const Sync& y, std::map<std::string, Meeting>& out) const {
    const bool turn = y.op == SyncOp::Take || y.op == SyncOp::Pass;
    if (!turn && y.op > SyncOp::Release) return;
    const Ring ring = turn ? Ring{1, {}, 1} : writer_.decl(y.name).ring;
    const int64_t warps = role.threads / warp;
    if (left_out_.contains(&y)) return;
    const std::string of = turn ? y.name : barriers_of(y.name);
    const auto at = [&](const std::string& name) -> Meeting& { return out.emplace(name, Meeting{ring.versions, 1}).first->second; };
    switch (y.op) {
        case SyncOp::Acquire: at(empty(of)); return;
        case SyncOp::Wait: at(full(of)); return;
        case SyncOp::Take: at(of); return;
        case SyncOp::Commit: at(full(of)).arrivals = warps + (asynchronous_.contains(y.name) ? role.threads : 0); return;
        case SyncOp::Release: at(empty(of)).arrivals = ring.readers * warps * (multicast_.contains(y.name) ? ranks_ : 1); return;
        default: at(of).arrivals = warps; return;
    }
}

std::map<std::string, KernelWriter::Meeting> KernelWriter::meetings(const Roles& r) const {
    std::map<std::string, Meeting> out;
    for (const Role& role : r.roles)
        any_inside(role.body, [&](const Stmt& s) {
            if (const auto* y = std::get_if<Sync>(&s->node)) count_arrivals(role, *y, out);
            return false;
        });
    return out;
}

/// if (thread < 32) { producer } else if (thread < 160) { consumer }, between two barriers of the block: barriers of rings live from the one to the other.
void KernelWriter::roles(const Roles& r) {
    for (const char* h : {"ring", "roles"}) headers_.insert(h);
    for (const Role& role : r.roles) asynchronous(role, asynchronous_), by_engine(role);
    join_rings(r);
    const auto all = meetings(r);
    for (const auto& [name, m] : all) share(names_.buffer(name), "RingBarrier", m.slots, (8 * m.slots + 127) / 128 * 128, 128);
    const auto by_one = [&](const auto& what) {
        line("if ({} == 0) {{", thread_name);
        ++depth_;
        for (const auto& [name, m] : all) what(names_.buffer(name), m);
        --depth_;
        line("}}");
    };
    by_one([&](const std::string& name, const Meeting& m) { line("rings_begin({}, {}, {});", name, m.slots, m.arrivals); });
    line("{}", all_barrier());
    int64_t first = 0;
    for (size_t i = 0; i < r.roles.size(); ++i) {
        const int64_t taken = lower::threads_taken(r.roles[i]);
        line("{}if ({} < {}) {{", i ? "} else " : "", thread_name, first + taken);
        role(r.roles[i], first, static_cast<int>(i) + 1);
        first += taken;
    }
    line("}}");
    line("{}", all_barrier());
    by_one([&](const std::string& name, const Meeting& m) { line("rings_end({}, {});", name, m.slots); });
    passed_.clear();
}

/// What a role knows of its loops does not hold for another, and its threads count from 0.
void KernelWriter::role(const Role& role, int64_t first, int number) {
    const analysis::Facts before = facts_;
    const bool grows = role.registers > register_file / block_size();
    const int64_t threads = std::exchange(threads_, role.threads);
    const std::string barrier = std::exchange(barrier_, role.threads > warp ? fmt::format("group_barrier({}, {});", number, role.threads) : std::string(warp_barrier));
    ++depth_;
    line("// role {}", role.name);
    if (first) line("const Index {} = (Index)threadIdx.x - {};", thread_name, first);
    const bool some_idle = role.threads < lower::threads_taken(role);
    if (role.registers) headers_.insert("registers"), line("set_registers<{}, {}>();", role.registers, grows);
    if (some_idle) line("if ({} < {}) {{", thread_name, role.threads), ++depth_;
    body(role.body);
    if (some_idle) --depth_, line("}}");
    --depth_;
    facts_ = before, threads_ = threads, barrier_ = barrier;
}

/// Item n of a ring of s slots is in slot n % s, and in phase n / s of its barriers: a wait is for the end of that phase, or of the one before.
void KernelWriter::ring_sync(const Sync& y) {
    if (left_out_.contains(&y)) return;
    const std::string of = barriers_of(y.name);
    const Index slots = constant(writer_.decl(y.name).ring.versions), n = y.key[0], phase = div(n, slots);
    const std::string slot = writer_.index(analysis::normal(mod(n, slots)));
    const auto at = [&](const std::string& name) { return fmt::format("{}[{}]", names_.buffer(name), slot); };
    const auto parity = [&](const Index& p) { return writer_.index(analysis::normal(mod(p, constant(2)))); };
    switch (y.op) {
        case SyncOp::Acquire: return line("ring_wait({}, (int)({}));", at(empty(of)), parity(phase + constant(1)));
        case SyncOp::Wait: return line("ring_wait({}, (int)({}));", at(full(of)), parity(phase));
        case SyncOp::Release:
            if (const std::string release = fmt::format("warp_arrive({});", at(empty(of))); !multicast_.contains(y.name) && waits_for_flight(of, slot, release)) return;
            if (multicast_.contains(y.name)) return line("warp_arrive_at_all({}, {});", at(empty(of)), ranks_);
            return line("warp_arrive({});", at(empty(of)));
        default:
            if (read_by_engine_.contains(y.name) && !boxes_.contains(y.name)) line("async_fence();");
            if (asynchronous_.contains(y.name)) line("ring_arrive_copies({});", at(full(of)));
            return line("warp_arrive({});", at(full(of)));
    }
}

/// A turn that is given before the roles start is counted: the first to take it does not wait.
void KernelWriter::turn(const Sync& y) {
    if (barrier_ == block_barrier) passed_[y.name] += y.op == SyncOp::Pass;
    else if (y.op == SyncOp::Pass) line("warp_arrive({}[0]);", names_.buffer(y.name));
    else line("ring_wait({}[0], (int)({}));", names_.buffer(y.name), writer_.index(analysis::normal(mod(y.key[0] + constant(passed_[y.name]), constant(2)))));
}

}  // namespace acu::codegen
