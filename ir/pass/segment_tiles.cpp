#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/fuse.h"
#include "ir/pass/span.h"

namespace acu::ir::pass {
namespace {

/// The tiles of an axis that is divided into segments: each lies within one of them. How many tiles a segment has is known only from the data, so a sum over the segments before it is computed first.
class SegmentTiler {
  public:
    SegmentTiler(const Program& p, std::vector<std::string> labels, std::string axis, int64_t tile) : p_(p), labels_(std::move(labels)), axis_(std::move(axis)), tile_(constant(tile)) {}

    Rewrite run() {
        check();
        name_all();
        Rewrite out{edit_run(p_, {labels_.begin(), labels_.end()}, "segment_tiles", [&](Body before, const Body& run, const Body& after) { return tiled(std::move(before), run, after); }), {}};
        for (const std::string& l : labels_) out.lineage.push_back({l, loop_, Part::Outer});
        out.program.decls.push_back({first_, Scope::Temp, DType::I64, {{constant(0), offsets_->dims[0].size}}});
        return out;
    }

  private:
    void check() {
        for (const std::string& l : labels_) {
            const Place at = find_block(p_, l);
            const Block& b = block_of(at);
            const Axis* a = axis_of(b, axis_);
            need(at.above.empty(), "segment_tiles.place", fmt::format("`{}` stands in a loop", l), "cut segments first", at.stmt->loc);
            need(a && a->kind == AxisKind::Par && is_const(normal(a->base), 0), "segment_tiles.axis", fmt::format("`{}` has no parallel axis `{}` from 0 on", l, axis_), "", at.stmt->loc);
            need(!size_ || same(size_, a->size), "segment_tiles.range", fmt::format("`{}` runs over another range of `{}` than `{}`", l, axis_, labels_[0]), "", at.stmt->loc);
            size_ = a->size;
            find_segments(b, at.stmt->loc);
            blocks_.push_back(b);
        }
        need(offsets_ != nullptr, "segment_tiles.none", fmt::format("none of the statements asks for the segment of `{}`", axis_), fmt::format("see fuse, for tiles of `{}` without segments", axis_));
        need(offsets_->scope == Scope::In && offsets_->dims.size() == 1, "segment_tiles.offsets", fmt::format("the offsets `{}` are not an input of one dimension", offsets_->name));
        for (size_t i = 0; i < blocks_.size(); ++i)
            for (size_t j = i + 1; j < blocks_.size(); ++j) {
                const std::string buffer = carried(blocks_[i], blocks_[j], axis_);
                need(buffer.empty(), "segment_tiles.carried", fmt::format("`{}` needs `{}` of `{}` from other values of `{}`", blocks_[j].label, buffer, blocks_[i].label, axis_));
            }
    }

    void find_segments(const Block& b, Loc loc) {
        const auto ask = [&](const auto& self, const Index& i) -> void {
            if (i->op == IndexOp::Segment && is_name(i->args[0], axis_)) {
                const Decl* d = p_.find(i->name);
                need(!offsets_ || offsets_ == d, "segment_tiles.several", fmt::format("`{}` asks for segments by `{}` and by `{}`", b.label, d->name, offsets_ ? offsets_->name : ""), "", loc);
                offsets_ = d;
            }
            for (const Index& a : i->args) self(self, a);
        };
        for (const Value& v : b.vals)
            for_each_load(v, [&](const Value& x) {
                for (const Index& i : x->subscripts) ask(ask, i);
            });
    }

    void name_all() {
        first_ = unique_name(p_, offsets_->name + ".tiles");
        loop_ = tile_loop_name(p_, axis_);
        segment_ = unique_name(p_, axis_ + ".segment"), start_ = unique_name(p_, axis_ + ".start"), end_ = unique_name(p_, axis_ + ".end");
        before_ = unique_name(p_, "s"), of_ = unique_name(p_, "r");
    }

    /// What lies before the first offset belongs to the first segment, what lies behind the last offset to the last.
    Index start_of(const Index& s) const { return inside(load_index(offsets_->name, {s}) * binary(IndexOp::Min, s, constant(1))); }
    Index end_of(const Index& s) const {
        const Index last = binary(IndexOp::Max, constant(0), s - (offsets_->dims[0].size - constant(3)));    // 1 for the last segment
        const Index e = load_index(offsets_->name, {s + constant(1)});
        return inside(e + (size_ - e) * last);
    }
    Index inside(const Index& i) const { return binary(IndexOp::Min, size_, binary(IndexOp::Max, constant(0), i)); }

