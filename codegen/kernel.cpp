#include <algorithm>
#include <utility>

#include "codegen/kernel.h"
#include "codegen/kernel_writer.h"
#include "codegen/narrow.h"
#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/lower/lower.h"
#include "ir/lower/spread.h"
#include "microkernels/catalogue.h"

namespace acu::codegen {

using namespace ir;

/// Does the identifier stand in the text as a word of its own?
static bool mentions(const std::string& text, const std::string& word) {
    const auto letter = [&](size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'); };
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        if (!letter(at + word.size()) && (at == 0 || !letter(at - 1))) return true;
    return false;
}

KernelWriter::KernelWriter(const Program& p, const Stmt& kernel, const Target& target, const EmitOptions& options)
    : p_(p), loop_(std::get<Loop>(kernel->node)), target_(target), options_(options), threads_(loop_.threads), cluster_(lower::cluster_of(loop_)), ranks_(threads_ ? lower::ranks_of(loop_) : 1),
      facts_(known_dims(p), [&p](const std::string& t) { return p.find(t)->dims[0].size; }), writer_(buffers_, names_, facts_) {
    for_each_block(loop_.body, [&](const Block& b, Loc) { joins_ += !b.via.empty() && std::ranges::any_of(b.axes, [](const Axis& a) { return a.kind == AxisKind::Red; }); });
    for_each_block(loop_.body, [&](const Block& b, Loc) {
        const Microkernel* m = lower::is_matrix_product(b) ? microkernels::find(b.via) : nullptr;
        if (!m || !m->matrix.rows_in_registers) return;
        const Value& rows = b.vals[0]->args[0];
        if (rows->op == Op::Load) paired_.insert(rows->name);    // else it is rounded in the call
    });
    for (const Decl& d : p.decls) buffers_[d.name] = &d;
    for (const Dim& d : p.dims) facts_.add_dim(d.name), names_.of(d.name);
    for (const Value& f : p.facts) facts_.add(f);
}

/// Maps stay where the launch put them.
static std::string by_reference(std::string parameters) {
    const std::string map = "ACU_MAP ";
    for (size_t at; (at = parameters.find(map)) != std::string::npos;) parameters.replace(at, map.size(), "const TensorMap& ");
    return parameters;
}

Kernel KernelWriter::write(const std::string& name, const Neighbours& neighbours) {
    Kernel k{name, loop_.extent, arguments(), "", threads_, 0, {}};
    for (const KernelArgument& a : k.arguments) parameter(a);
    const bool narrow = fits_32_bits(p_, loop_);
    if (threads_) k.cells = block_loops();
    else cell_loop();
    k.cells = without_loads(k.cells);    // blocks without an iteration end at once
    const std::string body = std::exchange(text_, "");
    line("typedef {} Index;", narrow ? "int" : "i64");
    for (const Dim& d : p_.dims)
        if (d.value && mentions(body, names_.of(d.name))) line("const Index {} = {};", names_.of(d.name), *d.value);
    const bool meets = neighbours.next_is_early || loop_.early;
    std::string before = neighbours.next_is_early ? "    let_next_start();\n" : "", after;
    if (loop_.early) (neighbours.uses_previous ? before : after) += "    wait_for_previous();\n";
    if (meets) headers_.insert("early");
    if (joins_ && cluster_ > 1) before += "    cluster_open();\n", after = "    cluster_close();\n" + after;
    const std::string text = text_ + shared_text_ + before + body + after;
    for (const KernelArgument& m : maps_) {
        k.arguments.push_back(m), k.needs[m.name] = 16;
        parameter(m);
    }
    k.alignment = alignment_;
    if (!maps_.empty() && k.alignment.dims.empty())    // it is chosen by addresses anyway
        for (const auto& [tensor, bytes] : std::exchange(k.alignment.buffers, {})) k.needs[tensor] = std::max(k.needs[tensor], bytes);
    if (k.alignment.empty()) k.text = entry(name, (alignment_.empty() ? "\n" : "\n    constexpr bool aligned = true;\n") + text);
    else
        k.text = fmt::format("template <bool aligned>\nACU_DEVICE void {0}_body({1}) {{\n{2}}}\n{3}{4}", name, by_reference(parameters_), text, entry(name, fmt::format(" {}_body<true>({}); ", name, passed_on_)),
                             entry(k.unaligned(), fmt::format(" {}_body<false>({}); ", name, passed_on_)));
    k.shared = shared_bytes_;
    k.packed = packed_;
    k.early = loop_.early;
    k.cluster = cluster_ * ranks_;
    k.threads *= ranks_;
    k.headers = {headers_.begin(), headers_.end()};
    return k;
}

/// The compiler may use as many registers as the tiles of a thread and its addresses need, but not so many that blocks stand alone on a multiprocessor without need.
std::string KernelWriter::bounds() const {
    constexpr int64_t small = 4096;
    const int64_t threads = block_size(), besides_tiles = multiplies_ ? 96 : 40;    // fragments of factors, too
    const int64_t most_threads = shared_bytes_ > small ? 1536 : 1024;    // a tile in shared memory waits for itself more often
    constexpr int64_t at_least = 26;    // where that makes the second block, which loads while the first one waits
    const int64_t fitting = register_file / (threads * (registers_ + besides_tiles)), blocks = std::min(fitting < 2 && register_file >= 2 * threads * (registers_ + at_least) ? 2 : fitting, most_threads / threads);
    if (headers_.contains("registers")) return fmt::format("{}, 1", threads);    // a role sets its own: ptxas wants a bound for those at the start
    const int64_t by_shared = shared_bytes_ ? std::max<int64_t>(1, target_.shared_bytes / (shared_bytes_ + 1024)) : blocks;
    const bool says = threads_ && target_.platform == Platform::Cuda && registers_ && std::min(blocks, by_shared) > 1;
    return says ? fmt::format("{}, {}", threads, std::min(blocks, by_shared)) : std::to_string(threads);
}

std::string KernelWriter::entry(const std::string& name, const std::string& body) const {
    const std::string blocks = cluster_ * ranks_ > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster_ * ranks_) : "";
    return fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}) {}({}) {{{}}}\n", blocks, bounds(), name, parameters_, body);
}

