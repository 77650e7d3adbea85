#include <algorithm>
#include <utility>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"

namespace acu::codegen {

using namespace ir;

namespace {

/// A chunk of neighbouring points: the one axis of a block that a thread takes `size` points of at once.
struct Chunk {
    std::string axis;
    Index start;
    int64_t size;
};

std::optional<Chunk> chunk_of(const Block& b) {
    if (b.axes.size() != 1 || b.axes[0].vector < 2 || !is_const(b.axes[0].size, b.axes[0].vector)) return {};
    return Chunk{b.axes[0].name, b.axes[0].base, b.axes[0].vector};
}

/// Do neighbours along the axis stand side by side in memory?
bool side_by_side(const Decl& d, const std::vector<Index>& subscripts, const std::string& axis) {
    const bool registers = d.layout && d.scope != Scope::Shared;
    if (registers || d.strided || d.dims.empty() || d.scope == Scope::Register || d.scope == Scope::Param) return false;
    for (size_t i = 0; i + 1 < subscripts.size(); ++i)
        if (analysis::mentions(subscripts[i], axis)) return false;
    const auto last = analysis::affine(subscripts.back(), axis);
    return last && is_const(last->coefficient, 1) && !mentions_load(subscripts.back());
}

std::vector<Index> at_start(std::vector<Index> subscripts, const Chunk& c) {
    for (Index& s : subscripts) s = analysis::normal(substitute(s, {{c.axis, c.start}}));
    return subscripts;
}

/// Loads that are evaluated at every point: not those behind a condition.
void certain_loads(const Value& v, std::vector<Value>& out) {
    if (v->op == Op::Load) {
        if (v->args.empty()) out.push_back(v);
        return;
    }
    const size_t certain = v->op == Op::Select || v->op == Op::And || v->op == Op::Or ? 1 : v->args.size();
    for (size_t i = 0; i < certain; ++i) certain_loads(v->args[i], out);
}

/// A condition `axis < limit`, of whose axis it knows only this.
std::optional<Index> limit_of(const Value& v, const std::string& axis) {
    const auto b = analysis::as_below(v);
    const auto left = b ? analysis::affine(b->left, axis) : std::nullopt;
    if (!left || !is_const(left->coefficient, 1) || analysis::mentions(b->right, axis)) return {};
    return analysis::normal(b->right - left->rest);
}

/// Guards split into those about the chunk, all of the form axis < limit, and the rest.
struct Guards {
    std::vector<Index> limits;
    std::vector<Value> rest;
};
std::optional<Guards> guards_of(const std::vector<Value>& guards, const std::string& axis) {
    Guards g;
    for (const Value& v : guards) {
        if (!analysis::mentions(v, axis)) {
            g.rest.push_back(v);
            continue;
        }
        const auto limit = limit_of(v, axis);
        if (!limit) return {};
        g.limits.push_back(*limit);
    }
    return g;
}

}  // namespace

/// `8`; `8, true` where the access starts at a multiple of its bytes, `8, aligned` where it does if the launch is as `alignment_` says.
std::string KernelWriter::run_of(int64_t size, const Decl& d, const std::vector<Index>& subscripts) {
    const auto bytes = static_cast<int64_t>(info(d.type).bytes);
    const int64_t piece = std::min(size, 16 / bytes);
    std::map<std::string, int64_t> dims = alignment_.dims;
    if (!is_multiple(offset_of(d, subscripts), piece, p_, facts_, dims)) return std::to_string(size);
    const bool ours = !p_.find(d.name);    // in shared memory, where its address is a multiple of 128
    if (ours && dims == alignment_.dims) return fmt::format("{}, true", size);
    if (!ours) alignment_.buffers[d.name] = std::max(alignment_.buffers[d.name], piece * bytes);
    alignment_.dims = std::move(dims);
    return fmt::format("{}, aligned", size);
}

/// Whatever the sizes are.
bool KernelWriter::is_multiple_always(const Index& e, int64_t n) const {
    std::map<std::string, int64_t> dims;
    return is_multiple(e, n, p_, facts_, dims) && dims.empty();
}

std::string KernelWriter::all_of(const std::vector<Value>& conditions) {
    std::string s;
    for (const Value& v : conditions) s += fmt::format("{}({})", s.empty() ? "" : " && ", writer_.value(v));
    return s;
}

/// Running values of a scan are stored at every point.
static bool chunk_scans(const Block& b) { return b.axes[0].kind == AxisKind::Scan; }

/// A block with a chunk and reduced axes: for each cell the order of its terms is the same whichever loop is inside.
static std::pair<Block, std::vector<Axis>> chunk_inside(const Block& b) {
    Block inner = b;
    std::vector<Axis> outer;
    inner.axes.clear();
    for (const Axis& a : b.axes) (a.kind == AxisKind::Red && a.vector < 2 ? outer : inner.axes).push_back(a);
    return {std::move(inner), std::move(outer)};
}

/// Loads in the branches of selections that are the same for all points of the chunk, each with what it takes to be evaluated.
void KernelWriter::branch_loads(const Value& v, const Axis& chunk, const std::string& condition, std::vector<std::pair<Value, std::string>>& out) {
    if (v->op == Op::Load && v->args.empty() && !condition.empty()) out.emplace_back(v, condition);
    if (v->op == Op::Load || v->op == Op::And || v->op == Op::Or) return;
    if (v->op != Op::Select) {
        for (const Value& a : v->args) branch_loads(a, chunk, condition, out);
        return;
    }
    const auto limit = limit_of(v->args[0], chunk.name);
    if (!limit || !is_multiple_always(chunk.base, chunk.vector) || !is_multiple_always(*limit, chunk.vector)) return;
    const std::string so_far = condition.empty() ? "" : condition + " && ", start = writer_.index(chunk.base), end = writer_.index(*limit);
    branch_loads(v->args[1], chunk, fmt::format("{}{} < {}", so_far, start, end), out);
    branch_loads(v->args[2], chunk, fmt::format("{}{} >= {}", so_far, start, end), out);
}

/// for k … { T x_1[8]; load_elements<8>(x_1, &x[…]); for … y_1[…] = f(x_1[…]); store_elements<8>(&y[…], y_1) }
bool KernelWriter::vector_block(const Block& whole) {
    const auto [b, reduced] = chunk_inside(whole);
    const auto chunk = chunk_of(b);
    const auto guards = chunk ? guards_of(b.guards, chunk->axis) : std::nullopt;
    if (!guards || is_scatter(b)) return false;
    std::vector<Value> loads;
    for (const Value& v : b.vals) certain_loads(v, loads);
    const auto together = [&](const Decl& d, const std::vector<Index>& subscripts) {    // the chunks of 16 bytes that a swizzle permutes stay whole
        if (!side_by_side(d, subscripts, chunk->axis)) return false;
        return !d.swizzle || (16 % (chunk->size * static_cast<int64_t>(info(d.type).bytes)) == 0 && is_multiple_always(offset_of(d, at_start(subscripts, *chunk)), chunk->size));
    };
    std::erase_if(loads, [&](const Value& v) { return !together(writer_.decl(v->name), v->subscripts); });
    const auto stores = [&](const Access& o) { return (b.monoid == Monoid::None || (chunk_scans(b) && &o != &b.outs[0])) && together(writer_.decl(o.tensor), o.subscripts); };
    const auto uniform = [&](std::map<std::string, int64_t>& dims) {    // a chunk is inside or outside as a whole
        return std::ranges::all_of(guards->limits, [&](const Index& limit) { return is_multiple(chunk->start, chunk->size, p_, facts_, dims) && is_multiple(limit, chunk->size, p_, facts_, dims); });
    };
    std::map<std::string, int64_t> dims = alignment_.dims;
    const bool if_aligned = uniform(dims), all_or_none = if_aligned && is_multiple_always(chunk->start, chunk->size) && std::ranges::all_of(guards->limits, [&](const Index& limit) { return is_multiple_always(limit, chunk->size); });
    if (loads.empty() && std::ranges::none_of(b.outs, stores) && !(if_aligned && !guards->limits.empty())) return false;
    if (if_aligned) alignment_.dims = std::move(dims);

    const analysis::Facts before = facts_;
    const size_t depth = depth_;
    headers_.insert("elements");
    for (const Axis& a : reduced) {
        pragma(several);
        axis_loop(a);
    }
    const std::string outer = all_of(guards->rest);
    if (!outer.empty()) line("if ({}) {{", outer), ++depth_;
    for (const Value& g : guards->rest) facts_.add(g);
    std::string full;
    for (const Index& limit : guards->limits) {
        full += full.empty() ? "" : " && ";
        if (all_or_none) full += fmt::format("{} < {}", writer_.index(chunk->start), writer_.index(limit));
        else full += fmt::format("{} <= {}", writer_.index(chunk->start + constant(chunk->size)), writer_.index(limit));
    }
    if (!full.empty()) line("if ({}) {{", full), ++depth_;
    else line("{{"), ++depth_;
    vector_points(b, loads, stores);
    --depth_;
    if (!full.empty() && !all_or_none) {
        line("}} else {}{{", if_aligned ? "if (!aligned) " : "");
        ++depth_;
        Block single = b;
        single.guards.clear();
        for (const Index& limit : guards->limits) single.guards.push_back(analysis::below(ir::name(chunk->axis), limit));
        scalar_block(single);
        --depth_;
    }
    line("}}");
    if (!outer.empty()) --depth_, line("}}");
    depth_ = depth;
    facts_ = before;
    return true;
}

void KernelWriter::vector_points(const Block& b, const std::vector<Value>& loads, const std::function<bool(const Access&)>& stores) {
    const Chunk chunk = *chunk_of(b);
    const analysis::Facts before = facts_;
    const std::string offset = fmt::format("{} - {}", names_.of(chunk.axis), writer_.index(chunk.start, 1, true));
    std::map<std::string, std::string> vectors;    // by the text of what is loaded
    std::vector<std::pair<const ValueNode*, std::string>> named;
    const auto vector_of = [&](const Value& v, const std::string& condition) {
        const DType type = writer_.decl(v->name).type;
        const std::string name = names_.fresh(v->name + "_v"), otherwise = condition.empty() ? "" : " = {}", when = condition.empty() ? "" : fmt::format("if ({}) ", condition);
        const std::vector<Index> start = at_start(v->subscripts, chunk);
        line("{} {}[{}]{};", element_type(type), name, chunk.size, otherwise);
        line("{}load_elements<{}>({}, &{});", when, run_of(chunk.size, writer_.decl(v->name), start), name, writer_.element(v->name, start));
        return name;
    };
    const auto take = [&](const Value& v, const std::string& vector) {
        const DType type = writer_.decl(v->name).type;
        const std::string cell = fmt::format("{}[{}]", vector, offset);
        named.emplace_back(v.get(), widened(type) == type ? cell : fmt::format("widen({})", cell));
    };
    for (const Value& v : loads) {
        const auto [it, fresh] = vectors.try_emplace(print(v));
        if (fresh) it->second = vector_of(v, "");
        take(v, it->second);
    }
    std::vector<std::pair<Value, std::string>> sometimes;
    for (const Value& v : b.vals) branch_loads(v, b.axes[0], "", sometimes);
    for (const auto& [v, condition] : sometimes) {
        const Decl& d = writer_.decl(v->name);
        if (d.swizzle || !side_by_side(d, v->subscripts, chunk.axis)) continue;
        take(v, vector_of(v, condition));
    }
    std::vector<std::string> results(b.outs.size());
    for (size_t i = 0; i < b.outs.size(); ++i)
        if (stores(b.outs[i])) {
            results[i] = names_.fresh(b.outs[i].tensor + "_v");
            line("{} {}[{}];", element_type(writer_.decl(b.outs[i].tensor).type), results[i], chunk.size);
        }
    const std::string sum = own_sum(b);
    for (const auto& [node, text] : named) writer_.name_value(node, text);
    if (!best_of_chunk(b, offset)) {
        const size_t depth = depth_;
        axis_loop(b.axes[0]);
        std::map<std::string, std::string> cells = redirected(b, results, offset);    // as they are written here
        if (!sum.empty()) cells.emplace(writer_.element(b.outs[0].tensor, b.outs[0].subscripts), sum);
        writer_.redirect(std::move(cells));
        statement(b);
        writer_.redirect({});
        depth_ = depth;
    }
    writer_.forget_shared();
    if (!sum.empty()) line("{}", combined(Monoid::Sum, writer_.decl(b.outs[0].tensor).type, writer_.element(b.outs[0].tensor, b.outs[0].subscripts), sum));
    facts_ = before;
    for (size_t i = 0; i < b.outs.size(); ++i) {
        if (results[i].empty()) continue;
        const std::vector<Index> start = at_start(b.outs[i].subscripts, chunk);
        if (!words_.empty()) {
            line("memcpy(&{}, {}, 4);", words_, results[i]);
            continue;
        }
        line("store_elements<{}>(&{}, {});", run_of(chunk.size, writer_.decl(b.outs[i].tensor), start), writer_.element(b.outs[i].tensor, start), results[i]);
    }
}

/// float most = …, of[8]; for … most = larger(most, of[…] = …); the first that is it; keep_best(best, position, most, start + at): what is kept changes once a chunk, without a branch.
bool KernelWriter::best_of_chunk(const Block& b, const std::string& offset) {
    if (b.monoid != Monoid::ArgMax && b.monoid != Monoid::ArgMin) return false;
    const Axis& axis = b.axes[0];
    const auto position = b.vals[1]->op == Op::OfIndex ? analysis::affine(b.vals[1]->subscripts[0], axis.name) : std::nullopt;
    if (!position || !is_const(position->coefficient, 1)) return false;
    const bool smallest = b.monoid == Monoid::ArgMin;
    const DType state = writer_.decl(b.outs[0].tensor).type;
    const std::string_view type = element_type(state);
    const std::string most = names_.fresh("most"), of = names_.fresh("of"), at = names_.fresh("at"), n = names_.of(axis.name);
    line("{} {} = {}, {}[{}];", type, most, writer_.stored(writer_.value(identity(b.monoid, widened(state))), widened(state), state), of, axis.vector);
    const size_t depth = depth_;
    const std::string start = writer_.index(analysis::normal(substitute(b.vals[1]->subscripts[0], {{axis.name, axis.base}})));
    axis_loop(axis);
    line("{0} = {1}<{2}>({0}, {3}[{4}] = {5});", most, smallest ? "smaller" : "larger", type, of, offset, writer_.stored(writer_.value(b.vals[0]), b.vals[0]->type, state));
    depth_ = depth;
    line("int {} = 0;", at);
    pragma(whole);
    line("for (int j = {}; j >= 0; --j)", axis.vector - 1);
    line("    if ({0}[j] == {1} || {0}[j] != {0}[j]) {2} = j;", of, most, at);
    line("keep_best<{}>({}, {}, {}, {} + {});", smallest, writer_.element(b.outs[0].tensor, b.outs[0].subscripts), writer_.element(b.outs[1].tensor, b.outs[1].subscripts), most, start, at);
    return true;
}

/// The points of a chunk whose sum a thread keeps are added up first: that rounds less, and chunks do not wait for each other. Empty: not such a block.
std::string KernelWriter::own_sum(const Block& b) {
    const DType type = writer_.decl(b.outs[0].tensor).type;
    const bool one_cell = std::ranges::none_of(b.outs[0].subscripts, [&](const Index& i) { return analysis::mentions(i, b.axes[0].name); });
    if (b.monoid != Monoid::Sum || b.axes[0].kind != AxisKind::Par || !one_cell || !is_float(type) || widened(type) != type) return {};
    const std::string sum = names_.fresh("sum");
    line("{} {} = 0;", element_type(type), sum);
    return sum;
}

std::map<std::string, std::string> KernelWriter::redirected(const Block& b, const std::vector<std::string>& results, const std::string& offset) {
    std::map<std::string, std::string> to;
    for (size_t i = 0; i < b.outs.size(); ++i)
        if (!results[i].empty()) to[writer_.element(b.outs[i].tensor, b.outs[i].subscripts)] = fmt::format("{}[{}]", results[i], offset);
    return to;
}

// ---- asynchronous copies

namespace {

/// What a copy takes where: a load, the conditions without which it is zero.
struct Source {
    Value load;
    std::vector<Value> conditions;
};

/// `x[i]`, `(x[i] default 0)`, `(x[i] if c else 0)`; nothing for another value.
std::optional<Source> source_of(const Value& v) {
    const auto zero = [](const Value& c) { return c->op == Op::Const && c->number == 0 && c->integer == 0 && !std::signbit(c->number); };
    if (v->op == Op::Select && zero(v->args[2])) {
        auto inner = source_of(v->args[1]);
        if (inner) inner->conditions.push_back(v->args[0]);
        return inner;
    }
    if (v->op != Op::Load || (!v->args.empty() && !zero(v->args[0]))) return {};
    return Source{v, {}};
}

}  // namespace

/// copy_elements_async<8>(&x_t[…], &x[…], valid): `valid` of the chunk's elements exist, the rest are zero.
bool KernelWriter::async_copy(const Block& b) {
    const auto source = source_of(b.vals[0]);
    Chunk chunk{"", nullptr, 1};
    if (!b.axes.empty()) {
        const auto c = chunk_of(b);
        if (!c) return false;
        chunk = *c;
    }
    if (!source || b.outs.size() != 1 || b.monoid != Monoid::None) return false;
    const Decl &from = writer_.decl(source->load->name), &to = writer_.decl(b.outs[0].tensor);
    if (from.type != to.type || std::ranges::any_of(source->load->subscripts, mentions_load)) return false;
    const bool whole = 16 % (chunk.size * static_cast<int64_t>(info(to.type).bytes)) == 0 && (chunk.size == 1 || is_multiple_always(offset_of(to, at_start(b.outs[0].subscripts, chunk)), chunk.size));
    if (chunk.size > 1 && to.swizzle && !whole) return false;    // the chunks that a swizzle permutes stay whole
    if (chunk.size > 1 && (!side_by_side(from, source->load->subscripts, chunk.axis) || !side_by_side(to, b.outs[0].subscripts, chunk.axis))) return false;
    std::vector<Value> conditions = source->conditions;
    if (!source->load->args.empty())
        for (size_t i = 0; i < from.dims.size(); ++i) {
            const Index& s = source->load->subscripts[i];
            if (!facts_.nonnegative(s)) {
                if (chunk.size > 1 && analysis::mentions(s, chunk.axis)) return false;
                conditions.push_back(analysis::below(constant(-1), s));
            }
            conditions.push_back(analysis::below(s, from.dims[i].size));
        }
    const auto guards = guards_of(b.guards, chunk.axis), limits = guards_of(conditions, chunk.axis);
    if (!guards || !limits) return false;
    headers_.insert("async"), headers_.insert("elements");
    const std::string outer = all_of(guards->rest), exists = all_of(limits->rest);
    std::string valid = std::to_string(chunk.size);
    for (const Guards* g : {&*guards, &*limits})
        for (const Index& limit : g->limits) valid = fmt::format("smaller<Index>({}, {})", valid, writer_.index(analysis::normal(limit - chunk.start)));
    if (!exists.empty()) valid = fmt::format("{} ? {} : 0", exists, valid);
    if (!outer.empty()) line("if ({}) {{", outer), ++depth_;
    else line("{{"), ++depth_;
    const auto first = [&](const std::vector<Index>& s) { return chunk.size > 1 ? at_start(s, chunk) : s; };
    line("const int valid = (int)({});", valid);
    line("copy_elements_async<{}>(&{}, valid > 0 ? &{} : {}, valid);", chunk.size, writer_.element(b.outs[0].tensor, first(b.outs[0].subscripts)), writer_.element(from.name, first(source->load->subscripts)),
         names_.buffer(from.name));
    --depth_;
    line("}}");
    return true;
}

}  // namespace acu::codegen
