#include "acuc/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "ir/scalar.h"

namespace acu {

using namespace ir;

namespace {

struct Traits {
    double terms = 1;    ///< longest contraction
    DType narrowest = DType::F64;
    bool tf32 = false, rounds = false;
    double cast = 0;    ///< largest unit roundoff of a type to which a value is cast on its way
};

int bits_of(DType t) { return static_cast<int>(-std::log2(info(t).unit)); }

double added_terms(const Value& v) { return v->op == Op::Add || v->op == Op::Sub ? added_terms(v->args[0]) + added_terms(v->args[1]) : 1; }

/// A sum of products of a stored 16-bit factor and one that is computed on the way: matrix instructions round that one to the type of the other.
void look_at_factors(const Program& p, const Value& product, Traits& t) {
    double stored = 0;
    bool computed = false;
    const std::function<void(const Value&)> factor = [&](const Value& v) {
        if (v->op == Op::Mul || v->op == Op::Cast)
            for (const Value& a : v->args) factor(a);
        const Decl* d = v->op == Op::Load ? p.find(v->name) : nullptr;
        if (!d || !is_float(d->type)) return;
        if (d->scope == Scope::Temp) computed |= d->type == DType::F32;
        else if (info(d->type).bytes == 2) stored = std::max(stored, info(d->type).unit);
    };
    if (product->op == Op::Mul) factor(product);
    if (computed) t.cast = std::max(t.cast, stored);
}

void look(const Program& p, const Value& v, const Env& dims, Traits& t) {
    if (v->op == Op::Reduce) {
        if (v->monoid == Monoid::Sum) look_at_factors(p, v->args[0], t);
        double n = 1;
        for (const Axis& a : v->axes) n *= static_cast<double>(std::max<int64_t>(1, evaluate(a.size, dims)));
        t.terms = std::max(t.terms, n);
    }
    if (v->op == Op::Cast) t.tf32 |= v->name == "tf32";
    if (const auto to = v->op == Op::Cast ? type_named(v->name) : std::nullopt; to && is_float(*to) && *to != DType::Tf32 && bits_of(*to) < bits_of(DType::F32)) t.cast = std::max(t.cast, info(*to).unit);
    if (v->op == Op::Call) t.rounds |= v->name == "round" || v->name == "floor" || v->name == "ceil" || v->name == "trunc";
    for (const Value& a : v->args) look(p, a, dims, t);
}

Traits traits_of(const Program& p, const Env& dims) {
    Traits t;
    for (const Decl& d : p.decls)
        if (d.scope == Scope::In && is_float(d.type) && bits_of(d.type) < bits_of(t.narrowest)) t.narrowest = d.type;
    for_each_block(p.body, [&](const Block& b, Loc) {
        double n = 1;
        for (const Axis& a : b.axes)
            if (a.kind != AxisKind::Par) n *= static_cast<double>(std::max<int64_t>(1, evaluate(a.size, dims)));
        t.terms = std::max(t.terms, n);
        for (const Value& v : b.vals) look(p, v, dims, t), t.terms = std::max(t.terms, added_terms(v));
    });
    return t;
}

std::vector<double> row_scales(const Array& r, int64_t row) {
    std::vector<double> out;
    for (int64_t from = 0; from < r.count(); from += row) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = from; i < from + row; ++i)
            if (const double x = r.get(i); std::isfinite(x)) sum += x * x, ++n;
        out.push_back(n ? std::sqrt(sum / static_cast<double>(n)) : 0);
    }
    return out;
}

/// The share of its bound that an error takes; infinite where NaN or infinity stand in one of the two only.
double share(double y, double r, double bound) {
    if (std::isnan(y) || std::isnan(r)) return std::isnan(y) && std::isnan(r) ? 0 : HUGE_VAL;
    if (std::isinf(y) || std::isinf(r)) return y == r ? 0 : HUGE_VAL;
    const double error = std::fabs(y - r);
    return error == 0 ? 0 : bound > 0 ? error / bound : HUGE_VAL;
}

void note(Comparison& c, double s, int64_t i, double y, double r) {
    if (s > c.worst || c.at < 0) c.worst = std::max(c.worst, s), c.at = i, c.actual = y, c.expected = r;
}

}  // namespace

Tolerance tolerance_of(const Program& tensor, const Env& dims) {
    const Traits t = traits_of(tensor, dims);
    Tolerance out;
    const double f32 = 8 * std::ldexp(1, -24) * std::sqrt(t.terms);
    std::string_view what = name_of(t.narrowest);
    if (t.tf32) out.tau = std::ldexp(1, -9), what = "tf32";
    else if (bits_of(t.narrowest) <= bits_of(DType::F8E4M3)) out.tau = std::ldexp(1, -7);
    else if (t.narrowest == DType::F16 || t.narrowest == DType::BF16) out.tau = std::max(std::ldexp(1, -13), t.terms * std::ldexp(1, -28));
    else out.tau = f32;
    out.tau += 2 * t.cast;    // the reference does not round
    out.rounded_integers = t.rounds;
    out.why = fmt::format("{} operands, at most {} terms in a sum", what, static_cast<int64_t>(t.terms));
    return out;
}

static double as_stored(double x, DType type) {
    std::array<std::byte, 8> cell{};
    store_float(cell.data(), 0, type, x);
    return load_float(cell.data(), 0, type);
}

/// The root mean square of fewer elements says little: the scale is then that of the whole tensor.
static constexpr int64_t least_row = 32;

static Comparison compare_integers(const Array& y, const Array& reference, const Tolerance& t) {
    Comparison c;
    int64_t off = 0;
    for (int64_t i = 0; i < y.count(); ++i) {
        const double a = y.get(i), r = std::nearbyint(reference.get(i)), d = std::fabs(a - r);
        if (d == 0) continue;
        ++off;
        note(c, t.rounded_integers && d <= 1 ? 0.5 : HUGE_VAL, i, a, r);
    }
    c.compared = y.count();
    c.equal = off == 0 || (c.worst < 1 && static_cast<double>(off) <= 1e-3 * static_cast<double>(y.count()));
    return c;
}

Comparison compare(const Array& y, const Array& reference, const Tolerance& t) {
    if (y.count() != reference.count()) return {};
    if (!is_float(y.type)) return compare_integers(y, reference, t);
    Comparison c;
    c.compared = y.count();
    const int64_t row = std::max<int64_t>(1, y.sizes.empty() ? 1 : y.sizes.back());
    const std::vector<double> scales = row_scales(reference, row);
    double all = 0;
    for (const double s : scales) all += s * s;
    all = std::sqrt(all / static_cast<double>(std::max<size_t>(1, scales.size())));
    for (int64_t i = 0; i < y.count(); ++i) {
        const double a = y.get(i);
        double r = reference.get(i);
        if (const double stored = as_stored(r, y.type); !std::isfinite(stored)) r = stored;    // overflow of the stored type
        const double scale = row >= least_row ? scales[static_cast<size_t>(i / row)] : all;
        const double tiny = y.type == DType::F16 ? std::ldexp(1, -24) : y.type == DType::F8E4M3 ? std::ldexp(1, -9) : 0;
        const double s = share(a, r, t.tau * scale + 2 * info(y.type).unit * std::fabs(r) + tiny);
        if (s > 0) note(c, s, i, a, r);
    }
    c.equal = c.worst <= 1;
    return c;
}

}  // namespace acu
