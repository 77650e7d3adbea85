#include "frontend/excerpt.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace acu::frontend {
namespace {

/// A declaration with the lines that belong to it.
struct Piece {
    std::string name;    ///< empty: always kept (imports)
    size_t from, to;
    bool kept = false;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::string_view word_at(std::string_view text, size_t at) {
    size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    return text.substr(at, end - at);
}

std::vector<Piece> pieces_of(std::string_view text) {
    static constexpr std::array<std::string_view, 5> words{"import", "fn", "op", "case", "schedule"};
    std::vector<Piece> out;
    for (size_t line = 0; line < text.size();) {
        const std::string_view word = word_at(text, line);
        if (std::ranges::find(words, word) != words.end()) {
            if (!out.empty()) out.back().to = line;
            const size_t name = text.find_first_not_of(' ', line + word.size());
            out.push_back({word == "import" || name == std::string_view::npos ? "" : std::string(word_at(text, name)), line, text.size()});
        }
        const size_t end = text.find('\n', line);
        line = end == std::string_view::npos ? text.size() : end + 1;
    }
    return out;
}

/// Keeps a piece and every piece that a word of it names.
void keep(std::string_view text, std::vector<Piece>& pieces, const std::multimap<std::string, size_t, std::less<>>& by_name, size_t i) {
    if (pieces[i].kept) return;
    pieces[i].kept = true;
    for (size_t at = pieces[i].from; at < pieces[i].to; ++at) {
        if (!is_letter(text[at])) continue;
        const std::string_view word = word_at(text, at);
        for (auto [it, end] = by_name.equal_range(word); it != end; ++it) keep(text, pieces, by_name, it->second);
        at += word.size();
    }
}

}  // namespace

std::string excerpt(std::string_view text, const std::set<std::string>& names) {
    std::vector<Piece> pieces = pieces_of(text);
    std::multimap<std::string, size_t, std::less<>> by_name;
    for (size_t i = 0; i < pieces.size(); ++i) by_name.emplace(pieces[i].name, i);
    for (size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].name.empty() || names.contains(pieces[i].name)) keep(text, pieces, by_name, i);
    std::string out;
    size_t at = 0;
    for (const Piece& p : pieces) {
        out.append(static_cast<size_t>(std::ranges::count(text.substr(at, p.from - at), '\n')), '\n');
        if (p.kept) out += text.substr(p.from, p.to - p.from);
        else out.append(static_cast<size_t>(std::ranges::count(text.substr(p.from, p.to - p.from), '\n')), '\n');
        at = p.to;
    }
    return out;
}

}  // namespace acu::frontend