void KernelWriter::use(const Index& e) {
    free_names(e, used_);
    loaded_tensors(e, used_buffers_);
    std::set<std::string> loaded;
    loaded_tensors(e, loaded);
    for (const std::string& t : loaded) use_sizes(t);
}
void KernelWriter::use_sizes(const std::string& tensor) {
    const auto it = buffers_.find(tensor);
    if (it == buffers_.end()) return;
    for (const Window& w : it->second->dims) free_names(w.size, used_);
}
void KernelWriter::use(const Value& v) {
    visit(v, [&](const ValueNode& n) {
        if (n.op == Op::Load) used_buffers_.insert(n.name), use_sizes(n.name);
        for (const Index& s : n.subscripts) use(s);
    });
}

/// Of every expression inside.
void KernelWriter::use(const Body& body) {
    for (const Stmt& s : body) {
        if (const auto* l = std::get_if<Loop>(&s->node)) {
            use(l->extent);
            for (const Let& x : l->lets) use(x.value);
        }
        if (const auto* i = std::get_if<If>(&s->node)) use(i->condition);
        if (const auto* y = std::get_if<Sync>(&s->node))
            for (const Index& e : y->key) use(e);
        for (const Body* inner : bodies_of(s)) use(*inner);
        const auto* b = std::get_if<Block>(&s->node);
        if (!b) continue;
        for (const Axis& a : b->axes) use(a.base), use(a.size);
        for (const Value& v : b->vals) use(v);
        for (const Value& g : b->guards) use(g);
        for (const Access& o : b->outs) {
            used_buffers_.insert(o.tensor), written_.insert(o.tensor), use_sizes(o.tensor);
            for (const Index& x : o.subscripts) use(x);
        }
    }
}

/// What the kernel reads and writes, in the order of the program's declarations, then the dimensions that it uses.
std::vector<KernelArgument> KernelWriter::arguments() {
    use(Body{make_stmt({}, loop_)});
    std::vector<KernelArgument> out;
    for (const Decl& d : p_.decls) {
        if (!used_buffers_.contains(d.name)) continue;
        out.push_back({d.scope == Scope::Param ? KernelArgument::Scalar : KernelArgument::Buffer, d.name});
        for (size_t axis = 0; d.strided && axis < d.dims.size(); ++axis) out.push_back({KernelArgument::Stride, d.name, axis});
    }
    for (const Dim& d : p_.dims)
        if (!d.value && used_.contains(d.name)) out.push_back({KernelArgument::Dim, d.name});
    return out;
}

void KernelWriter::parameter(const KernelArgument& a) {
    const auto add = [&](const std::string& type, const std::string& name) {
        const std::string comma = parameters_.empty() ? "" : ", ";
        parameters_ += fmt::format("{}{} {}", comma, type, name), passed_on_ += comma + name;
    };
    switch (a.kind) {
        case KernelArgument::Buffer: add(fmt::format("{}{}* __restrict__", written_.contains(a.name) ? "" : "const ", element_type(buffers_.at(a.name)->type)), names_.buffer(a.name)); return;
        case KernelArgument::Scalar: add(std::string(value_type(buffers_.at(a.name)->type)), names_.buffer(a.name)); return;
        case KernelArgument::Dim: add("i64", names_.of(a.name)); return;
        case KernelArgument::Map: add("ACU_MAP", names_.buffer(fmt::format("{}.map{}", a.name, a.axis))); return;
        case KernelArgument::Stride: add("i64", names_.buffer(fmt::format("{}.stride{}", a.name, a.axis))); return;
    }
}

void KernelWriter::cell_loop() {
    line("const Index cells = {};", writer_.index(loop_.extent));
    const std::string u = names_.of(loop_.var);
    line("for (Index {0} = (Index)blockIdx.x * {1} + threadIdx.x; {0} < cells; {0} += (Index)gridDim.x * {1}) {{", u, block_threads);
    facts_.add_range(loop_.var, constant(0), loop_.extent);
    ++depth_;
    for (const Let& x : loop_.lets) {
        line("const Index {} = {};", names_.of(x.name), writer_.coordinate(x.value));
        add_let(x);
    }
    for (const Decl& d : loop_.allocs) declare(d);
    body(loop_.body);
    --depth_;
    line("}}");
}

