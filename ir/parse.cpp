#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "ir/program.h"
#include "ir/text.h"

namespace acu::ir {
namespace {

/// Thrown inside this file only; `parse_program` answers the diagnostic.
struct SyntaxError {
    Diagnostic why;
};

class Parser {
  public:
    explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

    Program program() {
        Program p;
        const std::string level = word();
        if (level != "tensor" && level != "program") fail("expected `tensor` or `program`");
        p.level = level == "tensor" ? Level::Tensor : Level::Loop;
        p.name = word();
        expect("(");
        list(")", [&] { p.dims.push_back(dim()); });
        if (take("where")) p.facts = values(";");
        expect("{");
        while (is_decl()) declare(p.decls);
        p.body = body();
        if (peek().kind != Token::End) fail("expected the end of the program");
        return p;
    }

  private:
    const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    bool is(std::string_view text, size_t ahead = 0) const { return peek(ahead).text == text && peek(ahead).kind != Token::End; }
    [[noreturn]] void fail(const std::string& what) const {
        throw SyntaxError{{"ir.syntax", peek().loc, fmt::format("{}, found `{}`", what, peek().text)}};
    }
    Token next() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
    bool take(std::string_view text) { return is(text) && (next(), true); }
    void expect(std::string_view text) {
        if (!take(text)) fail(fmt::format("expected `{}`", text));
    }
    std::string word() {
        if (peek().kind != Token::Name) fail("expected a name");
        return next().text;
    }
    template <class F>
    void list(std::string_view close, F item) {
        while (!take(close)) {
            item();
            if (!is(close)) expect(",");
        }
    }
    int64_t whole() {
        const bool negative = take("-");
        if (peek().kind != Token::Number) fail("expected a number");
        try {
            const int64_t v = std::stoll(next().text);
            return negative ? -v : v;
        } catch (const std::exception&) {
            fail("the number is too large");
        }
    }

    Dim dim() {
        const bool pack = take(".") && take(".");
        Dim d{word(), {}, pack};
        if (take("=")) d.value = whole();
        return d;
    }

    bool is_decl() const {
        static constexpr std::array<std::string_view, 7> scopes{"in", "out", "param", "temp", "register", "shared", "cluster"};
        return peek().kind == Token::Name && is(":", 1) && std::ranges::any_of(scopes, [&](auto s) { return is(s, 2); }) && peek(3).kind == Token::Name;
    }

    Decl decl() {
        Decl d{};
        d.name = word();
        expect(":");
        const std::string scope = word();
        for (const Scope s : {Scope::In, Scope::Out, Scope::Param, Scope::Temp, Scope::Register, Scope::Shared, Scope::Cluster})
            if (name_of(s) == scope) d.scope = s;
        d.strided = take("strided");
        const auto type = type_named(peek().text);
        if (!type) fail("expected an element type");
        next();
        d.type = *type;
        expect("[");
        list("]", [&] { d.dims.push_back(window()); });
        if (is("ring") && is("(", 1)) ring(d.ring);
        if (const int64_t n = counted("readers")) d.ring.readers = n;
        if (is("swizzle") && is("(", 1)) swizzle(d);
        d.panels = take("panels");
        if (take("layout")) {
            auto l = parse_layout(tokens_, at_);
            if (!l) throw SyntaxError{l.why()};
            d.layout = std::move(*l);
        }
        return d;
    }

    void ring(Ring& r) {
        r.versions = counted("ring");
        if (!take("by")) fail("expected `by` and the names of loops");
        do r.keys.push_back(word());
        while (take(","));
    }

    /// `swizzle(128)`, `swizzle(128, 8)`.
    void swizzle(Decl& d) {
        next();
        expect("(");
        d.swizzle = whole();
        if (take(",")) d.swizzle_rows = whole();
        expect(")");
    }

