#include "ir/analysis/inputs.h"

#include <algorithm>

namespace acu::ir::analysis {
namespace {

class Uses {
  public:
    explicit Uses(const Program& p) : p_(p) {
        for (const Stmt& s : p.body) block(std::get<Block>(s->node));
    }
    std::map<std::string, InputUse> found;

  private:
    void note(const std::string& tensor, InputUse::Kind kind, const Index& bound) {
        const Decl* d = p_.find(tensor);
        if (d && d->scope == Scope::In && !is_float(d->type)) found.try_emplace(tensor, InputUse{kind, bound});
    }

    /// `size`: of the dimension that the expression subscripts.
    void index(const Index& e, const Index& size) {
        if (e->op == IndexOp::Load && size) note(e->name, InputUse::Subscript, size);
        if (e->op == IndexOp::Segment) {
            const auto extent = e->args[0]->op == IndexOp::Name ? extents_.find(e->args[0]->name) : extents_.end();
            if (extent != extents_.end()) note(e->name, InputUse::Offsets, extent->second);
        }
        const Decl* inner = e->op == IndexOp::Load ? p_.find(e->name) : nullptr;
        for (size_t i = 0; i < e->args.size(); ++i) index(e->args[i], inner ? inner->dims[i].size : nullptr);
    }

    void value(const Value& v) {
        for (const Axis& a : v->axes) extents_[a.name] = a.size;
        if (v->op >= Op::Lt && v->op <= Op::Ge) comparison(v->args[0], v->args[1]), comparison(v->args[1], v->args[0]);
        const Decl* d = v->op == Op::Load ? p_.find(v->name) : nullptr;
        for (size_t i = 0; i < v->subscripts.size(); ++i) index(v->subscripts[i], d ? d->dims[i].size : nullptr);
        for (const Value& a : v->args) value(a);
    }

    /// `j < lens[b]`: a length along the axis j.
    void comparison(const Value& axis, const Value& length) {
        const Value& l = length->op == Op::Cast ? length->args[0] : length;
        if (axis->op != Op::OfIndex || axis->subscripts[0]->op != IndexOp::Name || l->op != Op::Load) return;
        const auto extent = extents_.find(axis->subscripts[0]->name);
        if (extent != extents_.end()) note(l->name, InputUse::Length, extent->second);
    }

    void block(const Block& b) {
        for (const Axis& a : b.axes) extents_[a.name] = a.size;
        for (const Value& v : b.vals) value(v);
        for (const Value& g : b.guards) value(g);
        for (const Access& o : b.outs) {
            const Decl* d = p_.find(o.tensor);
            for (size_t i = 0; i < o.subscripts.size(); ++i) index(o.subscripts[i], d ? d->dims[i].size : nullptr);
        }
    }

    const Program& p_;
    std::map<std::string, Index> extents_;
};

}  // namespace

std::map<std::string, InputUse> input_uses(const Program& tensor) { return std::move(Uses(tensor).found); }

}  // namespace acu::ir::analysis
