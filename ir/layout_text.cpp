#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/layout_bits.h"
#include "ir/text.h"

namespace acu::ir {

static std::string print(const Coord& c) { return fmt::format("({})", fmt::join(c, ",")); }

std::string print(const Layout& l) {
    std::vector<std::string> parts;
    for (const InputBits& b : l.atom()) {
        std::string part = b.input + ":";
        for (const Coord& image : b.images) part += " " + print(image);
        parts.push_back(std::move(part));
    }
    for (const Repeat& r : l.repeats()) parts.push_back(fmt::format("repeat {} x {} step {}", r.input, r.count, print(r.step)));
    if (parts.empty()) parts.push_back(fmt::format("rank {}", l.rank()));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

namespace {

/// Recursive descent over tokens; the first fault ends it.
class Reader {
  public:
    Reader(const std::vector<Token>& tokens, size_t& at) : tokens_(tokens), at_(at) {}

    Result<Layout> layout() {
        const size_t start = at_;
        expect("{");
        do part();
        while (ok() && take(","));
        expect("}");
        if (!ok()) return *fault_;
        auto made = Layout::make(rank_ < 0 ? 0 : rank_, std::move(atom_), std::move(repeats_));
        if (made) return made;
        Diagnostic why = made.why();
        why.loc = tokens_[start].loc;
        return why;
    }

  private:
    const Token& token() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
    bool ok() const { return !fault_; }
    bool is(std::string_view text) const { return token().kind != Token::End && token().text == text; }
    bool take(std::string_view text) {
        const bool there = ok() && is(text);
        at_ += there;
        return there;
    }
    void fail(std::string wanted) {
        if (fault_) return;
        fault_ = refusal("layout.syntax", fmt::format("expected {} in a layout, found `{}`", wanted, token().text),
                         "write `{reg: (0,1) (8,0), repeat reg x 22 step (0,8)}`");
        fault_->loc = token().loc;
    }
    void expect(std::string_view text) {
        if (!take(text)) fail(fmt::format("`{}`", text));
    }
    std::string name() {
        if (!ok() || token().kind != Token::Name) return fail("the name of an input"), "";
        return tokens_[at_++].text;
    }
    int64_t number() {
        const std::string& text = token().text;
        const bool whole = token().kind == Token::Number && text.size() <= 13 && text.find_first_not_of("0123456789") == std::string::npos;
        if (!ok() || !whole) return fail("a whole number up to 2^40"), 0;
        ++at_;
        return std::stoll(text);
    }
    Coord coord() {
        Coord c;
        expect("(");
        while (ok() && !is(")")) {
            c.push_back(number());
            if (!take(",")) break;
        }
        expect(")");
        if (ok() && rank_ >= 0 && static_cast<size_t>(rank_) != c.size()) fail(fmt::format("{} numbers in each pair of parentheses", rank_));
        rank_ = static_cast<int>(c.size());
        return c;
    }
    void part() {
        const bool head = token().kind == Token::Name && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text != ":";
        if (head && take("repeat")) {
            Repeat r{name(), 1, {}};
            expect("x");
            r.count = number();
            expect("step");
            r.step = coord();
            repeats_.push_back(std::move(r));
        } else if (head && take("rank")) {
            rank_ = static_cast<int>(std::min<int64_t>(number(), 64));
        } else {
            InputBits bits{name(), {}};
            expect(":");
            do bits.images.push_back(coord());
            while (ok() && is("("));
            atom_.push_back(std::move(bits));
        }
    }

    const std::vector<Token>& tokens_;
    size_t& at_;
    int rank_ = -1;
    std::vector<InputBits> atom_;
    std::vector<Repeat> repeats_;
    std::optional<Diagnostic> fault_;
};

}  // namespace

Result<Layout> parse_layout(const std::vector<Token>& tokens, size_t& at) { return Reader(tokens, at).layout(); }

Result<Layout> parse_layout(std::string_view text) {
    const std::vector<Token> tokens = tokens_of(text);
    size_t at = 0;
    auto l = parse_layout(tokens, at);
    if (!l || tokens[at].kind == Token::End) return l;
    Diagnostic why = refusal("layout.syntax", fmt::format("`{}` follows the layout", tokens[at].text));
    why.loc = tokens[at].loc;
    return why;
}

}  // namespace acu::ir
