#include "ir/text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace acu::ir {

static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
static bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

static size_t name_length(std::string_view s) {
    size_t n = 1;
    while (n < s.size() && (is_letter(s[n]) || is_digit(s[n]) || (s[n] == '.' && n + 1 < s.size() && (is_letter(s[n + 1]) || is_digit(s[n + 1]))))) ++n;
    return n;
}

static size_t number_length(std::string_view s) {
    size_t n = 0;
    while (n < s.size() && (is_digit(s[n]) || s[n] == '.' || s[n] == 'e' || ((s[n] == '-' || s[n] == '+') && s[n - 1] == 'e'))) ++n;
    if (n < s.size() && (s[n] == 'd' || s[n] == 'l')) ++n;
    return n;
}

static size_t sign_length(std::string_view s) {
    static constexpr std::array<std::string_view, 9> long_signs{"+:", "+=", "*=", "<=", ">=", "==", "!=", "<<", ">>"};
    for (const auto sign : long_signs)
        if (s.starts_with(sign)) return sign.size();
    return 1;
}

std::vector<Token> tokens_of(std::string_view text) {
    std::vector<Token> out;
    int line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < text.size();) {
        const std::string_view rest = text.substr(i);
        if (rest[0] == '\n') ++line, line_start = i + 1;
        if (rest.starts_with("//")) {
            i += std::min(rest.find('\n'), rest.size());
            continue;
        }
        if (std::isspace(static_cast<unsigned char>(rest[0]))) {
            ++i;
            continue;
        }
        const bool letter = is_letter(rest[0]), digit = is_digit(rest[0]);
        const size_t length = letter ? name_length(rest) : digit ? number_length(rest) : sign_length(rest);
        const Loc loc{-1, line, static_cast<int>(i - line_start) + 1, static_cast<int>(length)};
        out.push_back({letter ? Token::Name : digit ? Token::Number : Token::Sign, std::string(rest.substr(0, length)), loc});
        i += length;
    }
    out.push_back({Token::End, "end of text", {-1, line, static_cast<int>(text.size() - line_start) + 1}});
    return out;
}

}  // namespace acu::ir
