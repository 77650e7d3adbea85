#include "codegen/alignment.h"

#include <algorithm>
#include <numeric>

namespace acu::codegen {

using namespace ir;

namespace {

class Multiples {
  public:
    Multiples(const Program& p, const analysis::Facts& facts, std::map<std::string, int64_t>& dims) : p_(p), facts_(facts), dims_(dims) {}

    bool holds(const Index& e, int64_t n) {
        if (divisor(e) % n == 0) return true;
        switch (e->op) {
            case IndexOp::Name: {
                const Index definition = facts_.definition(e->name);
                return definition ? holds(definition, n) : assume(e->name, n);
            }
            case IndexOp::Add:
            case IndexOp::Sub:
            case IndexOp::Min:
            case IndexOp::Max: return holds(e->args[0], n) && holds(e->args[1], n);
            case IndexOp::Mul: return holds(e->args[1], n / std::gcd(n, divisor(e->args[0]))) || holds(e->args[0], n / std::gcd(n, divisor(e->args[1])));
            case IndexOp::Mod: return holds(e->args[0], n) && holds(e->args[1], n);
            default: return false;
        }
    }

  private:
    /// A number that divides `e` whatever the sizes are; 0 is a multiple of all.
    int64_t divisor(const Index& e) const {
        switch (e->op) {
            case IndexOp::Const: return std::abs(e->value);
            case IndexOp::Name: {
                const Index definition = facts_.definition(e->name);
                const Dim* d = dim(e->name);
                return definition ? divisor(definition) : d && d->value ? *d->value : 1;
            }
            case IndexOp::Add:
            case IndexOp::Sub:
            case IndexOp::Min:
            case IndexOp::Max:
            case IndexOp::Mod: return std::gcd(divisor(e->args[0]), divisor(e->args[1]));
            case IndexOp::Mul: return divisor(e->args[0]) * divisor(e->args[1]);
            default: return 1;
        }
    }

    const Dim* dim(const std::string& name) const {
        const auto it = std::ranges::find(p_.dims, name, &Dim::name);
        return it == p_.dims.end() ? nullptr : &*it;
    }
    bool assume(const std::string& name, int64_t n) {
        const Dim* d = dim(name);
        if (!d || d->value) return false;
        int64_t& now = dims_.try_emplace(name, 1).first->second;
        now = std::lcm(now, n);
        return true;
    }

    const Program& p_;
    const analysis::Facts& facts_;
    std::map<std::string, int64_t>& dims_;
};

}  // namespace

bool is_multiple(const Index& e, int64_t n, const Program& p, const analysis::Facts& facts, std::map<std::string, int64_t>& dims) {
    std::map<std::string, int64_t> wanted = dims;
    if (!Multiples(p, facts, wanted).holds(e, n)) return false;
    dims = std::move(wanted);
    return true;
}

Index offset_of(const Decl& d, const std::vector<Index>& subscripts) {
    Index at = constant(0);
    for (size_t i = 0; i < subscripts.size(); ++i) at = at * d.dims[i].size + (subscripts[i] - d.dims[i].origin);
    return at;
}

}  // namespace acu::codegen
