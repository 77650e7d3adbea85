#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

constexpr std::string_view copy_async = "common.copy_async";

/// An access that other threads may see, its subscripts in normal form. `mapping`: which thread runs which point, as text; empty: any.
struct Seen {
    analysis::Touch touch;
    std::string mapping;
    bool async = false;
    bool engine = false;    ///< a read by the copy engine
    bool unit = false;      ///< a read by tensor cores past the registers: they see what threads wrote behind a fence
    int64_t age = 0;    ///< iterations of the innermost loop ago
    std::string text() const {
        std::string s = fmt::format("{} {} {} {} {} {}", touch.tensor, touch.write, async, engine, age, mapping);
        for (const Index& i : touch.subscripts) s += " " + print(i);
        for (const Index& i : touch.version) s += " {" + print(i);
        return s;
    }
};
analysis::Touch normalised(analysis::Touch t) {
    for (std::vector<Index>* all : {&t.subscripts, &t.version})
        for (Index& i : *all) i = analysis::normal(i);
    return t;
}

using Pending = std::map<std::string, Seen>;    ///< by text: since the last barrier

/// Asynchronous copies of a loop, one group an iteration: the copies of iteration i + distance are started in iteration i.
struct Groups {
    std::string loop;
    int64_t distance = 0;
    bool first = true;    ///< the copies stand before their readers
    bool own = true;      ///< each iteration reads what was copied for it, and nothing else
};

class Placement {
  public:
    Placement(const Program& p, const Loop& kernel, int64_t threads, int64_t warp) : warp_(warp), collectives_meet_(threads > warp), between_(rings_between_roles(kernel.body)) {
        collect_decls(kernel.body, decls_);
        for (const Decl& d : kernel.allocs) decls_.insert_or_assign(d.name, d);
        for (const Decl& d : p.decls) decls_.insert_or_assign(d.name, d);
    }

    Body run(const Body& stmts) {
        Pending none;
        Body out = body(stmts, none);
        if (!has_roles(stmts) && any_block(stmts, stores_boxes)) out.push_back(make_stmt({}, Sync{SyncOp::StoreWait}));    // its memory ends with the block, if not sooner
        return out;
    }

  private:
    // ---- what a statement does to memory that threads share

    bool shared(const std::string& buffer) const {
        const auto it = decls_.find(buffer);
        if (it == decls_.end() || between_.contains(buffer)) return false;    // who fills or reads a version waits for it
        if (it->second.layout) return false;    // each thread has its own cells
        const Scope s = it->second.scope;
        return s == Scope::Shared || s == Scope::Cluster || s == Scope::Temp || s == Scope::Out;
    }

    void seen_in(const Stmt& s, const std::string& mapping, std::vector<Seen>& out) const {
        if (const auto* b = std::get_if<Block>(&s->node)) {
            for (analysis::Touch& t : analysis::touches(*b)) {
                if (!shared(t.tensor)) continue;
                const bool async = t.write && b->via == copy_async;
                const bool engine = !t.write && stores_boxes(*b);
                const bool unit = !t.write && runs_by_itself(*b);
                out.push_back({normalised(std::move(t)), is_matrix_product(*b) ? "" : mapping, async, engine, unit});    // a fragment's cells are read by other threads than those of the sums
            }
            return;
        }
        for (const Body* inner : bodies_of(s))
            for (const Stmt& x : *inner) seen_in(x, mapping, out);
    }

    /// The loops over threads and registers around a block, with their names made alike.
    static std::string mapping_of(const Loop& t) {
        std::string s = print(t.extent);
        IndexMap alike{{t.var, ir::name("t")}};
        const Loop* l = &t;
        while (l) {
            if (l != &t) alike.insert_or_assign(l->var, ir::name("r")), s += " " + print(substitute(l->extent, alike));
            for (const Let& x : l->lets) s += fmt::format(" {}={}", x.name, print(substitute(x.value, alike)));
            l = l->body.size() == 1 ? std::get_if<Loop>(&l->body[0]->node) : nullptr;
        }
        return s;
    }

    // ---- conflicts

    /// The same point in both has the same cell and the same thread.
    static bool same_thread(const Seen& a, const Seen& b) {
        if (a.mapping.empty() || a.mapping != b.mapping || !std::ranges::equal(a.touch.subscripts, b.touch.subscripts, [](const Index& x, const Index& y) { return equal(x, y); })) return false;
        std::set<std::string> named;
        for (const Index& i : a.touch.subscripts)
            if (i->op == IndexOp::Name) named.insert(i->name);
        // every let of the mapping, `name=…`, is subscripted as it is, so that a cell has one point
        for (size_t at = a.mapping.find('='); at != std::string::npos; at = a.mapping.find('=', at + 1)) {
            const size_t from = a.mapping.rfind(' ', at) + 1;
            const std::string n = a.mapping.substr(from, at - from);
            const bool start = n.ends_with(".c") || n == "c" || n.find(".c") != std::string::npos;    // of a chunk or a count: its axis is named by itself
            if (!start && !named.contains(n)) return false;
        }
        return true;
    }

