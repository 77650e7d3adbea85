#include "support/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace acu {

int SourceMap::add(std::string name, std::string text) {
    sources_.push_back({std::move(name), std::move(text)});
    return size() - 1;
}

std::string_view SourceMap::line(Loc loc) const {
    if (loc.file < 0 || loc.file >= size() || loc.line < 1) return {};
    std::string_view rest = (*this)[loc.file].text;
    for (int n = 1; n < loc.line; ++n) {
        const size_t end = rest.find('\n');
        if (end == std::string_view::npos) return {};
        rest.remove_prefix(end + 1);
    }
    return rest.substr(0, rest.find('\n'));
}

std::string SourceMap::place(Loc loc) const {
    if (loc.file < 0 || loc.file >= size()) return "acuc";
    const std::string& name = (*this)[loc.file].name;
    return loc ? fmt::format("{}:{}:{}", name, loc.line, loc.column) : name;
}

/// The line and a caret under it; of a very long line only the surroundings. Columns count code points.
std::string SourceMap::excerpt(Loc loc) const {
    std::string text(line(loc));
    if (text.empty() || !loc) return "";
    constexpr size_t window = 160;
    size_t column = static_cast<size_t>(loc.column > 0 ? loc.column - 1 : 0);
    if (text.size() > window) {
        const size_t from = column > window / 2 ? column - window / 2 : 0;
        text = text.substr(std::min(from, text.size()), window);
        column -= from;
    }
    std::string pad;
    for (size_t i = 0, seen = 0; i < text.size() && seen < column; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
        pad += text[i] == '\t' ? '\t' : ' ';
        ++seen;
    }
    const std::string number = std::to_string(loc.line);
    const int carets = std::max(1, std::min(loc.length, static_cast<int>(text.size()) - static_cast<int>(column)));
    return fmt::format(" {} | {}\n {} | {}{}\n", number, text, std::string(number.size(), ' '), pad, std::string(static_cast<size_t>(carets), '^'));
}

std::string SourceMap::render(const Diagnostic& d) const {
    std::string out = fmt::format("{}: {}[{}]: {}\n{}", place(d.loc), d.warning ? "warning" : "error", d.code, d.message, excerpt(d.loc));
    for (const Note& n : d.notes) out += fmt::format("{}: note: {}\n{}", place(n.loc), n.text, excerpt(n.loc));
    if (!d.help.empty()) out += fmt::format("  help: {}\n", d.help);
    return out;
}

Result<std::string> read_text(const std::string& path, size_t limit) {
    namespace fs = std::filesystem;
    std::error_code ec;
    if (!fs::exists(path, ec)) return Diagnostic{"file.missing", {}, fmt::format("no such file: `{}`", path)};
    if (!fs::is_regular_file(path, ec)) return Diagnostic{"file.unreadable", {}, fmt::format("`{}` is not a regular file", path)};
    const auto size = fs::file_size(path, ec);
    if (ec) return Diagnostic{"file.unreadable", {}, fmt::format("cannot read `{}`: {}", path, ec.message())};
    if (size > limit) return Diagnostic{"file.too-large", {}, fmt::format("`{}` has {} bytes; the limit is {}", path, size, limit)};
    std::ifstream in(path, std::ios::binary);
    if (!in) return Diagnostic{"file.unreadable", {}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno))};
    std::ostringstream text;
    text << in.rdbuf();
    if (text.view().find('\0') != std::string_view::npos)
        return Diagnostic{"file.binary", {}, fmt::format("`{}` is a binary file, not text", path), {}, "an `.acu` file is UTF-8 text"};
    return text.str();
}

Status write_text(const std::string& path, std::string_view text) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    std::error_code ec;
    {
        std::ofstream out(temporary, std::ios::binary);
        out << text;
        if (!out.flush()) {
            const std::string why = std::strerror(errno);
            std::filesystem::remove(temporary, ec);
            return Diagnostic{"file.unwritable", {}, fmt::format("cannot write `{}`: {}", path, why)};
        }
    }
    std::filesystem::rename(temporary, path, ec);
    if (ec) {
        std::error_code ignored;
        std::filesystem::remove(temporary, ignored);
    }
    if (ec) return Diagnostic{"file.unwritable", {}, fmt::format("cannot write `{}`: {}", path, ec.message())};
    return ok();
}

}  // namespace acu
