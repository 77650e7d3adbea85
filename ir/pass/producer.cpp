#include "ir/pass/producer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/ring.h"
#include "ir/pass/roles.h"

namespace acu::ir::pass {
namespace {

class Specializer {
  public:
    Specializer(const Program& p, const ProducerRequest& r) : p_(p), r_(r), at_(find_loop(p, r.at)) {}

    Rewrite run() {
        place();
        for (const std::string& c : r_.copies) copy(find_block(p_, c));
        sources();
        used();
        if (r_.lag) lags();
        return {build(), {}};
    }

  private:
    void place() {
        check(!r_.copies.empty(), "copies", "`copies` names no statement");
        const Place first = find_block(p_, r_.copies[0]);
        const auto g = std::ranges::find(first.above, at_.stmt);
        check(g != first.above.end() && g + 1 != first.above.end(), "place", fmt::format("`{}` does not stand in a loop inside `{}`", block_of(first).label, loop_of(at_).var), "name a loop around the loop that the copies belong to");
        for (auto s = g + 1; s != first.above.end(); ++s) {
            check(as_loop(*s), "place", fmt::format("`{}` stands under a condition inside `{}`", block_of(first).label, loop_of(at_).var));
            check(as_loop(*s)->kind == LoopKind::Serial, "order", fmt::format("both roles must take the iterations of `{}` in one order, but it is a {} loop", as_loop(*s)->var, name_of(as_loop(*s)->kind)));
            nest_.push_back(*s);
            keys_.push_back(as_loop(*s)->var);
        }
        std::vector<Stmt> outer = loops_of(at_.above);
        outer.push_back(at_.stmt);
        for (const Stmt& s : outer) check(is_parallel(as_loop(s)->kind), "repeat", fmt::format("the roles would start anew in each iteration of the serial loop `{}`", as_loop(s)->var), "name a loop of the grid (see persist)");
        any_inside(loop_of(at_).body, [&](const Stmt& s) {
            check(!std::holds_alternative<Roles>(s->node) && !std::holds_alternative<Sync>(s->node), "roles", fmt::format("`{}` holds roles or waits already", loop_of(at_).var));
            check(!as_loop(s) || !is_parallel(as_loop(s)->kind), "order", fmt::format("`{}` runs its iterations together inside `{}`", as_loop(s) ? as_loop(s)->var : "", loop_of(at_).var));
            return false;
        });
    }

    static void check(bool holds, const char* code, const std::string& message, const std::string& help = {}, Loc loc = {}) { need(holds, ("warp_specialize." + std::string(code)).c_str(), message, help, loc); }
    const Loop& inner() const { return *as_loop(nest_.back()); }

    void copy(const Place& x) {
        const Block& b = block_of(x);
        check(x.above.back() == nest_.back(), "copies", fmt::format("`{}` does not belong to the loop `{}` of the first copy", b.label, inner().var), "copies of other loops stay with the consumer", x.stmt->loc);
        check(is_copy(b), "copies", fmt::format("`{}` is no copy: a producer that computes is not known", b.label), "", x.stmt->loc);
        const std::string& t = b.outs[0].tensor;
        const auto d = std::ranges::find(inner().allocs, t, &Decl::name);
        check(d != inner().allocs.end() && d->scope == Scope::Shared && !d->ring.versions, "copies", fmt::format("`{}` does not fill a shared buffer of `{}`", b.label, inner().var), "stage it there, in shared memory", x.stmt->loc);
        check(rings_.emplace(t, r_.stages).second, "writer", fmt::format("`{}` is named twice, or another copy fills `{}`, too", b.label, t), "", x.stmt->loc);
        copies_.push_back(x.stmt);
    }

    /// The producer runs apart: it may read only what nobody writes meanwhile.
    void sources() const {
        const std::set<std::string> made = written(Body{at_.above.empty() ? at_.stmt : at_.above.front()}), local = local_buffers([&] {
            std::vector<Stmt> all = at_.above;
            all.push_back(at_.stmt);
            all.insert(all.end(), nest_.begin(), nest_.end());
            return all;
        }());
        Body loops;
        for (const Stmt& s : nest_) loops.push_back(s);
        std::set<std::string> reads = control_reads(loops);
        for (const Stmt& s : copies_) reads.merge(read(s));
        for (const std::string& t : reads) check(!made.contains(t) && !local.contains(t), "source", fmt::format("the producer would read `{}`, which this kernel writes", t), "only copies from what is ready before the kernel starts can move");
        for (const Stmt& s : block_stmts(inner().body)) {
            if (std::ranges::find(copies_, s) != copies_.end()) continue;
            for (const std::string& t : written(s)) check(!rings_.contains(t), "writer", fmt::format("`{}` writes `{}`, too", as_block(s)->label, t), "", s->loc);
        }
    }

    bool is_mine(const Stmt& s) const { return std::ranges::find(copies_, s) != copies_.end(); }

    void used() const {
        for (const Stmt& c : copies_) {
            const std::string& t = as_block(c)->outs[0].tensor;
            check(std::ranges::any_of(inner().body, [&](const Stmt& s) { return !is_mine(s) && touched(s).contains(t); }), "unused", fmt::format("nothing in `{}` reads `{}`", inner().var, t), "", c->loc);
        }
    }

    Stmt sync(SyncOp op, const Stmt& copy, const Rings& rings) const {
        return make_stmt(copy->loc, Sync{op, rings.name_at_home(as_block(copy)->outs[0].tensor), rings.key()});
    }

