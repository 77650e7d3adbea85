// Tokens to lines, lines to text. How a line looks depends on its tokens and the brackets open around it, never on its length.
#include "frontend/format.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/parse.h"

namespace acu::frontend {
namespace {

/// A token and what its neighbours make of it.
struct Piece : SourceToken {
    size_t column = 0;          ///< where the author wrote it
    bool prefix = false;        ///< a sign with one operand
    bool tight = false;         ///< a sign with two operands, without spaces around it
    bool ends_head = false;     ///< the bracket that closes the axes of a reduction
};

struct Line {
    std::vector<Piece> pieces;
    bool blank = false;              ///< a blank line stands above
    const Piece* lead = nullptr;     ///< the first token here or below that is no comment
    size_t indent = 0, assign = 0;   ///< `assign`: the piece that is the `=` of a statement; 0: none
    size_t width = 0;                ///< of what stands before `assign`
    std::string text;
};

// ---- kinds of tokens

using Set = std::initializer_list<std::string_view>;

bool is(const SourceToken& t, Set set) { return t.kind != SourceToken::Comment && std::ranges::find(set, t.text) != set.end(); }
bool opens(const SourceToken& t) { return is(t, {"(", "[", "{"}) || (t.generic && t.text == "<"); }
bool closes(const SourceToken& t) { return is(t, {")", "]", "}"}) || (t.generic && t.text == ">"); }
bool declares(const SourceToken& t) { return is(t, {"import", "fn", "op", "case", "schedule"}); }
bool keyword(const SourceToken& t) {
    return declares(t) || is(t, {"for", "when", "where", "in", "if", "then", "else", "or", "scan", "exclusive", "strided"});
}
bool plain(const SourceToken& t) { return t.kind == SourceToken::Number || (t.kind == SourceToken::Word && !keyword(t)); }
bool significant(const SourceToken& t) { return t.kind != SourceToken::Comment && t.kind != SourceToken::LineEnd; }
bool line_comment(const SourceToken& t, std::string_view start = "//") { return t.kind == SourceToken::Comment && t.text.starts_with(start); }
bool comment_only(const Line& l) { return std::ranges::none_of(l.pieces, significant); }

/// After these a statement goes on in the next line; with those it goes on from the line before. As the parser has it.
bool continues(const SourceToken& t) {
    return (t.kind == SourceToken::Sign && !opens(t) && !closes(t)) || is(t, {"where", "then", "else", "or", "if", "for", "op", "fn", "in", "scan"});
}
bool joins(const SourceToken& t) { return is(t, {"then", "else", "where", "->", "or", "{"}); }

// ---- text to pieces

std::string without_trailing_space(const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = std::string_view(text).substr(at, end - at);
        if (line.ends_with('\r') && end < text.size()) line.remove_suffix(1);
        out.append(line.substr(0, line.find_last_not_of(" \t") + 1)).push_back('\n');
        at = end + 1;
    }
    return out;
}

std::vector<Piece> pieces_of(const std::string& text) {
    std::vector<Piece> out;
    size_t at = 0, line_start = 0;
    for (SourceToken& t : tokenize(text)) {
        at = text.find_first_not_of(" \t", at);
        const size_t column = at - line_start;
        at += t.text.size();
        if (t.kind == SourceToken::LineEnd) line_start = at;
        out.push_back({std::move(t), column});
    }
    return out;
}

/// Tells signs with one operand from those with two, and finds the products that are written without spaces:
///   all in the shape of a parameter      x: T[M, 2*F]
///   paths in a schedule                  stage(x, at = k/o)
///   the quotient of a dimension          d < D/2, c / (C/groups)
///   the terms of a sum in subscripts and in `where` of an operator: x[n, p*stride + r - pad], P == (H + 2*pad - R) / stride + 1;
///   a term stays wide if one of its quotients has more than a name on the left, or one of its products on both sides
class Annotator {
  public:
    explicit Annotator(std::vector<Piece>& pieces) {
        for (Piece& p : pieces)
            if (significant(p)) words_.push_back(&p);
    }

    void run() {
        for (size_t i = 0; i < words_.size(); ++i) visit(i);
        for (const Factor& f : factors_) f.sign->tight |= is_sum_[f.place.sum] && !is_wide_[f.place.term];
    }

  private:
    struct Place { size_t sum = 0, term = 0; };
    struct Bracket { char opener; bool reduction; Place outside; };
    struct Factor { Piece* sign; Place place; };

