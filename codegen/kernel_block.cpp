#include <algorithm>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/lower/lower.h"
#include "ir/lower/spread.h"

namespace acu::codegen {

using namespace ir;

/// Blocks of one warp that share no memory: several of them make a hardware block, of which a multiprocessor holds no more than 16 to 32.
bool KernelWriter::shares_hardware_block() const {
    if (is_part_of_warp()) return true;
    if (threads_ != target_.warp) return false;
    const auto shared = [](const Decl& d) { return !d.layout; };
    return std::ranges::none_of(loop_.allocs, shared) && !any_inside(loop_.body, [&](const Stmt& s) {
        const auto* l = std::get_if<Loop>(&s->node);
        const auto* b = std::get_if<Block>(&s->node);
        return (l && std::ranges::any_of(l->allocs, shared)) || (b && !b->via.empty() && !b->via.starts_with("common.warp_reduce")) || std::holds_alternative<Roles>(s->node);
    });
}

/// The loops that become the grid, the last one fastest, and the loop over the blocks that one block takes.
Index KernelWriter::block_loops() {
    std::vector<const Loop*> nest = lower::nest_of(loop_);
    const Loop* const innermost = nest.back();
    if (ranks_ > 1) nest.pop_back();
    for (const char* h : {"group", "copy"}) headers_.insert(h);
    Index total = constant(1);
    for (const Loop* l : nest) total = total * l->extent;
    line("const Index blocks = {};", writer_.index(total));
    if (is_part_of_warp()) {    // all lanes of a warp go round together: those beyond the last block do nothing but meet
        packed_ = warps_packed * target_.warp / threads_, barrier_ = warp_barrier;
        const int64_t together = target_.warp / threads_;
        line("const Index {} = (Index)threadIdx.x % {};", thread_name, threads_);
        line("for (Index first = (Index)blockIdx.x * {0} + threadIdx.x / {1} * {2}; first < blocks; first += (Index)gridDim.x * {0}) {{", packed_, target_.warp, together);
        line("    const Index own = first + threadIdx.x % {} / {};", target_.warp, threads_);
        line("    const bool mine = own < blocks;");
        line("    const Index block = mine ? own : blocks - 1;");
    } else if (cluster_ > 1) {
        headers_.insert("cluster");
        line("const Index {} = (Index)cluster_rank() * {} + threadIdx.x;", thread_name, block_size());
        line("for (Index block = blockIdx.x / {0}; block < blocks; block += gridDim.x / {0}) {{", cluster_);
    } else if (ranks_ > 1) {
        headers_.insert("cluster");
        line("const Index {} = (Index)threadIdx.x;", thread_name);
        line("const Index {} = (Index)cluster_rank();", names_.of(innermost->var));
        line("for (Index block = blockIdx.x / {0}; block < blocks; block += gridDim.x / {0}) {{", ranks_);
    } else if (shares_hardware_block()) {
        packed_ = warps_packed, barrier_ = warp_barrier;
        line("const Index {} = (Index)threadIdx.x % {};", thread_name, threads_);
        line("for (Index block = (Index)blockIdx.x * {0} + threadIdx.x / {1}; block < blocks; block += (Index)gridDim.x * {0}) {{", packed_, threads_);
    } else {
        line("const Index {} = (Index)threadIdx.x;", thread_name);
        line("for (Index block = blockIdx.x; block < blocks; block += gridDim.x) {{");
    }
    ++depth_;
    for (size_t i = 0; i < nest.size(); ++i) {
        const Loop* l = nest[i];
        Index inner = constant(1);
        for (size_t k = i + 1; k < nest.size(); ++k) inner = inner * nest[k]->extent;
        facts_.add_range(l->var, constant(0), l->extent);
        const std::string rest = is_const(inner, 1) ? "block" : fmt::format("block / ({})", writer_.index(inner));
        line("const Index {} = {};", names_.of(l->var), l == nest.front() ? rest : fmt::format("{} % ({})", is_const(inner, 1) ? "block" : "(" + rest + ")", writer_.index(l->extent)));
        for (const Let& x : l->lets) line("const Index {} = {};", names_.of(x.name), writer_.index(x.value)), facts_.define(x.name, x.value);
    }
    if (ranks_ > 1) {
        facts_.add_range(innermost->var, constant(0), innermost->extent);
        for (const Let& x : innermost->lets) line("const Index {} = {};", names_.of(x.name), writer_.index(x.value)), facts_.define(x.name, x.value);
    }
    for (const Decl& d : loop_.allocs)    // not of a copy: their addresses are kept
        if (!d.layout) share(d);
    share(loop_.body);
    for (const Decl& d : innermost->allocs) declare(d);
    body(innermost->body);
    if (shared_bytes_) line("{}", all_barrier());
    --depth_;
    line("}}");
    return total;
}

// ---- shared memory

std::string KernelWriter::share(const std::string& name, std::string_view type, int64_t count, int64_t bytes, int64_t alignment) {
    shared_bytes_ = (shared_bytes_ + alignment - 1) / alignment * alignment;
    shared_text_ += fmt::format("    ACU_SHARED({}, {}, {}, {});\n", type, name, shared_bytes_, count);
    shared_bytes_ += bytes;
    return name;
}

void KernelWriter::share(const Decl& d) {
    buffers_[d.name] = &d;
    int64_t count = 1;
    for (const Window& w : d.dims) count *= std::max<int64_t>(0, analysis::normal(w.size)->value);
    const auto size = static_cast<int64_t>(info(d.type).bytes);
    const int64_t alignment = d.swizzle ? 1024 : 128;
    if (d.swizzle) headers_.insert("elements");
    const int64_t bytes = (count * size + alignment - 1) / alignment * alignment;
    share(names_.buffer(d.name), element_type(d.type), std::max<int64_t>(1, count), std::max<int64_t>(bytes, alignment), alignment);
}

/// Each thread has its own cells: T* const x_t = &x_t_all[thread * stride]
void KernelWriter::share_own(const Decl& d) {
    buffers_[d.name] = &d;
    registers_ += 2;    // its address
    headers_.insert("elements");
    const int64_t stride = lower::own_memory_stride(d), bytes = block_size() * stride * static_cast<int64_t>(info(d.type).bytes);
    const std::string all = names_.fresh(d.name + "_all");
    share(all, element_type(d.type), block_size() * stride, bytes, 128);
    line("{0}* const {1} = &{2}[threadIdx.x * {3}];", element_type(d.type), names_.buffer(d.name), all, stride);
}

void KernelWriter::share(const Body& stmts) {
    for (const Stmt& s : stmts) {
        if (const auto* l = std::get_if<Loop>(&s->node))
            for (const Decl& d : l->allocs)
                if (!d.layout) share(d);
        for (const Body* inner : bodies_of(s)) share(*inner);
    }
}

// ---- threads

void KernelWriter::thread_loop(const Loop& l) {
    if (const Block* b = only_block(l.body); b && lower::is_matrix_product(*b)) return matrix_product(l, *b);
    else if (b && packs_pairs(*b)) return;
    if (stores_by_quads(l)) return;
    const analysis::Facts before = facts_;
    names_.alias(l.var, std::string(thread_name));
    facts_.add_range(l.var, constant(0), l.extent);
    const std::string mine = is_part_of_warp() ? "mine && " : "";
    if (is_const(l.extent, threads_)) line("{}{{", is_part_of_warp() ? "if (mine) " : "");
    else line("if ({}{} < {}) {{", mine, thread_name, writer_.index(l.extent));
    ++depth_;
    for (const Let& x : l.lets) line("const Index {} = {};", names_.of(x.name), writer_.index(x.value)), facts_.define(x.name, x.value);
    const size_t tiles = narrow_tiles_.size();
    for (const Decl& d : l.allocs) declare(d);
    in_threads_ = true;
    body(l.body);
    in_threads_ = false;
    narrow_tiles_.resize(tiles);
    --depth_;
    line("}}");
    facts_ = before;
}

static std::string_view tag_of(Monoid m) {
    switch (m) {
        case Monoid::Sum: return "Sum";
        case Monoid::Prod: return "Prod";
        case Monoid::Max: return "Max";
        case Monoid::Min: return "Min";
        case Monoid::Any: return "Any";
        default: return "All";
    }
}

/// Shared memory for what the warps of a block exchange, one value a warp.
std::string KernelWriter::scratch_of(DType type) {
    const std::string scratch = fmt::format("scratch_{}", name_of(type));
    const auto size = static_cast<int64_t>(info(type).bytes);
    if (shared_text_.find(" " + scratch + ",") == std::string::npos) share(scratch, element_type(type), 32, 32 * size, 128);
    return scratch;
}

/// out op= part[j] over j! in threads: all threads call the microkernel; a result that every thread keeps is combined in each, another by one thread.
void KernelWriter::collective(const Block& b) {
    if (std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Scan; })) return collective_scan(b);
    if (lower::reduces_rows(b)) return joined_rows(b);
    const Decl& to = writer_.decl(b.outs[0].tensor);
    headers_.insert("reduce");
    line("{{");
    ++depth_;
    if (b.monoid == Monoid::TopK) {
        joined_top(b);
        --depth_;
        return line("}}");
    }
    const std::string found = is_pair(b.monoid) ? joined_pair(b) : joined(b);
    std::string guard = to.layout ? "" : fmt::format("{}{} == 0", is_part_of_warp() ? "mine && " : "", thread_name);
    for (const Axis& a : b.axes)
        if (a.kind == AxisKind::Par) names_.alias(a.name, std::string(thread_name));
    for (const Value& g : b.guards)
        if (!is_pair(b.monoid) || &g != &b.guards.back()) guard += fmt::format("{}({})", guard.empty() ? "" : " && ", writer_.value(g));
    if (is_pair(b.monoid)) guard += guard.empty() ? "place >= 0" : " && place >= 0";
    line("{}{}", guard.empty() ? "" : fmt::format("if ({}) ", guard), found);
    --depth_;
    line("}}");
    for (const std::string& tile : narrow_tiles_) line("forget_wider({});", tile);
}

