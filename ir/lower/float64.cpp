#include <algorithm>

#include "ir/lower/lower.h"

namespace acu::ir::lower {
namespace {

/// Rebuilds values bottom-up with the element types of the new declarations; the constructors derive the types.
class Widening {
  public:
    explicit Widening(std::map<std::string, DType> types) : types_(std::move(types)) {}

    Value value(const Value& v) const {
        std::vector<Value> a;
        for (const Value& x : v->args) a.push_back(value(x));
        switch (v->op) {
            case Op::Const: return is_float(v->type) ? number(v->number, DType::F64) : v;
            case Op::OfIndex: return v;
            case Op::Load: return wide(with_version(load(v->name, types_.at(v->name), v->subscripts, a.empty() ? nullptr : a[0]), v->version));
            case Op::Neg:
            case Op::Not:
            case Op::BitNot: return unary(v->op, a[0]);
            case Op::Select: return select(a[0], a[1], a[2]);
            case Op::Call: return call(v->name, std::ranges::any_of(a, floating) || !function_named(v->name)->floating ? a : std::vector<Value>{cast(DType::F64, a[0])});
            case Op::Reduce: return reduce(v->monoid, v->axes, a[0], a.size() > 1 ? a[1] : nullptr);
            case Op::Cast: {
                const DType to = *type_named(v->name);
                return is_float(to) ? cast(DType::F64, a[0]) : cast(to, a[0]);
            }
            default: return binary(v->op, a[0], a[1]);
        }
    }

  private:
    static bool floating(const Value& v) { return is_float(v->type); }
    static Value wide(const Value& v) { return is_float(v->type) ? cast(DType::F64, v) : v; }
    std::map<std::string, DType> types_;
};

DType wide_type(const Decl& d) { return is_float(d.type) && d.scope != Scope::In ? DType::F64 : d.type; }

}  // namespace

static Body widen(const Body& body, const Widening& w, std::map<std::string, DType>& types);

static Stmt widen(const Stmt& s, const Widening& w, std::map<std::string, DType>& types) {
    return match(
        s, [&](const Block& b) { return with_node(s, map_block(b, [&](const Value& v) { return w.value(v); }, [](const Index& i) { return i; })); },
        [&](const Loop& l) {
            Loop n = l;
            for (Decl& d : n.allocs) types[d.name] = d.type = wide_type(d);
            n.body = widen(l.body, Widening(types), types);
            return with_node(s, std::move(n));
        },
        [&](const If& i) { return with_node(s, If{w.value(i.condition), widen(i.body, w, types), widen(i.otherwise, w, types)}); },
        [&](const Roles& r) {
            Roles n = r;
            for (Role& role : n.roles) role.body = widen(role.body, w, types);
            return with_node(s, std::move(n));
        },
        [&](const Sync&) { return s; });
}

static Body widen(const Body& body, const Widening& w, std::map<std::string, DType>& types) {
    Body out;
    for (const Stmt& s : body) out.push_back(widen(s, w, types));
    return out;
}

Program in_float64(const Program& p) {
    Program out = p;
    std::map<std::string, DType> types;
    for (Decl& d : out.decls) types[d.name] = d.type = wide_type(d);
    out.body = widen(p.body, Widening(types), types);
    return out;
}

}  // namespace acu::ir::lower
