// The one file that sees ANTLR: characters to tokens, tokens to the parse tree, the parse tree to the syntax tree.
#include "frontend/parse.h"

#include <antlr4-runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <typeinfo>

#include "AcuLexer.h"
#include "AcuParser.h"

namespace acu::frontend {
namespace {

using antlr4::CommonToken;
using antlr4::Token;
using grammar::AcuLexer;
using grammar::AcuParser;
using TokenPtr = std::unique_ptr<Token>;

constexpr int max_depth = 200, max_statement_tokens = 8000, max_findings = 20;

// ---- tokens

bool in(const std::string& text, std::initializer_list<std::string_view> set) { return std::ranges::find(set, text) != set.end(); }

void retype(Token& t, size_t type) { static_cast<CommonToken&>(t).setType(type); }

/// A token with its text, which ANTLR makes anew for each question.
struct Word {
    Token* token;
    std::string text;
    bool is(size_t type) const { return token->getType() == type; }
};
using Words = std::vector<Word>;

/// The index of the bracket that closes the one at `open`, or the end.
size_t closing(const Words& t, size_t open) {
    int depth = 0;
    for (size_t i = open; i < t.size(); ++i) {
        depth += t[i].text == "(";
        depth -= t[i].text == ")";
        if (depth == 0) return i;
    }
    return t.size();
}

bool starts_operand(const Word& t) {
    return t.is(AcuLexer::NAME) || t.is(AcuLexer::INT) || t.is(AcuLexer::FLOAT) || in(t.text, {"(", "if", "!", "~", "true", "false"});
}

/// `max(a, b)` is a call; `max(n) x[n]`, `max(r in 3, s in 3) …` and `max(p, q) x[p, q]` are reductions.
bool opens_reduction(const Words& t, size_t at) {
    if (at > 0 && in(t[at - 1].text, {"op", "fn", "for"})) return false;
    if (in(t[at].text, {"sum", "prod", "any", "all", "argmax", "argmin"})) return true;
    if (!in(t[at].text, {"max", "min"})) return false;
    const size_t close = closing(t, at + 1);
    int depth = 0, commas = 0;
    for (size_t i = at + 1; i < close; ++i) {
        depth += in(t[i].text, {"(", "["}) - in(t[i].text, {")", "]"});
        if (depth == 1 && in(t[i].text, {"in", "where"})) return true;
        commas += depth == 1 && t[i].text == ",";
    }
    if (commas == 0) return true;
    return close + 1 < t.size() && t[close + 1].token->getLine() == t[close].token->getLine() && starts_operand(t[close + 1]);
}

void mark_reductions(const Words& t) {
    for (size_t i = 0; i + 1 < t.size(); ++i) {
        if (!t[i].is(AcuLexer::NAME) || t[i + 1].text != "(") continue;
        if (t[i].text == "topk" && (i == 0 || !in(t[i - 1].text, {"op", "fn", "for"}))) retype(*t[i].token, AcuParser::TOPK);
        else if (opens_reduction(t, i)) retype(*t[i].token, AcuParser::REDUCE);
    }
}

bool opens_generics(const Words& t, size_t at) {
    if (at < 2 || !t[at - 1].is(AcuLexer::NAME)) return false;
    if (t[at - 2].text == "op") return true;
    return at + 2 < t.size() && t[at + 1].is(AcuLexer::NAME) && t[at + 2].text == "=";
}

void mark_generics(const Words& t) {
    for (size_t i = 0; i < t.size(); ++i) {
        if (t[i].text != "<" || !opens_generics(t, i)) continue;
        int depth = 0;
        for (size_t j = i + 1; j < t.size(); ++j) {
            depth += in(t[j].text, {"(", "["}) - in(t[j].text, {")", "]"});
            if (t[j].text == ">" && depth == 0) {
                retype(*t[i].token, AcuParser::OPEN), retype(*t[j].token, AcuParser::CLOSE);
                break;
            }
        }
    }
}

bool continues_line(const Word& t) {
    return in(t.text, {"+", "-", "*", "/", "%", "&", "|", "^", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "<<", ">>", "!", "~", ",", "=", "+=", "->", ":", "where", "then", "else", "or", "if", "for",
                       "op", "fn", "in", "scan", "."}) &&
           !t.is(AcuParser::CLOSE);
}
bool joins_previous(const Word& t) { return in(t.text, {"then", "else", "where", "->", "or", "{"}); }

/// Which line ends count: not those inside brackets, after an operator, or before a word that continues.
std::vector<bool> dropped_line_ends(const Words& t) {
    std::vector<bool> drop(t.size());
    std::vector<char> open;
    std::vector<size_t> following(t.size() + 1, t.size());    // the next token that is no line end
    for (size_t i = t.size(); i-- > 0;) following[i] = t[i].is(AcuLexer::NL) ? following[i + 1] : i;
    const Word* before = nullptr;
    for (size_t i = 0; i < t.size(); ++i) {
        if (in(t[i].text, {"(", "[", "{"}) || t[i].is(AcuParser::OPEN)) open.push_back(t[i].text[0]);
        if ((in(t[i].text, {")", "]", "}"}) || t[i].is(AcuParser::CLOSE)) && !open.empty()) open.pop_back();
        if (!t[i].is(AcuLexer::NL)) {
            before = &t[i];
            continue;
        }
        const bool inside = !open.empty() && open.back() != '{';
        drop[i] = inside || (before && continues_line(*before)) || (following[i] < t.size() && joins_previous(t[following[i]]));
    }
    return drop;
}

/// Tokens point into the characters that they came from.
struct Tokens {
    explicit Tokens(const std::string& text) : input(text), lexer(&input) {
        lexer.removeErrorListeners();
        all = lexer.getAllTokens();
    }
    antlr4::ANTLRInputStream input;
    AcuLexer lexer;
    std::vector<TokenPtr> all;
    std::vector<TokenPtr> parsed;    ///< what the parser reads
};

std::unique_ptr<Tokens> read_tokens(const std::string& text) {
    auto out = std::make_unique<Tokens>(text);
    Words visible, words;
    for (const TokenPtr& t : out->all) {
        if (t->getChannel() != Token::DEFAULT_CHANNEL) continue;
        visible.push_back({t.get(), t->getText()});
        if (t->getType() != AcuLexer::NL) words.push_back(visible.back());
    }
    mark_reductions(words);
    mark_generics(words);
    const std::vector<bool> drop = dropped_line_ends(visible);
    for (size_t i = 0; i < visible.size(); ++i)
        if (!drop[i]) out->parsed.push_back(std::make_unique<CommonToken>(visible[i].token));
    return out;
}

// ---- diagnostics

Loc loc_of(const Token& t, int file) {
    const std::string text = t.getText();
    const int length = t.getType() == Token::EOF || t.getType() == AcuLexer::NL ? 1 : static_cast<int>(text.size());
    return {file, static_cast<int>(t.getLine()), static_cast<int>(t.getCharPositionInLine()) + 1, length};
}

std::string shown(const Token& t) {
    if (t.getType() == Token::EOF) return "the end of the file";
    return t.getType() == AcuLexer::NL ? "the end of the line" : "`" + t.getText() + "`";
}

/// What may stand here, in the author's words and at most a few of them.
std::string expectation(const antlr4::misc::IntervalSet& set, const antlr4::dfa::Vocabulary& words) {
    std::set<std::string> out;
    const bool expression = set.contains(ssize_t{AcuLexer::INT});
    const bool infix = !expression && set.size() > 8;
    for (const ssize_t type : set.toList()) {
        std::string s = type == ssize_t(Token::EOF) ? "the end of the file" : words.getDisplayName(static_cast<size_t>(type));
        if (s == "NAME") s = expression ? "an expression" : "a name";
        else if (in(s, {"INT", "FLOAT", "REDUCE", "TOPK", "OPEN", "CLOSE", "'!'", "'~'", "'true'", "'false'", "'if'"})) {
            if (expression) s = "an expression";
            else continue;
        } else if (s == "NL") s = "the end of the line";
        else if (s.front() == '\'') {
            s = "`" + s.substr(1, s.size() - 2) + "`";
            if (infix && in(s, {"`*`", "`/`", "`%`", "`+`", "`-`", "`<<`", "`>>`", "`&`", "`^`", "`|`", "`==`", "`!=`", "`<`", "`<=`", "`>`", "`>=`", "`&&`", "`||`", "`or`"})) s = "an operator";
            if (expression && in(s, {"`(`", "`-`"})) continue;
        }
        out.insert(s);
    }
    std::vector<std::string> list(out.begin(), out.end());
    if (list.size() > 6) list.resize(6);
    if (list.size() < 2) return list.empty() ? "something else" : list[0];
    const std::string last = list.back();
    list.pop_back();
    return fmt::format("{} or {}", fmt::join(list, ", "), last);
}

/// Reports the first mistake of each declaration: what follows one is guessing.
class Listener : public antlr4::BaseErrorListener {
  public:
    Listener(int file, const std::vector<TokenPtr>& all, std::vector<Diagnostic>& found) : file_(file), found_(found) {
        for (const TokenPtr& t : all)
            if (t->getCharPositionInLine() == 0 && in(t->getText(), {"op", "fn", "case", "schedule", "import"})) declarations_.push_back(t->getLine());
    }
    void syntaxError(antlr4::Recognizer* recognizer, Token* at, size_t, size_t, const std::string&, std::exception_ptr) override {
        const auto declaration = std::ranges::upper_bound(declarations_, at->getLine()) - declarations_.begin();
        if (found_.size() >= max_findings || declaration == last_) return;
        last_ = declaration;
        auto& parser = static_cast<AcuParser&>(*recognizer);
        const std::string expected = expectation(parser.getExpectedTokens(), parser.getVocabulary());
        Diagnostic d{"syntax.unexpected", loc_of(*at, file_), fmt::format("expected {}, found {}", expected, shown(*at))};
        if (at->getType() == AcuLexer::UNKNOWN) d = {"syntax.character", loc_of(*at, file_), fmt::format("the character {} has no meaning here", shown(*at))};
        else if (at->getText() == "/" && next_is_star(*at)) d.help = "the comment does not end: `*/` is missing";
        else if (parser.getExpectedTokens().contains(parser.getTokenType("'in'")) && expected.find("`in`") != std::string::npos) d.help = "a reduction names its axes first, as in `sum(n) x[n]`";
        else if (in(at->getText(), {"then", "else", "if", "in", "or", "for", "where", "when", "scan", "true", "false", "op", "fn", "case"})) d.help = fmt::format("`{}` is a word of the language", at->getText());
        else if (in(at->getText(), {"+", "-", "*", "/", "&&", "||", "&", "|", "^"})) d.help = "a statement ends with its line: put the operator at the end of the line before";
        found_.push_back(std::move(d));
    }

