#include "codegen/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expression.h"

namespace acu::codegen {

using namespace ir;

static const char* const tensor_type = R"(#ifndef ACU_TENSOR
#define ACU_TENSOR
/* A tensor in device memory. `strides` are in elements; NULL: contiguous, the last dimension fastest. */
typedef struct acu_tensor {
    void* data;
    int type; /* one of enum acu_type */
    int rank;
    const long long* sizes;
    const long long* strides;
} acu_tensor;

enum acu_type { ACU_BOOL, ACU_I8, ACU_U8, ACU_I16, ACU_I32, ACU_I64, ACU_F8E4M3, ACU_F8E5M2, ACU_F16, ACU_BF16, ACU_TF32, ACU_F32, ACU_F64 };

/* What a launcher answers; a message goes to `message` if that is not NULL. */
enum acu_status { ACU_OK, ACU_ERROR_ARGUMENT, ACU_ERROR_TYPE, ACU_ERROR_SHAPE, ACU_ERROR_LAYOUT, ACU_ERROR_ALIAS, ACU_ERROR_WORKSPACE, ACU_ERROR_LAUNCH };
#endif
)";

static const char* const host_helpers = R"(#include <stdarg.h>
#include <stdio.h>

namespace {

struct Report {
    char* text;
    size_t size;
    int fail(int status, const char* format, ...) const {
        if (!text || !size) return status;
        va_list list;
        va_start(list, format);
        vsnprintf(text, size, format, list);
        va_end(list);
        return status;
    }
};

long long element_bytes(int type) {
    static const int bytes[] = {1, 1, 1, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8};
    return bytes[type];
}

/// Sizes with the dimensions from `pack` on flattened into one, where the tensor may have more (pack < 0: it may not).
int read_sizes(const Report& report, const acu_tensor* t, const char* name, int type, const char* type_name, int rank, int pack, bool strided, long long* sizes) {
    if (!t) return report.fail(ACU_ERROR_ARGUMENT, "`%s` is NULL", name);
    if (t->type != type) return report.fail(ACU_ERROR_TYPE, "`%s` must hold %s", name, type_name);
    if (pack < 0 ? t->rank != rank : t->rank < rank - 1) return report.fail(ACU_ERROR_SHAPE, "`%s` has %d dimensions, but %d are expected", name, t->rank, rank);
    const int extra = t->rank - rank;
    for (int i = 0; i < rank; ++i) sizes[i] = 1;
    for (int i = 0; i < t->rank; ++i) {
        if (t->sizes[i] < 0) return report.fail(ACU_ERROR_SHAPE, "`%s` has the negative size %lld in dimension %d", name, t->sizes[i], i);
        sizes[pack < 0 || i < pack ? i : i <= pack + extra ? pack : i - extra] *= t->sizes[i];
    }
    long long count = 1, expected = 1;
    for (int i = 0; i < rank; ++i) count *= sizes[i];
    if (count && !t->data) return report.fail(ACU_ERROR_ARGUMENT, "the data of `%s` is NULL", name);
    if ((unsigned long long)t->data % (unsigned long long)element_bytes(type)) return report.fail(ACU_ERROR_LAYOUT, "the data of `%s` is not aligned to its elements", name);
    for (int i = t->rank - 1; i >= 0 && count && t->strides && !strided; --i) {
        if (t->sizes[i] != 1 && t->strides[i] != expected)
            return report.fail(ACU_ERROR_LAYOUT, "`%s` is not contiguous: its stride in dimension %d is %lld, but %lld is expected", name, i, t->strides[i], expected);
        expected *= t->sizes[i];
    }
    return ACU_OK;
}

struct Range {
    const char *first, *last;
};

Range bytes_of(const acu_tensor* t) {
    const char* base = (const char*)t->data;
    long long low = 0, high = 0, expected = 1;
    for (int i = t->rank - 1; i >= 0; --i) {
        if (t->sizes[i] == 0) return Range{base, base};
        const long long reach = (t->sizes[i] - 1) * (t->strides ? t->strides[i] : expected);
        (reach < 0 ? low : high) += reach;
        expected *= t->sizes[i];
    }
    return Range{base + low * element_bytes(t->type), base + (high + 1) * element_bytes(t->type)};
}

bool overlap(const acu_tensor* a, const acu_tensor* b) {
    const Range x = bytes_of(a), y = bytes_of(b);
    return x.first < y.last && y.first < x.last;
}

/// Elements between neighbours of dimension i.
inline long long stride_of(const acu_tensor* t, int i) {
    if (t->strides) return t->strides[i];
    long long s = 1;
    for (int j = t->rank - 1; j > i; --j) s *= t->sizes[j];
    return s;
}

inline bool is_multiple(const void* address, unsigned long long bytes) { return (unsigned long long)address % bytes == 0; }

inline size_t padded(long long count, size_t bytes) { return ((size_t)count * bytes + 255) / 256 * 256; }

}  // namespace
)";