    /// `word(n)`, or 0.
    int64_t counted(std::string_view what) {
        if (!is(what) || !is("(", 1)) return 0;
        next();
        expect("(");
        const int64_t n = whole();
        expect(")");
        return n;
    }

    /// `{i, j}` behind the name of a ring.
    std::vector<Index> version(const std::string& tensor) {
        std::vector<Index> out;
        if (rings_.contains(tensor) && take("{")) list("}", [&] { out.push_back(index()); });
        return out;
    }

    void declare(std::vector<Decl>& list) {
        list.push_back(decl());
        types_[list.back().name] = list.back().type;
        if (list.back().ring.versions) rings_.insert(list.back().name);
        else rings_.erase(list.back().name);
    }

    Window window() {
        Index e = index();
        if (!take("+:")) return {constant(0), e};
        return {e, index()};
    }

    Body body() {
        Body out;
        while (!take("}")) out.push_back(statement());
        return out;
    }

    Stmt statement() {
        if (is("for")) return loop();
        if (is("if")) return condition();
        if (is("roles") && is("{", 1)) return roles();
        for (int i = 0; i <= static_cast<int>(SyncOp::StoreWait); ++i)
            if (const auto op = static_cast<SyncOp>(i); is(name_of(op)) && !is(":", 1)) return sync(op);
        return block();
    }

    Stmt roles() {
        const Loc loc = next().loc;
        Roles r;
        expect("{");
        while (take("role")) {
            Role role{word(), counted("threads"), counted("registers"), {}};
            expect("{");
            role.body = body();
            r.roles.push_back(std::move(role));
        }
        expect("}");
        return make_stmt(loc, std::move(r));
    }

    Stmt sync(SyncOp op) {
        Sync y{op};
        const Loc loc = next().loc;
        if (op < SyncOp::Barrier) y.name = word();
        if (take("{")) list("}", [&] { y.key.push_back(index()); });
        return make_stmt(loc, std::move(y));
    }

    Stmt loop() {
        const Loc loc = next().loc;
        Loop l;
        l.var = word();
        l.order = mark();
        expect("in");
        l.extent = index();
        for (int i = 1; i <= static_cast<int>(LoopKind::Unroll); ++i)
            if (take(name_of(static_cast<LoopKind>(i)))) l.kind = static_cast<LoopKind>(i);
        l.early = take("early");
        l.threads = counted("threads");
        while (take(",")) {
            const std::string derived = word();
            expect("=");
            l.lets.push_back({derived, index()});
        }
        expect("{");
        while (is_decl()) declare(l.allocs);
        l.body = body();
        return make_stmt(loc, std::move(l));
    }

    Stmt condition() {
        const Loc loc = next().loc;
        If i{value(), {}, {}};
        expect("{");
        i.body = body();
        if (take("else")) {
            expect("{");
            i.otherwise = body();
        }
        return make_stmt(loc, std::move(i));
    }

    Stmt block() {
        Block b;
        const Loc loc = peek().loc;
        b.label = word();
        expect(":");
        do b.outs.push_back(access());
        while (take(","));
        b.exclusive = take("exclusive");
        assign(b);
        b.vals = values(",");
        if (take("over")) {
            do b.axes.push_back(axis());
            while (take(","));
        }
        if (take("where")) b.guards = values(";");
        if (take("via")) b.via = word();
        b.pending = counted("pending");
        return make_stmt(loc, std::move(b));
    }

    void assign(Block& b) {
        if (take("topk")) {
            expect("(");
            b.k = whole();
            expect(")");
            expect("=");
            b.monoid = Monoid::TopK;
            return;
        }
        for (const MonoidInfo& m : monoids()) {
            const bool word_like = m.assign.size() > 2;
            if (!is(word_like ? m.assign.substr(0, m.assign.size() - 1) : m.assign)) continue;
            next();
            if (word_like) expect("=");
            b.monoid = m.monoid;
            return;
        }
        fail("expected `=`, `+=`, `max=` or another assignment");
    }

