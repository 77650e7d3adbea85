#include "ir/lower/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/lower/items.h"
#include "ir/lower/spread.h"

namespace acu::ir::lower {
namespace {

/// `Settle`: all products that were on their way are done.
struct Event {
    enum Kind { Acquire, Commit, Wait, Release, Take, Pass, Write, Read, Settle } kind;
    std::string ring = {};
    int64_t number = 0;      ///< of the version
    int64_t pending = -1;    ///< of a read by a product: so many such groups may be on their way behind it; -1: done at once
    Loc loc = {};

    std::string text() const {
        static constexpr const char* words[] = {"acquire", "commit", "wait", "release", "take", "pass", "write", "read", "settle"};
        return kind >= Settle ? words[kind] : kind == Take || kind == Pass ? fmt::format("{} {}", words[kind], ring) : fmt::format("{} {}{{{}}}", words[kind], ring, number);
    }
};
using Events = std::vector<Event>;

struct Fault {
    std::string code, message, role;
    Loc loc;
};

/// What one role, or a block without roles, does to rings, in order, at some sizes.
class Recorder {
  public:
    Recorder(const Decls& decls, const Items* items, Env env) : decls_(decls), items_(items), env_(std::move(env)) {}

    Events events;
    bool unknown = false;    ///< the data decide what runs, or there is too much of it

    /// `f` sees the roles with the names that are known there.
    void body(const Body& stmts, const std::function<void(const Roles&, const Env&)>& f) {
        for (const Stmt& s : stmts) {
            if (unknown) return;
            if (const auto* b = std::get_if<Block>(&s->node)) block(*b, s->loc);
            if (const auto* y = std::get_if<Sync>(&s->node)) sync(*y, s->loc);
            if (const auto* l = std::get_if<Loop>(&s->node)) loop(*l, f);
            if (const auto* r = std::get_if<Roles>(&s->node)) f(*r, env_);
            if (const auto* i = std::get_if<If>(&s->node)) branch(*i, f);
        }
    }

  private:
    static constexpr int64_t most_trips = 64, most_events = 20000;

    bool touches_rings(const Body& stmts) const {
        bool any = false;
        for_each_block(stmts, [&](const Block& b, Loc) {
            for (const analysis::Touch& t : analysis::touches(b)) any |= !t.version.empty();
        });
        return any || std::ranges::any_of(stmts, [](const Stmt& s) { return std::holds_alternative<Sync>(s->node); });
    }

    void branch(const If& i, const std::function<void(const Roles&, const Env&)>& f) {
        const auto c = holds(i.condition);
        if (c) body(*c ? i.body : i.otherwise, f);
        else unknown |= touches_rings(i.body) || touches_rings(i.otherwise);
    }

    int64_t index(const Index& e) {
        const Index known = without_loads(e);
        if (mentions_load(known)) return unknown = true, 0;
        return evaluate(known, env_);
    }

    void loop(const Loop& l, const std::function<void(const Roles&, const Env&)>& f) {
        const Env before = env_;
        const int64_t extent = index(l.extent), trips = is_parallel(l.kind) ? std::min<int64_t>(extent, 1) : extent;
        unknown |= trips > most_trips || events.size() > most_events;
        for (int64_t i = 0; i < trips && !unknown; ++i) {
            env_[l.var] = i;
            for (const Let& x : l.lets)
                if (!mentions_load(x.value)) env_[x.name] = evaluate(x.value, env_);
            body(l.body, f);
        }
        if (pending_ && !is_parallel(l.kind)) events.push_back({Event::Settle}), pending_ = false;    // who uses the sums waits for them
        env_ = before;
    }

    std::optional<bool> holds(const Value& v) {
        switch (v->op) {
            case Op::Not:
                if (const auto a = holds(v->args[0])) return !*a;
                return {};
            case Op::And:
            case Op::Or: {
                const auto a = holds(v->args[0]), b = holds(v->args[1]);
                if (!a || !b) return {};
                return v->op == Op::And ? *a && *b : *a || *b;
            }
            case Op::Lt:
            case Op::Le:
            case Op::Gt:
            case Op::Ge:
            case Op::Eq:
            case Op::Ne: return compared(*v);
            default: return {};
        }
    }
    std::optional<bool> compared(const ValueNode& v) {
        const auto a = number(v.args[0]), b = number(v.args[1]);
        if (!a || !b) return {};
        switch (v.op) {
            case Op::Lt: return *a < *b;
            case Op::Le: return *a <= *b;
            case Op::Gt: return *a > *b;
            case Op::Ge: return *a >= *b;
            case Op::Eq: return *a == *b;
            default: return *a != *b;
        }
    }
    std::optional<int64_t> number(const Value& v) {
        if (v->op == Op::Const && !is_float(v->type)) return v->integer;
        if (v->op != Op::OfIndex || mentions_load(v->subscripts[0])) return {};
        return evaluate(v->subscripts[0], env_);
    }