  private:
    static bool next_is_star(Token& t) { return t.getInputStream()->getText(antlr4::misc::Interval(ssize_t(t.getStartIndex()), ssize_t(t.getStartIndex() + 1))) == "/*"; }
    int file_;
    std::vector<Diagnostic>& found_;
    std::vector<size_t> declarations_;
    ptrdiff_t last_ = -1;
};

/// Bounds what recursion over the text can cost.
bool too_deep(const std::vector<TokenPtr>& tokens, int file, std::vector<Diagnostic>& found) {
    int depth = 0, statement = 0, prefixes = 0;
    for (const TokenPtr& t : tokens) {
        const std::string s = t->getText();
        depth += in(s, {"(", "[", "{"}) - in(s, {")", "]", "}"});
        prefixes = in(s, {"-", "!", "~", "if", "(", "["}) || t->getType() == AcuParser::REDUCE ? prefixes + 1 : t->getType() == AcuLexer::NL ? 0 : prefixes;
        statement = t->getType() == AcuLexer::NL ? 0 : statement + 1;
        if (depth <= max_depth && prefixes <= 4 * max_depth && statement <= max_statement_tokens) continue;
        found.push_back({"syntax.nesting", loc_of(*t, file), depth > max_depth ? fmt::format("brackets are nested more than {} deep", max_depth) : "the statement is too long",
                         {}, "name parts of it as intermediate tensors"});
        return true;
    }
    return false;
}

// ---- syntax tree

class Builder {
  public:
    Builder(int file, std::vector<Diagnostic>& found) : file_(file), found_(found) {}