    AxisKind mark() { return take("!") ? AxisKind::Red : take("^") ? AxisKind::Scan : AxisKind::Par; }

    Axis axis() {
        Axis a{word(), mark(), nullptr, nullptr};
        expect("in");
        const Window w = window();
        a.base = w.origin, a.size = w.size;
        if (const int64_t n = counted("vec")) a.vector = n;
        return a;
    }

    Access access() {
        Access a{word(), {}, {}};
        a.version = version(a.tensor);
        expect("[");
        list("]", [&] { a.subscripts.push_back(index()); });
        return a;
    }

    // ---- index expressions
    Index index() {
        Index e = product();
        while (is("+") || is("-")) {
            const IndexOp op = next().text == "+" ? IndexOp::Add : IndexOp::Sub;
            e = binary(op, e, product());
        }
        return e;
    }

    Index product() {
        Index e = atom();
        while (is("*") || is("/") || is("%")) {
            const std::string sign = next().text;
            e = binary(sign == "*" ? IndexOp::Mul : sign == "/" ? IndexOp::Div : IndexOp::Mod, e, atom());
        }
        return e;
    }

    Index atom() {
        if (take("(")) {
            Index e = index();
            expect(")");
            return e;
        }
        if (is("-") || peek().kind == Token::Number) return constant(whole());
        const std::string text = word();
        if (text == "segment" && take("(")) return segment_rest();
        if ((text == "min" || text == "max") && take("(")) {
            const Index a = index();
            expect(",");
            const Index b = index();
            expect(")");
            return binary(text == "min" ? IndexOp::Min : IndexOp::Max, a, b);
        }
        if (!take("[")) return name(text);
        std::vector<Index> subscripts;
        list("]", [&] { subscripts.push_back(index()); });
        return load_index(text, std::move(subscripts));
    }

    Index segment_rest() {
        std::string offsets = word();
        expect(",");
        Index position = index();
        expect(")");
        return segment(std::move(offsets), std::move(position));
    }

    // ---- value expressions: operands of operators stand in parentheses, index arithmetic has C's precedence
    std::vector<Value> values(std::string_view sign) {
        std::vector<Value> out{value()};
        while (take(sign)) out.push_back(value());
        return out;
    }

    static int precedence(Op op) {
        if (op == Op::Mul || op == Op::Div || op == Op::Mod) return 3;
        return op == Op::Add || op == Op::Sub ? 2 : 1;
    }

    bool infix(Op& op) const {
        for (int i = static_cast<int>(Op::Add); i <= static_cast<int>(Op::Or); ++i)
            if (is(sign_of(static_cast<Op>(i)))) return op = static_cast<Op>(i), true;
        return false;
    }

    Value value(int level = 1) {
        Value v = prefix();
        for (Op op; infix(op) && precedence(op) >= level;) {
            next();
            v = binary(op, v, value(precedence(op) + 1));
        }
        return v;
    }

    Value prefix() {
        if (take("-")) {
            if (peek().kind == Token::Number || is("inf") || is("infd")) return literal(-1);
            return unary(Op::Neg, prefix());
        }
        if (take("!")) return unary(Op::Not, prefix());
        if (take("~")) return unary(Op::BitNot, prefix());
        return primary();
    }

    Value literal(int factor) {
        const std::string text = next().text;
        if (text == "inf" || text == "infd") return number(factor * std::numeric_limits<double>::infinity(), text == "inf" ? DType::F32 : DType::F64);
        const DType type = text.back() == 'd' ? DType::F64 : DType::F32;
        try {
            if (text.back() == 'l') return integer(text == "9223372036854775808l" ? INT64_MIN : factor * std::stoll(text), DType::I64);
            if (text.find_first_of(".ed") == std::string::npos) return integer(factor * std::stoll(text));
            return number(factor * std::stod(text), type);
        } catch (const std::exception&) {
            fail("the number cannot be read");
        }
    }