    int64_t version(const std::string& ring, const std::vector<Index>& key) { return items_ && items_->has(ring) ? index(items_->number(ring, key)) : index(key[0]); }
    bool is_ring(const std::string& name) const {
        const auto it = decls_.find(name);
        return it != decls_.end() && it->second.ring.versions > 1;
    }

    void sync(const Sync& y, Loc loc) {
        if (y.op == SyncOp::Take || y.op == SyncOp::Pass) events.push_back({y.op == SyncOp::Take ? Event::Take : Event::Pass, y.name, 0, -1, loc});
        if (y.op <= SyncOp::Release) events.push_back({y.op == SyncOp::Acquire ? Event::Acquire : y.op == SyncOp::Commit ? Event::Commit : y.op == SyncOp::Wait ? Event::Wait : Event::Release, y.name, version(y.name, y.key), -1, loc});
    }

    void block(const Block& b, Loc loc) {
        for (const bool write : {false, true})
            for (const analysis::Touch& t : analysis::touches(b))
                if (t.write == write && !t.version.empty() && is_ring(t.tensor)) events.push_back({write ? Event::Write : Event::Read, t.tensor, version(t.tensor, t.version), b.pending && b.pending != until_needed ? b.pending : -1, loc});
        pending_ |= b.pending > 0 && b.pending != until_needed;
    }

    const Decls& decls_;
    const Items* items_;
    Env env_;
    bool pending_ = false;
};

/// Rings and turns while roles take steps in any order: a fault of one order is one of all, as each role waits for what it needs.
class Play {
  public:
    /// `before`: what the block did before the roles started, of which their first turns are left.
    Play(const Decls& decls, std::vector<std::pair<std::string, Events>> roles, const Events& before = {}) : decls_(decls) {
        for (const Event& e : before) turns_[e.ring] += e.kind == Event::Pass;
        for (auto& [name, events] : roles) parts_.push_back({name, std::move(events)});
    }

    std::optional<Fault> run() {
        for (bool moved = true; moved && !fault_;) {
            moved = false;
            for (Part& p : parts_)
                while (!fault_ && p.at < p.events.size() && step(p, p.events[p.at])) ++p.at, moved = true;
        }
        for (const Part& p : parts_)
            if (!fault_ && p.at < p.events.size()) fail(p, p.events[p.at], "protocol.stuck", "waits for ever");
        for (const auto& [name, r] : rings_)
            for (size_t n = 0; n < r.versions.size() && r.shared && !fault_; ++n)
                if (r.versions[n].committed && r.versions[n].waited.empty()) fault_ = Fault{"protocol.left", fmt::format("nobody waits for `{}` number {}: it may arrive when the block has ended", name, n), "", {}};
        return fault_;
    }

    /// The last events of each role.
    std::string trace() const {
        constexpr size_t shown = 6;
        std::string s;
        for (const Part& p : parts_) {
            const size_t end = std::min(p.at + 1, p.events.size()), from = end > shown ? end - shown : 0;
            s += fmt::format("{}{}:", s.empty() ? "" : "; ", p.name.empty() ? "the block" : p.name);
            for (size_t i = from; i < end; ++i) s += fmt::format("{} {}", i > from ? "," : from ? " …" : "", p.events[i].text());
            if (p.at >= p.events.size()) s += " (done)";
        }
        return s;
    }

  private:
    struct Part {
        std::string name;
        Events events;
        size_t at = 0;
        std::vector<std::pair<std::string, int64_t>> on_their_way = {};    ///< versions that products still read, a pair each
        std::vector<size_t> groups = {};                                   ///< how many of them each product reads
    };
    struct Version {
        bool acquired = false, committed = false, written = false;
        int64_t released = 0;
        const Part* owner = nullptr;    ///< who acquired it
        std::set<const Part*> waited = {}, returned = {};
    };
    struct Ring {
        int64_t slots = 1, readers = 1, next = 0;
        bool shared = false;    ///< between roles
        std::vector<Version> versions = {};
        std::map<int64_t, int64_t> content = {};    ///< slot -> number, of a ring of one role
    };