    File file(AcuParser::FileContext& tree, const std::vector<TokenPtr>& all) {
        File f;
        f.source = file_;
        for (auto* d : tree.declaration()) {
            if (d->importDecl()) f.imports.push_back(import(*d->importDecl()));
            if (d->fnDecl()) f.fns.push_back(fn(*d->fnDecl()));
            if (d->opDecl()) f.ops.push_back(op(*d->opDecl(), all));
            if (d->caseDecl()) f.cases.push_back(instance(*d->caseDecl()));
            if (d->scheduleDecl()) f.schedules.push_back(schedule(*d->scheduleDecl(), all));
        }
        return f;
    }

  private:
    using Ctx = AcuParser;
    Loc at(const Token* t) const { return loc_of(*t, file_); }
    static std::string text(antlr4::tree::TerminalNode* n) { return n->getText(); }
    static bool is_word(antlr4::tree::ParseTree* n, std::string_view word) {
        auto* t = dynamic_cast<antlr4::tree::TerminalNode*>(n);
        return t && t->getSymbol()->getText() == word;
    }
    Loc at(antlr4::tree::TerminalNode* n) const { return at(n->getSymbol()); }

    ImportDecl import(Ctx::ImportDeclContext& c) {
        ImportDecl d{{}, at(c.start), {}};
        const auto names = c.NAME();
        const size_t dots = static_cast<size_t>(std::ranges::count_if(c.children, [](auto* n) { return is_word(n, "."); }));
        for (size_t i = 0; i < names.size(); ++i) {
            if (i <= dots) d.path.push_back(text(names[i]));
            else d.names.emplace_back(text(names[i]), at(names[i]));
        }
        return d;
    }

