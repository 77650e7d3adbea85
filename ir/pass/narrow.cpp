#include <fmt/format.h>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// o += e[i, j]*v[j, d] over j!
/// ->  o += f32(f16(e[i, j]))*v[j, d] over j!
struct Narrow {
    static constexpr std::string_view name = "narrow", doc = "round a factor of a sum to a narrower float, as matrix instructions want their operands: within half a unit in its last place, and to infinity beyond its range";
    static constexpr std::string_view picture = "o += e[i, j]*v[j, d]  over j!\n-> o += f32(f16(e[i, j]))*v[j, d]  over j!";
    static constexpr Rounding rounding = Rounding::Approximates;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 1}; }

    struct Params {
        std::string reads, as;
        static constexpr auto fields = std::tuple{required("reads", &Params::reads, +[] { return a_name(); }, "the buffer that the factor is read from"),
                                                  required("as", &Params::as, +[] { return words({"f16", "bf16", "tf32", "f8e4m3", "f8e5m2"}); }, "the type")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_block(site.program, site.name());
        Block b = block_of(at);
        need(b.via.empty(), "narrow.bound", fmt::format("`{}` is done by the microkernel `{}`", b.label, b.via), "", at.stmt->loc);
        need(b.monoid == Monoid::Sum && b.vals.size() == 1, "narrow.sum", fmt::format("`{}` is no sum", b.label), "", at.stmt->loc);
        const DType as = *type_named(p.as);
        bool found = false;
        for (const Value& f : factors(b.vals[0]).num) found |= f->op == Op::Load && f->name == p.reads;
        need(found, "narrow.factor", fmt::format("no factor of `{}` is what it reads from `{}`", b.label, p.reads), "", at.stmt->loc);
        const DType stored = buffer_at(site.program, at, p.reads)->type;
        need(is_float(stored) && !keeps_values(stored, as), "narrow.as", fmt::format("{} holds every {}: nothing is rounded", p.as, name_of(stored)), "multiply it as it is", at.stmt->loc);
        b.vals[0] = replace(b.vals[0], [&](const Value& v) -> Value { return v->op == Op::Load && v->name == p.reads ? cast(v->type, cast(as, v)) : nullptr; });
        return {replace_stmt(site.program, at.stmt, {with_node(at.stmt, std::move(b))}), {}};
    }
};

}  // namespace

Pass narrow_pass() { return make_pass<Narrow>(); }

}  // namespace acu::ir::pass
