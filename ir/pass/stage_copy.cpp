#include "ir/pass/stage_copy.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::ir::pass {
namespace {

std::vector<std::string> axes_in_order(const StageSource& s, const Block& b) {
    std::vector<std::string> out;
    for (const Index& e : s.load->subscripts)
        for (const Axis& a : b.axes)
            if (mentions(e, a.name) && std::ranges::find(out, a.name) == out.end()) out.push_back(a.name);
    return out;
}

Axis whole_range(const StageSource& s, const Place& reader, const std::string& axis) {
    const auto w = dense(name(axis), block_of(reader), s.loops_of_reader(reader));
    need(w.has_value(), "stage.window", fmt::format("the range of `{}` in `{}` belongs to a loop inside `{}`", axis, block_of(reader).label, loop_of(s.home).var), "stage it at that loop", reader.stmt->loc);
    return {axis, AxisKind::Par, w->origin, w->size};
}

/// Guards of a reader that the copy can ask; and is some point of the reader behind every point of the copy?
class ReaderGuards {
  public:
    ReaderGuards(const StageSource& s, const Place& reader, const std::vector<std::string>& seen) : reader_(block_of(reader)), seen_(seen.begin(), seen.end()), loops_(s.loops_of_reader(reader)) {
        std::set<std::string> hidden = s.inner;
        for (const Axis& a : reader_.axes)
            if (!seen_.contains(a.name)) hidden.insert(a.name);
        for (const Axis& a : reader_.axes)
            if (seen_.contains(a.name)) bound_.merge(names_in(a.base));
        std::ranges::set_intersection(bound_, s.inner, std::inserter(linked_, linked_.end()));
        for (const Value& g : reader_.guards) {
            if (!meet(names_in(g), hidden)) kept.push_back(g);
            else (meet(names_in(g), seen_) || meet(names_in(g), linked_) ? mixed_ : dropped_).push_back(g);
        }
    }
    /// At the first values of the names that the copy does not see, the reader reads the cell.
    bool has_witness(const Facts& f) const {
        IndexMap first;
        for (const Stmt& l : loops_) {
            if (!bound_.contains(as_loop(l)->var) && !f.less(constant(0), substitute(as_loop(l)->extent, first))) return false;
            first.emplace(as_loop(l)->var, constant(0));
        }
        IndexMap all = first;
        for (const Axis& a : reader_.axes) {
            if (seen_.contains(a.name)) continue;
            if (meet(names_in(a.size), linked_) || meet(names_in(a.base), linked_) || !f.less(constant(0), substitute(a.size, first))) return false;
            all.emplace(a.name, substitute(a.base, first));
        }
        return mixed_.empty() && std::ranges::all_of(dropped_, [&](const Value& g) { return proven(f, substitute(g, all)); });
    }
    std::vector<Value> kept;

  private:
    const Block& reader_;
    std::set<std::string> seen_, bound_, linked_;    ///< `linked_`: loops inside that move the ranges of what the copy sees
    std::vector<Stmt> loops_;
    std::vector<Value> mixed_, dropped_;
};

}  // namespace

