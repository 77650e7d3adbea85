#include <algorithm>
#include <utility>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/lower/spread.h"

namespace acu::codegen {

using namespace ir;

static bool passes_turn(const Body& stmts, size_t i) {
    const auto* y = i < stmts.size() ? std::get_if<Sync>(&stmts[i]->node) : nullptr;
    return y && y->op == SyncOp::Pass;
}

void KernelWriter::body(const Body& stmts) {
    for (size_t i = 0; i < stmts.size(); ++i) {
        if (is_overwritten(stmts, i)) continue;
        one(stmts[i]);
        const auto* loop = std::get_if<Loop>(&stmts[i]->node);
        if ((loop && loop->kind != LoopKind::Thread && !passes_turn(stmts, i + 1)) || passes_turn(stmts, i)) wait_for_products();
    }
}

/// Behind the innermost loop around products that may be on their way, and behind the turn that others wait for.
void KernelWriter::wait_for_products() {
    for (const std::string& sums : std::exchange(in_flight_, {})) line("warpgroup_wait<0>({});", sums);
}

/// ` // @file:line:column d3 d7`: where a statement came from and the decisions that made it.
static std::string provenance_of(const Stmt& s, const EmitOptions& options) {
    if (!options.provenance || (!s->loc && s->decisions.empty())) return {};
    std::string text = "  //";
    if (s->loc) text += fmt::format(" @{}:{}:{}", options.file_name ? options.file_name(s->loc.file) : std::to_string(s->loc.file), s->loc.line, s->loc.column);
    for (const int d : s->decisions) text += fmt::format(" d{}", d);
    return text;
}

void KernelWriter::one(const Stmt& s) {
    land_for(s);
    const std::string before = std::exchange(provenance_, provenance_of(s, options_));
    match(
        s, [&](const Block& b) { threads_ && !in_threads_ ? collective(b) : block(b); }, [&](const Loop& l) { l.kind == LoopKind::Thread ? thread_loop(l) : serial_loop(l); }, [&](const If& i) { branch(i); },
        [&](const Roles& r) { roles(r); }, [&](const Sync& y) { sync(y); });
    provenance_ = before;
}

void KernelWriter::serial_loop(const Loop& l) {
    const std::string v = names_.of(l.var);
    if (l.kind == LoopKind::Unroll) pragma(whole);
    if (l.kind == LoopKind::Vector) pragma(several);
    line("for (Index {0} = 0; {0} < {1}; ++{0}) {{", v, writer_.index(l.extent));
    const analysis::Facts before = facts_;    // that there is an iteration is known inside only
    facts_.add_range(l.var, constant(0), l.extent);
    ++depth_;
    for (const Let& x : l.lets) {
        line("const Index {} = {};", names_.of(x.name), writer_.index(x.value));
        if (threads_) facts_.define(x.name, x.value);
    }
    const size_t tiles = narrow_tiles_.size();
    for (const Decl& d : l.allocs) declare(d);
    const std::string outer = std::exchange(condition_, "");    // what is on its way lands in the iteration
    body(l.body);
    if (!in_threads_) land(flights_.size());
    condition_ = outer;
    narrow_tiles_.resize(tiles);
    facts_ = before;
    --depth_;
    line("}}");
}

void KernelWriter::branch(const If& i) {
    const std::string condition = writer_.value(i.condition);
    if (!i.otherwise.empty() || !condition_.empty()) land(flights_.size());    // ptxas moves waits up over arithmetic anyway
    const std::vector<Flight> before = flights_;
    const std::string outer = std::exchange(condition_, condition);
    line("if ({}) {{", condition);
    ++depth_;
    body(i.body);
    if (!i.otherwise.empty() || !outer.empty()) land(flights_.size());
    --depth_;
    condition_ = outer;
    land_otherwise(before, condition);
    if (!i.otherwise.empty()) {
        line("}} else {{");
        ++depth_;
        body(i.otherwise);
        --depth_;
    }
    line("}}");
}

void KernelWriter::block(const Block& b) {
    if (lower::moves_boxes(b)) return box_copy(b);
    if (threads_ && b.via == "common.copy_async" && async_copy(b)) return;
    if (threads_ && long_sum(b)) return;
    points(b);
}

void KernelWriter::points(const Block& b) {
    if (!threads_ || !vector_block(b)) scalar_block(b);
}

/// y[n] += x over m! in M   ->   for m.from in M by 16 { few[n] = 0; few[n] += x over m! in 16; y[n] += few[n] }: a thread's sum of many terms rounds as that of few.
bool KernelWriter::long_sum(const Block& b) {
    constexpr int64_t few_terms = 16;
    const auto last = std::ranges::find_if(b.axes.rbegin(), b.axes.rend(), [](const Axis& a) { return a.kind == AxisKind::Red && a.vector < 2; });
    const auto chunk = std::ranges::find_if(b.axes, [](const Axis& a) { return a.kind == AxisKind::Par; });
    if (b.monoid != Monoid::Sum || b.outs.size() != 1 || last == b.axes.rend() || std::ranges::count(b.axes, AxisKind::Par, &Axis::kind) > 1) return false;
    const Decl& sum = writer_.decl(b.outs[0].tensor);
    const Axis m = *last;
    if (!sum.layout || sum.type != DType::F32 || (is_const(m.size) && m.size->value <= 2 * few_terms) || (chunk != b.axes.end() && !is_const(chunk->size))) return false;

    Decl few{b.outs[0].tensor + ".few", Scope::Register, sum.type, {}};
    Access cell{few.name, {}};
    if (chunk != b.axes.end()) few.dims = {{constant(0), chunk->size}}, cell.subscripts = {analysis::normal(ir::name(chunk->name) - chunk->base)};
    locals_.push_back(few);
    buffers_[few.name] = &locals_.back();
    const analysis::Facts before = facts_;
    Block terms = b, join{b.label, {}, b.outs, Monoid::Sum, {load(few.name, few.type, cell.subscripts)}};
    terms.axes.clear(), terms.outs = {cell};
    if (chunk != b.axes.end()) join.axes = {*chunk};
    const size_t depth = depth_;
    for (const Axis& a : b.axes)
        if (a.kind == AxisKind::Red && a.vector < 2 && a.name != m.name) axis_loop(a);
        else terms.axes.push_back(a);
    const std::string from = m.name + ".from";
    const bool even = is_const(m.size) && m.size->value % few_terms == 0;
    for (Axis& a : terms.axes)
        if (a.name == m.name) a.base = ir::name(from), a.size = even ? constant(few_terms) : binary(IndexOp::Min, constant(few_terms), m.base + m.size - ir::name(from));
    facts_.add_range(from, m.base, m.size);
    line("for (Index {0} = {1}; {0} < {2}; {0} += {3}) {{", names_.of(from), writer_.index(m.base), writer_.index(m.base + m.size), few_terms);
    ++depth_;
    if (few.dims.empty()) line("float {} = 0.0f;", names_.buffer(few.name));
    else line("float {}[{}] = {{}};", names_.buffer(few.name), few.dims[0].size->value);
    points(terms);
    scalar_block(join);
    --depth_;
    line("}}");
    depth_ = depth;
    facts_ = before;
    return true;
}

void KernelWriter::scalar_block(const Block& b) {
    const analysis::Facts before = facts_;
    const size_t outer = depth_;
    for (const Axis& a : b.axes) axis_loop(a);
    const std::string guard = all_of(b.guards);
    for (const Value& g : b.guards) facts_.add(g);
    if (!guard.empty()) line("if ({})", guard), ++depth_;
    statement(b);
    depth_ = outer;
    facts_ = before;
}

void KernelWriter::axis_loop(const Axis& a) {
    const std::string n = names_.of(a.name);
    facts_.add_range(a.name, a.base, a.size);
    if (a.vector > 1) pragma(whole);
    if (is_const(a.base, 0)) line("for (Index {0} = 0; {0} < {1}; ++{0})", n, writer_.index(a.size));
    else line("for (Index {0} = {1}; {0} < {2}; ++{0})", n, writer_.index(a.base), writer_.index(a.base + a.size));
    ++depth_;
}

/// One statement, in braces with the values that it shares where there are any.
void KernelWriter::statement(const Block& b) {
    const std::vector<std::string> shared = writer_.shared(b.vals);
    const bool loops = depth_ > 0 && (!b.axes.empty() || !b.guards.empty());
    const std::vector<std::string> lines = effects(b);
    const bool braces = loops && shared.size() + lines.size() > 1;
    if (braces) text_.insert(text_.size() - 1 - provenance_.size(), " {");
    for (const std::string& s : shared) line("{}", s);
    for (const std::string& s : lines) line("{}", s);
    if (braces) --depth_, line("}}");
    writer_.forget_shared();
}

/// A value in the type of its buffer; what is loaded in this type moves as it is.
std::string KernelWriter::moved(const Value& v, DType to) {
    static constexpr std::string_view widening = "widen(";
    const std::string text = writer_.value(v);
    const bool as_is = v->op == Op::Load && v->args.empty() && writer_.decl(v->name).type == to && text.starts_with(widening);
    return as_is ? text.substr(widening.size(), text.size() - widening.size() - 1) : writer_.stored(text, v->type, to);
}

std::vector<std::string> KernelWriter::effects(const Block& b) {
    if (is_pair(b.monoid)) return {keep(b)};
    if (b.monoid != Monoid::None) return combine(b);
    std::vector<std::string> out;
    for (size_t i = 0; i < b.outs.size(); ++i)
        out.push_back(fmt::format("{} = {};", writer_.element(b.outs[i].tensor, b.outs[i].subscripts), moved(b.vals[i], writer_.decl(b.outs[i].tensor).type)));
    return out;
}

std::string KernelWriter::keep(const Block& b) {
    const std::string value = writer_.value(b.vals[0]), at = writer_.value(b.vals[1]);
    const DType state = writer_.decl(b.outs[0].tensor).type;
    const auto element = [&](const Access& o) {
        std::vector<Index> subscripts = o.subscripts;
        if (b.monoid == Monoid::TopK) subscripts.push_back(constant(0));
        return writer_.element(o.tensor, subscripts);
    };
    const std::string v = element(b.outs[0]), i = element(b.outs[1]);
    if (b.monoid == Monoid::TopK) return fmt::format("keep_top<{}>(&{}, &{}, {}, {});", b.k, v, i, writer_.stored(value, b.vals[0]->type, state), at);
    return fmt::format("keep_best<{}>({}, {}, {}, {});", b.monoid == Monoid::ArgMin, v, i, writer_.stored(value, b.vals[0]->type, state), at);
}

std::string KernelWriter::narrow_combined(const Block& b, DType type, const std::string& state, const std::string& x) const {
    const DType wide = widened(type);
    const std::string both = combined(b.monoid, wide, "wide", x);
    return fmt::format("{{ {} wide = widen({}); {} {} = {}; }}", element_type(wide), state, both, state, writer_.stored("wide", wide, type));
}

std::vector<std::string> KernelWriter::combine(const Block& b) {
    const Decl& d = writer_.decl(b.outs[0].tensor);
    const std::string state = writer_.element(b.outs[0].tensor, b.outs[0].subscripts);
    const std::string x = writer_.stored(writer_.value(b.vals[0]), b.vals[0]->type, d.type);
    if (is_scatter(b)) return {scatter(b, state, x)};
    const bool narrow = widened(d.type) != d.type;    // combined in the type of its arithmetic
    std::vector<std::string> out{narrow ? narrow_combined(b, d.type, state, writer_.value(b.vals[0])) : combined(b.monoid, d.type, state, x)};
    if (b.outs.size() > 1) {
        const Decl& to = writer_.decl(b.outs[1].tensor);
        const std::string copy = fmt::format("{} = {};", writer_.element(b.outs[1].tensor, b.outs[1].subscripts), writer_.stored(state, d.type, to.type));
        out.insert(b.exclusive ? out.begin() : out.end(), copy);
    }
    return out;
}

std::string KernelWriter::scatter(const Block& b, const std::string& state, const std::string& x) {
    const std::string test = writer_.inside(b.outs[0].tensor, b.outs[0].subscripts);
    return fmt::format("{}atomic_add(&{}, {});", test.empty() ? "" : fmt::format("if ({}) ", test), state, x);
}

std::string combined(Monoid m, DType t, const std::string& state, const std::string& x) {
    const bool real = is_float(t);
    const char* raw = t == DType::I64 ? "unsigned long long" : "unsigned";
    switch (m) {
        case Monoid::Sum: return real ? fmt::format("{} += {};", state, x) : fmt::format("{0} = ({1})(({2}){0} + ({2})({3}));", state, element_type(t), raw, x);
        case Monoid::Prod: return real ? fmt::format("{} *= {};", state, x) : fmt::format("{0} = ({1})(({2}){0} * ({2})({3}));", state, element_type(t), raw, x);
        case Monoid::Max: return fmt::format("{0} = larger<{1}>({0}, {2});", state, element_type(t), x);
        case Monoid::Min: return fmt::format("{0} = smaller<{1}>({0}, {2});", state, element_type(t), x);
        case Monoid::Any: return fmt::format("{0} = {0} || ({1});", state, x);
        default: return fmt::format("{0} = {0} && ({1});", state, x);
    }
}

}  // namespace acu::codegen
