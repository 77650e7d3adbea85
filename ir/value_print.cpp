#include <fmt/format.h>

#include <cmath>

#include "ir/value.h"

namespace acu::ir {

std::string_view sign_of(Op op) {
    switch (op) {
        case Op::Add: return "+";
        case Op::Sub: return "-";
        case Op::Mul: return "*";
        case Op::Div: return "/";
        case Op::Mod: return "%";
        case Op::Shl: return "<<";
        case Op::Shr: return ">>";
        case Op::BitAnd: return "&";
        case Op::BitXor: return "^";
        case Op::BitOr: return "|";
        case Op::Eq: return "==";
        case Op::Ne: return "!=";
        case Op::Lt: return "<";
        case Op::Le: return "<=";
        case Op::Gt: return ">";
        case Op::Ge: return ">=";
        case Op::And: return "and";
        case Op::Or: return "or";
        default: return "";
    }
}

std::string print_number(double x, DType type) {
    std::string s = type == DType::F64 ? fmt::format("{}", x) : fmt::format("{}", static_cast<float>(x));
    if (std::isfinite(x) && s.find_first_of(".e") == std::string::npos) s += ".0";
    return type == DType::F64 ? s + "d" : s;
}

static std::string print_const(const ValueNode& v) {
    if (v.type == DType::Bool) return v.integer ? "true" : "false";
    if (is_float(v.type)) return print_number(v.number, v.type);
    return fmt::format("{}{}", v.integer, v.type == DType::I64 ? "l" : "");
}

std::string print(const Axis& a) {
    const char* mark = a.kind == AxisKind::Par ? "" : a.kind == AxisKind::Red ? "!" : "^";
    const std::string vector = a.vector > 1 ? fmt::format(" vec({})", a.vector) : "";
    if (is_const(a.base, 0)) return fmt::format("{}{} in {}{}", a.name, mark, print(a.size), vector);
    return fmt::format("{}{} in {} +: {}{}", a.name, mark, print(a.base), print(a.size), vector);
}

static std::string subscript_list(const std::vector<Index>& subscripts) {
    std::string s;
    for (const Index& i : subscripts) s += (s.empty() ? "" : ", ") + print(i);
    return s;
}

static std::string print_reduce(const ValueNode& v) {
    std::string axes;
    for (Axis a : v.axes) {
        a.kind = AxisKind::Par;
        axes += (axes.empty() ? "" : ", ") + print(a);
    }
    if (v.args.size() > 1) axes += " where " + print(v.args[1]);
    return fmt::format("({}({}) {})", info(v.monoid).name, axes, print(v.args[0]));
}

static std::string print_call(const ValueNode& v) {
    std::string args;
    for (const Value& a : v.args) args += (args.empty() ? "" : ", ") + print(a);
    return fmt::format("{}({})", v.name, args);
}

/// Operands that are operators stand in parentheses, so that reading back needs no precedence.
static std::string operand(const Value& v) {
    const bool infix = !sign_of(v->op).empty() || v->op == Op::Neg || v->op == Op::Not || v->op == Op::BitNot ||
                       (v->op == Op::OfIndex && v->subscripts[0]->args.size() == 2 && v->subscripts[0]->op <= IndexOp::Mod) ||
                       (v->op == Op::Const && (v->number < 0 || std::signbit(v->number) || v->integer < 0));
    return infix ? "(" + print(v) + ")" : print(v);
}

std::string print(const Value& v) {
    switch (v->op) {
        case Op::Const: return print_const(*v);
        case Op::OfIndex: return print(v->subscripts[0]);
        case Op::Load: {
            const std::string version = v->version.empty() ? "" : "{" + subscript_list(v->version) + "}";
            const std::string s = fmt::format("{}{}[{}]", v->name, version, subscript_list(v->subscripts));
            return v->args.empty() ? s : fmt::format("({} default {})", s, print(v->args[0]));
        }
        case Op::Neg: return "-" + operand(v->args[0]);
        case Op::Not: return "!" + operand(v->args[0]);
        case Op::BitNot: return "~" + operand(v->args[0]);
        case Op::Select: return fmt::format("({} if {} else {})", print(v->args[1]), print(v->args[0]), print(v->args[2]));
        case Op::Cast:
        case Op::Call: return print_call(*v);
        case Op::Reduce: return print_reduce(*v);
        default: return fmt::format("{} {} {}", operand(v->args[0]), sign_of(v->op), operand(v->args[1]));
    }
}

std::string describe(const Value& v) {
    const std::string text = print(v);
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool suffix = text[i] == 'l' && i > 0 && std::isdigit(static_cast<unsigned char>(text[i - 1])) && (i + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[i + 1])));
        if (!suffix) out += text[i];
    }
    return out;
}

}  // namespace acu::ir