static const char* const early_launch = R"(
namespace {

/// Blocks start while those of the kernel before end. CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization".
template <class... P, class... A>
void launch_early(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared, cudaStream_t queue, A... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared, config.stream = queue;
    config.attrs = &attribute, config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace
)";

static const char* const tensor_maps = R"(#include <cuda.h>

namespace {

/// What the copy engine is told of a tensor: its last dimension first, boxes of `box` elements. CUDA driver API, "cuTensorMapEncodeTiled".
int make_map(const Report& report, TensorMap* map, const char* name, void* data, int bytes, int rank, const long long* sizes, const unsigned* box, int swizzle) {
    typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static Encode encode = 0;
    if (!encode) {
        void* found = 0;
        cudaDriverEntryPointQueryResult result;
        if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) || !found) return report.fail(ACU_ERROR_LAUNCH, "the driver has no cuTensorMapEncodeTiled: it must be of CUDA 12 or later");
        encode = (Encode)found;
    }
    for (int i = 0; i < rank; ++i)
        if (sizes[i] == 0) return ACU_OK; /* nobody copies from it */
    cuuint64_t dims[5], strides[5], stride = (cuuint64_t)bytes;
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    for (int i = 0; i < rank; ++i) {
        dims[i] = sizes[rank - 1 - i] > 0 ? (cuuint64_t)sizes[rank - 1 - i] : 1;
        strides[i] = stride *= dims[i];
    }
    const CUtensorMapDataType type = bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : CU_TENSOR_MAP_DATA_TYPE_UINT64;
    const CUtensorMapSwizzle pattern = swizzle == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
    const CUresult error = encode((CUtensorMap*)map, type, (cuuint32_t)rank, data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, pattern, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return error ? report.fail(ACU_ERROR_LAUNCH, "the copy engine cannot take `%s`: driver error %d", name, (int)error) : ACU_OK;
}

}  // namespace
)";

namespace {

bool is_tensor(const Decl& d) { return d.scope == Scope::In || d.scope == Scope::Out; }

/// Host expressions of dimensions: plain C, floors where needed.
class HostExpressions {
  public:
    explicit HostExpressions(const Program& p) : facts_(known_dims(p)), writer_(none_, names_, facts_) {
        for (const Dim& d : p.dims) names_.of(d.name), facts_.add_dim(d.name);
    }
    std::string index(const Index& e) { return writer_.index(e); }
    std::string value(const Value& v) { return writer_.value(v); }
    std::string dim(const std::string& n) { return names_.of(n); }
    std::string tensor(const std::string& n) { return names_.buffer(n); }

  private:
    std::map<std::string, const Decl*> none_;
    Identifiers names_;
    analysis::Facts facts_;
    ExpressionWriter writer_;
};

class Launcher {
  public:
    Launcher(const Program& p, const Contract& c, const std::vector<Variant>& variants, const Dialect& dialect) : p_(p), contract_(c), variants_(variants), dialect_(dialect), host_(p) {
        for (const Dim& d : p.dims) host_.dim(d.name);
    }

