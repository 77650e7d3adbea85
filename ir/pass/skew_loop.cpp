#include "ir/pass/skew_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/clone.h"
#include "ir/pass/ring.h"

namespace acu::ir::pass {
namespace {

enum Group { Ahead, Between, Behind };
using Users = std::map<std::string, std::set<Group>>;

const Sync* as_sync(const Stmt& s) { return std::get_if<Sync>(&s->node); }
bool waits(const Sync& y) { return y.op == SyncOp::Wait || y.op == SyncOp::Release; }
std::string what(const Stmt& s) {
    const std::set<std::string> labels = labels_in(s);
    return labels.empty() ? std::string("a statement") : "`" + *labels.begin() + "`";
}

class Skewer {
  public:
    Skewer(const Program& p, const SkewRequest& r, std::string code) : p_(p), r_(r), code_(std::move(code)), at_(find_loop(p, r.loop)), l_(loop_of(at_)) {}

    Rewrite run() {
        shape();
        group();
        order();
        syncs();
        commutes();
        Rewrite out{build(), {}};
        out.lineage = std::move(lineage_);
        return out;
    }

  private:
    void check(bool holds, const char* what_fails, const std::string& message, const std::string& help = {}, Loc loc = {}) const { need(holds, (code_ + what_fails).c_str(), message, help, loc); }

    void shape() {
        check(l_.kind == LoopKind::Serial, ".kind", fmt::format("`{}` is a {} loop: its iterations have no order to move in", l_.var, name_of(l_.kind)), "skew a loop inside it");
        const std::vector<Stmt> loops = loops_of(at_.above);
        check(!loops.empty(), ".home", fmt::format("`{}` stands in no loop that could own its rings", l_.var), "fuse or tile an axis around it first");
        home_ = loops.back();
        for (const Decl& d : l_.allocs) check(!d.ring.versions, ".nested", fmt::format("`{}` owns the ring `{}` of a loop inside", l_.var, d.name), "skew the outer loop first");
        for (const Decl& d : l_.allocs) local_.insert(d.name);
        check(!any_inside(l_.body, [](const Stmt& s) { return std::holds_alternative<Roles>(s->node) || (as_sync(s) && !waits(*as_sync(s))); }), ".role",
              fmt::format("`{}` holds roles, turns, barriers or fills a ring of another role", l_.var), "skew the loop of the role that reads");
        std::set<std::string> control = control_reads(l_.body);
        std::set<std::string> made = written(l_.body);
        made.insert(local_.begin(), local_.end());
        for (const std::string& t : control) check(!made.contains(t), ".control", fmt::format("`{}` decides in `{}` which statements run, and is written there", t, l_.var));
    }

    bool holds(const Stmt& s, const std::vector<std::string>& labels) const {
        const std::set<std::string> mine = labels_in(s);
        return std::ranges::any_of(labels, [&](const std::string& x) { return mine.contains(x); });
    }

    /// The labels, those of their fills, of which only the ones in the loop matter; each name given must be there.
    std::vector<std::string> labels_of(const std::vector<std::string>& names) const {
        const std::set<std::string> inside = [&] {
            std::set<std::string> out;
            for (const Stmt& s : l_.body) out.merge(labels_in(s));
            return out;
        }();
        for (const std::string& n : names) {
            const std::string label = block_of(find_block(p_, n)).label;
            check(inside.contains(label), ".outside", fmt::format("`{}` is not in `{}`", label, l_.var), fmt::format("it holds {}", fmt::join(inside, ", ")));
        }
        return with_fills(p_, names);
    }

    void group() {
        const std::vector<std::string> ahead = labels_of(r_.ahead), behind = labels_of(r_.behind);
        const size_t n = l_.body.size();
        size_t cut = 0, end = n;
        for (size_t i = 0; i < n; ++i)
            if (holds(l_.body[i], ahead)) cut = i + 1;
        for (size_t i = n; i-- > 0;)
            if (holds(l_.body[i], behind)) end = i;
        check(behind.empty() || end >= cut, ".order", fmt::format("{} begins before the last of {}", what(l_.body[std::min(end, n - 1)]), fmt::join(r_.ahead, ", ")), "name as ahead only what comes first");
        groups_.assign(n, Behind);
        for (size_t i = 0; i < n; ++i) {
            if (as_sync(l_.body[i])) continue;
            if (holds(l_.body[i], ahead)) groups_[i] = Ahead;
            else if (!behind.empty() && i < end) groups_[i] = Between;
            for (const std::string& t : touched(l_.body[i])) users_[t].insert(groups_[i]);
        }
        for (size_t i = 0; i < n; ++i)
            if (const Sync* y = as_sync(l_.body[i])) groups_[i] = group_of(*y, l_.body[i]->loc);
        check(!body_of(Ahead).empty() && !body_of(Behind).empty(), ".nothing", fmt::format("nothing of `{}` is left for them to run ahead of", l_.var));
        check(r_.by == 1 || body_of(Between).empty(), ".by", fmt::format("only a body of two parts can be skewed by {}: {} stands between them", r_.by, body_of(Between).empty() ? "" : what(body_of(Between)[0])));
    }

    Group group_of(const Sync& y, Loc loc) const {
        const auto it = users_.find(y.name);
        const bool one = it != users_.end() && it->second.size() == 1;
        check(one, ".sync", fmt::format("the ring `{}` is used {}: its {} has no one place", y.name, it == users_.end() ? "nowhere here" : "on both sides", name_of(y.op)), "move all its readers ahead, or none", loc);
        return *it->second.begin();
    }

    Body body_of(Group g) const {
        Body out;
        for (size_t i = 0; i < l_.body.size(); ++i)
            if (groups_[i] == g) out.push_back(l_.body[i]);
        return out;
    }

