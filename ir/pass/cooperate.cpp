#include <fmt/format.h>

#include <algorithm>

#include "ir/microkernel.h"
#include "ir/pass/roles.h"

namespace acu::ir::pass {
namespace {

/// role consumer { S over m in b +: s }
/// ->  role consumer.0 { S over m in b +: s/2 } role consumer.1 { S over m in b + s/2 +: s/2 }
struct Cooperate {
    static constexpr std::string_view name = "cooperate", doc = "several roles share each tile, cut along one axis: each reads every version of the rings";
    static constexpr std::string_view picture = "role consumer { S over m in b +: s }\n-> role consumer.0 { S over m in b +: s/2 } role consumer.1 { S over m in b + s/2 +: s/2 }";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Role, SiteKind::Axis}, 2, 2}; }

    struct Params {
        int64_t count = 2;
        static constexpr auto fields = std::tuple{optional("count", &Params::count, +[] { return integers(2, 4, {2, 3}); }, "the number of roles")};
    };

    static void check(bool holds, const char* code, const std::string& message, const std::string& help, Loc loc) { need(holds, ("cooperate." + std::string(code)).c_str(), message, help, loc); }

    /// Statements that write outputs must have the axis, in parallel, of a size that can be dealt out. Others may run in each copy as a whole.
    static void divides_all(const Program& p, const std::vector<Stmt>& all, const std::string& axis, int64_t count) {
        for (const Stmt& s : all) {
            const Block& b = *as_block(s);
            const Axis* a = axis_of(b, axis);
            const bool outside = std::ranges::any_of(b.outs, [&](const Access& o) { return p.find(o.tensor) != nullptr; });
            check(a || !outside, "axis", fmt::format("`{}` has no axis `{}`: it would run {} times", b.label, axis, count), "cut along an axis that all statements with outputs have", s->loc);
            if (!a) continue;
            check(a->kind == AxisKind::Par, "kind", fmt::format("`{}` is {} in `{}`: its parts would have to be joined", axis, a->kind == AxisKind::Red ? "reduced" : "scanned", b.label), "cut along a parallel axis", s->loc);
            const Axis& first = *axis_of(*as_block(*std::ranges::find_if(all, [&](const Stmt& x) { return axis_of(*as_block(x), axis); })), axis);
            check(same(a->base, first.base) && same(a->size, first.size), "range", fmt::format("`{}` of `{}` runs through {} +: {}, elsewhere through {} +: {}: the parts would not fit together", axis, b.label, print(a->base), print(a->size), print(first.base), print(first.size)), "tile all statements of the role alike", s->loc);
            const auto size = constant_value(a->size);
            check(size && *size % count == 0, "size", fmt::format("`{}` of `{}` has {} points, which cannot be dealt to {}", axis, b.label, print(a->size), count), "tile it by a multiple first", s->loc);
        }
    }

    static Block plain(Block b) {
        const std::function<Value(const Value&)> f = [&](const Value& v) {
            const Value inner = map_parts(v, f, [](const Index& e) { return e; });
            return v->op == Op::Load ? with_version(inner, {}) : inner;
        };
        b = map_block(std::move(b), f, [](const Index& e) { return e; });
        for (Access& o : b.outs) o.version.clear();
        return b;
    }

    /// Where `second` needs from `first` what another part makes.
    static std::string missing(const Block& first, const Block& second, const std::string& axis) {
        if (axis_of(first, axis) && axis_of(second, axis)) return carried(first, second, axis);
        const Block *part = axis_of(first, axis) ? &first : axis_of(second, axis) ? &second : nullptr, *whole = part == &first ? &second : &first;
        for (const Touch& t : part ? touches(*part) : std::vector<Touch>{})
            for (const Touch& u : touches(*whole))
                if (t.write && u.tensor == t.tensor) return t.tensor;
        return {};
    }

    /// No part may need what another part makes.
    static void independent(const std::vector<Stmt>& all, const std::string& axis) {
        std::vector<Block> blocks;
        for (const Stmt& s : all) blocks.push_back(plain(*as_block(s)));
        for (size_t i = 0; i < all.size(); ++i)
            for (size_t j = i; j < all.size(); ++j) {
                const std::string t = missing(blocks[i], blocks[j], axis);
                check(t.empty(), "carried", fmt::format("`{}` needs `{}` of `{}` from other values of `{}`", blocks[j].label, t, blocks[i].label, axis), "cut along another axis", all[j]->loc);
            }
    }

    /// A microkernel that all threads of a block call together cannot be called by two roles.
    static void bound(const std::vector<Stmt>& all, const Context& context) {
        for (const Stmt& s : all) {
            const std::string& via = as_block(s)->via;
            const Microkernel* m = via.empty() || !context.microkernel ? nullptr : context.microkernel(via);
            const bool alone = via.empty() || (m && m->group < ThreadGroup::Block && m->kind != MicrokernelKind::Mma);
            check(alone, "via", fmt::format("`{}` is bound to `{}`{}", as_block(s)->label, via, !m ? ", which is not known" : m->kind == MicrokernelKind::Mma ? ", whose sums lie over all threads of the role" : ", which all threads of a block call together"), "bind it after", s->loc);
        }
    }

    static Stmt cut(const Stmt& s, const std::string& axis, int64_t w, int64_t count) {
        Block b = *as_block(s);
        for (Axis& a : b.axes)
            if (a.name == axis) {
                const int64_t part = *constant_value(a.size) / count;
                a.base = w ? normal(a.base + constant(w * part)) : a.base;
                a.size = constant(part);
            }
        return with_node(s, std::move(b));
    }

    /// A buffer of the role holds only the part, where all accesses name the axis in a dimension whose window is its range.
    static Decl narrowed(Decl d, const std::vector<Stmt>& all, const std::string& axis, int64_t w, int64_t count) {
        for (size_t i = 0; i < d.dims.size(); ++i) {
            const bool fits = std::ranges::all_of(all, [&](const Stmt& s) {
                const Axis* a = axis_of(*as_block(s), axis);
                return std::ranges::all_of(touches(*as_block(s)), [&](const Touch& t) {
                    return t.tensor != d.name || (a && i < t.subscripts.size() && is_name(t.subscripts[i], axis) && same(a->base, d.dims[i].origin) && same(a->size, d.dims[i].size));
                });
            });
            const auto size = constant_value(d.dims[i].size);
            if (!fits || !size) continue;
            const int64_t part = *size / count;
            d.dims[i] = {w ? normal(d.dims[i].origin + constant(w * part)) : d.dims[i].origin, constant(part)};
            d.layout.reset();    // that was of the whole
        }
        return d;
    }

    static Rewrite apply(const Site& site, const Params& p, const Context& context) {
        const RolePlace at = find_role(site.program, site.names[0]);
        const std::string& axis = site.names[1];
        const RoleCopies copies(site.program, at, p.count, "cooperate");
        const std::vector<Stmt> all = block_stmts(at.role().body);
        divides_all(site.program, all, axis, p.count);
        independent(all, axis);
        bound(all, context);
        const auto shape = [&](int64_t w, const Decl& d) { return narrowed(d, all, axis, w, p.count); };
        const std::function<Body(const Body&, int64_t)> part = [&](const Body& body, int64_t w) {
            Body out;
            for (const Stmt& s : body) {
                Stmt now = as_block(s) ? cut(s, axis, w, p.count) : map_bodies(s, [&](const Body& inner) { return part(inner, w); });
                if (const Loop* l = as_loop(now)) {
                    Loop n = *l;
                    for (Decl& d : n.allocs) d = shape(w, d);
                    now = with_node(now, std::move(n));
                }
                out.push_back(std::move(now));
            }
            return out;
        };
        return copies.build([&](int64_t w) { return part(at.role().body, w); }, shape, {}, true);
    }
};

}  // namespace

Pass cooperate_pass() { return make_pass<Cooperate>(); }

}  // namespace acu::ir::pass
