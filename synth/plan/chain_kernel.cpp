#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/microkernel.h"
#include "ir/pass/edit.h"
#include "microkernels/catalogue.h"
#include "synth/plan/chains.h"
#include "synth/plan/kernels.h"
#include "synth/plan/products.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

/// Rows of a block and terms of one iteration, who computes them, and how many tiles of terms are on their way.
struct ChainTile {
    int64_t rows, terms, groups, stages;
    bool overlap;    ///< the next scores are computed beside this tile's last product
};

/// The decisions for a chain: one loop over tiles of the terms, scores and sums in registers.
class ChainKernel {
  public:
    ChainKernel(Draft d, Chain c) : d_(std::move(d)), c_(std::move(c)) {}

    std::optional<Draft> best() {
        const auto scores = product_of(d_.program(), *block_named(d_.program(), c_.scores));
        if (!scores) return {};
        along_ = scores->rows == c_.terms ? scores->columns : scores->rows;
        if (along_ == c_.terms || (scores->rows != c_.terms && scores->columns != c_.terms) || std::ranges::find(c_.rows, along_) == c_.rows.end()) return {};
        const bool swapped = scores->rows == c_.terms;
        first_ = (swapped ? scores->b : scores->a).load->name, second_ = (swapped ? scores->a : scores->b).load->name;
        deep_ = scores->terms;
        for (const Instruction& i : instructions_for(d_.target(), *scores)) {
            if (!i.type || *i.type != scores->a.type || scores->a.type != scores->b.type || !scores->a.plain || !scores->b.plain) continue;
            instruction_ = i;
            for (const ChainTile& t : tiles())
                if (auto out = planned(t)) return out;
        }
        return {};
    }

  private:
    const Microkernel& microkernel() const { return *instruction_.microkernel; }
    bool uses_engine() const { return microkernel().group == ThreadGroup::Warpgroup; }
    bool step(std::string pass, std::vector<std::string> sites, Arguments args, std::string why) { return d_.step(std::move(pass), std::move(sites), std::move(args), std::move(why)); }

    int64_t size(const std::string& label, const std::string& axis) const {
        const Axis* a = analysis::axis_of(*block_named(d_.program(), label), axis);
        return a ? size_of(d_.program(), a->size).value_or(0) : 0;
    }

    /// The columns of the last product.
    std::string last_axis() const {
        for (const Axis& a : axes_of_kind(*block_named(d_.program(), c_.last), true))
            if (std::ranges::find(c_.rows, a.name) == c_.rows.end()) return a.name;
        return {};
    }

    /// Measured on an H200: heads of 64 gain a quarter from tiles so small that two blocks share a multiprocessor; those of 128 gain a fifth from starting the next scores beside the last product.
    std::vector<ChainTile> tiles() const {
        const int64_t deep = size(c_.scores, deep_), wide = size(c_.last, last_axis());
        if (!deep || !wide) return {};
        if (!uses_engine()) {
            const int64_t groups = std::min<int64_t>(4, 64 / microkernel().matrix.rows);
            return {{64, 64, groups, 2, false}, {64, 32, groups, 2, false}};
        }
        std::vector<ChainTile> out;
        if (std::max(deep, wide) <= 64) out = {{128, 64, 2, 4, false}};
        else if (std::max(deep, wide) <= 128) out = {{128, 128, 2, 2, true}};
        else out = {{128, 64, 2, 2, false}};
        out.push_back({64, 64, 1, 2, false});
        return out;
    }

    std::optional<Draft> planned(const ChainTile& t) {
        const Draft before = d_;
        std::optional<Draft> out;
        if (build(t) && d_.lowers()) out = d_;
        d_ = before;
        return out;
    }