    /// The same as a value: how many tiles a segment has.
    Value tiles_of(const Index& s) const {
        const Value size = of_index(size_), none = integer(0, DType::I64);
        const auto offset = [&](const Index& i) { return ir::cast(DType::I64, load(offsets_->name, offsets_->type, {i})); };
        const auto inside = [&](const Value& v) { return call("min", {size, call("max", {none, v})}); };
        const Value last = binary(Op::Eq, of_index(s), of_index(normal(offsets_->dims[0].size - constant(2))));
        const Value start = inside(select(below(s, constant(1)), none, offset(s))), end = inside(select(last, size, offset(s + constant(1))));
        const Value length = call("max", {none, binary(Op::Sub, end, start)});
        return binary(Op::Div, binary(Op::Add, length, integer(tile_->value - 1, DType::I64)), integer(tile_->value, DType::I64));
    }

    Body tiled(Body before, const Body& run, const Body& after) const {
        const Gathered g = gather(run, {labels_.begin(), labels_.end()}, "segment_tiles");
        const Loc loc = g.mine.front()->loc;
        before.insert(before.end(), g.others.begin(), g.others.end());
        const Axis each{before_, AxisKind::Par, constant(0), offsets_->dims[0].size}, of{of_, AxisKind::Red, constant(0), offsets_->dims[0].size - constant(1)};
        const std::vector<Access> cell{{first_, {name(before_)}}};
        const Index r = name(of_);
        before.push_back(make_stmt(loc, Block{first_ + ".init", {each}, cell, Monoid::None, {integer(0, DType::I64)}}));
        before.push_back(make_stmt(loc, Block{first_, {each, of}, cell, Monoid::Sum, {tiles_of(r)}, {below(r, name(before_))}}));
        before.push_back(make_stmt(loc, loop_of_tiles(g.mine)));
        before.insert(before.end(), after.begin(), after.end());
        return before;
    }

    Loop loop_of_tiles(const Body& mine) const {
        Loop l;
        l.var = loop_, l.kind = LoopKind::Grid;
        const Index last = offsets_->dims[0].size - constant(1);
        l.extent = binary(IndexOp::Min, normal(ceil_div(size_, tile_) + last), load_index(first_, {normal(last)}));    // each segment may end with a part of a tile
        const Index s = name(segment_), p = name(loop_);
        l.lets = {{segment_, segment(first_, p)}, {start_, start_of(s) + tile_ * (p - load_index(first_, {s}))}, {end_, end_of(s)}};
        for (const Stmt& x : mine) l.body.push_back(restricted(x));
        return l;
    }

    Index settled(const Index& i) const {
        if (i->op == IndexOp::Segment && i->name == offsets_->name && is_name(i->args[0], axis_)) return name(segment_);
        return map_args(i, [&](const Index& a) { return settled(a); });
    }
    Value settled(const Value& v) const {
        return map_parts(v, [&](const Value& x) { return settled(x); }, [&](const Index& i) { return settled(i); });
    }

    Stmt restricted(const Stmt& s) const {
        Block b = *as_block(s);
        const auto a = std::ranges::find(b.axes, axis_, &Axis::name);
        a->base = name(start_), a->size = tile_;
        for (Value& v : b.vals) v = settled(v);
        add_guard(b, below(name(axis_), name(end_)));
        add_guard(b, below(name(axis_), size_));
        return with_node(s, std::move(b));
    }

    const Program& p_;
    std::vector<std::string> labels_;
    std::string axis_;
    Index tile_, size_;
    const Decl* offsets_ = nullptr;
    std::vector<Block> blocks_;
    std::string first_, loop_, segment_, start_, end_, before_, of_;
};

/// y[t] = x[t]*w[segment(offsets, t)] over t in T
/// ->  for t.o in ceil(T, 4) + E grid, e = segment(offsets.tiles, t.o), … { y[t] = x[t]*w[e] over t in t.start +: 4 where t < t.end }
struct SegmentTiles {
    static constexpr std::string_view name = "segment_tiles", doc = "cut an axis that is divided into segments into tiles each of which lies within one: `segment_tiles(acc, y, axis = t, tile = 128)`";
    static constexpr std::string_view picture = "y[t] = x[t]*w[segment(offsets, t)]  over t in T\n-> tiles before each segment; for t.o in ceil(T, 4) + E grid, e = segment(tiles, t.o), … { y[t] = x[t]*w[e]  over t in t.start +: 4 where t < t.end }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        std::string axis;
        int64_t tile = 1;
        static constexpr auto fields = std::tuple{required("axis", &Params::axis, +[] { return a_name(); }, "the axis that all the statements have"),
                                                  required("tile", &Params::tile, +[] { return integers(1, 1 << 20, {16, 32, 64, 128, 256}); }, "the points of a tile")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) { return SegmentTiler(site.program, with_fills(site.program, site.names), p.axis, p.tile).run(); }
};

}  // namespace

Pass segment_tiles_pass() { return make_pass<SegmentTiles>(); }

}  // namespace acu::ir::pass