    void fail(const Part& p, const Event& e, const char* code, const std::string& what) {
        if (!fault_) fault_ = Fault{code, fmt::format("{}`{}` {}", p.name.empty() ? "" : fmt::format("{}: ", p.name), e.text(), what), p.name, e.loc};
    }

    Ring& ring(const Event& e) {
        auto [it, fresh] = rings_.try_emplace(e.ring);
        if (fresh) it->second.slots = decls_.at(e.ring).ring.versions, it->second.readers = decls_.at(e.ring).ring.readers;
        Ring& r = it->second;
        if (e.number >= 0 && r.versions.size() <= static_cast<size_t>(e.number)) r.versions.resize(static_cast<size_t>(e.number) + 1);
        return r;
    }

    /// False: it has to wait.
    bool step(Part& p, const Event& e) {
        if (e.kind == Event::Settle) return settle(p, 0), true;
        if (e.kind == Event::Pass) return ++turns_[e.ring], true;
        if (e.kind == Event::Take) return turns_[e.ring] > 0 ? (--turns_[e.ring], true) : false;
        Ring& r = ring(e);
        if (e.number < 0) return fail(p, e, "protocol.order", "is of no version"), true;
        Version& v = r.versions[static_cast<size_t>(e.number)];
        switch (e.kind) {
            case Event::Acquire: return acquire(p, e, r, v);
            case Event::Commit:
                if (!v.acquired || v.committed) fail(p, e, "protocol.order", "is of a slot that was not acquired");
                v.committed = true;
                return true;
            case Event::Wait:
                if (!v.committed) return false;
                v.waited.insert(&p);
                return true;
            case Event::Release: return release(p, e, v), true;
            case Event::Write: return write(p, e, r, v), true;
            default: return read(p, e, r, v), true;
        }
    }

    bool acquire(const Part& p, const Event& e, Ring& r, Version& v) {
        r.shared = true;
        if (e.number != r.next) return fail(p, e, "protocol.order", fmt::format("is out of order: number {} would be next, by which the barriers count", r.next)), true;
        if (e.number >= r.slots && r.versions[static_cast<size_t>(e.number - r.slots)].released < r.readers) return false;
        v.acquired = true, v.owner = &p, ++r.next;
        return true;
    }

    void write(const Part& p, const Event& e, Ring& r, Version& v) {
        if (r.shared && (!v.acquired || v.committed)) fail(p, e, "protocol.write", "writes outside acquire and commit");
        r.content[e.number % r.slots] = e.number;
        v.written = true;
    }

    void read(Part& p, const Event& e, Ring& r, Version& v) {
        if (r.shared && !v.waited.contains(&p) && v.owner != &p) fail(p, e, "protocol.read", "reads what it did not wait for");
        else if (r.shared && v.returned.contains(&p)) fail(p, e, "protocol.read", "reads after it gave the slot back");
        else if (!r.shared && (!r.content.contains(e.number % r.slots) || r.content[e.number % r.slots] != e.number)) fail(p, e, "protocol.read", v.written ? "reads a slot that was filled again" : "reads before anything was written");
        if (e.pending < 0) return settle(p, 0);
        const bool same_product = p.at > 0 && p.events[p.at - 1].kind == Event::Read && p.events[p.at - 1].loc == e.loc && p.events[p.at - 1].pending == e.pending && !p.groups.empty();
        if (same_product) ++p.groups.back();
        else p.groups.push_back(1);
        p.on_their_way.emplace_back(e.ring, e.number);
        settle(p, static_cast<size_t>(e.pending));
    }

    /// At most so many products are on their way.
    static void settle(Part& p, size_t most) {
        while (p.groups.size() > most) {
            p.on_their_way.erase(p.on_their_way.begin(), p.on_their_way.begin() + static_cast<std::ptrdiff_t>(p.groups.front()));
            p.groups.erase(p.groups.begin());
        }
    }

    void release(const Part& p, const Event& e, Version& v) {
        if (!v.waited.contains(&p)) fail(p, e, "protocol.release", "gives back what it did not wait for");
        if (v.returned.contains(&p)) fail(p, e, "protocol.release", "gives it back twice");
        if (std::ranges::find(p.on_their_way, std::pair{e.ring, e.number}) != p.on_their_way.end()) fail(p, e, "protocol.release", "gives back what a product still reads");
        v.returned.insert(&p), ++v.released;
    }