    Body producer(const Rings& rings) const {
        Body body;
        for (const Stmt& s : inner().body)
            if (is_mine(s)) body.insert(body.end(), {sync(SyncOp::Acquire, s, rings), rings.versioned(s), sync(SyncOp::Commit, s, rings)});
        for (size_t i = nest_.size(); i-- > 0;) {
            Loop l = *as_loop(nest_[i]);
            l.allocs.clear();
            l.body = std::move(body);
            body = {with_node(nest_[i], std::move(l))};
        }
        return body;
    }

    /// All that computes in the loop must be products whose sums nothing else there touches.
    void lags() const {
        check(r_.stages > 1, "lag", "with one version, the next cannot come before this one is released", "take two stages or more");
        std::set<std::string> sums;
        for (const Stmt& s : inner().body)
            if (const Block* b = as_block(s); b && runs_by_itself(*b)) sums.insert(b->outs[0].tensor);
        for (const Stmt& s : inner().body) {
            if (is_mine(s)) continue;
            const Block* b = as_block(s);
            check(b && runs_by_itself(*b), "lag", fmt::format("`{}` does more than products of wgmma, so that none can stay in flight", inner().var), "leave out `lag`", s->loc);
        }
        check(!sums.empty(), "lag", fmt::format("`{}` has no products", inner().var), "leave out `lag`");
    }

    /// With a lag, the products of this iteration are the only ones that may be on their way behind each of them.
    Stmt in_flight(const Stmt& s) const {
        const Block* b = as_block(s);
        if (!r_.lag || !b || !runs_by_itself(*b)) return s;
        Block n = *b;
        n.pending = std::ranges::count_if(inner().body, [&](const Stmt& x) { return as_block(x) && runs_by_itself(*as_block(x)); });
        return with_node(s, std::move(n));
    }

    static Stmt at_iteration(const Stmt& sync, const std::string& var, const Index& at) {
        Sync y = std::get<Sync>(sync->node);
        for (Index& k : y.key) k = normal(ir::substitute(k, {{var, at}}));
        return with_node(sync, std::move(y));
    }

    /// Waits before the first use of a ring in an iteration, releases after the last.
    Body consumer(const Rings& rings) const {
        Loop l = inner();
        std::erase_if(l.allocs, [&](const Decl& d) { return rings.moves(d.name); });
        l.body.clear();
        std::map<const StmtNode*, Body> waits, releases;
        for (const Stmt& c : copies_) {
            Body users;
            for (const Stmt& s : inner().body)
                if (!is_mine(s) && touched(s).contains(as_block(c)->outs[0].tensor)) users.push_back(s);
            waits[users.front().get()].push_back(sync(SyncOp::Wait, c, rings));
            releases[users.back().get()].push_back(sync(SyncOp::Release, c, rings));
        }
        for (const Stmt& s : inner().body) {
            if (is_mine(s)) continue;
            l.body.insert(l.body.end(), waits[s.get()].begin(), waits[s.get()].end());
            l.body.push_back(in_flight(rings.versioned(s)));
            if (!r_.lag) l.body.insert(l.body.end(), releases[s.get()].begin(), releases[s.get()].end());
        }
        Body now;
        if (r_.lag) {    // what the last iteration read is free once its products are through
            const Index i = ir::name(l.var);
            Body later, last;
            for (const Stmt& c : copies_) later.push_back(at_iteration(sync(SyncOp::Release, c, rings), l.var, i - constant(1))), last.push_back(at_iteration(sync(SyncOp::Release, c, rings), l.var, l.extent - constant(1)));
            l.body.push_back(make_stmt(nest_.back()->loc, If{below(constant(0), i), std::move(later)}));
            const Stmt rest = make_stmt(nest_.back()->loc, If{below(constant(0), l.extent), std::move(last)});
            now = {with_node(nest_.back(), std::move(l)), rest};
        } else now = {with_node(nest_.back(), std::move(l))};
        return edit(loop_of(at_).body, [&](const Stmt& s) { return s == nest_.back() ? std::optional(now) : std::nullopt; });
    }

    Program build() const {
        IndexMap closed;
        for (const Stmt& s : nest_)
            for (const auto& [n, x] : let_values(*as_loop(s))) closed[n] = ir::substitute(x, closed);
        const Rings rings(p_, at_.stmt, nest_.back(), rings_, keys_, closed, "warp_specialize");
        Loop g = loop_of(at_);
        g.allocs.insert(g.allocs.end(), rings.decls().begin(), rings.decls().end());
        const Role producing{unique_role(p_, "producer"), r_.threads, 0, producer(rings)}, consuming{unique_role(p_, "consumer"), 0, 0, consumer(rings)};
        g.body = {make_stmt(copies_[0]->loc, Roles{{producing, consuming}})};
        return replace_stmt(p_, at_.stmt, {with_node(at_.stmt, std::move(g))});
    }

    const Program& p_;
    const ProducerRequest& r_;
    const Place at_;
    std::vector<Stmt> nest_, copies_;    // the loops from `at` to that of the copies
    std::vector<std::string> keys_;
    std::map<std::string, int64_t> rings_;
};

}  // namespace

Rewrite split_producer(const Program& p, const ProducerRequest& request) { return Specializer(p, request).run(); }

}  // namespace acu::ir::pass
