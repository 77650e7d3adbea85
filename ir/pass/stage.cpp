#include <algorithm>

#include "ir/pass/stage_copy.h"

namespace acu::ir::pass {
namespace {

Rewrite stage_one(const Program& p, const std::string& buffer, const StageRequest& r) {
    const StageSource s(p, buffer, r);
    const std::string new_name = unique_name(p, buffer + ".t");
    Staged x = r.box ? staged_by_box(s, new_name) : staged_by_axes(s, new_name);
    if (x.widens) check_copy_bounds(s, x);
    Decl d{new_name, r.scope, s.decl->type, {}};
    for (const Axis& a : x.copy.axes) x.copy.outs[0].subscripts.push_back(name(a.name)), d.dims.push_back({a.base, a.size});
    x.copy.via = r.via;
    const auto swapped = [&](const Value& v) { return v->op == Op::Load && v->name == buffer && same(v->subscripts, s.load->subscripts) ? with_default(with_source(v, new_name, x.words), nullptr) : nullptr; };
    Loop l = loop_of(s.home);
    l.body.insert(l.body.begin() + static_cast<std::ptrdiff_t>(s.first), make_stmt(s.readers[0].stmt->loc, std::move(x.copy)));
    l.body = edit(l.body, [&](const Stmt& b) -> std::optional<Body> {
        if (std::ranges::none_of(s.readers, [&](const Place& at) { return at.stmt == b; })) return {};
        Block n = *as_block(b);
        for (Value& v : n.vals) v = replace(v, swapped);
        return Body{with_node(b, std::move(n))};
    });
    l.allocs.push_back(std::move(d));
    return {replace_stmt(p, s.home.stmt, {with_node(s.home.stmt, std::move(l))}), {{block_of(s.readers[0]).label, new_name, Part::Copy}}};
}

/// for k.o { acc += x[m, k]*… }  ->  for k.o { x.t: shared f16[…]  x.t[m, k] = x[m, k]; acc += x.t[m, k]*… }
struct StagePass {
    static constexpr std::string_view name = "stage", doc = "copy what statements read of a buffer to nearer memory, once in each iteration of a loop";
    static constexpr std::string_view picture = "for k.o { acc += x[m, k]*… }\n-> for k.o { x.t: shared f16[128*m.o +: 128, 64*k.o +: 64]  x.t[m, k] = x[m, k] over …; acc += x.t[m, k]*… }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Buffer}, 1, 16}; }

    struct Params {
        std::string at, in = "shared", by = "axes", via;
        std::vector<std::string> readers, reuse;
        static constexpr auto fields = std::tuple{required("at", &Params::at, +[] { return a_name(); }, "the loop"),
                                                  optional("in", &Params::in, +[] { return words({"shared", "register", "cluster"}); }, "the memory"),
                                                  optional("by", &Params::by, +[] { return words({"axes", "box"}); }, "one cell a point of the readers' axes, or one an element of the box that they read"),
                                                  optional("readers", &Params::readers, +[] { return names(); }, "the statements that read the copy; left out, all in the loop that read the buffer"),
                                                  optional("via", &Params::via, +[] { return a_text(); }, "how the copy is done"),
                                                  optional("reuse", &Params::reuse, +[] { return names(); }, "buffers whose memory it may take")};
    };

    static Rewrite apply(const Site& site, const Params& p, const Context&) {
        need(p.reuse.empty(), "stage.reuse", "memory cannot be taken over from other buffers yet");
        Rewrite out{site.program, {}};
        for (const std::string& buffer : site.names) {
            Rewrite step = stage_one(out.program, buffer, {p.at, scope_named(p.in), p.by == "box", p.readers, p.via});
            out.program = std::move(step.program);
            out.lineage.insert(out.lineage.end(), step.lineage.begin(), step.lineage.end());
        }
        return out;
    }
};

}  // namespace

Pass stage_pass() { return make_pass<StagePass>(); }

}  // namespace acu::ir::pass