    const Decls& decls_;
    std::vector<Part> parts_;
    std::map<std::string, Ring> rings_;
    std::map<std::string, int64_t> turns_;
    std::optional<Fault> fault_;
};

/// One kernel at some sizes.
std::optional<Diagnostic> played(const Stmt& kernel, const Decls& decls, const Items* items, const Env& sizes) {
    std::optional<Diagnostic> out;
    const auto play = [&](std::vector<std::pair<std::string, Events>> roles, const Events& before = {}) {
        Play game(decls, std::move(roles), before);
        const auto fault = out ? std::nullopt : game.run();
        if (!fault) return;
        std::string at;
        for (const auto& [dim, n] : sizes) at += fmt::format("{}{} = {}", at.empty() ? "" : ", ", dim, n);
        out = Diagnostic{fault->code, fault->loc, fmt::format("{} (at {})", fault->message, at), {{{}, game.trace()}}, "pipeline or specialise the loop in another way"};
    };
    Recorder whole(decls, items, sizes);
    whole.body({kernel}, [&](const Roles& r, const Env& env) {
        std::vector<std::pair<std::string, Events>> all;
        for (const Role& role : r.roles) {
            Recorder one(decls, items, env);
            one.body(role.body, [](const Roles&, const Env&) {});
            if (one.unknown) return;
            all.emplace_back(role.name, std::move(one.events));
        }
        play(std::move(all), whole.events);
    });
    if (!whole.unknown) play({{"", whole.events}});
    return out;
}

/// The constants by which the extents of loops divide a dimension: the sizes of its tiles.
void tiles_of(const Index& e, const std::set<std::string>& dims, std::map<std::string, int64_t>& out) {
    if (e->op == IndexOp::Div && is_const(e->args[1]) && e->args[1]->value > 0)
        for (const std::string& d : dims)
            if (analysis::mentions(e->args[0], d)) out[d] = std::max(out[d], e->args[1]->value);
    for (const Index& a : e->args) tiles_of(a, dims, out);
}

/// Sizes that make each number of trips: of one dimension at a time, and one with several tiles a block.
std::vector<Env> sizes_to_play(const Stmt& kernel, const Program& p, int64_t versions) {
    std::set<std::string> dims;
    for (const Dim& d : p.dims) dims.insert(d.name);
    std::map<std::string, int64_t> tile;
    int64_t blocks = 1;
    const std::function<void(const Body&)> look = [&](const Body& body) {
        for (const Stmt& s : body) {
            if (const auto* l = std::get_if<Loop>(&s->node)) {
                tiles_of(l->extent, dims, tile);
                if (is_parallel(l->kind) && is_const(l->extent)) blocks = std::max(blocks, l->extent->value);
            }
            for (const Body* inner : bodies_of(s)) look(*inner);
        }
    };
    look({kernel});
    Env few;
    for (const std::string& d : dims) few[d] = tile.contains(d) ? 2 * tile[d] : 2;
    std::vector<Env> out;
    for (const auto& [d, n] : tile)
        for (int64_t trips = 0; trips <= 2 * versions + 1; ++trips) out.push_back(few), out.back()[d] = trips * n;
    for (const auto& [d, n] : tile) out.push_back(few), out.back()[d] = (blocks + 1) * n;    // a second tile, and a third
    return out;
}

/// With every size open: the plan's steps are right for all that their conditions admit.
Program opened(Program p) {
    for (Dim& d : p.dims) d.value = {};
    return p;
}

}  // namespace

Status check_protocol(const Program& scheduled) {
    const Program p = opened(scheduled);
    for (const Stmt& s : p.body) {
        Decls decls;
        collect_decls({s}, decls);
        int64_t versions = 0;
        for (const auto& [name, d] : decls) versions = std::max(versions, d.ring.versions);
        const auto* kernel = std::get_if<Loop>(&s->node);
        if (versions < 2 || !kernel) continue;
        const auto items = Items::of(*kernel);
        for (const Env& sizes : sizes_to_play(s, p, versions))
            if (auto fault = played(s, decls, items ? &*items : nullptr, sizes)) return *fault;
    }
    return ok();
}

}  // namespace acu::ir::lower