    bool build(const ChainTile& t) {
        std::vector<std::string> labels = c_.labels;
        std::string last = unrolled(labels);
        pass::Sizes over;
        for (const std::string& r : c_.rows) over.emplace_back(r, r == along_ ? t.rows : 1);
        if (!step("fuse", labels, {{"over", over}, {"kind", "grid"}}, fmt::format("a block for {} rows", t.rows))) return false;
        const std::string home = loop_around(d_.program(), last);
        const pass::Sizes terms{{c_.terms, t.terms}};
        if (!step("online", {c_.top}, {{"over", terms}, {"exp", c_.exp}}, "scores are never stored: what was summed is corrected when a maximum grows")) return false;
        loop_ = loop_around(d_.program(), c_.exp);
        for (const std::string& tensor : results_of(d_.program(), labels))
            if (const Decl* x = d_.program().find(tensor); x && x->scope == Scope::Temp && !step("keep", {tensor}, {{"at", written_in_loop(tensor) ? loop_ : home}, {"in", "register"}}, "the tile stays in registers")) return false;
        const std::string value = factor_of(last);
        if (value.empty()) return false;
        copies_ = {second_ + ".t", value + ".t"};
        if (!step("stage", {first_}, {{"at", home}, {"in", "shared"}}, "read once for all terms")) return false;
        for (const std::string& s : std::vector{second_, value})
            if (!step("stage", {s}, {{"at", loop_}, {"in", "shared"}}, "each element is read once from memory for the tile")) return false;
        bool trimmed = false;
        for (const std::string& l : inside())
            if (!trimmed) trimmed = step("trim", {loop_, l}, {}, "tiles that the mask hides altogether are left out");
        const std::string query = first_ + ".t";
        for (const std::string& c : {query, copies_[0], copies_[1]}) step("pad", {c}, {}, "whole tiles, with zeros beyond the edges");
        step("pad", {c_.exp}, {}, "hidden terms are zero");
        step("relax", {c_.scores}, {}, "zeros add nothing");
        const auto relaxed = [&](bool sums) {
            for (const std::string& l : inside(home))
                if (l != last && l != c_.exp && (block_named(d_.program(), l)->monoid == Monoid::Sum) == sums) step("relax", {l}, {}, sums ? "hidden terms are zero" : "beyond the edges nobody looks at what is computed");
        };
        relaxed(false), relaxed(false);    // what comes before a maximum reads the last one
        relaxed(true);
        if (!step("narrow", {last}, {{"reads", exponentials()}, {"as", std::string(name_of(*instruction_.type))}}, "matrix instructions multiply factors of one type")) return false;
        if (!step("relax", {last}, {}, "hidden terms are zero")) step("relax", {last}, {{"finite", std::vector{copies_[1]}}}, "hidden terms are zero, and what they multiply is taken to be finite");
        const std::string factor = last + ".p";
        if (!step("outline", {last}, {{"reads", exponentials()}, {"into", factor}, {"in", std::string(from_registers() ? "register" : "shared")}}, "rounded once, where they are computed")) return false;
        if (!from_registers() && !swizzled(factor)) return false;
        for (const std::string& l : inside())
            if (l != last && l != c_.scores && std::ranges::find(copies_, l) == copies_.end()) step("decide", {l}, {}, "inside of the mask nothing is asked");
        for (const std::string& c : {query, copies_[0], copies_[1]})
            if (!swizzled(c)) return false;
        if (!multiplied(last, t) || !(uses_engine() ? by_roles(last, home, t) : by_threads())) return false;
        if (trimmed) step("flip", {home}, {}, "what a mask leaves most of starts first");
        return true;
    }

    /// What stands between the exponentials and the last product is part of that, and divisors follow it. Answers the product.
    std::string unrolled(std::vector<std::string>& labels) {
        for (auto it = std::ranges::find(labels, c_.exp) + 1; it != labels.end() && *it != c_.last;)
            it = block_named(d_.program(), *it)->monoid == Monoid::None && d_.step("inline", {*it}, {}, "part of the last product") ? labels.erase(it) : it + 1;
        if (!step("hoist", {c_.last}, {}, "divided once, at the end")) return c_.last;
        const std::string product = c_.last + ".w";
        labels.insert(std::ranges::find(labels, c_.last), product);
        return product;
    }

    std::vector<std::string> inside() const { return inside(loop_); }
    std::vector<std::string> inside(const std::string& loop) const {
        std::vector<std::string> out = labels_inside(d_.program(), loop);
        std::erase_if(out, [&](const std::string& l) { return is_fill(d_.program(), l); });
        return out;
    }

    /// Made anew in each iteration?
    bool written_in_loop(const std::string& tensor) const {
        const std::vector<std::string> all = inside();
        return std::ranges::any_of(all, [&](const std::string& l) {
            const Block& b = *block_named(d_.program(), l);
            const Axis* a = analysis::axis_of(b, c_.terms);
            return b.outs[0].tensor == tensor && a && a->kind == AxisKind::Par;
        });
    }

    std::string exponentials() const { return block_named(d_.program(), c_.exp)->outs[0].tensor; }

