#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

/// acc[m, n] += a[m, k]*b[k, n]  ->  b.r[n, k] = b[k, n] over n, k; acc[m, n] += a[m, k]*b.r[n, k]
struct Repack {
    static constexpr std::string_view name = "repack", doc = "a statement reads a copy of a buffer in workspace, in another order or with lines of whole vectors: `repack(acc, b, order = [n, k], align = 8)`";
    static constexpr std::string_view picture = "acc[m, n] += a[m, k]*b[k, n]\n-> b.r[n, k] = b[k, n] over n, k; acc[m, n] += a[m, k]*b.r[n, k]";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement, SiteKind::Buffer}, 2, 2}; }

    struct Params {
        std::vector<std::string> order;
        int64_t align = 1;
        static constexpr auto fields = std::tuple{required("order", &Params::order, +[] { return names(); }, "the axes of the statement along the dimensions of the copy, the last one fastest"),
                                                  optional("align", &Params::align, +[] { return integers(1, 128, {4, 8, 16}); }, "lines of the copy are a multiple of so many elements, zeros beyond the end")};
    };

    static void check(bool holds, const char* code, const std::string& message, const std::string& help, Loc loc) { need(holds, ("repack." + std::string(code)).c_str(), message, help, loc); }

    /// What the statement reads of the buffer: the one load, or its rounding to tf32, which the copy can hold as well.
    static Value read_of(const Block& b, const std::string& buffer, Loc loc) {
        Value found, around;
        const std::function<void(const Value&, const Value&)> walk = [&](const Value& v, const Value& parent) {
            if (v->op == Op::Load && v->name == buffer) {
                check(!found || equal(found, v), "several", fmt::format("`{}` reads `{}` in several ways", b.label, buffer), "", loc);
                found = v, around = parent;
            }
            for (const Value& a : v->args) walk(a, v);
        };
        for (const Value& v : b.vals) walk(v, nullptr);
        check(found != nullptr, "unread", fmt::format("`{}` does not read `{}`", b.label, buffer), "", loc);
        check(found->args.empty() && found->version.empty(), "default", fmt::format("`{}` reads `{}` also where it has no element", b.label, buffer), "", loc);
        return around && around->op == Op::Cast && around->name == name_of(DType::Tf32) ? around : found;
    }

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        const Place at = find_block(site.program, site.names[0]);
        const std::string& buffer = site.names[1];
        const Block& b = block_of(at);
        const Loc loc = at.stmt->loc;
        check(loops_of(at.above).empty(), "place", fmt::format("`{}` stands in a loop already", b.label), "repack first; see `stage` for copies inside", loc);
        check(b.guards.empty() && b.via.empty(), "guard", fmt::format("`{}` reads `{}` under a condition", b.label, buffer), "", loc);
        check(std::ranges::none_of(b.outs, [&](const Access& o) { return o.tensor == buffer; }), "own", fmt::format("`{}` writes `{}`", b.label, buffer), "", loc);
        const Value value = read_of(b, buffer, loc), load = value->op == Op::Cast ? value->args[0] : value;
        const Decl& source = find_buffer(site.program, buffer);
        Block copy{unique_name(site.program, buffer + ".r"), {}, {}, Monoid::None, {}};
        Decl d{copy.label, Scope::Temp, source.type, {}};
        std::vector<Index> cell;
        for (const std::string& n : p.order) {
            const Axis* a = axis_of(b, n);
            check(a && mentions(load, n), "order", fmt::format("`{}` does not read `{}` along `{}`", b.label, buffer, n), "name the axes of its subscripts, each once", loc);
            check(!axis_of(copy, n) && is_const(normal(a->base), 0) && a->vector == 1, "axis", fmt::format("`{}` cannot be a dimension of the copy", n), "", loc);
            copy.axes.push_back({n, AxisKind::Par, a->base, a->size});
            cell.push_back(ir::name(n));
        }
        for (const Axis& a : b.axes) check(!mentions(load, a.name) || axis_of(copy, a.name), "order", fmt::format("`{}` is read along `{}`, too, which `order` leaves out", buffer, a.name), "", loc);
        Index& line = copy.axes.back().size;
        const bool rounds = p.align > 1 && !divides(site.program, line, p.align);
        if (rounds) line = normal(constant(p.align) * ceil_div(line, constant(p.align)));
        for (const Axis& a : copy.axes) d.dims.push_back({constant(0), a.size});
        copy.outs = {{d.name, cell}};
        const Value zero = is_float(source.type) ? number(0, load->type) : source.type == DType::Bool ? boolean(false) : integer(0, load->type);
        const Value taken = rounds ? with_default(load, zero) : load;
        copy.vals = {value->op == Op::Cast ? cast(DType::Tf32, taken) : taken};
        Block now = b;
        const Value read = with_source(load, d.name, cell);
        for (Value& v : now.vals) v = replace(v, [&](const Value& x) { return equal(x, load) ? read : nullptr; });
        Rewrite out{replace_stmt(site.program, at.stmt, {make_stmt(loc, std::move(copy)), with_node(at.stmt, std::move(now))}), {{b.label, d.name, Part::Copy}}};
        out.program.decls.push_back(std::move(d));
        return out;
    }
};

}  // namespace

Pass repack_pass() { return make_pass<Repack>(); }

}  // namespace acu::ir::pass