    std::string write() {
        line(0, "typedef i64 Index;");
        line(0, "");
        line(0, "extern \"C\" {} {{", signature(p_, [&](const std::string& n) { return host_.tensor(n); }));
        line(1, "const Report report = {{message, message_size}};");
        line(1, "if (message && message_size) *message = 0;");
        line(1, "int status = ACU_OK;");
        sizes();
        dimensions();
        checks();
        facts(p_.facts);
        aliases();
        line(1, "{0} queue = ({0})stream;", dialect_.stream);
        for (const Variant& v : variants_) variant(v, &v == &variants_.back());
        line(0, "}}");
        return text_;
    }

    template <class F>
    static std::string signature(const Program& p, F name) {
        std::string s;
        for (const Decl& d : p.decls) {
            if (is_tensor(d)) s += fmt::format("const acu_tensor* {}, ", name(d.name));
            if (d.scope == Scope::Param) s += fmt::format("{} {}, ", host_type(d.type), name(d.name));
        }
        return fmt::format("int {}({}void* workspace, size_t workspace_bytes, void* stream, char* message, size_t message_size)", p.name, s);
    }

  private:
    static std::string_view host_type(DType t) {
        if (t == DType::F64) return "double";
        if (is_float(t)) return "float";
        return t == DType::I64 ? "long long" : "int";
    }

    template <class... A>
    void line(size_t depth, fmt::format_string<A...> format, A&&... args) {
        const std::string s = fmt::format(format, std::forward<A>(args)...);
        text_ += s.empty() ? "\n" : std::string(4 * (depth + around_), ' ') + s + "\n";
    }

    /// if (M <= 64 && …) { its workspace, its launches };  the last: for every other size that it admits
    void variant(const Variant& v, bool last) {
        if (last) facts(v.when);
        else {
            std::string condition;
            for (const Value& w : v.when) condition += (condition.empty() ? "" : " && ") + host_.value(w);
            for (const Kernel& k : v.kernels)
                for (const auto& [name, bytes] : k.needs)
                    if (is_tensor(*v.program.find(name))) condition += fmt::format("{}is_multiple({}->data, {})", condition.empty() ? "" : " && ", id(name), bytes);
            if (condition.empty()) condition = "true";
            line(1, "if ({}) {{", condition);
            ++around_;
        }
        temporaries(v.program);
        launches(v);
        line(1, "return status;");
        if (last) return;
        --around_;
        line(1, "}}");
    }

    std::string id(const std::string& tensor) { return host_.tensor(tensor); }
    std::string offset_name(const std::string& tensor) { return host_.tensor(tensor + ".offset"); }
    std::string sizes_name(const std::string& tensor) { return host_.tensor(tensor + ".sizes"); }

    int pack_axis(const Decl& d) const {
        for (size_t i = 0; i < d.dims.size(); ++i)
            for (const Dim& dim : p_.dims)
                if (dim.pack && is_name(d.dims[i].size, dim.name)) return static_cast<int>(i);
        return -1;
    }

    void sizes() {
        for (const Decl& d : p_.decls) {
            if (!is_tensor(d)) continue;
            std::string type(name_of(d.type));
            std::ranges::transform(type, type.begin(), [](char c) { return std::toupper(static_cast<unsigned char>(c)); });
            line(1, "long long {}[{}];", sizes_name(d.name), std::max<size_t>(1, d.dims.size()));
            line(1, "if ((status = read_sizes(report, {}, \"{}\", ACU_{}, \"{}\", {}, {}, {}, {}))) return status;", id(d.name), d.name, type, name_of(d.type), d.dims.size(), pack_axis(d), d.strided,
                 sizes_name(d.name));
        }
    }