    FnDecl fn(Ctx::FnDeclContext& c) {
        FnDecl d{text(c.NAME(0)), at(c.NAME(0)), {}, {}, expr(*c.expr())};
        for (size_t i = 1; i < c.NAME().size(); ++i) d.params.push_back(text(c.NAME(i))), d.param_locs.push_back(at(c.NAME(i)));
        return d;
    }

    OpDecl op(Ctx::OpDeclContext& c, const std::vector<TokenPtr>& all) {
        OpDecl d{text(c.NAME()), at(c.NAME()), {}, {}, {}, {}, {}, doc_before(c.start->getLine(), all)};
        if (c.generics())
            for (auto* g : c.generics()->generic()) d.generics.push_back(generic(*g));
        for (auto* p : c.param()) d.params.push_back(param(*p));
        for (auto* o : c.outputs()->output()) d.outputs.push_back({text(o->NAME(0)), at(o->NAME(0)), text(o->NAME(1)), at(o->NAME(1)), false, shape(o->shape()), nullptr});
        if (c.whereClause())
            for (auto* e : c.whereClause()->expr()) d.where.push_back(expr(*e));
        for (auto* s : c.statements()->statement()) d.body.push_back(statement(*s));
        return d;
    }

    /// Does a comment stand in a line of its own?
    static bool is_alone(std::vector<TokenPtr>::const_reverse_iterator it, std::vector<TokenPtr>::const_reverse_iterator end) {
        const size_t line = (*it)->getLine();
        for (++it; it != end && (*it)->getLine() == line; ++it)
            if ((*it)->getType() != AcuLexer::SPACE) return false;
        return true;
    }

    /// The `///` lines that end in the line before `line`.
    static std::string doc_before(size_t line, const std::vector<TokenPtr>& all) {
        std::string doc;
        size_t wanted = line - 1;
        for (auto it = all.rbegin(); it != all.rend(); ++it) {
            if ((*it)->getType() != AcuLexer::LINE_COMMENT || (*it)->getLine() != wanted || !(*it)->getText().starts_with("///") || !is_alone(it, all.rend())) continue;
            std::string one = (*it)->getText().substr(3);
            if (one.starts_with(' ')) one.erase(0, 1);
            doc = doc.empty() ? one : one + "\n" + doc;
            --wanted;
        }
        return doc;
    }

