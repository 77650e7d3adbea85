#include <algorithm>
#include <utility>

#include "codegen/kernel_writer.h"
#include "ir/analysis/affine.h"
#include "ir/lower/lower.h"

namespace acu::codegen {

using namespace ir;

namespace {

/// A loop over registers whose points are stored in chunks of 4 bytes, four lanes beside each other: `step` iterations on stands the next chunk of the four lanes together.
struct QuadStores {
    const Loop* registers;
    const Block* block;
    Let start;    ///< of a chunk
    int64_t step;
};

int64_t value_at(const Index& e, const std::string& thread, int64_t t, const std::string& reg, int64_t r) {
    Env env;
    for (const std::string& n : analysis::names_in(e)) env.emplace(n, 0);
    env.insert_or_assign(thread, t), env.insert_or_assign(reg, r);
    return evaluate(e, env);
}

/// Does a let, in words of thread and register, move by `by` from one point to another?
bool moves(const Index& e, const Loop& t, const Loop& r, std::pair<int64_t, int64_t> from, std::pair<int64_t, int64_t> to, int64_t by) {
    return value_at(e, t.var, to.first, r.var, to.second) - value_at(e, t.var, from.first, r.var, from.second) == by;
}

/// Where the four lanes start together, whatever the thread and the register: a multiple of what each will have, from the first on.
bool starts_evenly(const Index& column, const Loop& t, const Loop& r, int64_t threads, int64_t w, int64_t step) {
    const int64_t zero = value_at(column, t.var, 0, r.var, 0);
    for (int64_t i = 0; i < threads; ++i)
        if ((value_at(column, t.var, i, r.var, 0) - zero - w * (i % 4)) % (4 * w) != 0) return false;
    for (int64_t i = 0; i < r.extent->value; ++i)
        if ((value_at(column, t.var, 0, r.var, i - i / step % 4 * step) - zero) % (4 * w) != 0) return false;
    return true;
}

std::optional<QuadStores> quad_stores(const Loop& t, int64_t element_bytes) {
    const Loop* r = t.body.size() == 1 ? std::get_if<Loop>(&t.body[0]->node) : nullptr;
    const Block* b = r && r->body.size() == 1 ? std::get_if<Block>(&r->body[0]->node) : nullptr;
    if (!b || r->kind != LoopKind::Unroll || !is_const(r->extent) || !t.lets.empty() || b->monoid != Monoid::None || b->outs.size() != 1 || b->axes.size() != 1) return {};
    const Axis& chunk = b->axes[0];
    if (chunk.vector < 1 || chunk.vector * element_bytes != 4 || !is_const(chunk.size, chunk.vector) || chunk.base->op != IndexOp::Name || !is_name(b->outs[0].subscripts.back(), chunk.name)) return {};
    const auto start = std::ranges::find(r->lets, chunk.base->name, &Let::name);
    if (start == r->lets.end()) return {};
    for (const Let& x : r->lets)
        if (mentions_load(x.value)) return {};
    const int64_t n = r->extent->value, w = chunk.vector;
    for (int64_t step = 1; 4 * step <= n; step *= 2) {
        bool fits = n % (4 * step) == 0;
        for (const Let& x : r->lets) {
            const bool columns = &x == &*start;
            for (int64_t lane = 0; fits && lane < 4; ++lane) fits = moves(x.value, t, *r, {0, 0}, {lane, 0}, columns ? w * lane : 0);
            for (int64_t i = 0; fits && i < n; ++i) fits = moves(x.value, t, *r, {0, i - i / step % 4 * step}, {0, i}, columns ? 4 * w * (i / step % 4) : 0);
        }
        if (fits && starts_evenly(start->value, t, *r, t.extent->value, w, step)) return QuadStores{r, b, *start, step};
    }
    return {};
}

}  // namespace

/// for q … { unsigned words[4]; for j in 4 { y_v[2] = …; memcpy(&words[j], y_v, 4); } exchange_quads(words); store_elements<8>(&y[… + 8 * (thread % 4)], words) }
bool KernelWriter::stores_by_quads(const Loop& l) {
    const Block* b = nullptr;
    for_each_block(l.body, [&](const Block& x, Loc) { b = &x; });
    if (!b || b->outs.size() != 1 || !p_.find(b->outs[0].tensor) || is_part_of_warp() || !is_const(l.extent, threads_) || target_.platform != Platform::Cuda) return false;
    const Decl& out = writer_.decl(b->outs[0].tensor);
    const auto found = out.strided || out.dims.empty() ? std::nullopt : quad_stores(l, static_cast<int64_t>(info(out.type).bytes));
    const bool sums = found && std::ranges::any_of(tensors_read(*b), [&](const std::string& t) { const Decl& d = writer_.decl(t); return d.layout && d.scope == Scope::Register; });
    if (!sums) return false;
    const Loop& r = *found->registers;
    const analysis::Facts before = facts_;
    headers_.insert("elements");
    names_.alias(l.var, std::string(thread_name));
    facts_.add_range(l.var, constant(0), l.extent);
    const std::string q = names_.fresh("q"), words = names_.fresh("words"), j = names_.fresh("j");
    line("{{");
    ++depth_;
    pragma(whole);
    line("for (Index {0} = 0; {0} < {1}; ++{0}) {{", q, r.extent->value / 4);
    ++depth_;
    line("unsigned {}[4];", words);
    pragma(whole);
    line("for (Index {0} = 0; {0} < 4; ++{0}) {{", j);
    ++depth_;
    const auto lets = [&](const std::string& which) {
        line("const Index {} = {};", names_.of(r.var), which);
        facts_.add_range(r.var, constant(0), r.extent);
        for (const Let& x : r.lets) line("const Index {} = {};", names_.of(x.name), writer_.index(x.value)), facts_.define(x.name, x.value);
    };
    const std::string first = fmt::format("{0} % {1} + {0} / {1} * {2}", q, found->step, 4 * found->step);
    lets(fmt::format("{} + {} * {}", first, j, found->step));
    words_ = fmt::format("{}[{}]", words, j);
    in_threads_ = true;
    block(*found->block);
    in_threads_ = false;
    words_.clear();
    --depth_;
    line("}}");
    line("exchange_quads({});", words);
    lets(first);
    const Index together = analysis::normal(substitute(found->start.value, {{l.var, constant(0)}, {r.var, constant(0)}}));
    stored_quad(*found->block, found->start.name, together, l.var, words);
    --depth_;
    line("}}");
    --depth_;
    line("}}");
    facts_ = before;
    return true;
}

/// What a lane has now: neighbours for four chunks, those of its number among the four lanes. `together`: a column like those at which the four start.
void KernelWriter::stored_quad(const Block& b, const std::string& start, const Index& together, const std::string& thread, const std::string& words) {
    const Axis& chunk = b.axes[0];
    const Decl& out = writer_.decl(b.outs[0].tensor);
    const int64_t four = 4 * chunk.vector;
    const Index lane = mod(ir::name(thread), constant(4)), at = analysis::normal(ir::name(start) + lane * constant(four - chunk.vector));
    const std::string own = names_.fresh(chunk.name + "_q");
    line("const Index {} = {};", own, writer_.index(at));
    const std::string from = start + ".q";
    names_.alias(from, own);
    std::string rest, end;
    for (const Value& g : b.guards) {
        if (!analysis::mentions(g, chunk.name)) {
            rest += fmt::format("{}({})", rest.empty() ? "" : " && ", writer_.value(g));
            facts_.add(g);
            continue;
        }
        const auto below = analysis::as_below(g);
        end = writer_.index(analysis::normal(below->right - below->left + ir::name(chunk.name)));
    }
    std::vector<Index> place = b.outs[0].subscripts, proof = place;
    place.back() = ir::name(from), proof.back() = together;
    if (!rest.empty()) line("if ({}) {{", rest), ++depth_;
    const std::string whole_store = fmt::format("store_words<{}>(&{}, {});", run_of(four, out, proof), writer_.element(out.name, place), words);
    if (end.empty()) line("{}", whole_store);
    else {
        line("if ({} + {} <= {}) {}", own, four, end, whole_store);
        line("else");
        line("    for (int i = 0; i < 4; ++i)");
        line("        if ({0} + {1} * i + {1} <= {2}) store_words_of<{1}>(&{3} + {1} * i, {4}[i]);", own, chunk.vector, end, writer_.element(out.name, place), words);
    }
    if (!rest.empty()) --depth_, line("}}");
}

}  // namespace acu::codegen
