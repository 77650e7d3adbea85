#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/lower/items.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

/// The name of the only key of a ring between roles, once its versions are numbered.
constexpr std::string_view item = "item";

/// x.t{k}[m, k], a ring of s versions by k.o   ->   x.t[k%s, m - origin(k), …]: the version becomes a first dimension, and windows start at 0. A ring between roles stays
/// one whose versions have numbers: x.t{n}[m - origin(k), …].
class Slots {
  public:
    Slots(const Body& kernel, const Items& items) : items_(items) { collect_decls(kernel, decls_); }

    Stmt statement(const Stmt& s) const {
        if (const auto* b = std::get_if<Block>(&s->node)) return with_node(s, block(*b));
        if (const auto* y = std::get_if<Sync>(&s->node)) return y->op <= SyncOp::Release ? with_node(s, Sync{y->op, y->name, {items_.number(y->name, y->key)}}) : s;
        const auto* here = std::get_if<Loop>(&s->node);
        const Slots below = here ? inside(*here) : *this;
        const Stmt inner = map_bodies(s, [&](const Body& body) {
            Body out;
            for (const Stmt& x : body) out.push_back(below.statement(x));
            return out;
        });
        const auto* l = std::get_if<Loop>(&inner->node);
        if (!l || l->allocs.empty()) return inner;
        Loop n = *l;
        for (Decl& d : n.allocs) d = plain(std::move(d));
        return with_node(inner, std::move(n));
    }

  private:
    Slots inside(const Loop& l) const {
        Slots out = *this;
        for (const Let& x : l.lets) out.lets_.insert_or_assign(x.name, substitute(x.value, out.lets_));
        return out;
    }

    /// subscript - origin; in words of the threads alone where the tile's own place falls out.
    Index in_window(const Index& subscript, const Index& origin) const {
        const Index from = substitute(origin, lets_), place = analysis::normal(substitute(subscript, lets_) - from);
        return analysis::meet(analysis::names_in(place), analysis::names_in(from)) ? analysis::normal(subscript - origin) : place;
    }

    Decl plain(Decl d) const {
        if (!d.ring.versions) return d;
        for (Window& w : d.dims) w.origin = constant(0);
        if (items_.has(d.name)) {
            d.ring.keys = {std::string(item)};
            return d;
        }
        if (d.ring.versions > 1) d.dims.insert(d.dims.begin(), {constant(0), constant(d.ring.versions)});
        d.ring = {};
        return d;
    }

    const Decl* ring(const std::string& buffer) const {
        const auto it = decls_.find(buffer);
        return it != decls_.end() && it->second.ring.versions ? &it->second : nullptr;
    }

    struct Place {
        std::vector<Index> subscripts, version;
    };
    Place at(const Decl& d, const std::vector<Index>& version, std::vector<Index> subscripts) const {
        IndexMap key;
        for (size_t i = 0; i < version.size(); ++i) key.emplace(d.ring.keys[i], version[i]);
        for (size_t i = 0; i < subscripts.size(); ++i) subscripts[i] = in_window(subscripts[i], substitute(d.dims[i].origin, key));
        if (items_.has(d.name)) return {subscripts, {items_.number(d.name, version)}};
        if (d.ring.versions > 1) subscripts.insert(subscripts.begin(), mod(analysis::normal(version[0]), constant(d.ring.versions)));
        return {subscripts, {}};
    }

    Block block(Block b) const {
        for (Access& o : b.outs)
            if (const Decl* d = ring(o.tensor)) {
                Place now = at(*d, o.version, o.subscripts);
                o.subscripts = std::move(now.subscripts), o.version = std::move(now.version);
            }
        const auto load = [&](const Value& v) { return value(v); };
        for (Value& v : b.vals) v = load(v);
        for (Value& v : b.guards) v = load(v);
        return b;
    }
    Value value(const Value& v) const {
        return replace(v, [&](const Value& x) -> Value {
            const Decl* d = x->op == Op::Load ? ring(x->name) : nullptr;
            if (!d) return nullptr;
            const Place now = at(*d, x->version, x->subscripts);
            Value plain_load = with_version(with_source(x, x->name, now.subscripts), now.version);
            return x->args.empty() ? plain_load : with_default(plain_load, value(x->args[0]));
        });
    }

    Decls decls_;
    const Items& items_;
    IndexMap lets_;    ///< derived names of the loops around, in words of their variables
};

/// x.t{n}[…]   ->   x.t[n%s, …]
class RingSlots {
  public:
    explicit RingSlots(const Loop& kernel) { collect_decls({make_stmt({}, kernel)}, decls_); }