/// row[t, r] op= part[u, r] over t, r, j!: each lane joins what the lanes that share its rows found.
void KernelWriter::joined_rows(const Block& b) {
    const Decl &row = writer_.decl(b.outs[0].tensor), &part = writer_.decl(b.vals[0]->name);
    headers_.insert("reduce"), headers_.insert("rows");
    int64_t mask = 0;
    for (const int64_t bit : replicas(*row.layout, "lane")) mask |= bit;
    const int64_t count = row.layout->size("reg");
    pragma(whole);
    line("for (int r = 0; r < {0}; ++r) {1}[r] = rows_reduce<{2}, {3}>({4}[r]);", count, names_.buffer(row.name), tag_of(b.monoid), mask, names_.buffer(part.name));
}

/// Of a warp or wave, on any target.
static constexpr int64_t most_lanes = 64;

/// r, mine[t] exclusive op= part[t] over t^ in threads: each thread learns what stands before its own chunk; the first one carries the total on.
void KernelWriter::collective_scan(const Block& b) {
    const std::string& part = b.vals[0]->name;
    const Decl &from = writer_.decl(part), &to = writer_.decl(b.outs[0].tensor);
    const std::string state = writer_.element(b.outs[0].tensor, b.outs[0].subscripts), tag(tag_of(b.monoid));
    headers_.insert("reduce"), headers_.insert("scan");
    line("{{");
    ++depth_;
    line("const {} carried = {};", element_type(from.type), widened(to.type) == to.type ? state : fmt::format("widen({})", state));
    line("{} total;", element_type(from.type));
    line("const {} before = block_scan_exclusive<{}>({}, {}, (int){}, {}, total);", element_type(from.type), tag, names_.buffer(part), scratch_of(from.type), thread_name, threads_);
    line("{} = {}::combine(carried, before);", names_.buffer(b.outs[1].tensor), tag);
    if (threads_ <= most_lanes) line("block_barrier();");    // one warp scans without a barrier
    line("if ({} == 0) {} = {};", thread_name, state, writer_.stored(fmt::format("{}::combine(carried, total)", tag), from.type, to.type));
    --depth_;
    line("}}");
}