    /// Versions of one ring that are never in one slot.
    bool other_slot(const Seen& a, const Seen& b) const {
        const int64_t versions = decls_.at(a.touch.tensor).ring.versions;
        if (versions < 2 || a.touch.version.size() != 1 || b.touch.version.size() != 1) return false;
        const Index d = analysis::normal(a.touch.version[0] - b.touch.version[0]);
        return is_const(d) && d->value % versions != 0;
    }

    /// A copy on its way is not there yet for its own thread either.
    bool conflict(const Seen& a, const Seen& b) const {
        const bool in_order = a.async == b.async && same_thread(a, b);
        return a.touch.tensor == b.touch.tensor && (a.touch.write || b.touch.write) && !in_order && !other_slot(a, b);
    }

    // ---- the walk

    Body body(const Body& stmts, Pending& pending) {
        Body out;
        for (const Stmt& s : stmts) statement(s, pending, out);
        return out;
    }

    void statement(const Stmt& s, Pending& pending, Body& out) {
        const auto* l = std::get_if<Loop>(&s->node);
        if (l && l->kind != LoopKind::Thread) return out.push_back(loop(s, *l, pending));
        if (const auto* i = std::get_if<If>(&s->node)) return condition(s, *i, pending, out);
        if (const auto* r = std::get_if<Roles>(&s->node)) return roles(s, *r, pending, out);
        std::vector<Seen> mine;
        seen_in(s, l ? mapping_of(*l) : "", mine);
        separate(s, mine, pending, out);
        const auto* b = std::get_if<Block>(&s->node);
        if (b && meets_in_block(*b) && collectives_meet_) std::erase_if(pending, [](const auto& x) { return !x.second.engine; });
        for (Seen& x : mine) add(pending, std::move(x));
        out.push_back(s);
    }

    static void add(Pending& pending, Seen x) {
        std::string key = x.text();
        pending.emplace(std::move(key), std::move(x));
    }

    void separate(const Stmt& s, const std::vector<Seen>& mine, Pending& pending, Body& out) const {
        bool any = false, async = false, for_engine = false, by_engine = false;
        for (const Seen& x : mine)
            for (const auto& [key, before] : pending)
                if (conflict(before, x)) any = true, async |= before.async, for_engine |= x.engine || x.unit, by_engine |= before.engine;
        if (!any) return;
        if (for_engine) out.push_back(make_stmt(s->loc, Sync{SyncOp::Fence}));
        if (by_engine) out.push_back(make_stmt(s->loc, Sync{SyncOp::StoreWait}));
        if (async) out.push_back(make_stmt(s->loc, Sync{SyncOp::CopyWait, {}, {constant(in_flight(mine))}}));
        out.push_back(make_stmt(s->loc, Sync{SyncOp::Barrier}));
        const bool some_left = !async || in_flight(mine) > 0;
        Pending still;    // copies that are on their way stay so
        for (auto& [key, x] : pending) {
            const bool on_its_way = x.async && some_left && later(x) && std::ranges::none_of(mine, [&](const Seen& m) { return conflict(x, m); });
            if (on_its_way || (x.engine && !by_engine)) still.emplace(key, std::move(x));
        }
        pending = std::move(still);
    }

    /// Does a copy belong to a later iteration of the loop (or to none that is known)? Earlier ones were waited for when they were read.
    bool later(const Seen& x) const {
        if (groups_.empty() || groups_.back().distance == 0 || x.touch.version.size() != 1) return true;
        const Index d = analysis::normal(x.touch.version[0] - ir::name(groups_.back().loop));
        return !is_const(d) || d->value > 0;
    }

    /// Groups that may still be on their way where `mine` needs its own: those of later iterations.
    int64_t in_flight(const std::vector<Seen>& mine) const {
        if (groups_.empty() || groups_.back().distance == 0) return 0;
        const Groups& g = groups_.back();
        for (const Seen& x : mine)
            if (!x.touch.write && x.touch.version.size() == 1 && decls_.at(x.touch.tensor).ring.versions > 1 && !is_name(x.touch.version[0], g.loop)) return 0;
        return g.first ? g.distance : g.distance - 1;
    }