    Generic generic(Ctx::GenericContext& c) {
        Generic g{text(c.NAME(0)), at(c.NAME(0)), {}, {}, c.expr() ? expr(*c.expr()) : nullptr};
        for (size_t i = 1; i < c.NAME().size(); ++i) g.types.push_back(text(c.NAME(i))), g.type_locs.push_back(at(c.NAME(i)));
        return g;
    }

    Param param(Ctx::ParamContext& c) {
        const bool strided = std::ranges::any_of(c.children, [](auto* n) { return is_word(n, "strided"); });
        return {text(c.NAME(0)), at(c.NAME(0)), text(c.NAME(1)), at(c.NAME(1)), strided, shape(c.shape()), c.expr() ? expr(*c.expr()) : nullptr};
    }

    Shape shape(Ctx::ShapeContext* c) {
        Shape s;
        if (!c) return s;
        s.present = true;
        for (auto* d : c->dimension()) s.dims.push_back(d->expr() ? expr(*d->expr()) : pack(d->NAME()));
        return s;
    }

    ExprPtr pack(antlr4::tree::TerminalNode* n) {
        Expr e{Expr::Name, at(n), text(n)};
        e.loc.column -= 2, e.loc.length += 2;
        e.pack = true;
        return std::make_shared<const Expr>(std::move(e));
    }

    ExprPtr subscript(Ctx::SubscriptContext& c) { return c.expr() ? expr(*c.expr()) : pack(c.NAME()); }

    Statement statement(Ctx::StatementContext& c) {
        Statement s{Statement::Define, at(c.start), {}, nullptr};
        for (auto* t : c.target()) {
            Target target{text(t->NAME()), at(t->NAME()), t->children.size() > 1};
            for (auto* i : t->subscript()) target.subscripts.push_back(subscript(*i));
            s.targets.push_back(std::move(target));
        }
        if (std::ranges::any_of(c.children, [](auto* n) { return is_word(n, "+="); })) s.kind = Statement::Scatter;
        auto& right = *c.right();
        if (right.scan()) scan(*right.scan(), s);
        else if (right.topk()) topk(*right.topk(), s);
        else s.value = expr(*right.expr());
        return s;
    }

    void scan(Ctx::ScanContext& c, Statement& s) {
        s.kind = Statement::Scan;
        s.monoid = text(c.REDUCE());
        s.loc = at(c.REDUCE());
        s.exclusive = c.children[1]->getText() == "exclusive";
        s.axis = {text(c.NAME()), nullptr, at(c.NAME())};
        s.value = expr(*c.expr());
    }

    void topk(Ctx::TopkContext& c, Statement& s) {
        s.kind = Statement::TopK;
        s.axis = axis(*c.axis());
        s.count = expr(*c.expr(0));
        s.value = expr(*c.expr(1));
    }

    AxisSpec axis(Ctx::AxisContext& c) { return {text(c.NAME()), c.expr() ? expr(*c.expr()) : nullptr, at(c.NAME())}; }

    template <class List>
    void append(std::vector<ExprPtr>& out, const List& list) {
        for (auto* e : list) out.push_back(expr(*e));
    }

    /// Alternatives have a class each, without subclasses, so comparing types suffices; a dynamic_cast costs more than reading the node.
    template <class T>
    static T* as(Ctx::ExprContext& c) { return typeid(c) == typeid(T) ? static_cast<T*>(&c) : nullptr; }

    ExprPtr expr(Ctx::ExprContext& c) {
        Expr e{Expr::Name, at(c.start)};
        if (auto* n = as<Ctx::NameContext>(c)) name(*n, e);
        else if (auto* l = as<Ctx::LiteralContext>(c)) literal(*l, e);
        else if (auto* g = as<Ctx::GroupContext>(c)) return group(*g);
        else if (auto* u = as<Ctx::UnaryContext>(c)) {
            e.kind = Expr::Unary, e.text = c.start->getText();
            e.args = {expr(*u->expr())};
        } else if (auto* i = as<Ctx::InfixContext>(c)) infix(*i, e);
        else if (auto* q = as<Ctx::ConditionalContext>(c)) {
            e.kind = Expr::If;
            append(e.args, q->expr());
        } else if (auto* o = as<Ctx::OtherwiseContext>(c)) {
            e.kind = Expr::Or;
            append(e.args, o->expr());
        } else if (auto* r = as<Ctx::ReductionContext>(c)) reduction(*r, e);
        return std::make_shared<const Expr>(std::move(e));
    }