/// Writes the call; answers the statement that combines its result with the state.
std::string KernelWriter::joined(const Block& b) {
    const std::string& part = b.vals[0]->name;
    const Decl &from = writer_.decl(part), &to = writer_.decl(b.outs[0].tensor);
    std::string call = fmt::format("warp_reduce<{}>({})", tag_of(b.monoid), names_.buffer(part));
    if (b.via == "common.lanes_reduce") headers_.insert("lanes"), call = fmt::format("lanes_reduce<{}, {}>({})", tag_of(b.monoid), threads_, names_.buffer(part));
    if (b.via == "common.cluster_reduce") {
        const std::string slot = fmt::format("slot_{}", name_of(from.type));
        if (shared_text_.find(" " + slot + ",") == std::string::npos) share(slot, element_type(from.type), 1, static_cast<int64_t>(info(from.type).bytes), 128);
        call = fmt::format("cluster_reduce<{0}, {5}>(block_reduce<{0}>({1}, {2}, (int)threadIdx.x, {3}), {4}, (int)threadIdx.x)", tag_of(b.monoid), names_.buffer(part), scratch_of(from.type), block_size(), slot, cluster_);
    }
    if (b.via == "common.block_reduce") call = fmt::format("block_reduce<{}>({}, {}, (int){}, {})", tag_of(b.monoid), names_.buffer(part), scratch_of(from.type), thread_name, threads_);
    line("const {} total = {};", element_type(from.type), call);
    const std::string state = writer_.element(b.outs[0].tensor, b.outs[0].subscripts);
    const bool narrow = widened(to.type) != to.type;
    return narrow ? narrow_combined(b, to.type, state, "total") : combined(b.monoid, to.type, state, writer_.stored("total", from.type, to.type));
}

