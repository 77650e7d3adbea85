#include "tests/faults/faults.h"

namespace acu::faults {

using namespace ir;

static Index k_trips(const Index& e) { return div(e, constant(4)); }

static Program move_before(const Program& p, const std::string& label, const std::string& loop) {
    Stmt moved;
    const Program rest = rebuilt(p, [&](const Stmt& s) -> Body {
        const auto* b = std::get_if<Block>(&s->node);
        if (!b || b->label != label) return {s};
        moved = s;
        return {};
    });
    return rebuilt(rest, [&](const Stmt& s) -> Body {
        const auto* l = std::get_if<Loop>(&s->node);
        return l && l->var == loop && moved ? Body{moved, s} : Body{s};
    });
}

/// The condition whose text is `from` becomes `to`.
static void change_guard(Block& b, const std::string& axis, const std::string& size, const std::function<Value(const Value&)>& f) {
    for (Value& g : b.guards)
        if (const std::string t = describe(g); t.find(axis) != std::string::npos && t.find(size) != std::string::npos) g = f(g);
}

/// a < b   ->   a < b + by
static Value shifted(const Value& v, int64_t by) {
    auto n = std::make_shared<ValueNode>(*v);
    auto right = std::make_shared<ValueNode>(*n->args[1]);
    right->subscripts = {right->subscripts.at(0) + constant(by)};
    n->args[1] = right;
    return n;
}

static std::vector<Fault> of_loops() {
    return {
        {"fuse: tiles that start at 3*m.o", product(), {"run.D5", Cause::Decision, {1}, "fuse"}, "fuse", {},
         [](const Program& p) { return change_index(p, [](const Index& e) { return print(e) == "4*m.o" ? constant(3) * name("m.o") : nullptr; }); }},
        {"tile: trips by floor", product(), {"values", Cause::Decision, {2}, "tile"}, "tile", {},
         [](const Program& p) { return change_loop(p, "k.o", [](Loop& l) { l.extent = k_trips(name("K")); }); }},
        {"tile: guard dropped", product(), {"run.D1", Cause::Decision, {2}, "tile"}, "tile", {}, [](const Program& p) { return change_block(p, "y", [](Block& b) { b.guards.pop_back(); }); }},
        {"split_reduction: slices that overlap", columns(), {"values", Cause::Decision, {1}, "split_reduction"}, "split_reduction", {},
         [](const Program& p) { return change_block(p, "y.w", [](Block& b) { b.axes.back().size = b.axes.back().size + constant(1); }); }},
    };
}

static std::vector<Fault> of_buffers() {
    return {
        {"keep: no fill", product(), {"run.D2", Cause::Decision, {3}, "keep"}, "keep", {}, [](const Program& p) { return without_block(p, "y.init"); }},
        {"keep: stored before the last sum", product(), {"values", Cause::Decision, {3}, "keep"}, "keep", {}, [](const Program& p) { return move_before(p, "y.store", "k.o"); }},
        {"stage: mask off by one", product(), {"run.D1", Cause::Decision, {4}, "stage"}, "stage", {},
         [](const Program& p) { return change_block(p, "x.t", [](Block& b) { change_guard(b, "k", "K", [](const Value& v) { return shifted(v, 1); }); }); }},
        {"stage: a row too few", product(), {"run.D2", Cause::Decision, {4}, "stage"}, "stage", {},
         [](const Program& p) { return change_block(p, "w.t", [](Block& b) { b.axes[0].size = constant(5); }); }},
        {"pad: copies without their fill", lifted(), {"run.D1", Cause::Decision, {4}, "pad"}, "pad", {},
         [](const Program& p) {
             return change_block(p, "x.t", [](Block& b) {
                 auto n = std::make_shared<ValueNode>(*b.vals[0]);
                 n->args.clear();
                 b.vals[0] = n;
             });
         }},
        {"pipeline: a version too few", product(), {"run.D6", Cause::Decision, {5}, "pipeline"}, "pipeline", {},
         [](const Program& p) {
             return rebuilt(p, [](const Stmt& s) -> Body {
                 const auto* l = std::get_if<Loop>(&s->node);
                 if (!l) return {s};
                 Loop n = *l;
                 for (Decl& d : n.allocs) d.ring.versions -= d.ring.versions > 0;
                 return {with_node(s, std::move(n))};
             });
         }},
        {"stage and keep: the copy forgets its guard where the accumulator is kept", product(), {"run.D1", Cause::Together, {3, 4}, "stage"}, "stage", {},
         [](const Program& p) {
             bool kept = false;
             for_each_block(p.body, [&](const Block& b, Loc) { kept |= b.label == "y.store"; });
             return kept ? change_block(p, "x.t", [](Block& b) { b.guards.pop_back(); }) : p;
         }},
    };
}

std::vector<Fault> pass_faults() {
    std::vector<Fault> all = of_loops();
    for (Fault& f : of_buffers()) all.push_back(std::move(f));
    return all;
}

std::vector<Fault> clean_plans() {
    return {{"product", product(), {}}, {"asynchronous copies", asynchronous(), {}}, {"rows", rows(), {}}, {"columns", columns(), {}}, {"guards that became fills", lifted(), {}}};
}

}  // namespace acu::faults
