#include "synth/plan/align_names.h"

#include <algorithm>

#include "ir/analysis/dependence.h"
#include "synth/plan/groups.h"

namespace acu::synth::plan {

using namespace ir;

namespace {

class Alignment {
  public:
    explicit Alignment(Draft& d) : draft_(d) {}

    void run() {
        std::vector<std::string> labels;
        for_each_block(draft_.program().body, [&](const Block& b, Loc) { labels.push_back(b.label); });
        for (const std::string& label : labels)
            if (!is_fill(draft_.program(), label)) statement(label);
    }

  private:
    void statement(const std::string& label) {
        rename(label, false);
        const Block b = *block_named(draft_.program(), label);
        for (const Access& o : b.outs) learn(o.tensor, o.subscripts, true);
        for (const analysis::Touch& t : analysis::touches(b))
            if (!t.write) learn(t.tensor, t.subscripts, false);
        for (const Access& o : b.outs)
            if (block_named(draft_.program(), o.tensor + ".init")) rename(o.tensor + ".init", true);
    }

    void learn(const std::string& tensor, const std::vector<Index>& subscripts, bool again) {
        std::vector<std::string> names;
        for (const Index& i : subscripts) names.push_back(i->op == IndexOp::Name ? i->name : "");
        if (again) words_[tensor] = names;
        else words_.emplace(tensor, names);
    }

    /// Renames the axes of a statement by what it reads, or, of a fill, by what it writes.
    void rename(const std::string& label, bool by_outs) {
        const Block b = *block_named(draft_.program(), label);
        for (const analysis::Touch& t : analysis::touches(b)) {
            const auto known = words_.find(t.tensor);
            if (t.write != by_outs || known == words_.end()) continue;
            for (size_t i = 0; i < t.subscripts.size() && i < known->second.size(); ++i) one(label, t.subscripts[i], known->second[i]);
        }
    }

    void one(const std::string& label, const Index& now, const std::string& to) {
        if (now->op != IndexOp::Name || to.empty() || now->name == to) return;
        const Block* b = block_named(draft_.program(), label);
        if (!analysis::axis_of(*b, now->name) || analysis::axis_of(*b, to)) return;
        draft_.step("rename", {label}, {{"axis", now->name}, {"to", to}}, "one name for one axis, so that the statements can share loops");
    }

    Draft& draft_;
    std::map<std::string, std::vector<std::string>> words_;
};

}  // namespace

void align_names(Draft& draft) { Alignment(draft).run(); }

}  // namespace acu::synth::plan
