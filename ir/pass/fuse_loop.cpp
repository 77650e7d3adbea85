#include "ir/pass/fuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

AxisKind strictest(AxisKind a, AxisKind b) { return std::max(a, b); }    // par < red < scan

class Fuser {
  public:
    Fuser(const Program& p, const FuseRequest& r, std::string code) : p_(p), r_(r), code_(std::move(code)), labels_(r.labels.begin(), r.labels.end()) {
        for (const std::string& l : r.labels) blocks_.push_back(block_of(find_block(p, l)));
    }

    Rewrite run() {
        check();
        const Axis& a = *axis_of(blocks_[0], r_.axis);
        base_ = a.base, size_ = a.size;
        const auto fixed = constant_value(size_);
        whole_ = fixed && *fixed <= r_.tile && r_.tile > 1;
        var_ = loop_name();
        limit_ = r_.tile == 1 ? common_limit() : nullptr;
        Rewrite out{edit_run(p_, labels_, code_, [&](Body before, const Body& run, const Body& after) { return joined(std::move(before), run, after); }), {}};
        for (const std::string& l : labels_) out.lineage.push_back({l, var_, Part::Outer});
        return out;
    }

  private:
    std::string at(const char* what) const { return code_ + what; }

    void check() const {
        const Axis* first = axis_of(blocks_[0], r_.axis);
        for (const Block& b : blocks_) {
            const Axis* a = axis_of(b, r_.axis);
            need(a, at(".axis").c_str(), fmt::format("`{}` has no axis `{}`", b.label, r_.axis), axes_help(b));
            need(first && same(a->base, first->base) && same(a->size, first->size), at(".range").c_str(),
                 fmt::format("the range of `{}` in `{}` differs from that in `{}`", r_.axis, b.label, blocks_[0].label), "tile them alike first, or fuse them one by one");
            need(r_.tile > 1 || a->kind != AxisKind::Scan, at(".scan").c_str(), fmt::format("`{}` is scanned by `{}`, which needs the axis", r_.axis, b.label), "tiles of two or more");
            need(a->kind != AxisKind::Scan || r_.tile > 1, at(".scan").c_str(), fmt::format("`{}` is scanned by `{}`: its points cannot become iterations of a loop", r_.axis, b.label), "tile it by more than 1");
            need(!is_parallel(r_.kind) || a->kind == AxisKind::Par, at(".kind").c_str(), fmt::format("`{}` is {} in `{}`: its loop cannot be {}", r_.axis, a->kind == AxisKind::Red ? "reduced" : "scanned", b.label, name_of(r_.kind)),
                 a->kind == AxisKind::Red ? "see split_reduction" : "");
        }
        for (size_t i = 0; i < blocks_.size(); ++i)
            for (size_t j = i + 1; j < blocks_.size(); ++j) {
                const std::string buffer = carried(blocks_[i], blocks_[j], r_.axis);
                need(buffer.empty(), at(".carried").c_str(), fmt::format("`{}` needs `{}` of `{}` from other values of `{}`", blocks_[j].label, buffer, blocks_[i].label, r_.axis),
                     "see online and split_reduction");
            }
    }

    static std::string axes_help(const Block& b) {
        std::vector<std::string> known;
        for (const Axis& a : b.axes) known.push_back(a.name);
        return known.empty() ? "it has none" : fmt::format("it has {}", fmt::join(known, ", "));
    }

    std::string loop_name() const {
        if (!r_.into.empty()) {
            need(unique_name(p_, r_.into) == r_.into, at(".name").c_str(), fmt::format("`{}` means something already", r_.into));
            return r_.into;
        }
        if (r_.tile > 1) return tile_loop_name(p_, r_.axis);
        const std::set<std::string> loops = names_made_in(p_.body);
        return loops.contains(r_.axis) ? unique_name(p_, r_.axis) : r_.axis;
    }

