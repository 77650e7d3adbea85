#include <fmt/format.h>

#include <algorithm>

#include "ir/pass/padded.h"
#include "ir/pass/window.h"

namespace acu::ir::pass {
namespace {

/// The sole statement that writes a local buffer, which it does as a whole.
void check_fills(const Program& p, const Place& at) {
    const Block& b = block_of(at);
    need(b.monoid == Monoid::None && b.outs.size() == 1 && b.vals.size() == 1, "pad.copy", fmt::format("`{}` is not one assignment", b.label), {}, at.stmt->loc);
    need(b.outs[0].version.empty(), "pad.ring", fmt::format("`{}` fills a ring", b.label), "pad it before the loop is pipelined", at.stmt->loc);
    need(!b.guards.empty(), "pad.none", fmt::format("`{}` has no guard: it fills all of its box already", b.label), {}, at.stmt->loc);
    const Decl* d = buffer_at(p, at, b.outs[0].tensor);
    need(d->scope >= Scope::Register, "pad.local", fmt::format("`{}` does not fill a buffer of a loop", b.label), "stage the buffer or keep it", at.stmt->loc);
    need(fills_whole(b, *d), "pad.box", fmt::format("the box of `{}` is not the window of `{}`", b.label, d->name), {}, at.stmt->loc);
    for (const Stmt& s : block_stmts(p.body))
        need(s == at.stmt || !written(s).contains(d->name), "pad.writers", fmt::format("`{}` writes `{}`, too", as_block(s)->label, d->name), {}, at.stmt->loc);
}

Value zero_of(DType t) { return is_float(t) ? number(0, t) : t == DType::Bool ? boolean(false) : integer(0, t); }
bool is_zero(const Value& v) { return v->op == Op::Const && v->number == 0 && v->integer == 0; }

class Padding {
  public:
    Padding(const Program& p, const Place& at) : program_(p), block_(block_of(at)), value_(block_.vals[0]) {
        if (value_->op == Op::Load) source_ = buffer_at(p, at, value_->name);
    }

    Value padded() {
        const Value zero = zero_of(value_->type);
        const bool takes_default = source_ && source_->ring.versions == 0 && (value_->args.empty() || is_zero(value_->args[0]));
        const bool uses_default = takes_default && std::ranges::any_of(block_.guards, [&](const Value& g) { return in_bounds(g) || zero_there(g); });
        Value rest;
        for (const Value& g : block_.guards)
            if (!takes_default || !(in_bounds(g) || zero_there(g) || any_value_will_do(g, uses_default))) rest = rest ? binary(Op::And, rest, g) : g;
        const Value now = uses_default && value_->args.empty() ? with_default(value_, zero) : value_;
        return rest ? select(rest, now, zero) : now;
    }

  private:
    /// The guard says `inside the tensor` for one subscript: where it fails, so does the bound.
    bool in_bounds(const Value& g) const {
        const auto b = as_below(g);
        if (!b) return false;
        for (size_t d = 0; d < source_->dims.size(); ++d)
            if (same(b->left - b->right, value_->subscripts[d] - source_->dims[d].origin - source_->dims[d].size)) return true;
        return false;
    }

    /// A copy in workspace that holds zeros there.
    bool zero_there(const Value& g) const { return source_->scope == Scope::Temp && zero_as_written(program_, g, value_); }

    /// A cell that nobody reads may hold any value of an input, if it is there: reductions read zeros, other axes what is never stored.
    bool any_value_will_do(const Value& g, bool defaulted) const {
        if ((value_->args.empty() && !defaulted) || source_->scope != Scope::In || std::ranges::any_of(value_->subscripts, mentions_load)) return false;
        bool loads = false, reduced = false;
        for_each_load(g, [&](const Value&) { loads = true; });
        for (const Stmt& s : block_stmts(program_.body)) {
            const Block& reader = *as_block(s);
            if (!read(s).contains(block_.outs[0].tensor)) continue;
            for (const Axis& a : reader.axes) reduced |= a.kind != AxisKind::Par && mentions(g, a.name);
            reduced |= !has_axes(reader, g);
        }
        return !loads && !reduced;
    }
    bool has_axes(const Block& reader, const Value& g) const {
        return std::ranges::all_of(block_.axes, [&](const Axis& a) { return !mentions(g, a.name) || axis_of(reader, a.name); });
    }

    const Program& program_;
    const Block& block_;
    const Value& value_;
    const Decl* source_ = nullptr;
};

/// x.t[i] = x[i] where i < n  ->  x.t[i] = (x[i] default 0)
struct Pad {
    static constexpr std::string_view name = "pad", doc = "a guarded copy fills its whole box, with zeros where the guard fails; its readers may then drop the guard (`relax`)";
    static constexpr std::string_view picture = "x.t[i] = x[i] over i where i < n\n-> x.t[i] = (x[i] default 0) over i";
    static constexpr Rounding rounding = Rounding::Exact;
    static SiteRule sites() { return {{SiteKind::Statement}, 1, 64}; }

    struct Params {
        static constexpr auto fields = std::tuple{};
    };

    static Rewrite apply(const Site& site, const Params&, const Context&) {
        Rewrite out{site.program, {}};
        for (const std::string& label : site.names) {
            const Place at = find_block(out.program, label);
            check_fills(out.program, at);
            Block b = block_of(at);
            b.vals = {Padding(out.program, at).padded()};
            b.guards.clear();
            out.program = replace_stmt(out.program, at.stmt, {with_node(at.stmt, std::move(b))});
        }
        return out;
    }
};

}  // namespace

Pass pad_pass() { return make_pass<Pad>(); }

}  // namespace acu::ir::pass