/// The best of all lanes, each compared with those of the state, which every thread has.
void KernelWriter::joined_top(const Block& b) {
    const std::string values = names_.buffer(b.vals[0]->name), places = names_.buffer(b.vals[1]->name);
    const Decl &from = writer_.decl(b.vals[0]->name), &to = writer_.decl(b.outs[0].tensor);
    headers_.insert("top");
    for (const Axis& a : b.axes)
        if (a.kind == AxisKind::Par) names_.alias(a.name, std::string(thread_name));
    const auto state = [&](const Access& o) {
        std::vector<Index> first = o.subscripts;
        first.push_back(constant(0));
        return writer_.element(o.tensor, first);
    };
    line("warp_reduce_top<{}>({}, {});", b.k, values, places);
    pragma(whole);
    line("for (int j = 0; j < {}; ++j)", b.k);
    line("    if ({}[j] >= 0) keep_top<{}>(&{}, &{}, {}, {}[j]);", places, b.k, state(b.outs[0]), state(b.outs[1]), writer_.stored(values + "[j]", from.type, to.type), places);
}

std::string KernelWriter::joined_pair(const Block& b) {
    const Decl &value = writer_.decl(b.vals[0]->name), &place = writer_.decl(b.vals[1]->name);
    const char* tag = b.monoid == Monoid::ArgMin ? "ArgMin" : "ArgMax";
    line("{} best = {};", element_type(value.type), names_.buffer(value.name));
    line("i64 place = {};", names_.buffer(place.name));
    if (b.via == "common.warp_reduce_pair") line("warp_reduce_pair<{}>(best, place);", tag);
    else line("block_reduce_pair<{}>(best, place, {}, {}, (int){}, {});", tag, scratch_of(value.type), scratch_of(place.type), thread_name, threads_);
    const DType state = writer_.decl(b.outs[0].tensor).type;
    return fmt::format("keep_best<{}>({}, {}, {}, place);", b.monoid == Monoid::ArgMin, writer_.element(b.outs[0].tensor, b.outs[0].subscripts), writer_.element(b.outs[1].tensor, b.outs[1].subscripts),
                       writer_.stored("best", value.type, state));
}

void KernelWriter::sync(const Sync& y) {
    switch (y.op) {
        case SyncOp::Barrier: return line("{}", barrier_);
        case SyncOp::CopyCommit: headers_.insert("async"); return line("copy_async_commit();");
        case SyncOp::CopyWait: headers_.insert("async"); return line("copy_async_wait<{}>();", y.key[0]->value);
        case SyncOp::Fence: headers_.insert("async"); return line("async_fence();");
        case SyncOp::StoreWait: return line("if ({} < 1) tensor_stores_read();", thread_name);
        case SyncOp::Take:
        case SyncOp::Pass: return turn(y);
        default: return ring_sync(y);
    }
}

}  // namespace acu::codegen
