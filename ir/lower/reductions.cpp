#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/absence.h"
#include "ir/lower/lower.h"

namespace acu::ir::lower {
namespace {

class Lowering {
  public:
    explicit Lowering(const Program& tensor) : out_(tensor) {
        out_.level = Level::Loop;
        out_.body.clear();
        for (const Stmt& s : tensor.body) block(std::get<Block>(s->node), s->loc);
    }
    Program result() { return std::move(out_); }

  private:
    /// Axes that a value stands under, and the conditions of the selections around it.
    struct Place {
        std::vector<Axis> axes;
        std::vector<Value> path;
    };

    void emit(Block b) { out_.body.push_back(make_stmt(loc_, std::move(b))); }

    void block(const Block& b, Loc loc) {
        loc_ = loc;
        label_ = b.label;
        count_ = 0;
        known_.clear();
        if (accumulates_into_target(b)) return accumulate(b.vals[0], {b.axes, {}}, {b.outs[0]}, b.label);
        Block n = b;
        for (Value& v : n.vals) v = extract(v, {b.axes, {}});
        for (Value& g : n.guards) g = extract(g, {b.axes, {}});
        absence_.learn(b);
        emit(std::move(n));
    }

    /// A block that is one reduction whose type is that of its tensor needs no buffer of its own.
    bool accumulates_into_target(const Block& b) const {
        if (b.monoid != Monoid::None || b.vals[0]->op != Op::Reduce || is_pair(b.vals[0]->monoid)) return false;
        return out_.find(b.outs[0].tensor)->type == b.vals[0]->type;
    }

    Value extract(const Value& v, const Place& place) {
        if (v->op == Op::Reduce) return buffer_of(v, place);
        if (v->op == Op::Select || v->op == Op::And || v->op == Op::Or) return extract_guarded(v, place);
        return map_parts(v, [&](const Value& a) { return extract(a, place); }, [](const Index& i) { return i; });
    }

    /// The second operand is reached only under a condition on the first.
    Value extract_guarded(const Value& v, const Place& place) {
        const Value c = extract(v->args[0], place);
        const auto under = [&](const Value& condition) {
            Place p = place;
            p.path.push_back(condition);
            return p;
        };
        if (v->op == Op::And) return binary(Op::And, c, extract(v->args[1], under(c)));
        const Value no = unary(Op::Not, c);
        if (v->op == Op::Or) return binary(Op::Or, c, extract(v->args[1], under(no)));
        return select(c, extract(v->args[1], under(c)), extract(v->args[2], under(no)));
    }

    /// Adds the buffer, its fill and its accumulation; answers the load of the result.
    Value buffer_of(const Value& r, const Place& place) {
        if (const auto it = known_.find(r.get()); it != known_.end() && place.path.empty()) return it->second;
        std::set<std::string> used;
        free_names(r, used);
        for (const Value& p : place.path) free_names(p, used);
        Place own{{}, place.path};
        for (const Axis& a : place.axes)
            if (used.contains(a.name)) own.axes.push_back({a.name, AxisKind::Par, a.base, a.size});
        const std::string name = fmt::format("{}.acc{}", label_, count_ ? std::to_string(count_ + 1) : "");
        ++count_;
        std::vector<Index> at;
        Decl decl{name, Scope::Temp, r->type, {}, false, loc_};
        for (const Axis& a : own.axes) at.push_back(ir::name(a.name)), decl.dims.push_back({constant(0), a.size});
        std::vector<Access> outs{{name, at}};
        if (is_pair(r->monoid)) {
            Decl best = decl;
            best.name += ".best", best.type = r->args[0]->type;
            out_.decls.push_back(best);
            outs.insert(outs.begin(), {best.name, at});
        }
        out_.decls.push_back(decl);
        accumulate(r, own, outs, name);
        const Value result = load(name, r->type, at);
        if (place.path.empty()) known_[r.get()] = result;
        return result;
    }

    void accumulate(const Value& r, const Place& place, const std::vector<Access>& outs, const std::string& label) {
        Place inner = place;
        for (const Axis& a : r->axes) inner.axes.push_back(a);
        const Value body = extract(r->args[0], inner);
        Block b{label, inner.axes, outs, r->monoid, {body}, place.path};
        if (r->args.size() > 1) b.guards.push_back(extract(r->args[1], inner));
        if (const Value absent = r->monoid == Monoid::Sum ? absence_.zero(r->args[0]) : nullptr) b.guards.push_back(unary(Op::Not, absent));
        const bool pair = is_pair(r->monoid);
        if (pair) b.vals.push_back(of_index(ir::name(r->axes[0].name)));
        for (size_t i = 0; i < outs.size(); ++i) {
            const bool position = pair && i == 1;
            const std::string name = outs[i].tensor + ".init";
            emit({name, place.axes, {outs[i]}, Monoid::None, {position ? integer(0, DType::I64) : identity(r->monoid, r->args[0]->type)}});
        }
        emit(std::move(b));
    }

    Program out_;
    analysis::Absence absence_;
    Loc loc_;
    std::string label_;
    int count_ = 0;
    std::map<const ValueNode*, Value> known_;
};

}  // namespace

Program lower_reductions(const Program& tensor) { return Lowering(tensor).result(); }

}  // namespace acu::ir::lower
