#include "synth/plan/groups.h"

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"

namespace acu::synth::plan {

using namespace ir;

const Block* block_named(const Program& p, const std::string& label) {
    const Block* found = nullptr;
    for_each_block(p.body, [&](const Block& b, Loc) {
        if (b.label == label) found = &b;
    });
    return found;
}

bool is_fill(const Program& p, const std::string& label) {
    static constexpr std::string_view ending = ".init";
    const Block* b = label.ends_with(ending) ? block_named(p, label.substr(0, label.size() - ending.size())) : nullptr;
    return b && !is_scatter(*b);    // the cells of a scatter are filled over axes of their own
}

std::optional<int64_t> size_of(const Program& p, const Index& size) {
    const Env known = known_dims(p);
    for (const std::string& n : analysis::names_in(size))
        if (!known.contains(n)) return {};
    return mentions_load(size) ? std::nullopt : std::optional(evaluate(size, known));
}

std::optional<int64_t> most_of(const Program& p, const Index& size) {
    Program bounded = p;
    for (const Value& f : p.facts)
        if (f->op == Op::Le && f->args[0]->op == Op::OfIndex && f->args[1]->op == Op::Const)
            for (Dim& d : bounded.dims)
                if (!d.value && is_name(f->args[0]->subscripts[0], d.name)) d.value = f->args[1]->integer;
    const bool grows = size->op == IndexOp::Name || size->op == IndexOp::Mul || size->op == IndexOp::Add;
    return grows ? size_of(bounded, size) : size_of(p, size);
}

std::string neighbours(const std::vector<Index>& subscripts, const Block& b) {
    if (subscripts.empty()) return {};
    for (const Axis& a : b.axes) {
        const auto e = analysis::affine(subscripts.back(), a.name);
        if (e && is_const(e->coefficient, 1) && analysis::mentions(subscripts.back(), a.name)) return a.name;
    }
    return {};
}

/// Axes of the block along which a load moves, as far as they are known to have more than one point.
static size_t axes_of_load(const Program& p, const Block& b, const Value& load) {
    return static_cast<size_t>(std::ranges::count_if(b.axes, [&](const Axis& a) {
        return size_of(p, a.size) != 1 && std::ranges::any_of(load->subscripts, [&](const Index& i) { return analysis::mentions(i, a.name); });
    }));
}

std::optional<Value> main_load(const Program& p, const Block& b) {
    std::optional<Value> widest;
    const auto rank = [&](const Value& x) { return std::pair(x->subscripts.size(), axes_of_load(p, b, x)); };
    for (const Value& v : b.vals)
        analysis::for_each_load(v, [&](const Value& x) {
            const Decl* d = p.find(x->name);
            if (d && d->scope != Scope::Param && (!widest || rank(x) > rank(*widest))) widest = x;
        });
    return widest;
}

namespace {

std::vector<std::string> names_of(const std::vector<Axis>& axes) {
    std::vector<std::string> out;
    for (const Axis& a : axes) out.push_back(a.name);
    return out;
}

/// So few terms that one thread adds them up; fewer where they lie in a row of their own, which lanes can share.
constexpr int64_t few_terms = 64, few_in_a_row = 8;

class Grouping {
  public:
    Grouping(const Program& p, const Structure& structure) : p_(p), structure_(structure) {
        for_each_block(p.body, [&](const Block& b, Loc) {
            if (!is_fill(p, b.label)) blocks_.push_back(&b);
        });
    }

    std::vector<Group> run() {
        std::vector<Group> out;
        for (size_t i = 0; i < blocks_.size();) {
            Group g = group_from(i);
            i += g.labels.size();
            out.push_back(std::move(g));
        }
        return out;
    }

  private:
    std::vector<std::string> par(const Block& b) const { return names_of(axes_of_kind(b, true)); }

    bool reduces(const Block& b) const {
        const std::vector<Axis> rest = axes_of_kind(b, false);
        if (rest.empty()) return false;
        int64_t terms = 1;
        for (const Axis& a : rest) {
            const auto n = size_of(p_, a.size);
            if (!n || *n > few_terms || a.kind == AxisKind::Scan) return true;
            terms *= std::max<int64_t>(*n, 1);
        }
        return terms > (in_a_row(b, rest) ? few_in_a_row : few_terms);
    }

    /// Does the block read along a reduced axis and nothing else, not through a window that moves with its points?
    bool in_a_row(const Block& b, const std::vector<Axis>& reduced) const {
        const auto x = is_pair(b.monoid) ? std::nullopt : main_load(p_, b);
        return x && !(*x)->subscripts.empty() && std::ranges::any_of(reduced, [&](const Axis& a) { return is_name((*x)->subscripts.back(), a.name); });
    }