    /// A name, an access or a call.
    void name(Ctx::NameContext& c, Expr& e) {
        e.text = text(c.NAME());
        Ctx::SuffixContext* s = c.suffix();
        if (!s) return;
        e.kind = s->start->getText() == "[" ? Expr::Access : Expr::Call;
        for (auto* i : s->subscript()) e.args.push_back(subscript(*i));
        append(e.args, s->expr());
        for (auto* g : s->argument()) e.generics.emplace_back(text(g->NAME()), expr(*g->expr())), e.generic_locs.push_back(at(g->NAME()));
    }

    ExprPtr group(Ctx::GroupContext& c) {
        Expr inner = *expr(*c.expr());
        inner.grouped = true;
        return std::make_shared<const Expr>(std::move(inner));
    }

    /// The sign's place is that of the operator, which a message about an operator points at.
    void infix(Ctx::InfixContext& c, Expr& e) {
        e.kind = Expr::Infix;
        e.sign = at(dynamic_cast<antlr4::tree::TerminalNode*>(c.children[1]));
        e.text = c.children[1]->getText();
        append(e.args, c.expr());
    }

    void reduction(Ctx::ReductionContext& c, Expr& e) {
        e.kind = Expr::Reduction;
        e.text = text(c.REDUCE());
        for (auto* a : c.axis()) e.axes.push_back(axis(*a));
        e.args = {expr(*c.expr().back())};
        if (c.expr().size() > 1) e.args.push_back(expr(*c.expr(0)));
    }

    void literal(Ctx::LiteralContext& c, Expr& e) {
        std::string digits = c.getText();
        e.text = digits;
        if (digits == "true" || digits == "false") {
            e.kind = Expr::Boolean, e.integer = digits == "true";
            return;
        }
        std::erase(digits, '_');
        e.kind = c.INT() ? Expr::Integer : Expr::Float;
        try {
            if (c.INT()) e.integer = std::stoll(digits, nullptr, digits.starts_with("0x") ? 16 : 10);
            e.number = std::stod(digits);
        } catch (const std::exception&) {
            found_.push_back({"syntax.number", e.loc, fmt::format("the number `{}` does not fit", digits)});
        }
    }

    CaseDecl instance(Ctx::CaseDeclContext& c) {
        CaseDecl d{text(c.NAME(0)), at(c.NAME(0)), text(c.NAME(1)), at(c.NAME(1)), {}};
        for (auto* s : c.setting()) {
            Setting one{text(s->NAME()), at(s->NAME()), s->settingValue()->start->getText() == "[", {}};
            append(one.values, s->settingValue()->expr());
            d.settings.push_back(std::move(one));
        }
        return d;
    }

    ScheduleDecl schedule(Ctx::ScheduleDeclContext& c, const std::vector<TokenPtr>& all) {
        ScheduleDecl d{text(c.NAME(0)), at(c.NAME(0)), text(c.NAME(1)), at(c.NAME(1)), c.expr() ? expr(*c.expr()) : nullptr, {}, doc_before(c.start->getLine(), all)};
        for (auto* s : c.step()) {
            Step step{text(s->NAME()), at(s->NAME()), {}, doc_before(s->start->getLine(), all)};
            for (auto* a : s->stepArgument()) {
                const bool named = a->children.size() > 1;
                step.arguments.push_back({named ? a->start->getText() : "", at(a->start), value(*a->stepValue())});
            }
            d.steps.push_back(std::move(step));
        }
        return d;
    }

