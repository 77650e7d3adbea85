#include "acuc/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/source.h"

namespace acu {

using namespace ir;

static Diagnostic bad(const char* code, const std::string& path, const std::string& what, std::string help = {}) { return {code, {}, fmt::format("`{}` {}", path, what), {}, std::move(help)}; }

/// The text of the header's dictionary; empty for a file of another kind.
static std::string header_of(std::ifstream& in) {
    char magic[8];
    if (!in.read(magic, 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0 || magic[6] < 1 || magic[6] > 3) return "";
    unsigned char length[4] = {};
    if (!in.read(reinterpret_cast<char*>(length), magic[6] == 1 ? 2 : 4)) return "";
    const size_t size = length[0] | size_t{length[1]} << 8 | size_t{length[2]} << 16 | size_t{length[3]} << 24;
    if (size > 1 << 20) return "";
    std::string text(size, ' ');
    return in.read(text.data(), static_cast<std::streamsize>(size)) ? text : "";
}

/// What follows `'key':` in the dictionary, up to `end`.
static std::string field(const std::string& header, const std::string& key, char end) {
    const size_t at = header.find("'" + key + "':");
    if (at == std::string::npos) return "";
    size_t from = header.find_first_not_of(' ', at + key.size() + 3);
    const size_t to = header.find(end, from == std::string::npos ? at : from + 1);
    return from == std::string::npos || to == std::string::npos ? "" : header.substr(from, to - from);
}

static bool parse_shape(const std::string& text, std::vector<int64_t>& sizes) {
    std::istringstream in(text.empty() ? "" : text.substr(1));
    for (std::string item; std::getline(in, item, ',');) {
        if (item.find_first_not_of(' ') == std::string::npos) continue;
        try {
            sizes.push_back(std::stoll(item));
        } catch (const std::exception&) {
            return false;
        }
        if (sizes.back() < 0 || sizes.back() > (int64_t{1} << 40)) return false;
    }
    return !text.empty() && text[0] == '(';
}

static bool accepts(DType type, const std::string& descr) {
    const TypeInfo& t = info(type);
    if (descr == t.numpy || (t.bytes == 1 && descr.size() == 3 && descr.substr(1) == t.numpy.substr(1))) return true;
    const bool bits = type == DType::BF16 || type == DType::F8E4M3 || type == DType::F8E5M2;
    return bits && (descr == fmt::format("|V{}", t.bytes) || descr == fmt::format("<V{}", t.bytes));
}

Result<Array> read_npy(const std::string& path, DType type) {
    std::error_code ec;
    if (!std::filesystem::is_regular_file(path, ec)) return Diagnostic{"file.missing", {}, fmt::format("no such file: `{}`", path)};
    std::ifstream in(path, std::ios::binary);
    if (!in) return Diagnostic{"file.unreadable", {}, fmt::format("cannot read `{}`", path)};
    const std::string header = header_of(in);
    std::string descr = field(header, "descr", ',');
    if (header.empty() || descr.size() < 3) return bad("npy.format", path, "is no .npy file", "save it with numpy.save");
    descr = descr.substr(1, descr.size() - 2);
    if (!accepts(type, descr))
        return bad("npy.type", path, fmt::format("holds `{}`, but {} is expected, which is `{}` there", descr, name_of(type), info(type).numpy), type == DType::BF16 ? "a bf16 array is saved by its bits, as uint16" : "");
    if (field(header, "fortran_order", ',') == "True") return bad("npy.order", path, "is in Fortran order", "save numpy.ascontiguousarray of it");
    Array a{type, {}, {}};
    if (!parse_shape(field(header, "shape", ')'), a.sizes)) return bad("npy.format", path, "has no readable shape");
    int64_t elements = 1;
    for (const int64_t s : a.sizes)
        if (__builtin_mul_overflow(elements, s, &elements) || elements > (int64_t{1} << 50)) return bad("npy.truncated", path, "is truncated: its shape needs more data than any file holds");
    const auto rest = static_cast<int64_t>(std::filesystem::file_size(path, ec)) - static_cast<int64_t>(in.tellg());
    const int64_t bytes = a.count() * static_cast<int64_t>(info(type).bytes);
    if (rest < bytes) return bad("npy.truncated", path, fmt::format("is truncated: its shape needs {} bytes of data, and {} are there", bytes, rest));
    a.bytes.resize(static_cast<size_t>(bytes));
    in.read(reinterpret_cast<char*>(a.bytes.data()), bytes);
    return a;
}

Status write_npy(const std::string& path, const Array& a) {
    std::string shape;
    for (const int64_t s : a.sizes) shape += fmt::format("{},", s);
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", info(a.type).numpy, shape);
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(header.size() & 255);
    out += static_cast<char>(header.size() >> 8);
    out += header;
    out.append(reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size());
    return write_text(path, out);
}

}  // namespace acu