    std::string inner_of(const Block& b) const {
        const auto x = main_load(p_, b);
        return x ? neighbours((*x)->subscripts, b) : "";
    }

    GroupKind kind_of(const Block& b) const {
        if (structure_.is_product && structure_.is_product(b)) return GroupKind::Products;
        if (!reduces(b)) return GroupKind::Points;
        if (par(b).empty()) return GroupKind::Whole;
        const Axis* a = analysis::axis_of(b, inner_of(b));
        return a && a->kind == AxisKind::Par ? GroupKind::Columns : GroupKind::Rows;
    }

    static bool holds(const std::vector<std::string>& all, const std::vector<std::string>& some) {
        return std::ranges::all_of(some, [&](const std::string& s) { return std::ranges::find(all, s) != all.end(); });
    }

    Group group_from(size_t i) const {
        if (structure_.chain)
            if (std::vector<std::string> labels = structure_.chain(*blocks_[i]); !labels.empty()) return {GroupKind::Chain, std::move(labels), par(*blocks_[i]), ""};
        for (size_t j = i; j < blocks_.size(); ++j)
            if (kind_of(*blocks_[j]) == GroupKind::Rows) {
                const std::vector<std::string> rows = par(*blocks_[j]);
                const bool joins = std::all_of(blocks_.begin() + static_cast<std::ptrdiff_t>(i), blocks_.begin() + static_cast<std::ptrdiff_t>(j), [&](const Block* b) { return kind_of(*b) == GroupKind::Points && holds(par(*b), rows); });
                if (joins) return rows_from(i, *blocks_[j]);
            }
        if (kind_of(*blocks_[i]) == GroupKind::Products) return products_from(i);
        return kind_of(*blocks_[i]) == GroupKind::Points ? points_from(i) : single_from(i);
    }

    Group rows_from(size_t i, const Block& reduction) const {
        Group g{GroupKind::Rows, {}, par(reduction), inner_of(reduction)};
        for (; i < blocks_.size(); ++i) {
            const Block& b = *blocks_[i];
            const GroupKind kind = kind_of(b);
            const bool same = kind == GroupKind::Points ? holds(par(b), g.rows) : kind == GroupKind::Rows && par(b) == g.rows;
            if (!same) break;
            g.labels.push_back(b.label);
        }
        return g;
    }

    Group points_from(size_t i) const {
        Group g{GroupKind::Points, {}, par(*blocks_[i]), ""};
        for (; i < blocks_.size() && kind_of(*blocks_[i]) == GroupKind::Points && par(*blocks_[i]) == g.rows; ++i) g.labels.push_back(blocks_[i]->label);
        g.inner = g.rows.empty() ? "" : g.rows.back();
        return g;
    }

    std::vector<std::string> reduced(const Block& b) const { return names_of(axes_of_kind(b, false)); }

    /// Sums over the same terms for the same cells, none of which reads another's, and what follows for these cells.
    Group products_from(size_t i) const {
        Group g{GroupKind::Products, {}, par(*blocks_[i]), ""};
        std::set<std::string> made;
        const std::vector<std::string> terms = reduced(*blocks_[i]);
        for (; i < blocks_.size() && kind_of(*blocks_[i]) == GroupKind::Products && par(*blocks_[i]) == g.rows && reduced(*blocks_[i]) == terms && !analysis::meet(tensors_read(*blocks_[i]), made); ++i) {
            g.labels.push_back(blocks_[i]->label);
            made.insert(blocks_[i]->outs[0].tensor);
        }
        for (; i < blocks_.size() && kind_of(*blocks_[i]) == GroupKind::Points && par(*blocks_[i]) == g.rows && axes_of_kind(*blocks_[i], false).empty(); ++i) g.labels.push_back(blocks_[i]->label);
        g.inner = g.rows.back();
        return g;
    }

    /// A reduction to few cells, and what follows for the same cells.
    Group single_from(size_t i) const {
        Group g{kind_of(*blocks_[i]), {blocks_[i]->label}, par(*blocks_[i]), inner_of(*blocks_[i])};
        for (++i; i < blocks_.size() && kind_of(*blocks_[i]) == GroupKind::Points && par(*blocks_[i]) == g.rows; ++i) g.labels.push_back(blocks_[i]->label);
        return g;
    }

    const Program& p_;
    const Structure& structure_;
    std::vector<const Block*> blocks_;
};

}  // namespace

std::vector<Group> groups_of(const Program& loops, const Structure& structure) { return Grouping(loops, structure).run(); }

}  // namespace acu::synth::plan
