#include "tests/property/random_steps.h"

#include <algorithm>

#include "ir/pass/edit.h"

namespace acu::property {

using namespace ir;
using namespace ir::pass;

namespace {

/// The names of a program by kind.
struct Names {
    std::vector<std::string> statements, loops, buffers, axes, roles;

    explicit Names(const Program& p) {
        for (const Decl& d : p.decls) buffers.push_back(d.name);
        for_each_place(p, [&](const Place& x) {
            if (const Block* b = as_block(x.stmt)) {
                statements.push_back(b->label);
                for (const Axis& a : b->axes) axes.push_back(a.name);
            }
            if (const Loop* l = as_loop(x.stmt)) {
                loops.push_back(l->var);
                for (const Decl& d : l->allocs) buffers.push_back(d.name);
            }
            if (const auto* r = std::get_if<Roles>(&x.stmt->node))
                for (const Role& role : r->roles) roles.push_back(role.name);
        });
    }
    const std::vector<std::string>& of(SiteKind kind) const {
        switch (kind) {
            case SiteKind::Statement: return statements;
            case SiteKind::Loop: return loops;
            case SiteKind::Buffer: return buffers;
            case SiteKind::Axis: return axes;
            case SiteKind::Role: return roles;
        }
        return statements;
    }
};

class Draw {
  public:
    Draw(const Program& p, const std::vector<Step>& before, Random& random) : p_(p), before_(before), names_(p), random_(random) {}

    Step step() {
        const Pass& pass = all_passes()[chosen_pass()];
        Step s{pass.name.data() ? std::string(pass.name) : "", sites(pass), {}, "random", {}, {}};
        for (const ParamSpec& spec : pass.params)
            if (spec.required || coin(2)) s.args.emplace(spec.name, argument(pass, spec, s.sites));
        return s;
    }

  private:
    bool coin(uint64_t one_in) { return random_() % one_in == 0; }
    int64_t below(uint64_t n) { return static_cast<int64_t>(random_() % std::max<uint64_t>(1, n)); }
    std::string any(const std::vector<std::string>& list) { return list.empty() ? "none" : list[static_cast<size_t>(below(list.size()))]; }

    /// First loops and tiles, on which the rest depends; then any pass, those that the plan has already less often.
    size_t chosen_pass() {
        static const std::vector<std::string_view> early{"fuse", "fuse", "tile", "split_reduction", "hoist", "online", "inline", "fuse_axes", "split_axis", "outline", "cap", "split_moments"};
        const auto& all = all_passes();
        if (before_.size() < 2 && !coin(3)) return index_of(early[static_cast<size_t>(below(early.size()))]);
        for (int tried = 0; tried < 4; ++tried) {
            const auto i = static_cast<size_t>(below(all.size()));
            const auto had = std::ranges::count(before_, all[i].name, &Step::pass);
            if (had == 0 || below(static_cast<uint64_t>(2 * had)) == 0) return i;
        }
        return static_cast<size_t>(below(all.size()));
    }
    static size_t index_of(std::string_view name) {
        const auto& all = all_passes();
        const auto it = std::ranges::find(all, name, &Pass::name);
        return it == all.end() ? 0 : static_cast<size_t>(it - all.begin());
    }

    std::vector<std::string> sites(const Pass& pass) {
        std::vector<std::string> out;
        const auto least = static_cast<size_t>(std::max(1, pass.sites.least)), most = static_cast<size_t>(std::min(pass.sites.most, 6));
        const size_t count = pass.sites.least == 0 && coin(2) ? 0 : std::min(most, least + static_cast<size_t>(coin(2) ? 0 : below(3)));
        if (pass.sites.kinds.size() == 1 && pass.sites.kinds[0] == SiteKind::Statement && most > 1 && !coin(3)) return run_of_statements();
        for (size_t i = 0; i < count; ++i) {
            const SiteKind kind = pass.sites.kinds[std::min(i, pass.sites.kinds.size() - 1)];
            const bool own_axis = kind == SiteKind::Axis && !out.empty() && try_block(p_, out[0]);
            out.push_back(own_axis ? axis_of_statement(out[0]) : any(names_.of(kind)));
        }
        return out;
    }

    /// Neighbours in program order, or all.
    std::vector<std::string> run_of_statements() {
        if (coin(2)) return names_.statements;
        const size_t n = names_.statements.size(), from = static_cast<size_t>(below(n)), to = std::min(n, from + 1 + static_cast<size_t>(below(4)));
        return {names_.statements.begin() + static_cast<std::ptrdiff_t>(from), names_.statements.begin() + static_cast<std::ptrdiff_t>(to)};
    }

    std::string axis_of_statement(const std::string& label) {
        std::vector<std::string> axes;
        for (const Axis& a : block_of(find_block(p_, label)).axes) axes.push_back(a.name);
        return any(axes.empty() ? names_.axes : axes);
    }

    int64_t number(const Domain& d) {
        std::vector<int64_t> small;
        for (const int64_t x : {1, 2, 3, 4, 5, 8, 32, 64, 128})
            if (x >= d.low && x <= d.high) small.push_back(x);
        const auto& from = !d.choices.empty() && coin(3) ? d.choices : small;
        return from.empty() ? d.low : from[static_cast<size_t>(below(from.size()))];
    }

    Argument argument(const Pass& pass, const ParamSpec& spec, const std::vector<std::string>& at) {
        switch (spec.domain.kind) {
            case Domain::Integer: return spec.name == "count" ? std::min<int64_t>(number(spec.domain), 8) : number(spec.domain);    // slices multiply
            case Domain::Word: return std::string(spec.domain.words[static_cast<size_t>(below(spec.domain.words.size()))]);
            case Domain::Text: return std::string(coin(2) ? "N >= 1" : "M < 100");
            case Domain::Name: return spec.name == "axis" && !at.empty() && try_block(p_, at[0]) ? axis_of_statement(at[0]) : name(spec);
            case Domain::Names: {
                std::vector<std::string> list{name(spec)};
                if (coin(2)) list.push_back(name(spec));
                return list;
            }
            case Domain::Sizes: break;
        }
        (void)pass;
        Sizes sizes;
        const std::string label = at.empty() || !try_block(p_, at[0]) ? any(names_.statements) : at[0];
        sizes.emplace_back(axis_of_statement(label), std::min<int64_t>(number(spec.domain), 8));
        if (coin(3)) {
            const std::string second = axis_of_statement(label);
            if (second != sizes[0].first) sizes.emplace_back(second, std::min<int64_t>(number(spec.domain), 8));
        }
        return sizes;
    }

    std::string name(const ParamSpec& spec) {
        if (spec.name == "into") return "fresh" + std::to_string(below(3));
        if (spec.name == "at") return any(names_.loops);
        if (spec.name == "via") return any({"common.block_reduce", "common.warp_reduce", "common.copy_async", "common.vector_copy", "common.block_scan"});
        if (spec.name == "axes") return any(names_.axes);
        if (spec.name == "target" || spec.name == "buffer") return any(names_.buffers);
        return any(coin(6) ? names_.loops : names_.statements);
    }

    const Program& p_;
    const std::vector<Step>& before_;
    Names names_;
    Random& random_;
};

}  // namespace

Step random_step(const Program& p, const std::vector<Step>& before, Random& random) { return Draw(p, before, random).step(); }

}  // namespace acu::property