Staged staged_by_axes(const StageSource& s, const std::string& new_name) {
    const std::vector<std::string> seen = axes_in_order(s, block_of(s.readers[0]));
    Staged out{{new_name, {}, {{new_name, {}}}, Monoid::None, {s.load}}, {}};
    for (const std::string& a : seen) out.copy.axes.push_back(whole_range(s, s.readers[0], a)), out.words.push_back(name(a));
    for (const Index& e : s.load->subscripts) need(!meet(names_in(e), s.inner), "stage.window", fmt::format("`{}` is subscripted by a loop inside `{}`", s.buffer, loop_of(s.home).var), "stage it at that loop, or by box");
    std::vector<ReaderGuards> guards;
    for (const Place& r : s.readers) {
        need(std::ranges::is_permutation(axes_in_order(s, block_of(r)), seen), "stage.axes", fmt::format("`{}` and `{}` differ in the axes by which they read `{}`", block_of(s.readers[0]).label, block_of(r).label, s.buffer));
        for (const Axis& a : out.copy.axes) {
            const Axis here = whole_range(s, r, a.name);
            need(same(here.base, a.base) && same(here.size, a.size), "stage.axes", fmt::format("the range of `{}` in `{}` differs from that in `{}`", a.name, block_of(r).label, block_of(s.readers[0]).label), "name one of them in `readers`");
        }
        guards.emplace_back(s, r, seen);
    }
    const auto& least = *std::ranges::min_element(guards, {}, [](const ReaderGuards& g) { return g.kept.size(); });
    for (const Value& g : least.kept)
        for (const ReaderGuards& other : guards) need(contains(other.kept, g), "stage.guard", fmt::format("not all readers of `{}` have the guard {}", s.buffer, describe(g)), "name one of them in `readers`");
    out.copy.guards = least.kept;
    out.widens = s.conditional || !least.has_witness(facts_in(s.program, s.above(), out.copy));
    return out;
}

Staged staged_by_box(const StageSource& s, const std::string& new_name) {
    Staged out{{new_name, {}, {{new_name, {}}}, Monoid::None, {}}, s.load->subscripts};
    need(s.decl->scope == Scope::In, "stage.box", fmt::format("`{}` is computed here: a box may hold cells that nobody wrote", s.buffer), "stage it by axes");
    const bool outside = !s.load->args.empty();
    for (size_t d = 0; d < s.decl->dims.size(); ++d) {
        std::optional<Window> w;
        for (const Place& r : s.readers) {
            auto mine = span(s.load->subscripts[d], block_of(r), s.loops_of_reader(r));
            need(mine || !outside, "stage.box", fmt::format("`{}` of `{}` may lie outside and is not affine", print(s.load->subscripts[d]), s.buffer), "stage it by axes");
            if (!mine) mine = s.decl->dims[d];
            need(!w || (same(w->origin, mine->origin) && same(w->size, mine->size)), "stage.axes", fmt::format("the readers of `{}` need different boxes", s.buffer), "name one of them in `readers`");
            w = mine;
        }
        out.copy.axes.push_back({unique_name(s.program, fmt::format("{}.{}", s.buffer, d)), AxisKind::Par, w->origin, w->size});
    }
    std::vector<Index> words;
    for (const Axis& a : out.copy.axes) words.push_back(name(a.name));
    out.copy.vals = {with_source(s.load, s.buffer, words)};
    const Facts f = facts_in(s.program, s.above(), out.copy);
    for (size_t d = 0; d < words.size() && !outside; ++d) {
        if (!f.nonnegative(words[d])) out.copy.guards.push_back(below(constant(-1), words[d]));
        if (!f.less(words[d], s.decl->dims[d].size)) out.copy.guards.push_back(below(words[d], s.decl->dims[d].size));
    }
    return out;
}

void check_copy_bounds(const StageSource& s, const Staged& x) {
    const std::string what = fmt::format("the copy may read cells of `{}` that `{}` does not", s.buffer, block_of(s.readers[0]).label);
    need(s.decl->scope == Scope::In, "stage.unread", what + ", and it is computed here", "stage it at a loop inside, where it is read for sure");
    const Facts f = facts_in(s.program, s.above(), x.copy);
    for (const Value& g : x.copy.guards) for_each_load(g, [&](const Value&) { refuse("stage.unread", what + fmt::format(", under the guard {}", describe(g))); });
    for (size_t d = 0; d < s.decl->dims.size(); ++d) {
        const Index& e = s.load->subscripts[d];
        const bool inside = !s.load->args.empty() || (f.nonnegative(e) && f.less(e, s.decl->dims[d].size));
        need(!mentions_load(e) && inside, "stage.unread", what + fmt::format(", and {} may lie outside", print(e)), "stage it at a loop inside, where it is read for sure");
    }
}

}  // namespace acu::ir::pass
