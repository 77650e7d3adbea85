#include "synth/plan/chains.h"

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "synth/plan/products.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

std::vector<std::string> names(const std::vector<Axis>& axes) {
    std::vector<std::string> out;
    for (const Axis& a : axes) out.push_back(a.name);
    return out;
}
std::vector<std::string> par(const Block& b) { return names(axes_of_kind(b, true)); }
std::vector<std::string> red(const Block& b) { return names(axes_of_kind(b, false)); }

bool same_names(std::vector<std::string> a, std::vector<std::string> b) {
    std::ranges::sort(a), std::ranges::sort(b);
    return a == b;
}
bool holds(const std::vector<std::string>& all, const std::vector<std::string>& some) {
    return std::ranges::all_of(some, [&](const std::string& s) { return std::ranges::find(all, s) != all.end(); });
}

class ChainSearch {
  public:
    ChainSearch(const Program& p, const std::string& first) : p_(p) {
        bool on = false;
        for_each_block(p.body, [&](const Block& b, Loc) {
            on |= b.label == first;
            if (on && !is_fill(p, b.label)) blocks_.push_back(&b);
        });
    }

    std::optional<Chain> run() {
        if (blocks_.empty() || blocks_[0]->monoid != Monoid::Sum || !product_of(p_, *blocks_[0])) return {};
        c_.scores = blocks_[0]->label;
        points_ = par(*blocks_[0]);
        size_t i = 1;
        while (i < blocks_.size() && is_point(*blocks_[i])) ++i;
        if (i == blocks_.size() || !is_top(*blocks_[i])) return {};
        c_.top = blocks_[i]->label, c_.terms = red(*blocks_[i])[0], c_.rows = par(*blocks_[i]);
        const std::string top = blocks_[i]->outs[0].tensor;
        while (++i < blocks_.size() && c_.exp.empty()) {
            if (!is_point(*blocks_[i]) && !is_row(*blocks_[i])) return {};
            if (is_point(*blocks_[i]) && tensors_read(*blocks_[i]).contains(top)) c_.exp = blocks_[i]->label;
        }
        while (i < blocks_.size() && (is_point(*blocks_[i]) || is_row(*blocks_[i]))) ++i;
        if (c_.exp.empty() || i == blocks_.size() || !is_last(*blocks_[i])) return {};
        c_.last = blocks_[i]->label;
        const std::vector<std::string> results = par(*blocks_[i]);
        for (++i; i < blocks_.size() && blocks_[i]->monoid == Monoid::None && same_names(par(*blocks_[i]), results) && red(*blocks_[i]).empty();) ++i;
        for (size_t k = 0; k < i; ++k) c_.labels.push_back(blocks_[k]->label);
        return c_;
    }

  private:
    bool is_point(const Block& b) const { return b.monoid == Monoid::None && same_names(par(b), points_) && !is_scatter(b); }
    bool is_top(const Block& b) const {
        const std::vector<std::string> r = red(b);
        return b.monoid == Monoid::Max && r.size() == 1 && holds(points_, par(b)) && holds(points_, r) && par(b).size() + 1 == points_.size();
    }
    bool is_row(const Block& b) const { return same_names(par(b), c_.rows) && (red(b).empty() || red(b) == std::vector{c_.terms}) && !is_scatter(b); }
    bool is_last(const Block& b) const {
        return b.monoid == Monoid::Sum && red(b) == std::vector{c_.terms} && holds(par(b), c_.rows) && par(b).size() == c_.rows.size() + 1 && !is_scatter(b);
    }

    const Program& p_;
    std::vector<const Block*> blocks_;
    std::vector<std::string> points_;    ///< axes of the scores
    Chain c_;
};

}  // namespace

std::optional<Chain> chain_from(const Program& p, const std::string& label) { return ChainSearch(p, label).run(); }

}  // namespace acu::synth::plan