    Value primary() {
        if (take("(")) {
            Value v = parenthesised();
            expect(")");
            return v;
        }
        if (peek().kind == Token::Number || is("inf") || is("infd")) return literal(1);
        const std::string text = word();
        if (text == "true" || text == "false") return boolean(text == "true");
        if (text == "nan" || text == "nand") return number(std::numeric_limits<double>::quiet_NaN(), text == "nan" ? DType::F32 : DType::F64);
        if (take("(")) return application(text);
        if (!is("[") && !(is("{") && rings_.contains(text))) return of_index(name(text));
        return load_value(text);
    }

    Value load_value(const std::string& tensor) {
        std::vector<Index> of = version(tensor);
        expect("[");
        std::vector<Index> subscripts;
        list("]", [&] { subscripts.push_back(index()); });
        const auto type = types_.find(tensor);
        if (type == types_.end()) throw SyntaxError{{"ir.name", peek().loc, fmt::format("no buffer `{}` is declared", tensor)}};
        const Value v = load(tensor, type->second, std::move(subscripts), take("default") ? value() : nullptr);
        return of.empty() ? v : with_version(v, std::move(of));
    }

    Value application(const std::string& fn) {
        if (fn == "segment") return of_index(segment_rest());
        std::vector<Value> args;
        list(")", [&] { args.push_back(value()); });
        if (const auto type = type_named(fn); type && args.size() == 1) return cast(*type, args[0]);
        if (const Value e = index_function(fn, args)) return e;
        const Function* row = function_named(fn);
        if (!row || args.size() != static_cast<size_t>(row->arity)) fail(fmt::format("`{}` is no function of {} arguments", fn, args.size()));
        return call(fn, std::move(args));
    }

    /// `min` and `max` of index expressions (whose constants have no suffix) are index expressions.
    static Value index_function(const std::string& fn, const std::vector<Value>& args) {
        const auto plain = [](const Value& v) { return v->op == Op::Const && v->type == DType::I32; };
        const auto index = [](const Value& v) { return v->op == Op::OfIndex; };
        const bool all = (fn == "min" || fn == "max") && args.size() == 2 && std::ranges::any_of(args, index) && std::ranges::all_of(args, [&](const Value& v) { return plain(v) || index(v); });
        if (!all) return nullptr;
        const auto part = [&](const Value& v) { return plain(v) ? constant(v->integer) : v->subscripts[0]; };
        return of_index(binary(fn == "min" ? IndexOp::Min : IndexOp::Max, part(args[0]), part(args[1])));
    }

    /// `(a if c else b)`, `(x[i] default d)`, `(sum(k in K) body)`, or a value.
    Value parenthesised() {
        for (const MonoidInfo& m : monoids())
            if (m.monoid != Monoid::None && is(m.name) && is("(", 1) && is_reduction()) return reduction(m.monoid);
        Value v = value();
        if (!take("if")) return v;
        Value condition = value();
        expect("else");
        return select(std::move(condition), std::move(v), value());
    }

    bool is_reduction() const { return peek(2).kind == Token::Name && is("in", 3); }

    Value reduction(Monoid monoid) {
        next();
        expect("(");
        std::vector<Axis> axes;
        do {
            axes.push_back(axis());
            axes.back().kind = AxisKind::Red;
        } while (take(","));
        Value condition = take("where") ? value() : nullptr;
        expect(")");
        return reduce(monoid, std::move(axes), value(), std::move(condition));
    }

    std::vector<Token> tokens_;
    size_t at_ = 0;
    std::map<std::string, DType, std::less<>> types_;
    std::set<std::string, std::less<>> rings_;
};

}  // namespace

Result<Program> parse_program(std::string_view text) {
    try {
        return Parser(text).program();
    } catch (const SyntaxError& e) {
        return e.why;
    }
}

}  // namespace acu::ir