    const Piece& word(size_t i) const { return i < words_.size() ? *words_[i] : none_; }
    bool ends_operand(const Piece& t) const { return plain(t) || (closes(t) && !t.ends_head); }
    bool inside(char opener) const { return std::ranges::find(open_, opener, &Bracket::opener) != open_.end(); }

    void visit(size_t i) {
        Piece& p = *words_[i];
        if (declares(p)) declaration_ = p.text;
        if (open_.empty() && is(p, {"where", "{"})) in_where_ = p.text == "where";
        p.prefix = is(p, {"!", "~"}) || (p.text == "-" && !ends_operand(word(i - 1)));
        if (opens(p)) {
            open_.push_back({p.text[0], word(i - 1).reduction, place_});
            start_sum();
        } else if (closes(p) && !open_.empty()) {
            p.ends_head = open_.back().reduction;
            place_ = open_.back().outside;
            open_.pop_back();
        } else if (is(p, {"*", "/", "%"})) factor(i);
        else if (is(p, {"+", "-"}) && !p.prefix) is_sum_[place_.sum] = true, start_term();
        else if (keyword(p) || (p.kind == SourceToken::Sign && !p.prefix && !is(p, {".", ".."}))) start_sum();
    }

    void factor(size_t i) {
        Piece& p = *words_[i];
        const Piece &left = word(i - 1), &right = word(i + 1);
        const bool body = inside('{'), shape = declaration_ == "op" && !body && inside('[');
        p.tight = shape || (declaration_ == "schedule" && body) || dimension_quotient(i);
        if (!in_where_ && !inside('[')) return;
        const bool narrow = plain(left) || (p.text == "*" && plain(right));
        if (!narrow || !(plain(right) || right.text == "(")) is_wide_[place_.term] = true;
        factors_.push_back({&p, place_});
    }

    /// Dimensions are written with a capital.
    bool dimension_quotient(size_t i) const {
        const Piece &left = word(i - 1), &right = word(i + 1);
        const bool dimension = plain(left) && left.text[0] >= 'A' && left.text[0] <= 'Z';
        return word(i).text == "/" && dimension && plain(right) && !opens(word(i + 2)) && !is(word(i - 2), {"*", "/", "%"});
    }

    void start_term() { place_.term = is_wide_.size(), is_wide_.push_back(false); }
    void start_sum() { place_.sum = is_sum_.size(), is_sum_.push_back(false), start_term(); }

    std::vector<Piece*> words_;
    std::vector<Bracket> open_;
    std::vector<Factor> factors_;
    std::vector<bool> is_sum_{false}, is_wide_{false};
    Place place_;
    std::string declaration_;
    bool in_where_ = false;
    const Piece none_{};
};

// ---- pieces to lines

/// At the author's line ends, and before every declaration.
std::vector<Line> lines_of(std::vector<Piece> pieces) {
    std::vector<Line> out;
    Line line;
    const auto finish = [&] {
        if (!line.pieces.empty()) out.push_back(std::exchange(line, {}));
        else line.blank = true;
    };
    for (Piece& p : pieces) {
        if (p.kind == SourceToken::LineEnd || (declares(p) && !comment_only(line))) finish();
        if (p.kind != SourceToken::LineEnd) line.pieces.push_back(std::move(p));
    }
    finish();
    const Piece* lead = nullptr;
    for (size_t i = out.size(); i-- > 0;) {
        const auto first = std::ranges::find_if(out[i].pieces, significant);
        if (first != out[i].pieces.end()) lead = &*first;
        out[i].lead = lead;
    }
    return out;
}

/// Decides the indentation of each line, the blank line above it, and which sign may be aligned.
class Layout {
  public:
    explicit Layout(std::vector<Line>& lines) : lines_(lines) {}

    void run() {
        for (size_t i = 0; i < lines_.size(); ++i) {
            Line& l = lines_[i];
            l.blank = i > 0 && blank(l, lines_[i - 1]);
            l.indent = indent(l);
            bool assigns = in_body() && !continuation(l);
            for (size_t k = 0; k < l.pieces.size(); ++k) {
                assigns &= l.assign == 0 && significant(l.pieces[k]);
                if (assigns && in_body() && is(l.pieces[k], {"=", "+="})) l.assign = k;
                track(l.pieces[k], l.indent);
            }
        }
    }

