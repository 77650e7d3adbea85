#include "ir/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/scalar.h"

namespace acu::ir {

static Index make(IndexNode n) { return std::make_shared<const IndexNode>(std::move(n)); }

Index constant(int64_t value) { return make({IndexOp::Const, value}); }
Index name(std::string text) { return make({IndexOp::Name, 0, std::move(text)}); }
Index load_index(std::string tensor, std::vector<Index> subscripts) { return make({IndexOp::Load, 0, std::move(tensor), std::move(subscripts)}); }
Index segment(std::string offsets, Index position) { return make({IndexOp::Segment, 0, std::move(offsets), {std::move(position)}}); }

int64_t apply(IndexOp op, int64_t a, int64_t b) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
        case IndexOp::Add: return static_cast<int64_t>(x + y);
        case IndexOp::Sub: return static_cast<int64_t>(x - y);
        case IndexOp::Mul: return static_cast<int64_t>(x * y);
        case IndexOp::Div: return floor_div(a, b);
        case IndexOp::Mod: return floor_mod(a, b);
        case IndexOp::Min: return std::min(a, b);
        case IndexOp::Max: return std::max(a, b);
        default: return 0;
    }
}

Index binary(IndexOp op, Index a, Index b) {
    if (is_const(a) && is_const(b)) return constant(apply(op, a->value, b->value));
    if ((op == IndexOp::Add || op == IndexOp::Sub) && is_const(b, 0)) return a;
    if (op == IndexOp::Add && is_const(a, 0)) return b;
    if (op == IndexOp::Mul && (is_const(b, 1) || is_const(a, 0))) return a;
    if (op == IndexOp::Mul && (is_const(a, 1) || is_const(b, 0))) return b;
    if (op == IndexOp::Div && is_const(b, 1)) return a;
    if (op == IndexOp::Mod && is_const(b, 1)) return constant(0);
    if (op == IndexOp::Sub && equal(a, b)) return constant(0);
    return make({op, 0, {}, {std::move(a), std::move(b)}});
}

Index operator+(const Index& a, const Index& b) { return binary(IndexOp::Add, a, b); }
Index operator-(const Index& a, const Index& b) { return binary(IndexOp::Sub, a, b); }
Index operator*(const Index& a, const Index& b) { return binary(IndexOp::Mul, a, b); }
Index div(const Index& a, const Index& b) { return binary(IndexOp::Div, a, b); }
Index mod(const Index& a, const Index& b) { return binary(IndexOp::Mod, a, b); }
Index ceil_div(const Index& a, const Index& b) { return div(a + b - constant(1), b); }

bool is_name(const Index& e, const std::string& text) { return e->op == IndexOp::Name && e->name == text; }

bool equal(const Index& a, const Index& b) {
    return a == b || (a->op == b->op && a->value == b->value && a->name == b->name && std::ranges::equal(a->args, b->args, equal));
}

Index map_args(const Index& e, const std::function<Index(const Index&)>& f) {
    if (e->args.empty()) return e;
    std::vector<Index> args;
    for (const Index& a : e->args) args.push_back(f(a));
    if (args == e->args) return e;
    if (e->op == IndexOp::Load || e->op == IndexOp::Segment) return make({e->op, 0, e->name, std::move(args)});
    return binary(e->op, args[0], args[1]);
}

Index substitute(const Index& e, const IndexMap& names) {
    if (e->op == IndexOp::Name) {
        const auto it = names.find(e->name);
        return it == names.end() ? e : it->second;
    }
    return map_args(e, [&](const Index& a) { return substitute(a, names); });
}

Index rename_tensors(const Index& e, const std::map<std::string, std::string>& names) {
    const Index mapped = map_args(e, [&](const Index& a) { return rename_tensors(a, names); });
    if (e->op != IndexOp::Load && e->op != IndexOp::Segment) return mapped;
    const auto it = names.find(e->name);
    return it == names.end() ? mapped : make({e->op, 0, it->second, mapped->args});
}

void free_names(const Index& e, std::set<std::string>& out) {
    if (e->op == IndexOp::Name) out.insert(e->name);
    for (const Index& a : e->args) free_names(a, out);
}

void loaded_tensors(const Index& e, std::set<std::string>& out) {
    if (e->op == IndexOp::Load || e->op == IndexOp::Segment) out.insert(e->name);
    for (const Index& a : e->args) loaded_tensors(a, out);
}

Index without_loads(const Index& e) {
    if (e->op == IndexOp::Min && mentions_load(e->args[0]) != mentions_load(e->args[1])) return without_loads(e->args[mentions_load(e->args[0])]);
    return map_args(e, without_loads);
}

bool mentions_load(const Index& e) {
    return e->op == IndexOp::Load || e->op == IndexOp::Segment || std::ranges::any_of(e->args, mentions_load);
}

int64_t evaluate(const Index& e, const Env& env) {
    if (e->op == IndexOp::Const) return e->value;
    if (e->op == IndexOp::Name) {
        const auto it = env.find(e->name);
        return it == env.end() ? 0 : it->second;
    }
    if (e->args.size() < 2) return 0;
    return apply(e->op, evaluate(e->args[0], env), evaluate(e->args[1], env));
}

static int precedence(IndexOp op) {
    if (op == IndexOp::Add || op == IndexOp::Sub) return 1;
    return op == IndexOp::Mul || op == IndexOp::Div || op == IndexOp::Mod ? 2 : 3;
}

static std::string print(const Index& e, int outer, bool right) {
    const int inner = precedence(e->op);
    const auto infix = [&](const char* sign) {
        std::string s = print(e->args[0], inner, false) + sign + print(e->args[1], inner, true);
        return inner < outer || (inner == outer && right) ? "(" + s + ")" : s;
    };
    const auto list = [&] {
        std::vector<std::string> parts;
        for (const Index& a : e->args) parts.push_back(print(a, 0, false));
        return fmt::format("{}", fmt::join(parts, ", "));
    };
    switch (e->op) {
        case IndexOp::Const: return e->value < 0 && outer > 0 ? fmt::format("({})", e->value) : std::to_string(e->value);
        case IndexOp::Name: return e->name;
        case IndexOp::Add: return infix(" + ");
        case IndexOp::Sub: return infix(" - ");
        case IndexOp::Mul: return infix("*");
        case IndexOp::Div: return infix("/");
        case IndexOp::Mod: return infix("%");
        case IndexOp::Min: return "min(" + list() + ")";
        case IndexOp::Max: return "max(" + list() + ")";
        case IndexOp::Load: return e->name + "[" + list() + "]";
        case IndexOp::Segment: return "segment(" + e->name + ", " + list() + ")";
    }
    return "?";
}

std::string print(const Index& e) { return print(e, 0, false); }

}  // namespace acu::ir
