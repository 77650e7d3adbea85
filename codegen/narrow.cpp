#include "codegen/narrow.h"

#include <algorithm>
#include <limits>

#include "codegen/emit.h"

namespace acu::codegen {

using namespace ir;

namespace {

struct Interval {
    int64_t low, high;
};
constexpr int64_t narrow_limit = std::numeric_limits<int32_t>::max() - most_blocks * block_threads;

/// Ranges of index expressions where every dimension is fixed; empty: unknown or too large.
class Intervals {
  public:
    explicit Intervals(const Program& p) {
        for (const auto& [n, v] : known_dims(p)) ranges_[n] = {v, v};
        complete_ = ranges_.size() == p.dims.size();
    }
    bool complete() const { return complete_; }
    void set(const std::string& name, Interval i) { ranges_[name] = i; }

    std::optional<Interval> of(const Index& e) const {
        if (e->op == IndexOp::Const) return checked({e->value, e->value});
        if (e->op == IndexOp::Name) {
            const auto it = ranges_.find(e->name);
            return it == ranges_.end() ? std::nullopt : checked(it->second);
        }
        if (e->args.size() != 2 || e->op == IndexOp::Load) return {};
        const auto a = of(e->args[0]), b = of(e->args[1]);
        if (!a || !b) return {};
        return checked(corners(e->op, *a, *b));
    }

  private:
    static std::optional<Interval> checked(Interval i) {
        if (i.low < -narrow_limit || i.high > narrow_limit) return {};
        return i;
    }
    static Interval corners(IndexOp op, Interval a, Interval b) {
        if (op == IndexOp::Mod) return {std::min<int64_t>(0, b.low), std::max<int64_t>(0, b.high)};
        Interval r{INT64_MAX, INT64_MIN};
        for (const int64_t x : {a.low, a.high})
            for (const int64_t y : {b.low, b.high}) {
                const int64_t v = apply(op, x, y);
                r.low = std::min(r.low, v), r.high = std::max(r.high, v);
            }
        if (op == IndexOp::Div) r.low = std::min({r.low, a.low, -a.high}), r.high = std::max({r.high, a.high, -a.low});
        return r;
    }
    std::map<std::string, Interval> ranges_;
    bool complete_ = false;
};

class NarrowTest {
  public:
    explicit NarrowTest(const Program& p) : p_(p), intervals_(p) {}

    bool fits(const Loop& kernel) {
        if (!intervals_.complete()) return false;
        for (const Decl& d : p_.decls) buffers_[d.name] = &d;
        return loop(kernel);
    }

  private:
    bool roles(const Roles& r) {
        return std::ranges::all_of(r.roles, [&](const Role& x) { return body(x.body); });
    }
    bool loop(const Loop& l) {
        const auto extent = intervals_.of(l.extent);
        if (!extent) return false;
        intervals_.set(l.var, {0, std::max<int64_t>(0, extent->high - 1)});
        for (const Let& x : l.lets) {
            const auto i = intervals_.of(x.value);
            if (!i) return false;
            intervals_.set(x.name, *i);
        }
        for (const Decl& d : l.allocs) buffers_[d.name] = &d;
        return body(l.body);
    }
    bool body(const Body& stmts) {
        return std::ranges::all_of(stmts, [&](const Stmt& s) {
            return match(
                s, [&](const Block& b) { return block(b); }, [&](const Loop& l) { return loop(l); },
                [&](const If& i) { return value(i.condition) && body(i.body) && body(i.otherwise); }, [&](const Roles& r) { return roles(r); }, [&](const Sync& y) { return std::ranges::all_of(y.key, [&](const Index& e) { return intervals_.of(e).has_value(); }); });
        });
    }
    bool block(const Block& b) {
        for (const Axis& a : b.axes) {
            const auto base = intervals_.of(a.base), size = intervals_.of(a.size);
            if (!base || !size) return false;
            intervals_.set(a.name, {base->low, std::max(base->low, base->high + size->high - 1)});
        }
        for (const Access& o : b.outs)
            if (!access(o.tensor, o.subscripts)) return false;
        return std::ranges::all_of(b.vals, [&](const Value& v) { return value(v); }) && std::ranges::all_of(b.guards, [&](const Value& v) { return value(v); });
    }
    bool access(const std::string& tensor, const std::vector<Index>& subscripts) {
        const Decl& d = *buffers_.at(tensor);
        Index count = constant(1);
        for (const Window& w : d.dims) count = count * w.size;
        return intervals_.of(count).has_value() && std::ranges::all_of(subscripts, [&](const Index& i) { return intervals_.of(i).has_value(); });
    }
    bool value(const Value& v) {
        bool good = true;
        visit(v, [&](const ValueNode& n) {
            if (n.op == Op::Load) good &= access(n.name, n.subscripts);
            if (n.op == Op::OfIndex) good &= intervals_.of(n.subscripts[0]).has_value();
        });
        return good;
    }
    const Program& p_;
    Intervals intervals_;
    std::map<std::string, const Decl*> buffers_;
};

}  // namespace

bool fits_32_bits(const Program& p, const Loop& kernel) { return NarrowTest(p).fits(kernel); }

}  // namespace acu::codegen
