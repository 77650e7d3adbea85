#include "codegen/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include "ir/analysis/affine.h"

namespace acu::codegen {

using namespace ir;

// ---- names and types

static const std::set<std::string>& reserved() {
    static const std::set<std::string> words{
        "auto", "bool", "break", "case", "char", "class", "const", "continue", "default", "delete", "do", "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int",
        "long", "new", "operator", "private", "public", "register", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "true", "typedef", "union", "unsigned",
        "using", "virtual", "void", "volatile", "while", "i64", "i16", "i8", "u8", "f16", "bf16", "f8e4m3", "f8e5m2", "Index", "widen", "product", "infinity", "larger", "smaller", "magnitude", "saturate",
        "exp", "log", "erf", "sqrt", "sin", "cos", "tan", "pow", "y0", "y1", "yn", "j0", "j1", "jn", "and", "or", "not", "xor", "asm", "near", "far", "stream", "message", "message_size", "workspace_bytes", "queue", "needed", "memory", "report", "status", "blocks", "error", "sizes", "main", "div",
        "index", "thread", "block", "blocks", "total", "wide", "acu_smem", "NULL", "EOF", "INT_MAX", "INT_MIN", "LONG_MAX", "LONG_MIN", "BUFSIZ", "RAND_MAX", "INFINITY", "NAN", "HUGE_VAL", "M_PI", "DOMAIN", "OVERFLOW", "UNDERFLOW", "Report", "Range",
        "memset", "memcpy", "memmove", "memcmp", "malloc", "calloc", "realloc", "free", "printf", "puts", "read", "write", "open", "close", "system", "strlen", "atomic_add", "keep_best", "keep_top",
        "find_segment", "floor_div", "floor_mod", "better", "overlap", "padded", "stride_of", "read_sizes", "bytes_of", "element_bytes", "float_of", "bits_of", "sign_of", "not_a_number", "exp2", "log2", "log1p",
        "expm1", "rsqrt", "tanh", "trunc", "fma", "fmax", "fmin", "erfc", "cbrt", "hypot", "norm", "gamma", "round", "floor", "ceil", "abs", "min", "max", "warpSize", "cells", "stdin", "stdout", "signbit", "remove", "rename", "time", "exit", "workspace",
        "fast_exp", "fast_exp2", "fast_log", "fast_log2", "fast_sqrt", "fast_rsqrt", "fast_tanh", "fast_erf", "fast_reciprocal", "reciprocal"};
    return words;
}

bool is_reserved(const std::string& word) { return reserved().contains(word); }

std::string Identifiers::given(const std::string& key, const std::string& stem) {
    const auto [it, fresh_name] = given_.try_emplace(key);
    if (fresh_name) it->second = fresh(stem);
    return it->second;
}

std::string Identifiers::fresh(const std::string& stem) {
    std::string s = stem;
    std::ranges::replace_if(s, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    if (reserved().contains(s)) s += "_";
    std::string unique = s;
    for (int n = 2; !taken_.insert(unique).second; ++n) unique = fmt::format("{}{}{}", s, std::isdigit(static_cast<unsigned char>(s.back())) ? "_" : "", n);
    return unique;
}

std::string_view element_type(DType t) {
    switch (t) {
        case DType::Bool: return "bool";
        case DType::I8: return "i8";
        case DType::U8: return "u8";
        case DType::I16: return "i16";
        case DType::I32: return "int";
        case DType::I64: return "i64";
        case DType::F8E4M3: return "f8e4m3";
        case DType::F8E5M2: return "f8e5m2";
        case DType::F16: return "f16";
        case DType::BF16: return "bf16";
        case DType::Tf32:
        case DType::F32: return "float";
        case DType::F64: return "double";
    }
    return "?";
}
std::string_view value_type(DType t) { return element_type(widened(t)); }

// ---- index expressions

static int precedence(IndexOp op) {
    if (op == IndexOp::Add || op == IndexOp::Sub) return 1;
    return op == IndexOp::Mul || op == IndexOp::Div || op == IndexOp::Mod ? 2 : 3;
}

/// C's division is the floor where the operands are not negative.
std::string ExpressionWriter::index_division(const Index& e, int outer, bool right) {
    const char sign = e->op == IndexOp::Div ? '/' : '%';
    const bool plain = plain_division_ || (facts_.nonnegative(e->args[0]) && facts_.nonnegative(e->args[1] - constant(1)));
    if (!plain) return fmt::format("{}<Index>({}, {})", sign == '/' ? "floor_div" : "floor_mod", index(e->args[0]), index(e->args[1]));
    const std::string s = fmt::format("{} {} {}", index(e->args[0], 2, false), sign, index(e->args[1], 2, true));
    return outer > 2 || (outer == 2 && right) ? "(" + s + ")" : s;
}

std::string ExpressionWriter::index(const Index& e, int outer, bool right) {
    const int inner = precedence(e->op);
    const auto infix = [&](const char* sign) {
        const std::string s = index(e->args[0], inner, false) + sign + index(e->args[1], inner, true);
        return inner < outer || (inner == outer && right) ? "(" + s + ")" : s;
    };
    switch (e->op) {
        case IndexOp::Const: return e->value < 0 ? fmt::format("({})", e->value) : e->value > INT32_MAX ? fmt::format("{}LL", e->value) : std::to_string(e->value);
        case IndexOp::Name: return names_.of(e->name);
        case IndexOp::Add: return infix(" + ");
        case IndexOp::Sub: return infix(" - ");
        case IndexOp::Mul: return infix(" * ");
        case IndexOp::Div:
        case IndexOp::Mod: return index_division(e, outer, right);
        case IndexOp::Min: return fmt::format("smaller<Index>({}, {})", index(e->args[0]), index(e->args[1]));
        case IndexOp::Max: return fmt::format("larger<Index>({}, {})", index(e->args[0]), index(e->args[1]));
        case IndexOp::Load: return fmt::format("(Index){}", element(e->name, e->args));
        case IndexOp::Segment: return fmt::format("(Index)find_segment({}, {}, {})", names_.buffer(e->name), index(decl(e->name).dims[0].size), index(e->args[0]));
    }
    return "?";
}

std::string ExpressionWriter::offset(const Decl& d, const std::vector<Index>& subscripts) {
    if (d.strided) {
        std::string s;
        for (size_t i = 0; i < subscripts.size(); ++i) s += fmt::format("{}{} * {}", s.empty() ? "" : " + ", index(subscripts[i], 2, false), names_.buffer(fmt::format("{}.stride{}", d.name, i)));
        return s;
    }
    std::string s;
    for (size_t i = 0; i < subscripts.size(); ++i) {
        const Index at = subscripts[i] - d.dims[i].origin;
        if (d.panels && i + 2 == subscripts.size()) return panelled(d, s, at, subscripts.back() - d.dims.back().origin);
        if (s.empty()) s = index(at, i + 1 < subscripts.size() ? 2 : 0, false);
        else s = fmt::format("{} * {} + {}", i > 1 ? "(" + s + ")" : s, index(d.dims[i].size, 3, false), index(at, 1, true));
    }
    return s;
}

/// Of a tile whose lines are cut into panels: those panels one after another, `outer` tiles before it.
std::string ExpressionWriter::panelled(const Decl& d, const std::string& outer, const Index& line, const Index& at) {
    const Index wide = constant(d.swizzle / static_cast<int64_t>(info(d.type).bytes)), lines = d.dims[d.dims.size() - 2].size;
    const Index panel = analysis::normal(lines * wide);
    std::string within;
    if (is_const(analysis::normal(at))) within = index(analysis::normal(div(at, wide) * panel + line * wide + mod(at, wide)));
    else    // never negative, which the compiler would not know
        within = fmt::format("{0} + (Index)((unsigned)({1}) / {2} * {3} + (unsigned)({1}) % {2})", index(analysis::normal(line * wide)), index(at), wide->value, index(panel));
    return outer.empty() ? within : fmt::format("({}) * {} + {}", outer, index(analysis::normal(lines * d.dims.back().size)), within);
}

std::string ExpressionWriter::address(const std::string& tensor, const std::vector<Index>& subscripts) {
    const Decl& d = decl(tensor);
    const std::string at = offset(d, subscripts);
    return at == "0" ? names_.buffer(tensor) : fmt::format("{} + {}", names_.buffer(tensor), at);
}

std::string ExpressionWriter::cell_of(const Decl& d, const std::string& name, const std::vector<Index>& subscripts) {
    if (d.layout) return own_register(d, subscripts);
    if (d.dims.empty() && (d.scope == Scope::Register || d.scope == Scope::Param)) return name;
    const std::string at = subscripts.empty() ? "0" : offset(d, subscripts);
    return fmt::format("{}[{}]", name, d.swizzle ? fmt::format("swizzled<{}, sizeof({}){}>((int)({}))", d.swizzle, element_type(d.type), d.swizzle_rows > 1 ? fmt::format(", {}", d.swizzle_rows) : "", at) : at);
}

std::string ExpressionWriter::element(const std::string& tensor, const std::vector<Index>& subscripts) {
    const std::string cell = cell_of(decl(tensor), names_.buffer(tensor), subscripts);
    const auto it = redirected_.find(cell);
    return it == redirected_.end() ? cell : it->second;
}

/// The first dimension of a spread tile is the thread, whose registers these are.
std::string ExpressionWriter::own_register(const Decl& d, const std::vector<Index>& subscripts) {
    const std::string name = names_.buffer(d.name);
    if (d.dims.size() == 1) return name;
    Decl mine = d;
    mine.dims.erase(mine.dims.begin());
    return fmt::format("{}[{}]", name, offset(mine, {subscripts.begin() + 1, subscripts.end()}));
}

std::string ExpressionWriter::inside(const std::string& tensor, const std::vector<Index>& subscripts) {
    const Decl& d = decl(tensor);
    std::string s;
    const auto test = [&](const std::string& t) { s += (s.empty() ? "" : " && ") + t; };
    for (size_t i = 0; i < subscripts.size(); ++i) {
        const bool loaded = mentions_load(subscripts[i]) && subscripts[i]->op != IndexOp::Segment;
        if (loaded || !facts_.obviously_nonnegative(subscripts[i])) test(fmt::format("{} >= 0", index(subscripts[i], 1, false)));
        const bool below = facts_.obviously_less(subscripts[i], d.dims[i].size) || (subscripts[i]->op == IndexOp::Name && facts_.less(subscripts[i], d.dims[i].size));
        if (loaded || !below) test(fmt::format("{} < {}", index(subscripts[i], 1, false), index(d.dims[i].size, 1, true)));
    }
    return s;
}

// ---- values

std::string ExpressionWriter::literal(const ValueNode& v) const {
    if (v.type == DType::Bool) return v.integer ? "true" : "false";
    if (v.type == DType::I32) return v.integer == INT32_MIN ? "(-2147483647 - 1)" : fmt::format(fmt::runtime(v.integer < 0 ? "({})" : "{}"), v.integer);
    if (v.type == DType::I64) return v.integer == INT64_MIN ? "(-9223372036854775807LL - 1)" : fmt::format(fmt::runtime(v.integer < 0 ? "({}LL)" : "{}LL"), v.integer);
    const bool single = v.type != DType::F64;
    const std::string convert = single ? "" : "(double)";
    if (std::isnan(v.number)) return convert + "not_a_number()";
    if (std::isinf(v.number)) return fmt::format(fmt::runtime(v.number < 0 ? "(-{}infinity())" : "{}infinity()"), convert);
    std::string s = print_number(v.number, DType::F32);
    s = single ? s + "f" : print_number(v.number, DType::F64);
    if (!single) s.pop_back();
    return std::signbit(v.number) ? "(" + s + ")" : s;
}

std::string ExpressionWriter::load(const ValueNode& v) {
    if (const auto it = named_.find(&v); it != named_.end()) return it->second;
    const Decl& d = decl(v.name);
    const std::string cell = element(v.name, v.subscripts);
    const bool plain = widened(d.type) == d.type;
    const std::string read = plain ? cell : fmt::format("widen({})", cell);
    const std::string test = v.args.empty() ? "" : inside(v.name, v.subscripts);
    return test.empty() ? read : fmt::format("({} ? {} : {})", test, read, value(v.args[0]));
}

std::string ExpressionWriter::stored(const std::string& v, DType from, DType type) const {
    switch (type) {
        case DType::F16:
        case DType::BF16:
        case DType::F8E4M3:
        case DType::F8E5M2: return fmt::format("to_{}({}{})", name_of(type), from == DType::F32 ? "" : "(float)", v);
        case DType::Bool: return from == DType::Bool ? v : fmt::format("({} != 0)", v);
        default: return from == type ? v : fmt::format("({}){}", element_type(type), v);
    }
}

std::string ExpressionWriter::cast(const ValueNode& v) {
    const Value& a = v.args[0];
    const DType to = *type_named(v.name);
    const bool from_float = is_float(a->type);
    switch (to) {
        case DType::F64: return fmt::format("(double){}", operand(a));
        case DType::F32: return fmt::format("(float){}", operand(a));
        case DType::Tf32: return fmt::format("to_tf32({}{})", a->type == DType::F32 ? "" : "(float)", operand(a));
        case DType::F16:
        case DType::BF16:
        case DType::F8E4M3:
        case DType::F8E5M2: return fmt::format("widen({})", stored(operand(a), a->type, to));
        case DType::Bool: return fmt::format("({} != 0)", operand(a));
        default: break;
    }
    if (from_float) return fmt::format("to_{}({})", name_of(to), value(a));
    if (to == DType::I64 || a->type == DType::Bool || (to == DType::I32 && a->type == DType::I32)) return fmt::format("({}){}", value_type(to), operand(a));
    return fmt::format("clamp_{}({})", name_of(to), value(a));
}

static Index as_index(const Value& v) {
    if (v->op == Op::OfIndex) return v->subscripts[0];
    return v->op == Op::Const && is_int(v->type) ? constant(v->integer) : nullptr;
}

std::string ExpressionWriter::comparison(const ValueNode& v) {
    const Index a = as_index(v.args[0]), b = as_index(v.args[1]);
    if (a && b) return fmt::format("{} {} {}", index(a, 1, false), sign_of(v.op), index(b, 1, true));
    return fmt::format("{} {} {}", operand(v.args[0]), sign_of(v.op), operand(v.args[1]));
}

/// A product that is added rounds first: compilers would merge the two.
std::string ExpressionWriter::summand(const Value& v) {
    if (v->op == Op::Mul && !shared_.contains(v.get())) return fmt::format("product({}, {})", value(v->args[0]), value(v->args[1]));
    if (v->op == Op::Neg && v->args[0]->op == Op::Mul && !shared_.contains(v.get())) return fmt::format("(-{})", summand(v->args[0]));
    return operand(v);
}

std::string ExpressionWriter::float_infix(const ValueNode& v) {
    if (v.op == Op::Add || v.op == Op::Sub) return fmt::format("{} {} {}", summand(v.args[0]), sign_of(v.op), summand(v.args[1]));
    return fmt::format("{} {} {}", operand(v.args[0]), sign_of(v.op), operand(v.args[1]));
}

/// Integers wrap: through unsigned arithmetic, whose overflow is defined.
std::string ExpressionWriter::int_infix(const ValueNode& v) {
    const std::string a = operand(v.args[0]), b = operand(v.args[1]);
    const bool wide = v.type == DType::I64;
    const std::string_view type = value_type(v.type), raw = wide ? "unsigned long long" : "unsigned";
    const int mask = wide ? 63 : 31;
    switch (v.op) {
        case Op::Add:
        case Op::Sub:
        case Op::Mul: return fmt::format("({})(({}){} {} ({}){})", type, raw, a, sign_of(v.op), raw, b);
        case Op::Div: return fmt::format("floor_div<{}>({}, {})", type, a, b);
        case Op::Mod: return fmt::format("floor_mod<{}>({}, {})", type, a, b);
        case Op::Shl: return fmt::format("({})(({}){} << ({} & {}))", type, raw, a, b, mask);
        case Op::Shr: return fmt::format("{} >> ({} & {})", a, b, mask);
        default: return fmt::format("{} {} {}", a, sign_of(v.op), b);
    }
}

std::string ExpressionWriter::call(const ValueNode& v) {
    static const std::map<std::string, std::pair<std::string, std::string>> table{
        {"exp", {"expf", "exp"}},      {"exp2", {"exp2f", "exp2"}},   {"expm1", {"expm1f", "expm1"}}, {"log", {"logf", "log"}},      {"log2", {"log2f", "log2"}},
        {"log1p", {"log1pf", "log1p"}}, {"sqrt", {"sqrtf", "sqrt"}},  {"rsqrt", {"rsqrtf", "rsqrt"}}, {"sin", {"sinf", "sin"}},      {"cos", {"cosf", "cos"}},
        {"tan", {"tanf", "tan"}},      {"tanh", {"tanhf", "tanh"}},   {"erf", {"erff", "erf"}},       {"floor", {"floorf", "floor"}}, {"ceil", {"ceilf", "ceil"}},
        {"round", {"rintf", "rint"}},  {"trunc", {"truncf", "trunc"}}, {"pow", {"powf", "pow"}},      {"fma", {"fmaf", "fma"}},
        {"exp.approx", {"fast_exp", "exp"}},    {"exp2.approx", {"fast_exp2", "exp2"}},    {"log.approx", {"fast_log", "log"}},    {"log2.approx", {"fast_log2", "log2"}},
        {"sqrt.approx", {"fast_sqrt", "sqrt"}}, {"rsqrt.approx", {"fast_rsqrt", "rsqrt"}}, {"tanh.approx", {"fast_tanh", "tanh"}}, {"erf.approx", {"fast_erf", "erf"}},
        {"reciprocal.approx", {"fast_reciprocal", "reciprocal"}}};
    const DType t = v.args[0]->type;
    std::string args;
    for (const Value& a : v.args) args += (args.empty() ? "" : ", ") + value(a);
    if (v.name == "isnan") return fmt::format("({0} != {0})", operand(v.args[0]));
    if (v.name == "isinf") return fmt::format("(magnitude({}) == {}infinity())", args, t == DType::F64 ? "(double)" : "");
    if (v.name == "abs") return fmt::format("magnitude({})", args);
    if (v.name == "sign") return fmt::format("sign_of({})", args);
    if (v.name == "max" || v.name == "min") return fmt::format("{}<{}>({})", v.name == "max" ? "larger" : "smaller", value_type(t), args);
    const auto& [single, wide] = table.at(v.name);
    return fmt::format("{}({})", t == DType::F64 ? wide : single, args);
}

std::string ExpressionWriter::operand(const Value& v) {
    const std::string s = value(v);
    if (shared_.contains(v.get())) return s;
    const bool infix = !sign_of(v->op).empty() || v->op == Op::Neg || v->op == Op::Not || v->op == Op::BitNot || (v->op == Op::Cast && s.front() == '(');
    return infix ? "(" + s + ")" : s;
}

std::string ExpressionWriter::value(const Value& v) {
    if (const auto it = shared_.find(v.get()); it != shared_.end()) return it->second;
    return text_of(v);
}

std::string ExpressionWriter::text_of(const Value& v) {
    switch (v->op) {
        case Op::Const: return literal(*v);
        case Op::OfIndex: return fmt::format("(i64)({})", index(v->subscripts[0]));
        case Op::Load: return load(*v);
        case Op::Neg: return is_float(v->type) ? "-" + operand(v->args[0]) : fmt::format("({0})(0 - ({1}){2})", value_type(v->type), v->type == DType::I64 ? "unsigned long long" : "unsigned", operand(v->args[0]));
        case Op::Not: return "!" + operand(v->args[0]);
        case Op::BitNot: return "~" + operand(v->args[0]);
        case Op::And: return fmt::format("{} && {}", operand(v->args[0]), operand(v->args[1]));
        case Op::Or: return fmt::format("{} || {}", operand(v->args[0]), operand(v->args[1]));
        case Op::Select: return fmt::format("({} ? {} : {})", value(v->args[0]), value(v->args[1]), value(v->args[2]));
        case Op::Cast: return cast(*v);
        case Op::Call: return call(*v);
        case Op::Reduce: return "?";
        default: break;
    }
    if (v->op >= Op::Eq && v->op <= Op::Ge) return comparison(*v);
    return is_float(v->type) ? float_infix(*v) : int_infix(*v);
}

// ---- shared values

void ExpressionWriter::count_uses(const Value& v, bool conditional, std::map<const ValueNode*, int>& uses, std::vector<Value>& order) const {
    if (v->args.empty() && v->op != Op::Load) return;
    if (!conditional && ++uses[v.get()] > 1) return;
    const bool branches = v->op == Op::Select || v->op == Op::And || v->op == Op::Or || v->op == Op::Load;
    for (size_t i = 0; i < v->args.size(); ++i) count_uses(v->args[i], conditional || (branches && (i > 0 || v->op == Op::Load)), uses, order);
    if (!conditional) order.push_back(v);
}

std::vector<std::string> ExpressionWriter::shared(const std::vector<Value>& values) {
    std::map<const ValueNode*, int> uses;
    std::vector<Value> order;
    for (const Value& v : values) count_uses(v, false, uses, order);
    std::vector<std::string> lines;
    for (const Value& v : order) {
        if (uses[v.get()] < 2) continue;
        const std::string text = text_of(v), name = names_.fresh("t");
        lines.push_back(fmt::format("const {} {} = {};", value_type(v->type), name, text));
        shared_[v.get()] = name;
    }
    return lines;
}

}  // namespace acu::codegen
