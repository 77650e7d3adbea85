#include "acuc/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <thread>

#include "acuc/npy.h"
#include "codegen/contract.h"
#include "ir/analysis/inputs.h"
#include "ir/scalar.h"

namespace acu {

using namespace ir;
using frontend::Distribution;

namespace {

/// SplitMix64 (Steele, Lea, Flood 2014) of a counter.
uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// Numbers of one tensor, by position.
class Draw {
  public:
    Draw(uint64_t seed, const std::string& tensor) {
        uint64_t h = mix(seed ^ 0x616c706861637500u);
        for (const char c : tensor) h = mix(h ^ static_cast<unsigned char>(c));
        key_ = mix(h);
    }
    uint64_t bits(int64_t at, int which = 0) const { return mix(key_ ^ mix(static_cast<uint64_t>(at) * 4 + static_cast<uint64_t>(which))); }
    double uniform(int64_t at, int which = 0) const { return (static_cast<double>(bits(at, which) >> 11) + 0.5) * 0x1p-53; }
    double normal(int64_t at) const { return std::sqrt(-2 * std::log(uniform(at, 0))) * std::cos(2 * std::numbers::pi * uniform(at, 1)); }
    int64_t between(int64_t at, int64_t low, int64_t high) const { return low + static_cast<int64_t>(bits(at) % static_cast<uint64_t>(high - low + 1)); }

