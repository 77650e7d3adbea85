#include "runtime/emulation/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace acu::runtime::emulation {

namespace {

/// Comments, strings and preprocessor lines become blanks.
std::string bare(const std::string& text) {
    std::string out = text;
    bool line_start = true;
    const auto blank = [&](size_t from, size_t to) {
        for (size_t i = from; i < std::min(to, out.size()); ++i)
            if (out[i] != '\n') out[i] = ' ';
        return to;
    };
    const auto end_of = [&](const std::string& mark, size_t from) { return std::min(text.find(mark, from), text.size()); };
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (text.compare(i, 2, "//") == 0) i = blank(i, end_of("\n", i));
        else if (text.compare(i, 2, "/*") == 0) i = blank(i, end_of("*/", i + 2) + 2);
        else if (c == '#' && line_start) {
            size_t end = end_of("\n", i);
            while (end < text.size() && text[end - 1] == '\\') end = end_of("\n", end + 1);
            i = blank(i, end);
        } else if (c == '"') i = blank(i, end_of("\"", i + 1) + 1);
        else ++i;
        line_start = c == '\n' || (line_start && (c == ' ' || c == '\t'));
    }
    return out;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Behind the bracket that closes the one at `open`.
size_t behind_brackets(const std::string& s, size_t open) {
    int depth = 0;
    for (size_t i = open; i < s.size(); ++i) {
        depth += s[i] == '(' || s[i] == '[' || s[i] == '{' || s[i] == '<';
        depth -= s[i] == ')' || s[i] == ']' || s[i] == '}' || s[i] == '>';
        if (depth == 0) return i + 1;
    }
    return s.size();
}

/// The identifier that ends before `end`.
std::string word_before(const std::string& s, size_t end) {
    while (end > 0 && !in_word(s[end - 1])) --end;
    size_t from = end;
    while (from > 0 && in_word(s[from - 1])) --from;
    return s.substr(from, end - from);
}

/// Names of parameters in `(const T* __restrict__ x, int n)`: each the last word before a comma of the outermost level.
std::vector<std::string> parameter_names(const std::string& list) {
    std::vector<std::string> out;
    int depth = 0;
    size_t from = 1;
    for (size_t i = 1; i < list.size(); ++i) {
        const char c = list[i];
        const bool last = i + 1 == list.size();
        if ((c == ',' && depth == 0) || last) {
            if (const std::string word = word_before(list.substr(from, i - from), i - from); !word.empty() && word != "void") out.push_back(word);
            from = i + 1;
        }
        depth += c == '(' || c == '<' || c == '[';
        depth -= c == ')' || c == '>' || c == ']';
    }
    return out;
}

/// The head behind `__global__`: attributes in brackets, then `name(parameters)` and a body; no name where it is only declared.
KernelHead head_at(const std::string& s, size_t from) {
    KernelHead k;
    for (size_t open = s.find('(', from); open != std::string::npos; open = s.find('(', open)) {
        const std::string word = word_before(s, open);
        const size_t behind = behind_brackets(s, open);
        if (word == "__launch_bounds__") k.launch_bounds = static_cast<uint32_t>(std::strtoul(s.c_str() + open + 1, nullptr, 10));
        if (word.starts_with("__")) {
            open = behind;
            continue;
        }
        const size_t next = s.find_first_not_of(" \n\t", behind);
        if (next != std::string::npos && s[next] == '{') k.name = word, k.parameters = parameter_names(s.substr(open, behind - open));
        return k;
    }
    return k;
}

}  // namespace

std::vector<KernelHead> kernels_in(const std::string& text) {
    const std::string s = bare(text);
    std::vector<KernelHead> out;
    for (const std::string& mark : {std::string("__global__"), std::string("ACU_KERNEL")})
        for (size_t at = s.find(mark); at != std::string::npos; at = s.find(mark, at + 1))
            if (KernelHead k = head_at(s, at); !k.name.empty()) out.push_back(std::move(k));
    return out;
}

std::string callers(const std::vector<KernelHead>& kernels) {
    std::string out = R"(
#line 1 "callers"
namespace acu_callers {
template <class T> struct Bare { typedef T type; };
template <class T> struct Bare<const T> { typedef T type; };
template <unsigned... I> struct Places {};
template <unsigned N, unsigned... I> struct Count : Count<N - 1, N - 1, I...> {};
template <unsigned... I> struct Count<0, I...> { typedef Places<I...> type; };
template <class... P, unsigned... I> void call(void (*kernel)(P...), void** a, Places<I...>) { kernel(*static_cast<typename Bare<P>::type*>(a[I])...); }
template <class... P> void call(void (*kernel)(P...), void** a) { call(kernel, a, typename Count<sizeof...(P)>::type()); }
template <class F> struct Sizes;
template <class... P> struct Sizes<void(P...)> { static const unsigned list[sizeof...(P) + 1]; };
template <class... P> const unsigned Sizes<void(P...)>::list[sizeof...(P) + 1] = {sizeof...(P), (unsigned)sizeof(P)...};
}
)";
    for (const KernelHead& k : kernels)
        out += fmt::format("extern \"C\" void acu_call_{0}(void** a) {{ acu_callers::call({0}, a); }}\n"
                           "extern \"C\" const unsigned* acu_sizes_{0}() {{ return acu_callers::Sizes<decltype({0})>::list; }}\n", k.name);
    return out;
}

std::string line_of(const std::string& text, int number) {
    size_t from = 0;
    for (int n = 1; n < number && from != std::string::npos; ++n) {
        from = text.find('\n', from);
        if (from != std::string::npos) ++from;
    }
    if (from == std::string::npos || number < 1) return "";
    const std::string line = text.substr(from, text.find('\n', from) - from);
    const size_t first = line.find_first_not_of(" \t");
    return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t") + 1 - first);
}

std::string provenance_of(const std::string& line) {
    const size_t at = line.rfind("// @");
    if (at == std::string::npos) return "";
    const std::string all = line.substr(at + 4), place = all.substr(0, all.find(' '));
    const size_t rest = all.find_first_not_of(' ', place.size());
    return rest == std::string::npos ? place : fmt::format("{}, decisions {}", place, all.substr(rest));
}

}  // namespace acu::runtime::emulation