    /// The matrix that the last product multiplies the exponentials by.
    std::string factor_of(const std::string& last) const {
        std::string out;
        for (const std::string& t : tensors_read(*block_named(d_.program(), last)))
            if (const Decl* d = d_.program().find(t); d && d->scope != Scope::Param && d->type == *instruction_.type) out = t;
        return out;
    }

    bool swizzled(const std::string& copy) {
        const Decl& d = pass::find_buffer(d_.program(), copy);
        const int64_t line = size_of(d_.program(), d.dims.back().size).value_or(0) * static_cast<int64_t>(info(d.type).bytes);
        for (const int64_t pattern : {128, 64, 32}) {
            if (!line || line % pattern) continue;
            Arguments args{{"pattern", std::to_string(pattern)}};
            if (line > pattern && uses_engine()) args.emplace("panels", "yes");
            if (line > 128 && !uses_engine()) args.emplace("rows", std::min<int64_t>(line / 128, 16));
            if (step("swizzle", {copy}, args, "lines of a matrix lie in different banks")) return true;
        }
        return !uses_engine();
    }

    /// The instruction that takes its first factor from registers.
    const Microkernel* from_registers() const {
        for (const Microkernel& m : microkernels::catalogue())
            if (m.matrix.rows_in_registers && m.group == microkernel().group && m.on(d_.target().name) && std::ranges::find(m.types, *instruction_.type) != m.types.end()) return &m;
        return nullptr;
    }

    bool multiplied(const std::string& last, const ChainTile& t) {
        const Microkernel* rows = from_registers() ? from_registers() : &microkernel();
        if (!step("bind_mma", {c_.scores}, {{"via", microkernel().id}, {"rows", t.groups}, {"along", along_}}, microkernel().doc)) return false;
        if (!step("bind_mma", {last}, {{"via", rows->id}, {"rows", t.groups}, {"along", along_}}, rows->doc)) return false;
        for (const std::string& l : inside()) {
            const Block& b = *block_named(d_.program(), l);
            const bool reduces = b.monoid != Monoid::None && std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Red; });
            if (reduces && b.via.empty() && !step("bind_reduce", {l}, {{"via", "common.rows_reduce"}}, "lanes that have parts of a row join by shuffles")) return false;
            step("approximate", {l}, {{"function", "exp"}, {"with", "hardware"}}, "its relative error stays far below the rounding to 16 bits");
        }
        const Block& end = *block_named(d_.program(), c_.labels.back());
        if (const std::string n = neighbours(end.outs[0].subscripts, end); !n.empty()) step("vectorize", {end.label, n}, {{"width", int64_t{2}}}, "neighbours of a fragment are stored together");
        return true;
    }

    bool by_roles(const std::string& last, const std::string& home, const ChainTile& t) {
        vectorize_copy(d_, first_ + ".t");
        for (const std::string& c : copies_)
            if (!step("bind_copy", {c}, {{"via", "sm90.tensor_copy"}}, "the copy engine brings boxes")) return false;
        if (!step("warp_specialize", {home}, {{"copies", copies_}, {"stages", t.stages}}, fmt::format("{} tiles on their way", t.stages))) return false;
        return !t.overlap || step("overlap", {"consumer/" + loop_}, {{"ahead", std::vector{c_.scores}}, {"behind", std::vector{last}}}, "the next scores are computed beside this tile's last product");
    }

    bool by_threads() {
        for (const std::string& c : {first_ + ".t", copies_[0], copies_[1]}) vectorize_copy(d_, c);
        if (d_.target().name != "sm_70" && d_.target().platform == Platform::Cuda && step("bind_copy", copies_, {{"via", "common.copy_async"}}, "copies that pass the registers by")) step("pipeline", {loop_}, {{"stages", int64_t{2}}}, "one tile on its way");
        return true;
    }

    Draft d_;
    Chain c_;
    Instruction instruction_{};
    std::string along_, deep_, first_, second_;    ///< axes of the rows and of the scores' terms; their factors
    std::string loop_;
    std::vector<std::string> copies_;
};

}  // namespace

std::optional<Draft> chain_kernel(Draft d, const Group& g) {
    auto chain = chain_from(d.program(), g.labels[0]);
    return chain ? ChainKernel(std::move(d), std::move(*chain)).best() : std::nullopt;
}

}  // namespace acu::synth::plan
