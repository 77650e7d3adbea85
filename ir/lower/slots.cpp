#include <fmt/format.h>

#include "ir/analysis/affine.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

/// x.t{k}[m, k], a ring of s versions by k.o   ->   x.t[k%s, m - origin(k), …]: the version becomes a first dimension, and windows start at 0.
class Slots {
  public:
    explicit Slots(const Body& kernel) { collect_decls(kernel, decls_); }

    Stmt statement(const Stmt& s) const {
        if (const auto* b = std::get_if<Block>(&s->node)) return with_node(s, block(*b));
        const Stmt inner = map_bodies(s, [&](const Body& body) {
            Body out;
            for (const Stmt& x : body) out.push_back(statement(x));
            return out;
        });
        const auto* l = std::get_if<Loop>(&inner->node);
        if (!l || l->allocs.empty()) return inner;
        Loop n = *l;
        for (Decl& d : n.allocs) d = plain(std::move(d));
        return with_node(inner, std::move(n));
    }

    static Decl plain(Decl d) {
        if (!d.ring.versions) return d;
        for (Window& w : d.dims) w.origin = constant(0);
        if (d.ring.versions > 1) d.dims.insert(d.dims.begin(), {constant(0), constant(d.ring.versions)});
        d.ring = {};
        return d;
    }

  private:
    const Decl* ring(const std::string& buffer) const {
        const auto it = decls_.find(buffer);
        return it != decls_.end() && it->second.ring.versions ? &it->second : nullptr;
    }

    std::vector<Index> at(const Decl& d, const std::vector<Index>& version, std::vector<Index> subscripts) const {
        IndexMap key;
        for (size_t i = 0; i < version.size(); ++i) key.emplace(d.ring.keys[i], version[i]);
        for (size_t i = 0; i < subscripts.size(); ++i) subscripts[i] = analysis::normal(subscripts[i] - substitute(d.dims[i].origin, key));
        if (d.ring.versions > 1) subscripts.insert(subscripts.begin(), mod(analysis::normal(version[0]), constant(d.ring.versions)));
        return subscripts;
    }

    Block block(Block b) const {
        for (Access& o : b.outs)
            if (const Decl* d = ring(o.tensor)) o.subscripts = at(*d, o.version, o.subscripts), o.version.clear();
        const auto load = [&](const Value& v) { return value(v); };
        for (Value& v : b.vals) v = load(v);
        for (Value& v : b.guards) v = load(v);
        return b;
    }
    Value value(const Value& v) const {
        return replace(v, [&](const Value& x) -> Value {
            const Decl* d = x->op == Op::Load ? ring(x->name) : nullptr;
            if (!d) return nullptr;
            Value plain_load = with_version(with_source(x, x->name, at(*d, x->version, x->subscripts)), {});
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
        if (l && l->threads) s = Slots({s}).statement(s);
    }
    return out;
}

// ---- resources

static Status fits(const Loop& kernel, const Target& target) {
    if (kernel.threads % target.warp || kernel.threads > 1024)
        return Diagnostic{"lower.threads", {}, fmt::format("the block of `{}` has {} threads: {} wants a multiple of {}, at most 1024", kernel.var, kernel.threads, target.name, target.warp), {}, "say so with `vectorize(…, threads = 256)`"};
    Decls decls;
    collect_decls({make_stmt({}, kernel)}, decls);
    int64_t bytes = 0;
    for (const auto& [n, d] : decls) {
        if (d.scope == Scope::Register && d.layout) continue;
        if (d.scope == Scope::Temp) continue;
        const auto sizes = constant_sizes(d.dims);
        if (!sizes)
            return Diagnostic{"lower.window", d.loc, fmt::format("`{}` would hold `{}` on the chip, but the size of its window is no constant: {}", kernel.var, n, print(make_stmt({}, Loop{kernel.var, kernel.extent, {}, {}, {}, {d}, {}, 0}))), {},
                              "fix the dimension with --set, or tile it first"};
        int64_t mine = static_cast<int64_t>(info(d.type).bytes);
        for (const int64_t x : *sizes) mine *= x;
        bytes += (mine + 127) / 128 * 128;
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