    Stmt loop(const Stmt& s, const Loop& l, Pending& pending) {
        groups_.push_back(groups_of(l));
        Pending incoming;
        for (auto [key, x] : pending) x.age = -1, add(incoming, std::move(x));    // from before the loop: of no iteration
        Loop n = l;
        for (int round = 0; round < 10; ++round) {    // until one more iteration adds nothing (rings: as many as they have versions)
            Pending end = incoming;
            n.body = body(l.body, end);
            const size_t before = incoming.size();
            for (auto& [key, x] : end)
                if (x.age < 0 || (x.age > 0 && !is_ring(x))) add(incoming, x);    // two iterations ago gives no other answer than one
                else if (!is_const(l.extent) || x.age + 1 < l.extent->value) add(incoming, earlier(x, l));
            if (incoming.size() == before || round == 9) {
                pending.clear();
                for (const Pending* all : {&incoming, &end})
                    for (auto [key, x] : *all) x.age = 0, add(pending, std::move(x));
                break;
            }
        }
        groups_.pop_back();
        return with_node(s, std::move(n));
    }

    bool is_ring(const Seen& x) const {
        const auto it = decls_.find(x.touch.tensor);    // none: a buffer in memory
        return it != decls_.end() && it->second.ring.versions > 1;
    }

    /// The access as the next iteration sees it. Of what is no ring, a cell that moves with the loop is not followed any further: threads are no longer told apart by it.
    Seen earlier(Seen x, const Loop& l) const {
        if (!is_ring(x) && std::ranges::any_of(x.touch.subscripts, [&](const Index& e) { return analysis::mentions(e, l.var); })) {
            x.touch.subscripts.clear(), x.mapping.clear(), ++x.age;
            return x;
        }
        const IndexMap shift{{l.var, ir::name(l.var) - constant(1)}};
        for (Index& e : x.touch.subscripts) e = substitute(e, shift);
        for (Index& e : x.touch.version) e = substitute(e, shift);
        x.touch = normalised(std::move(x.touch));
        ++x.age;
        if (!l.lets.empty() || x.mapping.find(l.var) != std::string::npos) x.mapping.clear();
        return x;
    }

    /// Copies for a later iteration go where the last iteration read: one barrier there also tells that this iteration's copies are there.
    bool starts_copies(const If& i) const {
        if (groups_.empty() || groups_.back().distance == 0 || !groups_.back().first || !groups_.back().own || !i.otherwise.empty()) return false;
        std::vector<Seen> inside;
        for (const Stmt& s : i.body) seen_in(s, "", inside);
        return std::ranges::any_of(inside, [](const Seen& x) { return x.async; }) && std::ranges::all_of(inside, [](const Seen& x) { return x.async || !x.touch.write; });
    }

    void meet_before_copies(const Stmt& s, Pending& pending, Body& out) const {
        out.push_back(make_stmt(s->loc, Sync{SyncOp::CopyWait, {}, {constant(groups_.back().distance - 1)}}));
        out.push_back(make_stmt(s->loc, Sync{SyncOp::Barrier}));
        std::erase_if(pending, [&](const auto& x) { return !x.second.engine && (!x.second.async || x.second.touch.version.size() != 1 || !is_ahead(x.second)); });
    }
    bool is_ahead(const Seen& x) const {
        const Index d = analysis::normal(x.touch.version[0] - ir::name(groups_.back().loop));
        return is_const(d) && d->value > 0;
    }

    void condition(const Stmt& s, const If& i, Pending& pending, Body& out) {
        if (starts_copies(i)) meet_before_copies(s, pending, out);
        std::vector<Seen> mine;
        analysis::for_each_load(i.condition, [&](const Value& v) {
            if (shared(v->name)) mine.push_back({normalised({v->name, v->subscripts, v->version, false}), "", false});
        });
        std::vector<Seen> inside;    // what tensor cores read is fenced once, whether they read it or not
        for (const Body* body : {&i.body, &i.otherwise})
            for (const Stmt& x : *body) seen_in(x, "", inside);
        std::ranges::copy_if(inside, std::back_inserter(mine), &Seen::unit);
        separate(s, mine, pending, out);
        Pending other = pending;
        If n{i.condition, body(i.body, pending), body(i.otherwise, other)};
        for (auto& [key, x] : other) pending.emplace(key, x);
        for (Seen& x : mine) add(pending, std::move(x));
        out.push_back(with_node(s, std::move(n)));
    }

    /// All threads of the block meet before and after the roles; those of a role meet among themselves.
    void roles(const Stmt& s, const Roles& r, Pending& pending, Body& out) const {
        if (std::ranges::any_of(pending, [](const auto& x) { return x.second.async; })) out.push_back(make_stmt(s->loc, Sync{SyncOp::CopyWait, {}, {constant(0)}}));
        Roles n = r;
        for (Role& role : n.roles) {
            Placement inside = *this;
            inside.collectives_meet_ = role.threads > warp_;
            inside.groups_.clear();
            role.body = inside.run(role.body);
        }
        pending.clear();
        out.push_back(with_node(s, std::move(n)));
    }

    // ---- groups of copies

