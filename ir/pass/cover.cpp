#include "ir/pass/cover.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::ir::pass {
namespace {

class Cover {
  public:
    Cover(const Program& p, const Place& fill, const Access& filled, const Place& user, const std::vector<Index>& words)
        : fill_(block_of(fill)), user_(block_of(user)), filled_(filled.subscripts), words_(words), common_(common_path(fill, user)), facts_(facts_in(p, user.above, block_of(user))) {
        fill_loops_ = beyond(fill.above), user_loops_ = beyond(user.above);
        for (const Axis& a : fill_.axes) own_.insert(a.name);
        for (const Stmt& s : fill_loops_) own_.merge(names_made_in({s}));
        apart_ = !same_branch(fill, user);
        conditional_ = std::any_of(fill.above.begin() + static_cast<std::ptrdiff_t>(common_.size()), fill.above.end(), [](const Stmt& s) { return !as_loop(s); });
    }

    std::string why() {
        if (apart_ || conditional_) return fmt::format("`{}` runs under a condition", fill_.label);
        if (filled_.size() != words_.size()) return fmt::format("`{}` names it in another way", user_.label);
        if (idle_loop()) return fmt::format("a loop around `{}` may have no iteration", fill_.label);
        if (!identical() && !inside()) return fmt::format("`{}` may use cells that `{}` does not fill", user_.label, fill_.label);
        for (const Value& g : fill_.guards)
            if (!guarded(g)) return fmt::format("`{}` fills only where {}, which `{}` does not promise", fill_.label, describe(g), user_.label);
        return {};
    }

  private:
    std::vector<Stmt> beyond(const std::vector<Stmt>& above) const { return loops_of({above.begin() + static_cast<std::ptrdiff_t>(common_.size()), above.end()}); }

    /// A loop that only repeats the fill, and may do so not at all.
    bool idle_loop() const {
        return std::ranges::any_of(fill_loops_, [&](const Stmt& s) {
            const Loop& l = *as_loop(s);
            const auto uses = [&](const Index& e) { return mentions(e, l.var); };
            const bool counts = std::ranges::any_of(filled_, uses) || std::ranges::any_of(fill_.axes, [&](const Axis& a) { return uses(a.base); });
            return !counts && !facts_.less(constant(0), l.extent);
        });
    }

    /// The same words, whose axes have the same names and ranges.
    bool identical() const {
        if (!same(filled_, words_)) return false;
        std::set<std::string> used;
        for (const Index& e : filled_) used.merge(names_in(e));
        for (const std::string& n : used) {
            if (!own_.contains(n)) continue;
            if (!axis_of(fill_, n) || !axis_of(user_, n)) return false;
            const auto a = dense(name(n), fill_, fill_loops_), b = span(name(n), user_, user_loops_);
            if (!a || !b || !same(a->origin, b->origin) || !same(a->size, b->size)) return false;
        }
        return true;
    }

    /// Dimension by dimension, the words lie in the range that is filled.
    bool inside() {
        std::set<std::string> used;
        for (size_t d = 0; d < filled_.size(); ++d) {
            const std::set<std::string> mine = names_in(filled_[d]);
            if (!meet(mine, own_)) {
                if (!same(filled_[d], words_[d])) return false;
                continue;
            }
            const auto w = dense(filled_[d], fill_, fill_loops_);
            if (!w || meet(mine, used) || !facts_.nonnegative(words_[d] - w->origin) || !before_end(words_[d], w->origin, w->size)) return false;
            if (filled_[d]->op == IndexOp::Name) renamed_[filled_[d]->name] = words_[d];
            for (const std::string& n : mine)
                if (own_.contains(n)) used.insert(n);
        }
        moved_ = true;
        return true;
    }

    /// e < origin + size, where the size may be the least of several.
    bool before_end(const Index& e, const Index& origin, const Index& size) const {
        if (size->op == IndexOp::Min) return std::ranges::all_of(size->args, [&](const Index& one) { return before_end(e, origin, one); });
        return facts_.less(e, origin + size);
    }

    bool guarded(const Value& g) const {
        std::set<std::string> unknown = names_in(g);
        std::erase_if(unknown, [&](const std::string& n) { return !own_.contains(n) || (moved_ ? renamed_.contains(n) : axis_of(user_, n) != nullptr); });
        if (!unknown.empty()) return false;
        const Value here = substitute(g, renamed_);
        return contains(user_.guards, here) || proven(facts_, here);
    }

    const Block& fill_;
    const Block& user_;
    const std::vector<Index>& filled_;
    const std::vector<Index>& words_;
    std::vector<Stmt> common_, fill_loops_, user_loops_;
    Facts facts_;
    std::set<std::string> own_;    // names that stand for something else at the user
    IndexMap renamed_;
    bool apart_ = false, conditional_ = false, moved_ = false;
};

}  // namespace

std::string uncovered(const Program& p, const Place& fill, const Access& filled, const Place& user, const std::vector<Index>& subscripts) { return Cover(p, fill, filled, user, subscripts).why(); }

}  // namespace acu::ir::pass