    Stmt statement(const Stmt& s) const {
        if (const auto* b = std::get_if<Block>(&s->node)) return with_node(s, block(*b));
        const Stmt inner = map_bodies(s, [&](const Body& body) {
            Body out;
            for (const Stmt& x : body) out.push_back(statement(x));
            return out;
        });
        const auto* l = std::get_if<Loop>(&inner->node);
        return l ? with_node(inner, loop(*l)) : inner;
    }
    static Loop loop(Loop l) {
        for (Decl& d : l.allocs)
            if (d.ring.versions) d.dims.insert(d.dims.begin(), {constant(0), constant(d.ring.versions)});
        return l;
    }

  private:
    std::vector<Index> slot(const std::string& ring, const std::vector<Index>& version, std::vector<Index> subscripts) const {
        subscripts.insert(subscripts.begin(), analysis::normal(mod(version[0], constant(decls_.at(ring).ring.versions))));
        return subscripts;
    }
    Block block(Block b) const {
        for (Access& o : b.outs)
            if (!o.version.empty()) o.subscripts = slot(o.tensor, o.version, o.subscripts), o.version.clear();
        for (Value& v : b.vals) v = value(v);
        for (Value& v : b.guards) v = value(v);
        return b;
    }
    Value value(const Value& v) const {
        return replace(v, [&](const Value& x) -> Value {
            if (x->op != Op::Load || x->version.empty()) return nullptr;
            const Value plain_load = with_version(with_source(x, x->name, slot(x->name, x->version, x->subscripts)), {});
            return x->args.empty() ? plain_load : with_default(plain_load, value(x->args[0]));
        });
    }

    Decls decls_;
};

}  // namespace

Result<Program> place_slots(const Program& p, const Target&) {
    Program out = p;
    for (Stmt& s : out.body) {
        const auto* l = std::get_if<Loop>(&s->node);
        if (!l || !l->threads) continue;
        const auto items = Items::of(*l);
        if (!items) return items.why();
        s = Slots({s}, *items).statement(s);
    }
    return out;
}

Stmt with_ring_slots(const Stmt& kernel) {
    const auto* l = std::get_if<Loop>(&kernel->node);
    return l && !rings_between_roles(l->body).empty() ? RingSlots(*l).statement(kernel) : kernel;
}

// ---- resources

std::optional<int64_t> bytes_on_chip(const Decl& d) {
    const auto sizes = constant_sizes(d.dims);
    if (!sizes) return {};
    int64_t bytes = static_cast<int64_t>(info(d.type).bytes) * std::max<int64_t>(1, d.ring.versions);
    for (const int64_t x : *sizes) bytes *= x;
    const auto whole = [](int64_t n) { return (n + 127) / 128 * 128; };
    return whole(bytes) + (d.ring.versions ? 2 * whole(8 * d.ring.versions) : 0);
}

static bool has_shared_memory(const Loop& kernel) {
    Decls decls;
    collect_decls({make_stmt({}, kernel)}, decls);
    return std::ranges::any_of(decls, [](const auto& d) { return !d.second.layout && d.second.scope != Scope::Temp; });
}

/// The blocks of a cluster share nothing here but what `common.cluster_reduce` joins.
static Status fits_cluster(const Loop& kernel, const Target& target) {
    const int64_t blocks = cluster_of(kernel);
    const auto wrong = [&](const std::string& why) {
        return Diagnostic{"lower.threads", {}, fmt::format("the {} threads of `{}` are {} blocks, but {}", kernel.threads, kernel.var, blocks, why), {}, "say fewer with `vectorize(…, threads = 256)`"};
    };
    if (blocks > target.most_cluster) return wrong(target.most_cluster == 1 ? fmt::format("{} has no clusters of blocks", target.name) : fmt::format("a cluster of {} has at most {}", target.name, target.most_cluster));
    if (kernel.threads % (blocks * target.warp)) return wrong(fmt::format("none of whole warps of {}", target.warp));
    if (has_shared_memory(kernel)) return wrong("what they share is not in registers");
    Decls decls;
    collect_decls({make_stmt({}, kernel)}, decls);
    int64_t bytes = 512;    // for what they join
    for (const auto& [n, d] : decls)
        if (d.scope == Scope::Shared) bytes += kernel.threads / blocks * own_memory_stride(d) * static_cast<int64_t>(info(d.type).bytes);
    if (bytes > target.shared_bytes) return wrong(fmt::format("each needs {} bytes of shared memory, and {} has {}", bytes, target.name, target.shared_bytes));
    const bool meets = any_inside(kernel.body, [](const Stmt& s) {
        const auto* b = std::get_if<Block>(&s->node);
        return (b && !b->via.empty() && b->via != "common.cluster_reduce") || std::holds_alternative<Roles>(s->node) || std::holds_alternative<Sync>(s->node);
    });
    return meets ? Status(wrong("they meet in other ways than by `common.cluster_reduce`")) : ok();
}