    /// One commit an iteration at most, and all its copies the same distance ahead: then waits can leave later groups on their way.
    Groups groups_of(const Loop& l) const {
        Groups g{l.var, 0, true};
        int commits = 0;
        bool read_before = false, regular = true;
        for (const Stmt& s : l.body) {
            if (const auto* y = std::get_if<Sync>(&s->node); y && y->op == SyncOp::CopyCommit) ++commits;
            std::vector<Seen> mine;
            seen_in(s, "", mine);
            for (const Seen& x : mine) {
                if (!x.async) {
                    read_before |= commits == 0 && !x.touch.version.empty();
                    g.own &= x.touch.version.empty() || is_name(x.touch.version[0], l.var);
                    continue;
                }
                const Index d = x.touch.version.size() == 1 ? analysis::normal(x.touch.version[0] - ir::name(l.var)) : nullptr;
                regular &= d && is_const(d) && d->value > 0 && (g.distance == 0 || g.distance == d->value);
                if (d && is_const(d)) g.distance = d->value;
            }
        }
        if (commits != 1 || !regular) g.distance = 0;
        g.first = !read_before;
        return g;
    }

    int64_t warp_;
    bool collectives_meet_;
    std::set<std::string> between_;    ///< rings between roles
    Decls decls_;
    std::vector<Groups> groups_;
};

// ---- groups of asynchronous copies, before barriers are placed

/// Where all or some blocks are copies whose threads wait for them: who reads a ring between roles waits for its version.
class Grouping {
  public:
    explicit Grouping(const Body& kernel) : between_(rings_between_roles(kernel)) {}
    Body groups(const Body& stmts) const;

  private:
    bool is_async(const Block& b) const { return b.via == copy_async && !between_.contains(b.outs[0].tensor); }
    bool only_async(const Stmt& s) const {
        bool any = false, all = true;
        for_each_block({s}, [&](const Block& b, Loc) { (is_async(b) ? any : all) = is_async(b); });
        return any && all;
    }
    bool has_async(const Stmt& s) const {
        bool any = false;
        for_each_block({s}, [&](const Block& b, Loc) { any |= is_async(b); });
        return any;
    }

    /// How many iterations before they are read the loop of that name starts its copies.
    std::optional<int64_t> distance_of(const Body& stmts, const std::string& loop) const {
        std::optional<int64_t> out;
        for (const Stmt& s : stmts) {
            const auto* l = std::get_if<Loop>(&s->node);
            if (!l || l->var != loop) continue;
            for_each_block(l->body, [&](const Block& b, Loc) {
                const auto& version = b.outs[0].version;
                const Index d = is_async(b) && version.size() == 1 ? analysis::normal(version[0] - ir::name(loop)) : nullptr;
                if (d && is_const(d)) out = d->value;
            });
        }
        return out;
    }

    std::set<std::string> between_;
};

Stmt commit(Loc loc) { return make_stmt(loc, Sync{SyncOp::CopyCommit}); }

/// A commit behind each run of copies; so that groups can be counted, the loop that starts the first d copies of a pipeline makes d groups whatever its trips are.
Body Grouping::groups(const Body& stmts) const {
    const auto with_groups = [&](const Body& b) { return groups(b); };
    Body out;
    bool open = false;
    for (const Stmt& s : stmts) {
        const auto* l = std::get_if<Loop>(&s->node);
        const bool serial = l && l->kind != LoopKind::Thread && has_async(s);
        if (open && (serial || !only_async(s))) out.push_back(commit(s->loc)), open = false;
        if (serial) {
            out.push_back(map_bodies(s, with_groups));
            if (const auto distance = l->var.ends_with(".pre") ? distance_of(stmts, l->var.substr(0, l->var.size() - 4)) : std::nullopt) {
                Loop pad;
                pad.var = l->var + ".none";
                pad.extent = analysis::normal(constant(*distance) - l->extent);
                pad.body = {commit(s->loc)};
                if (!is_const(pad.extent) || pad.extent->value > 0) out.push_back(make_stmt(s->loc, std::move(pad)));
            }
            continue;
        }
        out.push_back(only_async(s) || std::holds_alternative<Block>(s->node) || (l && l->kind == LoopKind::Thread) ? s : map_bodies(s, with_groups));
        open |= only_async(s);
    }
    if (open) out.push_back(commit(stmts.back()->loc));
    return out;
}

}  // namespace

Result<Program> place_barriers(const Program& p, const Target& target) {
    Program out = p;
    for (Stmt& s : out.body) {
        const auto* l = std::get_if<Loop>(&s->node);
        if (!l || !l->threads) continue;
        s = with_node(s, map_block_body(*l, [&](const Loop& inner) {
            Loop n = inner;
            n.body = Placement(p, inner, l->threads, target.warp).run(Grouping(inner.body).groups(inner.body));
            return n;
        }));
    }
    return out;
}

}  // namespace acu::ir::lower
