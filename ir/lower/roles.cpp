#include <fmt/format.h>

#include <algorithm>

#include "ir/lower/items.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

/// Threads of a role that reads, where neither it nor the plan says how many.
constexpr int64_t default_role_threads = 128;
/// Threads that issue wgmma together: their first number is a multiple of that.
constexpr int64_t warpgroup = 128;
/// How many registers a warpgroup can have: PTX ISA, "setmaxnreg".
constexpr int64_t register_step = 8, most_registers = 232, of_copies = 40;
/// Barrier 0 is that of the block.
constexpr size_t most_roles = 15;

/// Those that may be bound inside a role are of a warp.
bool joins_warp(const Block& b) { return is_collective(b) && !reduces_rows(b); }
bool has_collective(const Body& body) { return any_block(body, joins_warp); }

std::set<std::string> declared(const Body& body) {
    Decls all;
    collect_decls(body, all);
    std::set<std::string> out;
    for (const auto& [n, d] : all) out.insert(n);
    return out;
}

/// roles { role producer { … } role consumer { … } }   ->   roles { role producer threads(32) { … } role consumer threads(128) { … } }: whole warps, one after another,
/// with buffers of their own names.
class Split {
  public:
    Split(const Loop& kernel, const Target& target) : target_(target), kernel_(kernel), warp_(target.warp), planned_(kernel.threads ? kernel.threads : default_role_threads) {
        outside(kernel.body);
        for (const Decl& d : kernel.allocs) taken_.insert(d.name);
    }

    Result<Loop> run(const Loop& kernel, const Items& items) {
        Loop n = kernel;
        n.body = body(kernel.body, items);
        n.threads = threads_;
        if (why_) return *why_;
        return n;
    }

  private:
    void check(bool holds, Loc loc, const std::string& message, const std::string& help = {}) {
        if (!holds && !why_) why_ = Diagnostic{"lower.roles", loc, message, {}, help};
    }

    /// Names of buffers that do not belong to a role.
    void outside(const Body& stmts) {
        for (const Stmt& s : stmts) {
            if (std::holds_alternative<Roles>(s->node)) continue;
            if (const auto* l = std::get_if<Loop>(&s->node))
                for (const Decl& d : l->allocs) taken_.insert(d.name);
            for (const Body* inner : bodies_of(s)) outside(*inner);
        }
    }

    Body body(const Body& stmts, const Items& items) {
        Body out;
        for (const Stmt& s : stmts) {
            const auto* r = std::get_if<Roles>(&s->node);
            out.push_back(r ? with_node(s, roles(*r, items, s->loc)) : map_bodies(s, [&](const Body& b) { return body(b, items); }));
        }
        return out;
    }

    Roles roles(const Roles& r, const Items& items, Loc loc) {
        Roles n = r;
        int64_t sum = 0;
        for (Role& role : n.roles) {
            if (!role.threads) role.threads = has_sync(role.body, SyncOp::Acquire) || has_collective(role.body) ? warp_ : planned_;
            check(role.threads % warp_ == 0, loc, fmt::format("the {} threads of the role `{}` are no whole warps of {}", role.threads, role.name, warp_));
            alone(role);
            role.body = items.numbered_turns(own_names(role.body));
        }
        pass_registers(n);
        for (const Role& role : n.roles) sum += threads_taken(role);
        std::ranges::stable_partition(n.roles, [](const Role& x) { return x.threads % warpgroup == 0; });
        check(n.roles.size() <= most_roles, loc, fmt::format("{} roles are more than the {} barriers that a block has for them", n.roles.size(), most_roles));
        for (const SyncOp op : {SyncOp::Release, SyncOp::Pass}) alike(n, op, loc);
        threads_ = std::max(threads_, sum);
        return n;
    }

    int64_t ring_bytes() const {
        Decls decls;
        collect_decls({make_stmt({}, kernel_)}, decls);
        int64_t bytes = 0;
        for (const auto& [n, d] : decls) bytes += d.scope == Scope::Shared ? bytes_on_chip(d).value_or(0) : 0;
        return bytes;
    }