/// Blocks that are a part of a warp run in step with those beside them: what lanes do together must not depend on the block, and nothing is in shared memory.
static Status fits_lanes(const Loop& kernel, const Target& target) {
    std::set<std::string> own;
    for (const Loop* l : nest_of(kernel)) {
        own.insert(l->var);
        for (const Let& x : l->lets) own.insert(x.name);
    }
    const bool shares = has_shared_memory(kernel);
    const bool apart = any_inside(kernel.body, [&](const Stmt& s) {
        const auto* l = std::get_if<Loop>(&s->node);
        const auto* b = std::get_if<Block>(&s->node);
        const bool varies = l && (analysis::meet(analysis::names_in(l->extent), own) || mentions_load(l->extent));
        const bool conditional = std::holds_alternative<If>(s->node) || std::holds_alternative<Roles>(s->node);
        const auto meets = [](const Stmt& x) { const auto* y = std::get_if<Block>(&x->node); return y && !y->via.empty(); };
        return ((varies && l->kind != LoopKind::Grid) || conditional ? any_inside(Body{s}, meets) : false) || (b && !b->via.empty() && b->via != "common.lanes_reduce");
    });
    if (!shares && !apart && target.warp % kernel.threads == 0) return ok();
    return Diagnostic{"lower.threads", {}, fmt::format("the {} threads of the block of `{}` are a part of a warp of {}, but it {}", kernel.threads, kernel.var, target.warp, shares ? "has shared memory" : "meets in other ways than by `common.lanes_reduce`"), {},
                      "give it whole warps with `vectorize(…, threads = 64)`"};
}

/// The copy engine says on the barrier of a ring that a box is there.
static Status boxes_fill_rings(const Loop& kernel) {
    const std::set<std::string> rings = rings_between_roles(kernel.body);
    const Block* alone = nullptr;
    for_each_block(kernel.body, [&](const Block& b, Loc) {
        if (brings_boxes(b) && !rings.contains(b.outs[0].tensor)) alone = &b;
    });
    if (!alone) return ok();
    return Diagnostic{"lower.roles", {}, fmt::format("`{}` is bound to `{}`, but no role waits for what the copy engine brings", alone->label, alone->via), {}, "give the copies to a role of their own (warp_specialize), or bind common.copy_async"};
}

static Status fits(const Loop& kernel, const Target& target) {
    if (const Status boxes = boxes_fill_rings(kernel); !boxes) return boxes;
    if (kernel.threads > 1 && kernel.threads < target.warp) return fits_lanes(kernel, target);
    if (cluster_of(kernel) > 1) return fits_cluster(kernel, target);
    if (kernel.threads % target.warp)
        return Diagnostic{"lower.threads", {}, fmt::format("the block of `{}` has {} threads: {} wants a multiple of {}, at most 1024", kernel.var, kernel.threads, target.name, target.warp), {}, "say so with `vectorize(…, threads = 256)`"};
    Decls decls;
    collect_decls({make_stmt({}, kernel)}, decls);
    int64_t bytes = 0;
    for (const auto& [n, d] : decls) {
        if (d.scope == Scope::Register && d.layout) continue;
        if (d.scope == Scope::Temp) continue;
        const auto mine = bytes_on_chip(d);
        if (!mine)
            return Diagnostic{"lower.window", d.loc, fmt::format("`{}` would hold `{}` on the chip, but the size of its window is no constant: {}", kernel.var, n, print(make_stmt({}, Loop{kernel.var, kernel.extent, {}, {}, {}, {d}, {}, 0}))), {},
                              "fix the dimension with --set, or tile it first"};
        bytes += *mine;
    }
    if (bytes > target.shared_bytes)
        return Diagnostic{"lower.shared", {}, fmt::format("the block of `{}` needs {} bytes of shared memory, but {} has {}", kernel.var, bytes, target.name, target.shared_bytes), {}, "use smaller tiles or fewer stages"};
    return ok();
}

Result<Program> check_resources(const Program& p, const Target& target) {
    for (const Stmt& s : p.body)
        if (const auto* l = std::get_if<Loop>(&s->node); l && l->threads)
            if (const Status fit = fits(*l, target); !fit) return fit.why();
    return p;
}

}  // namespace acu::ir::lower