    /// A unit tile makes a loop of the axis: a guard that all have on it alone goes into the loop's extent, so that it keeps its effect.
    Index common_limit() const {
        Index limit;
        for (const Value& g : blocks_[0].guards) {
            const auto b = as_below(g);
            if (!b || !is_name(b->left, r_.axis) || mentions_axis(b->right)) continue;
            if (common(g)) limit = limit ? binary(IndexOp::Min, limit, b->right) : b->right;
        }
        return limit;
    }
    bool common(const Value& guard) const {
        return std::ranges::all_of(blocks_, [&](const Block& x) { return contains(x.guards, guard); });
    }
    bool mentions_axis(const Index& e) const {
        return std::ranges::any_of(blocks_, [&](const Block& b) { return std::ranges::any_of(b.axes, [&](const Axis& a) { return mentions(e, a.name); }); });
    }

    Body joined(Body before, const Body& run, const Body& after) const {
        const Gathered g = gather(run, labels_, code_);
        need(!any_inside(run, [](const Stmt& s) { return std::holds_alternative<Sync>(s->node); }), at(".sync").c_str(), "a wait or release of a ring stands between the statements: it would repeat", "fuse before the roles are made");
        std::set<std::string> range = names_in(base_);
        range.merge(names_in(size_));
        need(!meet(range, names_made_in(g.mine)), at(".range").c_str(), fmt::format("the range of `{}` belongs to a loop inside one of the statements", r_.axis), "fuse the statements of that loop");
        Loop l;
        l.var = var_;
        l.kind = r_.kind;
        l.extent = r_.tile == 1 ? extent() : normal(ceil_div(size_, constant(r_.tile)));
        for (const Block& b : blocks_) l.order = strictest(l.order, axis_of(b, r_.axis)->kind);
        for (const Stmt& s : g.mine) l.body.push_back(restricted(s));
        before.insert(before.end(), g.others.begin(), g.others.end());
        before.push_back(make_stmt(g.mine.front()->loc, std::move(l)));
        before.insert(before.end(), after.begin(), after.end());
        return before;
    }
    Index extent() const { return limit_ ? binary(IndexOp::Min, size_, normal(limit_ - base_)) : size_; }

    Stmt restricted(const Stmt& s) const {
        if (const Block* b = as_block(s)) return r_.tile == 1 ? unit(s, *b) : tiled(s, *b);
        return map_bodies(s, [&](const Body& body) {
            Body out;
            for (const Stmt& x : body) out.push_back(restricted(x));
            return out;
        });
    }

    /// The axis itself moves out, and the statement keeps its words.
    Stmt unit(const Stmt& s, Block b) const {
        std::erase_if(b.axes, [&](const Axis& a) { return a.name == r_.axis; });
        if (limit_)
            std::erase_if(b.guards, [&](const Value& g) { const auto x = as_below(g); return x && is_name(x->left, r_.axis) && !mentions_axis(x->right) && common(g); });
        const Index now = base_ + ir::name(var_);
        return is_name(now, r_.axis) ? with_node(s, std::move(b)) : substitute(with_node(s, std::move(b)), {{r_.axis, now}});
    }

    Stmt tiled(const Stmt& s, Block b) const {
        const auto a = std::ranges::find(b.axes, r_.axis, &Axis::name);
        a->base = normal(base_ + constant(r_.tile) * ir::name(var_));
        a->size = whole_ ? size_ : constant(r_.tile);
        const Value guard = below(ir::name(r_.axis), normal(base_ + size_));
        if (!whole_ && !divides(p_, size_, r_.tile) && !contains(b.guards, guard)) add_guard(b, guard);
        return with_node(s, std::move(b));
    }

    const Program& p_;
    const FuseRequest& r_;
    std::string code_, var_;
    std::set<std::string> labels_;
    std::vector<Block> blocks_;
    Index base_, size_, limit_;
    bool whole_ = false;
};

}  // namespace

LoopKind kind_named(const std::string& word) {
    for (int i = 0; i <= static_cast<int>(LoopKind::Unroll); ++i)
        if (name_of(static_cast<LoopKind>(i)) == word) return static_cast<LoopKind>(i);
    return LoopKind::Serial;
}

Rewrite fuse_over(const Program& p, const FuseRequest& request, const std::string& code) { return Fuser(p, request, code).run(); }

}  // namespace acu::ir::pass