    void dimensions() {
        for (const Dim& d : p_.dims) {
            const auto s = std::ranges::find(contract_.sources, d.name, &DimSource::dim);
            if (d.value) {
                line(1, "const i64 {} = {};", host_.dim(d.name), *d.value);
                continue;
            }
            const std::string size = fmt::format("{}[{}]", sizes_name(s->tensor), s->axis);
            const std::string rest = s->offset ? fmt::format("({} - ({}))", size, s->offset) : size;
            line(1, "const i64 {} = {}{};", host_.dim(d.name), rest, s->scale == 1 ? "" : fmt::format(" / {}", s->scale));
        }
    }

    std::string source_of(const std::string& dim) const {
        const auto s = std::ranges::find(contract_.sources, dim, &DimSource::dim);
        return s == contract_.sources.end() ? "fixed when it was compiled" : fmt::format("from dimension {} of `{}`", s->axis, s->tensor);
    }

    void checks() {
        for (const Decl& d : p_.decls) {
            if (!is_tensor(d)) continue;
            for (size_t i = 0; i < d.dims.size(); ++i) {
                const Index& size = d.dims[i].size;
                const bool is_source = std::ranges::any_of(contract_.sources, [&](const DimSource& s) { return s.tensor == d.name && s.axis == i && s.scale == 1; });
                const bool fixed = size->op == IndexOp::Name && std::ranges::any_of(p_.dims, [&](const Dim& x) { return x.name == size->name && x.value; });
                if (is_source && !fixed) continue;
                std::set<std::string> names;
                free_names(size, names);
                const std::string origin = names.size() == 1 ? fmt::format(" ({} {})", *names.begin(), source_of(*names.begin())) : "";
                line(1, "if ({}[{}] != {})", sizes_name(d.name), i, host_.index(size));
                line(2, "return report.fail(ACU_ERROR_SHAPE, \"`{}` has size %lld in dimension {}, but {} is %lld{}\", {}[{}], (long long)({}));", d.name, i, escaped(print(size)), origin, sizes_name(d.name), i,
                     host_.index(size));
            }
        }
    }

    static std::string escaped(const std::string& s) {
        std::string out;
        for (const char c : s) out += c == '%' ? "%%" : std::string(1, c);
        return out;
    }

    void facts(const std::vector<Value>& list) {
        for (const Value& f : list) {
            std::set<std::string> names;
            free_names(f, names);
            std::string shown, values;
            for (const std::string& n : names) shown += fmt::format("{}{} = %lld", shown.empty() ? " (" : ", ", n), values += fmt::format(", (long long){}", host_.dim(n));
            line(1, "if (!({})) return report.fail(ACU_ERROR_SHAPE, \"the sizes break the condition `{}`{}\"{});", host_.value(f), escaped(describe(f)), shown.empty() ? "" : shown + ")", values);
        }
    }

    void aliases() {
        for (const Decl& out : p_.decls) {
            if (out.scope != Scope::Out) continue;
            for (const Decl& other : p_.decls) {
                if (!is_tensor(other) || &other == &out || (other.scope == Scope::Out && &other < &out)) continue;
                line(1, "if (overlap({}, {})) return report.fail(ACU_ERROR_ALIAS, \"the output `{}` shares memory with `{}`\");", id(out.name), id(other.name), out.name, other.name);
            }
        }
    }

    std::string count_of(const Decl& d) {
        Index count = constant(1);
        for (const Window& w : d.dims) count = count * w.size;
        return host_.index(count);
    }