    /// A block that fills its multiprocessor: the role that copies leaves most of its registers to those that multiply.
    void pass_registers(Roles& n) const {
        if (!target_.passes_registers || 2 * ring_bytes() <= target_.shared_bytes) return;
        const auto multiplies = [](const Role& r) { return r.threads % warpgroup == 0 && any_block(r.body, is_matrix_product); };
        const auto copies = [](const Role& r) { return r.threads <= warpgroup && has_sync(r.body, SyncOp::Acquire); };
        int64_t groups = 0;
        for (const Role& r : n.roles) groups += multiplies(r) ? r.threads / warpgroup : 0;
        if (groups < 2 || static_cast<int64_t>(n.roles.size()) != std::ranges::count_if(n.roles, multiplies) + 1 || std::ranges::count_if(n.roles, copies) != 1) return;
        const auto in_steps = [](int64_t r) { return r / register_step * register_step; };
        const int64_t each = in_steps(register_file / (warpgroup * (groups + 1)));
        for (Role& r : n.roles) r.registers = copies(r) ? of_copies : std::min(most_registers, in_steps((each * (groups + 1) - of_copies) / groups));
    }

    /// Every arrival of a phase is counted before it comes, whoever comes.
    void alike(const Roles& r, SyncOp op, Loc loc) {
        std::map<std::string, const Role*> first;
        for (const Role& role : r.roles)
            any_inside(role.body, [&](const Stmt& s) {
                const auto* y = std::get_if<Sync>(&s->node);
                if (!y || y->op != op) return false;
                const Role& other = *first.emplace(y->name, &role).first->second;
                check(other.threads == role.threads, loc, fmt::format("`{}` has {} threads and `{}` has {}, but both {} `{}`", other.name, other.threads, role.name, role.threads, name_of(op), y->name), "give them the same number");
                return false;
            });
    }

    void alone(const Role& role) {
        for_each_block(role.body, [&](const Block& b, Loc at) {
            check(!joins_warp(b) || role.threads == warp_, at, fmt::format("`{}` is bound to `{}`, but the role `{}` is not one warp", b.label, b.via, role.name), "leave out bind_reduce, or give the role one warp");
        });
    }

    Body own_names(const Body& stmts) {
        std::map<std::string, std::string> names;
        for (const std::string& n : declared(stmts))
            if (!taken_.insert(n).second) names.emplace(n, fresh(n));
        if (names.empty()) return stmts;
        Body out;
        for (const Stmt& s : stmts) out.push_back(rename_buffers(s, names));
        return out;
    }
    std::string fresh(const std::string& stem) {
        for (int i = 2;; ++i)
            if (const std::string s = fmt::format("{}.{}", stem, i); taken_.insert(s).second) return s;
    }

    const Target& target_;
    const Loop& kernel_;
    int64_t warp_, planned_, threads_ = 0;
    std::set<std::string> taken_;    ///< names of buffers of the kernel
    std::optional<Diagnostic> why_;
};

}  // namespace

Result<Program> split_roles(const Program& p, const Target& target) {
    Program out = p;
    for (Stmt& s : out.body) {
        if (!has_roles({s})) continue;
        const auto* l = std::get_if<Loop>(&s->node);
        if (!l) return Diagnostic{"lower.roles", s->loc, "roles stand in no loop", {}, "bind a loop around them to grid"};
        if (!target.mbarrier)
            return Diagnostic{"lower.roles", s->loc, fmt::format("{} has no barriers in shared memory by which roles could wait for each other", target.name), {}, "leave out warp_specialize: pipeline starts copies ahead in one role"};
        const auto items = Items::of(*l);
        if (!items) return items.why();
        const auto now = Split(*l, target).run(*l, *items);
        if (!now) return now.why();
        s = with_node(s, *now);
    }
    return out;
}

int64_t threads_taken(const Role& r) { return r.registers ? (r.threads + warpgroup - 1) / warpgroup * warpgroup : r.threads; }

std::map<std::string, int64_t> threads_of_tiles(const Loop& kernel) {
    std::map<std::string, int64_t> out;
    std::map<std::string, const Role*> seen;
    const std::function<void(const Body&, const Role*, int64_t)> walk = [&](const Body& body, const Role* role, int64_t threads) {
        for (const Stmt& s : body) {
            if (const auto* r = std::get_if<Roles>(&s->node)) {
                for (const Role& x : r->roles) walk(x.body, &x, x.threads);
                continue;
            }
            for (const Body* inner : bodies_of(s)) walk(*inner, role, threads);
            const auto* b = std::get_if<Block>(&s->node);
            if (!b) continue;
            std::set<std::string> touched = tensors_read(*b);
            for (const Access& o : b->outs) touched.insert(o.tensor);
            for (const std::string& t : touched)
                if (const auto [it, first] = seen.emplace(t, role); first) out[t] = threads;
                else if (it->second != role) out[t] = 0;
        }
    };
    walk(kernel.body, nullptr, threads_of(kernel));
    Decls all;
    collect_decls({make_stmt({}, kernel)}, all);
    for (const auto& [n, d] : all) out.emplace(n, threads_of(kernel));
    return out;
}

}  // namespace acu::ir::lower