  private:
    uint64_t key_;
};

/// Calls f(i) for all elements, on all cores where there are many.
template <class F>
void for_elements(int64_t count, F f) {
    const int64_t workers = count < 1 << 18 ? 1 : std::max<int64_t>(1, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    for (int64_t w = 0; w < workers; ++w) {
        const auto part = [=] {
            for (int64_t i = count * w / workers; i < count * (w + 1) / workers; ++i) f(i);
        };
        if (workers == 1) part();
        else threads.emplace_back(part);
    }
}

double spread(const Draw& d, int64_t i, const Distribution& x, int64_t row) {
    const std::vector<double>& p = x.parameters;
    if (x.kind == "normal") return p[0] + p[1] * d.normal(i);
    if (x.kind == "uniform") return p[0] + (p[1] - p[0]) * d.uniform(i);
    if (x.kind == "pareto") return std::pow(d.uniform(i), -1 / p[0]);
    if (x.kind == "angles") return 2 * d.uniform(i) - 1;
    if (x.kind == "rows") {
        const int64_t r = i / row;
        if (r == 1) return d.bits(i) & 1 ? 1e4 : -1e4;
        return d.normal(i) * std::exp2(12 * d.uniform(-1 - r) - 6);
    }
    if (x.kind == "spikes") return d.uniform(i, 2) < 0.001 ? (d.uniform(i, 3) < 0.6 ? 1000 : -1000) : 2 * d.uniform(i) - 1;
    return static_cast<double>(d.between(i, static_cast<int64_t>(p[0]), static_cast<int64_t>(p[1])));
}

void fill(Array& a, const Distribution& x, const Draw& d) {
    const int64_t row = std::max<int64_t>(1, a.sizes.empty() ? 1 : a.sizes.back());
    for_elements(a.count(), [&](int64_t i) {
        if (is_float(a.type)) a.set(i, spread(d, i, x, row));
        else store_int(a.bytes.data(), i, a.type, saturate(std::round(spread(d, i, x, row)), a.type));
    });
}

void fill_offsets(Array& a, int64_t total, const Draw& d) {
    std::vector<int64_t> cuts;
    for (int64_t i = 0; i < a.count(); ++i) cuts.push_back(d.between(i, 0, std::max<int64_t>(0, total)));
    std::ranges::sort(cuts);
    if (cuts.empty()) return;
    cuts.front() = 0, cuts.back() = total;
    if (cuts.size() > 3) cuts[cuts.size() / 2] = cuts[cuts.size() / 2 - 1];    // one segment is empty
    for (int64_t i = 0; i < a.count(); ++i) store_int(a.bytes.data(), i, a.type, cuts[static_cast<size_t>(i)]);
}

Distribution integers(int64_t low, int64_t high) { return {"integers", {static_cast<double>(low), static_cast<double>(std::max(low, high))}, {}}; }

void fill_integers(Array& a, const analysis::InputUse& use, const Env& dims, const Draw& d) {
    const int64_t bound = use.bound ? evaluate(use.bound, dims) : 0;
    switch (use.kind) {
        case analysis::InputUse::Offsets: return fill_offsets(a, bound, d);
        case analysis::InputUse::Subscript:
            fill(a, integers(0, bound - 1), d);
            if (a.count() > 2 && bound > 0) store_int(a.bytes.data(), 0, a.type, 0), store_int(a.bytes.data(), 1, a.type, bound - 1), store_int(a.bytes.data(), 2, a.type, bound - 1);
            return;
        case analysis::InputUse::Length: return fill(a, integers(std::min<int64_t>(1, bound), bound), d);
        case analysis::InputUse::Free: break;
    }
    if (a.type == DType::Bool) return fill(a, integers(0, 1), d);
    const int64_t width = info(a.type).bytes > 2 ? 1000 : info(a.type).bytes == 2 ? 32767 : a.type == DType::U8 ? 255 : 127;
    fill(a, integers(a.type == DType::U8 ? 0 : -width - (width == 127), width), d);
}

Status draw(const Subject& s, const Decl& decl, const std::map<std::string, analysis::InputUse>& uses, const Env& dims, uint64_t seed, Array& a) {
    const Draw d(seed, decl.name);
    const auto given = s.inputs.find(decl.name);
    if (given == s.inputs.end()) {
        const auto use = uses.find(decl.name);
        if (is_float(decl.type)) fill(a, {"normal", {0, 1}, {}}, d);
        else fill_integers(a, use == uses.end() ? analysis::InputUse{} : use->second, dims, d);
        return ok();
    }
    if (given->second.kind != "list") return fill(a, given->second, d), ok();
    if (static_cast<int64_t>(given->second.list.size()) != a.count())
        return Diagnostic{"input.count", {}, fmt::format("the case lists {} values for `{}`, which has {} elements", given->second.list.size(), decl.name, a.count())};
    for (int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>(given->second.list[static_cast<size_t>(i)]));
    return ok();
}

/// With leading dimensions flattened where the declaration has a pack.
Status flatten(const Program& p, const Decl& d, Array& a) {
    const bool pack = !d.dims.empty() && std::ranges::any_of(p.dims, [&](const Dim& x) { return x.pack && is_name(d.dims[0].size, x.name); });
    const size_t rank = d.dims.size();
    if (pack && a.sizes.size() + 1 >= rank && a.sizes.size() != rank) {
        const auto end = a.sizes.begin() + static_cast<ptrdiff_t>(a.sizes.size() + 1 - rank);
        const int64_t product = std::accumulate(a.sizes.begin(), end, int64_t{1}, std::multiplies<>{});
        a.sizes.erase(a.sizes.begin(), end);
        a.sizes.insert(a.sizes.begin(), product);
    }
    if (a.sizes.size() == rank) return ok();
    return Diagnostic{"input.rank", {}, fmt::format("the file for `{}` has {} dimensions, but {} are expected", d.name, a.sizes.size(), rank)};
}

Status read_files(const Program& p, const std::map<std::string, std::string>& files, Arrays& arrays) {
    for (const auto& [name, path] : files) {
        const Decl* d = p.find(name);
        if (!d || d->scope != Scope::In) {
            std::vector<std::string> names;
            for (const Decl& x : p.decls)
                if (x.scope == Scope::In) names.push_back(x.name);
            return Diagnostic{"input.name", {}, fmt::format("the operator has no input `{}`", name), {}, nearest(name, names).empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : did_you_mean(name, names)};
        }
        auto a = read_npy(path, d->type);
        if (!a) return a.why();
        if (const Status f = flatten(p, *d, *a); !f) return f;
        arrays[name] = std::move(*a);
    }
    return ok();
}

/// A dimension that neither a file nor `--set` fixes.
Status check_complete(const Program& p, const Env& dims) {
    for (const Dim& d : p.dims)
        if (!dims.contains(d.name))
            return Diagnostic{"input.size", {}, fmt::format("the size of the dimension `{}` is not given", d.name), {}, fmt::format("give it with `--set {}=…`, a `--case`, or an input file", d.name), Exit::Usage};
    return ok();
}

/// `where P == …` gives what the inputs leave open.
void solve_facts(const Program& p, Env& dims) {
    for (const Value& f : p.facts) {
        if (f->op != Op::Eq || f->args[0]->op != Op::OfIndex || f->args[0]->subscripts[0]->op != IndexOp::Name || dims.contains(f->args[0]->subscripts[0]->name)) continue;
        std::set<std::string> names;
        free_names(f->args[1], names);
        if (std::ranges::all_of(names, [&](const std::string& n) { return dims.contains(n); }))
            dims[f->args[0]->subscripts[0]->name] = f->args[1]->op == Op::OfIndex ? evaluate(f->args[1]->subscripts[0], dims) : f->args[1]->integer;
    }
}

}  // namespace

Result<RunInputs> make_inputs(const Subject& s, const std::map<std::string, std::string>& files, uint64_t seed) {
    const Program& p = s.op.program;
    RunInputs out{{{}, s.op.scalars}, {}};
    if (const Status r = read_files(p, files, out.arrays); !r) return r.why();
    std::map<std::string, std::vector<int64_t>> sizes;
    for (const auto& [n, a] : out.arrays) sizes[n] = a.sizes;
    Program inputs_only = p;
    std::erase_if(inputs_only.decls, [&](const Decl& d) { return !sizes.contains(d.name); });
    std::erase_if(inputs_only.dims, [&](const Dim& d) { return !d.value && std::ranges::none_of(inputs_only.decls, [&](const Decl& x) { return std::ranges::any_of(x.dims, [&](const Window& w) { std::set<std::string> n; free_names(w.size, n); return n.contains(d.name); }); }); });
    auto dims = codegen::solve_dims(inputs_only, sizes);
    if (!dims) return dims.why();
    solve_facts(p, *dims);
    if (const Status c = check_complete(p, *dims); !c) return c.why();
    if (const Status f = codegen::check_facts(p, *dims); !f) return f.why();
    out.arguments.dims = *dims;
    const auto uses = analysis::input_uses(p);
    for (const Decl& d : p.decls) {
        if (d.scope == Scope::Param && !out.arguments.scalars.contains(d.name))
            return Diagnostic{"input.scalar", {}, fmt::format("the scalar `{}` has no value", d.name), {}, fmt::format("give it with `--set {}=…`", d.name), Exit::Usage};
        if (d.scope != Scope::In || out.arrays.contains(d.name)) continue;
        Array a = Array::zeros(d.type, sizes_of(d, *dims));
        if (const Status f = draw(s, d, uses, *dims, seed, a); !f) return f.why();
        out.arrays[d.name] = std::move(a);
    }
    return out;
}

}  // namespace acu