    void temporaries(const Program& p) {
        std::vector<const Decl*> temps;
        for (const Decl& d : p.decls)
            if (d.scope == Scope::Temp) temps.push_back(&d);
        if (temps.empty()) return line(1, "(void)workspace, (void)workspace_bytes;");
        line(1, "size_t needed = 0;");
        for (const Decl* d : temps) {
            line(1, "const size_t {} = needed;", offset_name(d->name));
            line(1, "needed += padded({}, sizeof({}));", count_of(*d), element_type(d->type));
        }
        line(1, "void* memory = workspace;");
        line(1, "if (workspace && workspace_bytes < needed)");
        line(2, "return report.fail(ACU_ERROR_WORKSPACE, \"the workspace has %llu bytes, but %llu are needed\", (unsigned long long)workspace_bytes, (unsigned long long)needed);");
        line(1, "if (!workspace && needed) {{");
        line(2, "const {} error = {}(&memory, needed, queue);", dialect_.error, dialect_.allocate);
        line(2, "if (error) {{");
        line(3, "(void){}();", dialect_.last_error);
        line(3, "return report.fail(ACU_ERROR_WORKSPACE, \"cannot allocate a workspace of %llu bytes: %s\", (unsigned long long)needed, {}(error));", dialect_.error_string);
        line(2, "}}");
        line(1, "}}");
        for (const Decl* d : temps) line(1, "{0}* {1} = ({0}*)((char*)memory + {2});", element_type(d->type), id(d->name), offset_name(d->name));
    }

    std::string argument(const KernelArgument& a, const Program& p) {
        const Decl* d = p.find(a.name);
        switch (a.kind) {
            case KernelArgument::Buffer: return is_tensor(*d) ? fmt::format("({}*){}->data", element_type(d->type), id(a.name)) : id(a.name);
            case KernelArgument::Stride: return fmt::format("stride_of({}, {})", id(a.name), a.axis);
            case KernelArgument::Scalar: return widened(d->type) == DType::Bool ? fmt::format("{} != 0", id(a.name)) : id(a.name);
            case KernelArgument::Dim: return host_.dim(a.name);
            case KernelArgument::Map: return map_name(a);
        }
        return "?";
    }

    std::string map_name(const KernelArgument& a) { return host_.tensor(fmt::format("{}.map{}", a.name, a.axis)); }

    /// TensorMap x_map0; { const long long sizes[] = {M, K}; const unsigned box[] = {64, 128}; if ((status = make_map(…))) return status; }
    void map(const KernelArgument& a, const Program& p) {
        const Decl& d = *p.find(a.name);
        std::string sizes, box;
        for (const Window& w : d.dims) sizes += (sizes.empty() ? "" : ", ") + host_.index(w.size);
        for (const int64_t n : a.box.sizes) box += (box.empty() ? "" : ", ") + std::to_string(n);
        line(2, "TensorMap {};", map_name(a));
        line(2, "{{");
        line(3, "const long long sizes[] = {{{}}};", sizes);
        line(3, "const unsigned box[] = {{{}}};", box);
        line(3, "if ((status = make_map(report, &{}, \"{}\", {}, {}, {}, sizes, box, {}))) return status;", map_name(a), a.name, is_tensor(d) ? id(a.name) + "->data" : id(a.name), info(d.type).bytes, d.dims.size(), a.box.swizzle);
        line(2, "}}");
    }

    std::string met(const Alignment& a, const Program& p) {
        std::string s;
        const auto test = [&](const std::string& t) { s += (s.empty() ? "" : " && ") + t; };
        for (const auto& [name, n] : a.dims) test(fmt::format("{} % {} == 0", host_.dim(name), n));
        for (const auto& [name, bytes] : a.buffers) test(fmt::format("is_multiple({}, {})", is_tensor(*p.find(name)) ? id(name) + "->data" : id(name), bytes));
        return s;
    }

