#include "ir/analysis/dependence.h"

#include <algorithm>

#include "ir/analysis/affine.h"

namespace acu::ir::analysis {

static void index_loads(const Index& e, std::vector<Touch>& out) {
    if (e->op == IndexOp::Load) out.push_back({e->name, e->args, {}, false});
    if (e->op == IndexOp::Segment) out.push_back({e->name, {e}, {}, false});
    for (const Index& a : e->args) index_loads(a, out);
}

static void value_loads(const Value& v, std::vector<Touch>& out) {
    visit(v, [&](const ValueNode& n) {
        if (n.op == Op::Load) out.push_back({n.name, n.subscripts, n.version, false});
        for (const Index& s : n.subscripts) index_loads(s, out);
        for (const Index& s : n.version) index_loads(s, out);
    });
}

std::vector<Touch> touches(const Block& b) {
    std::vector<Touch> out;
    for (const Access& o : b.outs) {
        std::vector<Index> at = o.subscripts;
        if (b.monoid == Monoid::TopK) at.push_back(name("k of " + b.label));    // all k cells
        out.push_back({o.tensor, std::move(at), o.version, true});
        for (const Index& s : o.subscripts) index_loads(s, out);
    }
    for (const Value& v : b.vals) value_loads(v, out);
    for (const Value& g : b.guards) value_loads(g, out);
    for (const Axis& a : b.axes) index_loads(a.base, out), index_loads(a.size, out);
    return out;
}

void for_each_load(const Value& v, const std::function<void(const Value&)>& f) {
    if (v->op == Op::Load) f(v);
    for (const Value& a : v->args) for_each_load(a, f);
}

std::vector<Value> loads_of(const Block& b, const std::string& tensor) {
    std::vector<Value> out;
    const auto add = [&](const Value& l) {
        if (l->name == tensor && std::ranges::none_of(out, [&](const Value& x) { return equal(x, l); })) out.push_back(l);
    };
    for (const Value& v : b.vals) for_each_load(v, add);
    for (const Value& g : b.guards) for_each_load(g, add);
    return out;
}

template <class F>
static std::set<std::string> buffers_where(const Body& body, F chosen) {
    std::set<std::string> out;
    for_each_block(body, [&](const Block& b, Loc) {
        for (const Touch& t : touches(b))
            if (chosen(b, t)) out.insert(t.tensor);
    });
    return out;
}

std::set<std::string> touched(const Body& body) {
    return buffers_where(body, [](const Block&, const Touch&) { return true; });
}
std::set<std::string> written(const Body& body) {
    return buffers_where(body, [](const Block&, const Touch& t) { return t.write; });
}
std::set<std::string> read(const Body& body) {
    return buffers_where(body, [](const Block& b, const Touch& t) { return !t.write || b.monoid != Monoid::None; });
}

const Axis* axis_of(const Block& b, const std::string& name) {
    const auto it = std::ranges::find(b.axes, name, &Axis::name);
    return it == b.axes.end() ? nullptr : &*it;
}

static std::set<std::string> other_axes(const Block& b, const std::string& name) {
    std::set<std::string> out;
    for (const Axis& a : b.axes)
        if (a.name != name) out.insert(a.name);
    return out;
}

static bool meet_elsewhere(const Touch& x, const Touch& y, const std::string& name, const std::set<std::string>& others) {
    bool pinned = false;
    for (size_t d = 0; d < std::min(x.subscripts.size(), y.subscripts.size()); ++d) {
        const Index &i = x.subscripts[d], &j = y.subscripts[d];
        if (!mentions(i, name) && !mentions(j, name)) continue;
        if (!same(i, j) || meet(names_in(i), others) || mentions_load(i)) return true;
        pinned = true;
    }
    return !pinned;
}

std::string carried(const Block& first, const Block& second, const std::string& name) {
    std::set<std::string> others = other_axes(first, name);
    others.merge(other_axes(second, name));
    for (const Touch& x : touches(first))
        for (const Touch& y : touches(second))
            if (x.tensor == y.tensor && (x.write || y.write) && x.version.empty() && meet_elsewhere(x, y, name, others)) return x.tensor;
    return {};
}

std::set<std::string> conflicts(const Body& a, const Body& b) {
    const auto wa = written(a), wb = written(b), ta = touched(a), tb = touched(b);
    std::set<std::string> out;
    std::ranges::copy_if(wa, std::inserter(out, out.end()), [&](const std::string& t) { return tb.contains(t); });
    std::ranges::copy_if(wb, std::inserter(out, out.end()), [&](const std::string& t) { return ta.contains(t); });
    return out;
}

}  // namespace acu::ir::analysis