  private:
    struct Bracket { char opener; size_t inner, outer; };

    bool in_body() const { return !open_.empty() && open_.back().opener == '{'; }

    /// Is it, outside of ( [ <, the rest of what an earlier line began?
    bool continuation(const Line& l) const {
        if (l.lead == nullptr || before_ == nullptr || !(open_.empty() || in_body())) return false;
        const bool listed = in_body() && before_->text == "," && (declaration_ == "case" || declaration_ == "import");
        return joins(*l.lead) || (continues(*before_) && !listed);
    }

    /// A header goes on by 4, so that it differs from the body that follows; everything else by 2.
    size_t step() const { return (!open_.empty() && open_.front().opener == '{') || declaration_ == "fn" ? 2 : 4; }

    size_t indent(const Line& l) const {
        if (!open_.empty() && closes(l.pieces[0])) return open_.back().outer;
        if (!open_.empty() && !in_body()) return open_.back().inner;
        const size_t base = open_.empty() ? 0 : open_.back().inner;
        return continuation(l) && !is(*l.lead, {"where", "{"}) ? base + step() : base;
    }

    bool blank(const Line& l, const Line& above) const {
        if (before_ != nullptr && opens(*before_)) return comment_only(above) && l.blank && !closes(l.pieces[0]);
        if (closes(l.pieces[0]) || continuation(l)) return false;
        if (!open_.empty() || l.lead == nullptr) return l.blank;
        const bool documented = line_comment(above.pieces[0], "///") && !comment_only(l) && !is(*l.lead, {"import"});
        if (comment_only(above)) return l.blank && !documented;
        const bool may_group = l.lead->text == declaration_ && is(*l.lead, {"case", "import"});
        return l.blank || !may_group;
    }

    void track(const Piece& p, size_t indent) {
        if (!significant(p)) return;
        if (declares(p)) declaration_ = p.text;
        if (p.text == "{") open_.push_back({'{', 2, 0});
        else if (opens(p)) open_.push_back({p.text[0], indent + step(), indent});
        else if (closes(p) && !open_.empty()) open_.pop_back();
        before_ = &p;
    }

    std::vector<Line>& lines_;
    std::vector<Bracket> open_;
    const Piece* before_ = nullptr;
    std::string declaration_;
};

// ---- lines to text

std::string_view gap(const Piece& a, const Piece& b) {
    if (line_comment(b)) return "  ";
    if (is(a, {"{"}) || is(b, {"}"})) return is(a, {"{"}) && is(b, {"}"}) ? "" : " ";
    if (opens(a) || closes(b) || is(b, {",", ":"})) return "";
    if (!significant(a) || !significant(b)) return " ";
    if (a.prefix || a.tight || b.tight || is(a, {".", ".."}) || is(b, {"."})) return "";
    if (opens(b) && !is(b, {"{"})) return plain(a) || a.generic ? "" : " ";
    return " ";
}

void render(Line& l) {
    l.text.assign(l.indent, ' ');
    for (size_t i = 0; i < l.pieces.size(); ++i) {
        if (i > 0) l.text += gap(l.pieces[i - 1], l.pieces[i]);
        if (i == l.assign) l.width = l.text.size();
        l.text += l.pieces[i].text;
    }
}

/// `=` in one column stays in one column, over lines that follow each other.
void align(std::vector<Line>& lines) {
    const auto column = [](const Line& l) { return l.pieces[l.assign].column; };
    for (size_t from = 0, to; from < lines.size(); from = to) {
        size_t width = lines[from].width;
        for (to = from + 1; to < lines.size(); ++to) {
            const Line& l = lines[to];
            if (l.assign == 0 || lines[from].assign == 0 || l.blank || column(l) != column(lines[from])) break;
            width = std::max(width, l.width);
        }
        for (size_t i = from; i < to; ++i)
            if (lines[i].assign != 0) lines[i].text.insert(lines[i].width, width - lines[i].width, ' ');
    }
}

}  // namespace

std::string format(const std::string& text) {
    std::vector<Piece> pieces = pieces_of(without_trailing_space(text));
    Annotator(pieces).run();
    std::vector<Line> lines = lines_of(std::move(pieces));
    Layout(lines).run();
    std::ranges::for_each(lines, render);
    align(lines);
    std::string out;
    for (const Line& l : lines) out += (l.blank ? "\n" : "") + l.text + "\n";
    return out;
}

}  // namespace acu::frontend