    void launches(const Variant& v) {
        for (const Kernel& k : v.kernels) {
            std::string args;
            for (const KernelArgument& a : k.arguments) args += (args.empty() ? "" : ", ") + argument(a, v.program);
            line(1, "if (const i64 cells = {}) {{", host_.index(k.cells));
            for (const KernelArgument& a : k.arguments)
                if (a.kind == KernelArgument::Map) map(a, v.program);
            const int64_t each = k.threads ? k.packed : block_threads;
            if (each == 1) line(2, "const i64 blocks = cells;");
            else line(2, "const i64 blocks = (cells + {}) / {};", each - 1, each);
            if (!k.alignment.empty()) line(2, "const auto kernel = {} ? {} : {};", met(k.alignment, v.program), k.name, k.unaligned());
            const std::string name = k.alignment.empty() ? k.name : "kernel";
            if (k.shared > 48 * 1024) line(2, "{}", fmt::format(fmt::runtime(dialect_.more_shared), name, k.shared));
            const std::string grid = fmt::format("(unsigned)({1}(blocks < {0} ? blocks : {0}))", most_blocks, k.cluster > 1 ? fmt::format("{} * ", k.cluster) : "");
            if (k.early) line(2, "launch_early({}, {}, {}, {}, queue, {});", name, grid, k.block(), k.shared, args);
            else line(2, "{}<<<{}, {}, {}, queue>>>({});", name, grid, k.block(), k.shared, args);
            line(1, "}}");
        }
        line(1, "if (const {} error = {}()) status = report.fail(ACU_ERROR_LAUNCH, \"a launch failed: %s\", {}(error));", dialect_.error, dialect_.last_error, dialect_.error_string);
        if (std::ranges::any_of(v.program.decls, [](const Decl& d) { return d.scope == Scope::Temp; })) line(1, "if (!workspace && needed) (void){}(memory, queue);", dialect_.release);
    }

    const Program& p_;
    const Contract& contract_;
    const std::vector<Variant>& variants_;
    const Dialect& dialect_;
    HostExpressions host_;
    std::string text_;
    size_t around_ = 0;    ///< blocks of C around what is written
};

std::string shape_text(const Decl& d) {
    std::string s;
    for (const Window& w : d.dims) s += (s.empty() ? "" : ", ") + print(w.size);
    return fmt::format("{}[{}]{}", name_of(d.type), s, d.strided ? ", any strides" : "");
}

std::string comment_of(const Program& p, const Origin& origin) {
    std::string s = "/* " + origin.spec + "\n";
    size_t from = 0;
    while (from < origin.doc.size()) {
        const size_t end = std::min(origin.doc.find('\n', from), origin.doc.size());
        s += " *   " + origin.doc.substr(from, end - from) + "\n";
        from = end + 1;
    }
    for (const Decl& d : p.decls) {
        if (is_tensor(d)) s += fmt::format(" * {}: {} {}\n", d.name, d.scope == Scope::Out ? "output" : "input", shape_text(d));
        const auto known = origin.scalars.find(d.name);
        if (d.scope == Scope::Param) s += fmt::format(" * {}: {}{}\n", d.name, name_of(d.type), known == origin.scalars.end() ? "" : fmt::format(", usually {}", known->second));
    }
    for (const Value& f : p.facts) s += fmt::format(" * where {}\n", describe(f));
    return s + " * workspace: device memory for intermediates, aligned to 256 bytes, or NULL: it is then allocated and freed in the order of the stream.\n"
               " * Asynchronous on `stream` (NULL: the default stream). Outputs must not share memory with anything else. */\n";
}

}  // namespace

std::string launcher_header(const Program& p, const Origin& origin) {
    Identifiers names;
    for (const Dim& d : p.dims) names.of(d.name);
    const std::string guard = fmt::format("ACU_OP_{}_H", p.name);
    return fmt::format("#ifndef {0}\n#define {0}\n#include <stddef.h>\n\n{1}\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{2}{3};\n\n#ifdef __cplusplus\n}}\n#endif\n#endif\n", guard, tensor_type,
                       comment_of(p, origin), Launcher::signature(p, [&](const std::string& n) { return names.buffer(n); }));
}

std::string launcher_source(const Program& p, const Contract& contract, const std::vector<Variant>& variants, const Dialect& dialect) {
    const bool early = std::ranges::any_of(variants, [](const Variant& v) { return std::ranges::any_of(v.kernels, &Kernel::early); });
    const bool maps = std::ranges::any_of(variants, [](const Variant& v) { return std::ranges::any_of(v.kernels, [](const Kernel& k) { return !k.needs.empty(); }); });
    return std::string(host_helpers) + (maps ? tensor_maps : "") + (early ? early_launch : "") + "\n" + Launcher(p, contract, variants, dialect).write();
}

}  // namespace acu::codegen