    StepValue value(Ctx::StepValueContext& c) {
        StepValue v{StepValue::Path, at(c.start), {}, c.getText()};
        if (c.INT()) {
            v.kind = StepValue::Integer;
            try {
                v.integer = std::stoll(v.text);
            } catch (const std::exception&) {
                found_.push_back({"syntax.number", v.loc, fmt::format("the number `{}` does not fit", v.text)});
            }
        } else if (v.text == "true" || v.text == "false") {
            v.kind = StepValue::Boolean, v.integer = v.text == "true";
        } else if (c.expr()) {
            v.kind = StepValue::Condition, v.condition = expr(*c.expr());
        } else if (v.text.starts_with("[")) {
            v.kind = StepValue::List;
            for (auto* i : c.stepItem()) {
                v.items.emplace_back(i->path() ? i->path()->getText() : "", value(*i->stepValue()));
                v.items.back().second.key_loc = at(i->start);
            }
        }
        return v;
    }

    int file_;
    std::vector<Diagnostic>& found_;
};

bool valid_utf8(const std::string& s) {
    for (size_t i = 0; i < s.size();) {
        const auto c = static_cast<unsigned char>(s[i]);
        const size_t n = c < 0x80 ? 1 : (c >> 5) == 6 && c >= 0xC2 ? 2 : (c >> 4) == 14 ? 3 : (c >> 3) == 30 && c < 0xF5 ? 4 : 0;
        if (n == 0 || i + n > s.size()) return false;
        for (size_t k = 1; k < n; ++k)
            if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return false;
        if (n == 3) {
            const int point = (c & 15) << 12 | (s[i + 1] & 63) << 6 | (s[i + 2] & 63);
            if (point < 0x800 || (point >= 0xD800 && point < 0xE000)) return false;
        }
        if (n == 4) {
            const int point = (c & 7) << 18 | (s[i + 1] & 63) << 12;
            if (point < 0x10000 || point >= 0x110000) return false;
        }
        i += n;
    }
    return true;
}

}  // namespace

File parse(const SourceMap& sources, int file, std::vector<Diagnostic>& found) {
    const std::string& text = sources[file].text;
    File empty;
    empty.source = file;
    if (!valid_utf8(text)) {
        found.push_back({"file.encoding", {file}, "the file is not valid UTF-8", {}, "save it as UTF-8 text"});
        return empty;
    }
    const auto tokens = read_tokens(text);
    if (tokens->parsed.empty()) return empty;
    std::vector<Diagnostic> mine;
    if (too_deep(tokens->parsed, file, mine)) {
        found.insert(found.end(), mine.begin(), mine.end());
        return empty;
    }
    antlr4::ListTokenSource source(std::move(tokens->parsed));
    antlr4::CommonTokenStream stream(&source);
    AcuParser parser(&stream);
    parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(antlr4::atn::PredictionMode::SLL);
    parser.removeErrorListeners();
    Listener listener(file, tokens->all, mine);
    parser.addErrorListener(&listener);
    AcuParser::FileContext* tree = parser.file();
    if (mine.empty()) empty = Builder(file, mine).file(*tree, tokens->all);
    found.insert(found.end(), mine.begin(), mine.end());
    return empty;
}

std::vector<SourceToken> tokenize(const std::string& text) {
    const auto tokens = read_tokens(text);
    std::vector<SourceToken> out;
    for (const TokenPtr& t : tokens->all) {
        const size_t type = t->getType();
        if (type == AcuLexer::SPACE) continue;
        SourceToken s{SourceToken::Sign, t->getText(), static_cast<int>(t->getLine()), type == AcuParser::OPEN || type == AcuParser::CLOSE,
                      type == AcuParser::REDUCE || type == AcuParser::TOPK};
        if (type == AcuLexer::NL) s.kind = SourceToken::LineEnd;
        else if (type == AcuLexer::LINE_COMMENT || type == AcuLexer::BLOCK_COMMENT) s.kind = SourceToken::Comment;
        else if (type == AcuLexer::INT || type == AcuLexer::FLOAT) s.kind = SourceToken::Number;
        else if (std::isalpha(static_cast<unsigned char>(s.text[0])) || s.text[0] == '_') s.kind = SourceToken::Word;
        out.push_back(std::move(s));
    }
    return out;
}

}  // namespace acu::frontend