/// The axes of the cells have the ranges that they were made from.
void KernelWriter::add_let(const Let& x) {
    const Index size = x.value->op == IndexOp::Mod ? x.value->args[1] : nullptr;
    if (size) facts_.add_range(x.name, constant(0), size);
    else {
        facts_.add_nonnegative(ir::name(x.name));
        facts_.add_nonnegative(x.value - ir::name(x.name));
        facts_.add_nonnegative(ir::name(x.name) - x.value);
        Index inner = x.value->op == IndexOp::Div ? x.value->args[1] : constant(1);
        if (const Index outer = outermost(loop_.extent, inner)) facts_.add_range(x.name, constant(0), outer);
    }
}

/// total = outer*inner gives outer, by the way the extent was multiplied together.
Index KernelWriter::outermost(const Index& total, const Index& inner) const {
    if (is_const(inner, 1)) return total;
    for (const Decl* d : outs())
        if (!d->dims.empty() && facts_.equal(d->dims[0].size * inner, total)) return d->dims[0].size;
    Index e = total;
    while (e->op == IndexOp::Mul && e->args[0]->op == IndexOp::Mul) e = e->args[0];
    return e->op == IndexOp::Mul && facts_.equal(e->args[0] * inner, total) ? e->args[0] : nullptr;
}
std::vector<const Decl*> KernelWriter::outs() const {
    std::vector<const Decl*> out;
    for (const std::string& t : written_)
        if (const auto it = buffers_.find(t); it != buffers_.end()) out.push_back(it->second);
    return out;
}

/// A large tile of 16-bit elements that is gone through again after joins, or of which a multiprocessor has many: in f32 it would take twice the registers, so it is widened each time, where
/// that takes an instruction.
bool KernelWriter::stays_narrow(const Decl& d, int64_t cells) const {
    constexpr int64_t large = 32, wide = 256;
    const bool pairs = d.layout && is_float(d.type) && info(d.type).bytes == 2 && cells % 2 == 0;
    return pairs && cells >= large && target_.bf16_arithmetic && (joins_ > 1 || threads_ >= wide);
}

void KernelWriter::declare(const Decl& d) {
    if (threads_ && !d.layout) return;    // shared: declared at the top
    if (d.layout && d.scope == Scope::Shared) return share_own(d);
    buffers_[d.name] = &d;
    Index count = constant(1);
    for (size_t i = d.layout ? 1 : 0; i < d.dims.size(); ++i) count = count * d.dims[i].size;
    const bool scalar = d.dims.size() == (d.layout ? 1 : 0);
    const int64_t cells = is_const(analysis::normal(count)) ? analysis::normal(count)->value : 0;
    const bool narrow = stays_narrow(d, cells);
    if (paired_.contains(d.name)) {
        registers_ += cells / 2;
        return line("unsigned {}[{}];", names_.buffer(d.name), cells / 2);
    }
    if (narrow) narrow_tiles_.push_back(names_.buffer(d.name)), headers_.insert("elements");
    registers_ += narrow ? 9 * cells / 16 : cells;    // and some pairs that are apart at the moment
    line("{} {}{}{};", element_type(d.type), names_.buffer(d.name), scalar ? "" : fmt::format("[{}]", print(count)), is_part_of_warp() ? " = {}" : "");
}

/// The label that a person would call the kernel by: that of its accumulation, else of its first block.
static std::string label_of(const Loop& l) {
    std::string label;
    for_each_block(l.body, [&](const Block& b, Loc) {
        if (label.empty() || b.monoid != Monoid::None) label = b.label;
    });
    return label;
}

static bool is_early(const Stmt& s) { return std::get<Loop>(s->node).early; }

/// Of the kernel at `i`.
static Neighbours neighbours_of(const Body& kernels, size_t i) {
    Neighbours out{i + 1 < kernels.size() && is_early(kernels[i + 1]), false};
    const auto reads = analysis::read(kernels[i]), writes = analysis::written(kernels[i]);
    for (size_t j = 0; j < i; ++j) {
        const auto before = analysis::written(kernels[j]);
        out.uses_previous |= analysis::meet(reads, before) || analysis::meet(writes, before) || analysis::meet(writes, analysis::read(kernels[j]));
    }
    return out;
}

std::vector<Kernel> kernels_of(const Program& p, const Target& target, Identifiers& names, const EmitOptions& options) {
    std::vector<Kernel> out;
    for (size_t i = 0; i < p.body.size(); ++i) {
        const Stmt s = lower::with_ring_slots(p.body[i]);
        out.push_back(KernelWriter(p, s, target, options).write(names.fresh(fmt::format("{}_{}", p.name, label_of(std::get<Loop>(s->node)))), neighbours_of(p.body, i)));
    }
    return out;
}

}  // namespace acu::codegen