    /// In one iteration, what goes ahead passes the statements in front of it.
    void order() const {
        for (size_t i = 0; i < l_.body.size(); ++i) {
            if (groups_[i] == Ahead) continue;
            Body later;
            for (size_t j = i + 1; j < l_.body.size(); ++j)
                if (groups_[j] == Ahead) later.push_back(l_.body[j]);
            const std::set<std::string> against = conflicts({l_.body[i]}, later);
            check(against.empty(), ".order", fmt::format("{} stands before them and uses {}", what(l_.body[i]), fmt::join(against, ", ")), "name it, too", l_.body[i]->loc);
        }
    }

    /// With waits ahead, the producer must be able to fill what is still to be released behind.
    void syncs() const {
        const auto is_wait = [](const Stmt& s) { return as_sync(s) != nullptr; };
        if (!any_inside(body_of(Ahead), is_wait)) return;
        for (const Stmt& s : body_of(Behind)) {
            const Sync* y = as_sync(s);
            check(y || !any_inside({s}, is_wait), ".deadlock", fmt::format("{} waits inside a loop behind statements that wait", what(s)), "", s->loc);
            if (!y) continue;
            const Decl* d = buffer_at(p_, at_, y->name);
            check(d && d->ring.versions > r_.by, ".deadlock", fmt::format("`{}` has {} versions, but {} iterations of it would be waited for at once", y->name, d ? d->ring.versions : 0, r_.by + 1),
                  fmt::format("give it {} stages", r_.by + 1), s->loc);
        }
    }

    /// Iterations of what goes ahead change places with earlier ones of what stays behind.
    void commutes() const {
        std::set<std::string> against;
        for (const std::string& t : conflicts(body_of(Ahead), body_of(Behind)))
            if (!local_.contains(t)) against.insert(t);
        check(against.empty(), ".dependence", fmt::format("{} of a later iteration cannot pass {}: both use {}", what(body_of(Ahead)[0]), what(body_of(Behind)[0]), fmt::join(against, ", ")),
              "keep the buffer in the loop, or leave the statement behind");
    }

    std::map<std::string, int64_t> versions() const {
        std::map<std::string, int64_t> out;
        const std::set<std::string> made = written(body_of(Ahead));
        for (const std::string& t : local_) {
            const auto it = users_.find(t);
            if (it == users_.end() || it->second == std::set{Behind}) continue;
            out[t] = made.contains(t) && it->second.contains(Behind) ? r_.by + 1 + r_.spare : 1;
        }
        return out;
    }

    Body step(const Rings& rings, Group g, const Index& e) const {
        IndexMap names{{l_.var, e}};
        for (const auto& [n, x] : let_values(l_)) names[n] = ir::substitute(x, {{l_.var, e}});
        Body out;
        for (const Stmt& s : body_of(g)) out.push_back(substitute(rings.versioned(s), names));
        return out;
    }

    Body before(const Body& body) {
        Body out;
        for (const Stmt& s : body) out.push_back(clone(p_, s, ".pre", true, lineage_));
        return out;
    }

    /// Runs only where the iteration `offset` after this one exists.
    Stmt guarded(const Index& offset, Body body) const { return make_stmt(at_.stmt->loc, If{below(offset, l_.extent), std::move(body), {}}); }

    Body prologue(const Rings& rings) {
        if (r_.by > 1) {
            Loop pre;
            pre.var = unique_name(p_, l_.var + ".pre");
            pre.extent = binary(IndexOp::Min, constant(r_.by), l_.extent);
            pre.order = AxisKind::Scan;
            pre.body = before(step(rings, Ahead, name(pre.var)));
            return {make_stmt(at_.stmt->loc, std::move(pre))};
        }
        Body first = step(rings, Ahead, constant(0));
        const Body between = step(rings, Between, constant(0));
        first.insert(first.end(), between.begin(), between.end());
        first = before(first);
        const auto trips = constant_value(l_.extent);
        return trips && *trips > 0 ? first : Body{guarded(constant(0), std::move(first))};
    }

    Program build() {
        const Rings rings(p_, home_, at_.stmt, versions(), {l_.var}, let_values(l_), code_);
        Body now = prologue(rings);
        Loop n = l_;
        n.order = AxisKind::Scan;
        std::erase_if(n.allocs, [&](const Decl& d) { return rings.moves(d.name); });
        n.body = {guarded(name(l_.var) + constant(r_.by), step(rings, Ahead, name(l_.var) + constant(r_.by)))};
        for (const Stmt& s : body_of(Behind)) n.body.push_back(rings.versioned(s));
        if (!body_of(Between).empty()) n.body.push_back(guarded(name(l_.var) + constant(1), step(rings, Between, name(l_.var) + constant(1))));
        const Stmt loop = with_node(at_.stmt, std::move(n));
        if (const auto* some = now.size() == 1 && !body_of(Between).empty() ? std::get_if<If>(&now[0]->node) : nullptr) {    // then there is a first iteration
            If all = *some;
            all.body.push_back(loop);
            now = {with_node(now[0], std::move(all))};
        } else now.push_back(loop);
        return rehome(p_, home_, rings.decls(), at_.stmt, now);
    }

    const Program& p_;
    const SkewRequest& r_;
    const std::string code_;
    const Place at_;
    const Loop& l_;
    Stmt home_;
    std::set<std::string> local_;
    std::vector<Group> groups_;
    Users users_;
    std::vector<Lineage> lineage_;
};

}  // namespace

Rewrite skew_loop(const Program& p, const SkewRequest& request, const std::string& code) { return Skewer(p, request, code).run(); }

}  // namespace acu::ir::pass
