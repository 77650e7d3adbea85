#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// Bounds of the error in f32. PTX ISA 9.7.3, "ex2", "lg2", "sqrt", "rsqrt", "rcp", "tanh"; CUDA C++ Programming Guide, "Intrinsic Functions" (__expf, __logf); on CDNA2 the
/// instructions are good to 1 ulp (LLVM, AMDGPUUsage). The polynomial was measured on all floats. Subnormal numbers count as zero.
struct Method {
    std::string_view function, with, becomes, bound;
    int least_sm;    ///< of CUDA targets
    bool hip;
};
constexpr std::array methods{
    Method{"exp", "hardware", "exp.approx", "2 + floor(|1.173 x|) ulp", 0, true},
    Method{"exp2", "hardware", "exp2.approx", "2 ulp", 0, true},
    Method{"log", "hardware", "log.approx", "2^-21.41 absolute in 0.5 .. 2, 3 ulp elsewhere", 0, true},
    Method{"log2", "hardware", "log2.approx", "2^-22 absolute in 0.5 .. 2, 2^-22 relative elsewhere", 0, true},
    Method{"sqrt", "hardware", "sqrt.approx", "2^-23 relative", 0, true},
    Method{"rsqrt", "hardware", "rsqrt.approx", "2^-22.9 relative", 0, true},
    Method{"div", "hardware", "reciprocal.approx", "2 ulp for divisors of 2^-126 .. 2^126", 0, true},
    Method{"tanh", "hardware", "tanh.approx", "2^-11 relative", 75, false},
    Method{"erf", "polynomial", "erf.approx", "1e-6 absolute", 0, true},
};

/// e[i] = exp(x[i])  ->  e[i] = exp.approx(x[i])
struct ApproximatePass {
    static constexpr std::string_view name = "approximate", doc = "a cheaper function for f32, within a bound: exp (2 + floor(|1.173 x|) ulp), exp2 (2 ulp), log (3 ulp; 2^-21.41 absolute in 0.5 .. 2), log2 (2^-22), "
        "sqrt (2^-23 relative), rsqrt (2^-22.9 relative), div (a quotient by the reciprocal: 2 ulp for divisors of 2^-126 .. 2^126), tanh (2^-11 relative, sm_75 and later) with = hardware; erf (1e-6 absolute) with = polynomial";
    static constexpr std::string_view picture = "e[i] = exp(x[i])\n-> e[i] = exp.approx(x[i])";
    static constexpr Rounding rounding = Rounding::Approximates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string function, with;
        static constexpr auto fields = std::tuple{
            required("function", &Params::function, +[] { return words({"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "div", "tanh", "erf"}); }, "the function, in every call of the statement"),
            required("with", &Params::with, +[] { return words({"hardware", "polynomial"}); }, "one instruction of the target, or a polynomial and one instruction")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context& context) {
        const Place at = find_block(site.program, site.name());
        const auto m = std::ranges::find_if(methods, [&](const Method& x) { return x.function == p.function && x.with == p.with; });
        if (m == methods.end()) {
            const auto other = std::ranges::find(methods, p.function, &Method::function);
            refuse("approximate.method", fmt::format("there is no {} approximation of `{}`", p.with, p.function), fmt::format("take with = {}", other->with));
        }
        on_target(*m, context.target);
        Block b = block_of(at);
        need(b.via.empty(), "approximate.bound", fmt::format("`{}` is done by the microkernel `{}`", b.label, b.via), "", at.stmt->loc);
        bool found = false;
        for (Value& v : b.vals) v = approximated(v, *m, b.label, at.stmt->loc, found);
        need(found, "approximate.none", fmt::format("`{}` calls no `{}`", b.label, p.function), "", at.stmt->loc);
        return {replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(b))}), {}};
    }

    static Value approximated(const Value& v, const Method& m, const std::string& label, Loc loc, bool& found) {
        const Value inner = map_parts(v, [&](const Value& a) { return approximated(a, m, label, loc, found); }, [](const Index& e) { return e; });
        const bool quotient = m.function == "div";
        if (quotient ? inner->op != Op::Div || !is_float(inner->type) : inner->op != Op::Call || inner->name != m.function) return inner;
        need(inner->type == DType::F32, "approximate.type", fmt::format("`{}` calls `{}` in {}, for which there is no instruction", label, m.function, name_of(inner->type)), "", loc);
        found = true;
        return quotient ? binary(Op::Mul, inner->args[0], call(std::string(m.becomes), {inner->args[1]})) : call(std::string(m.becomes), inner->args);
    }

    static void on_target(const Method& m, const Target* t) {
        if (!t) return;
        need(t->platform != Platform::Hip || m.hip, "approximate.target", fmt::format("{} has no instruction for `{}`", t->name, m.function), "");
        need(t->platform != Platform::Cuda || generation(t->name) >= m.least_sm, "approximate.target", fmt::format("{} has no instruction for `{}`: sm_{} is the first that has one", t->name, m.function, m.least_sm), "");
    }

    /// 90 for `sm_90a`.
    static int generation(std::string_view target) {
        int n = 0;
        if (target.starts_with("sm_")) std::from_chars(target.data() + 3, target.data() + target.size(), n);
        return n;
    }
};

}  // namespace

Pass approximate_pass() { return make_pass<ApproximatePass>(); }

}  // namespace acu::ir::pass
