#include "synth/blame/bench.h"

#include <fmt/format.h>

#include <cmath>

#include "synth/record/plan.h"

namespace acu::synth::blame {

using namespace ir;

// ---- comparing

/// The rounding of one result and of the sums before it, as a share of what the tensor holds.
static double share_of(DType t) {
    switch (t) {
        case DType::F64: return 1e-9;
        case DType::F32: return 1e-4;
        case DType::F16: return 4e-3;
        case DType::BF16: return 3e-2;
        default: return is_float(t) ? 0.25 : 0;
    }
}

static double mean_of(const Array& a) {
    double squares = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < a.count(); ++i)
        if (const double x = a.get(i); std::isfinite(x)) squares += x * x, ++n;
    return n ? std::sqrt(squares / static_cast<double>(n)) : 0;
}

static std::optional<Difference> first_difference(const std::string& name, const Array& want, const Array& got, bool exact) {
    if (want.sizes != got.sizes) return Difference{name, 0, static_cast<double>(want.count()), static_cast<double>(got.count())};
    const double share = exact ? 0 : share_of(got.type), mean = share == 0 ? 0 : mean_of(want);
    for (int64_t i = 0; i < want.count(); ++i) {
        const double x = want.get(i), y = got.get(i);
        if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= share * (mean + std::abs(x))) continue;
        return Difference{name, i, x, y};
    }
    return {};
}

std::optional<Difference> first_difference(const Program& p, const Arrays& want, const Arrays& got, bool exact) {
    for (const Decl& d : p.decls) {
        if (d.scope != Scope::Out) continue;
        const auto a = want.find(d.name), b = got.find(d.name);
        if (a == want.end() || b == got.end()) continue;
        if (auto found = first_difference(d.name, a->second, b->second, exact)) return found;
    }
    return {};
}

std::string Trial::detector() const { return finding ? finding->code : differs ? "values" : ""; }

// ---- experiments

static Trial refused(const Diagnostic& why) { return {Trial::Refused, {}, {}, why}; }
static Trial wrong(const Diagnostic& why) { return {Trial::Wrong, {}, {}, why}; }

Status Bench::prepare() {
    reference_ = r_.inputs;
    return interpret(lower::in_float64(r_.start), r_.arguments, reference_);
}

Trial Bench::interpreted(const Program& p, const Arrays& want, bool in_float64, const InterpretOptions& options) const {
    Arrays got = r_.inputs;
    if (const Status s = interpret(in_float64 ? lower::in_float64(p) : p, r_.arguments, got, options); !s) return wrong(s.why());
    if (auto d = first_difference(r_.start, want, got, !in_float64)) return {Trial::Wrong, {}, d, {}};
    return {};
}

const pass::Pass* Bench::pass_of(const record::Decision& d) const {
    const pass::Pass* own = r_.pass ? r_.pass(d.step.pass) : nullptr;
    return own ? own : pass::pass_named(d.step.pass);
}

std::variant<Program, Trial> Bench::apply(const Steps& steps) const {
    Program p = r_.start;
    for (const record::Decision& d : steps) {
        auto done = pass::apply_step(p, d.id, d.step, r_.context, nullptr, pass_of(d));
        if (const auto* f = std::get_if<pass::Failure>(&done)) {
            const bool ours = f->at == pass::Stage::Apply || f->at == pass::Stage::Verify;
            return ours ? wrong(f->why) : refused(f->why);
        }
        p = std::move(std::get<pass::Applied>(done).program);
    }
    return p;
}

Trial Bench::scheduled(const Steps& steps) const {
    auto applied = apply(steps);
    if (auto* t = std::get_if<Trial>(&applied)) return *t;
    const Program& p = std::get<Program>(applied);
    for (const uint64_t seed : {0, 7})
        if (Trial t = interpreted(p, reference_, true, {.seed = seed}); t.verdict != Trial::Right) return t;
    return steps.empty() ? Trial{} : exact(steps, p);
}

/// An exact pass changes not one bit of what the program before it gives in the declared types.
Trial Bench::exact(const Steps& steps, const Program& after) const {
    const pass::Pass* last = pass_of(steps.back());
    if (!last || last->rounding != pass::Rounding::Exact) return {};
    auto applied = apply({steps.begin(), steps.end() - 1});
    const auto* before = std::get_if<Program>(&applied);
    Arrays want = r_.inputs;
    if (!before || !interpret(*before, r_.arguments, want)) return {};
    return interpreted(after, want, false, {});
}

Program Bench::fixed(Program p) const {
    for (Dim& d : p.dims)
        if (const auto it = r_.arguments.dims.find(d.name); it != r_.arguments.dims.end()) d.value = it->second;
    return p;
}

/// Before barriers stand, threads have no order.
static InterpretOptions once(const lower::LoweringStep& step) { return {.seed = step.ordered ? uint64_t{3} : 0, .races = step.ordered}; }

std::vector<Trial> Bench::lowered(const Steps& steps) const {
    auto applied = apply(steps);
    if (auto* t = std::get_if<Trial>(&applied)) return {*t};
    Program p = fixed(std::get<Program>(std::move(applied)));
    std::vector<Trial> out;
    for (const lower::LoweringStep& step : lowering()) {
        auto next = step.run(p, *r_.target);
        if (!next) out.push_back(refused(next.why()));
        else {
            p = std::move(*next);
            const auto broken = verify(p);
            out.push_back(broken.empty() ? interpreted(p, reference_, true, once(step)) : wrong({"verify." + broken[0].rule, broken[0].loc, broken[0].what}));
        }
        out.back().of = std::string(step.name);
        if (out.back().verdict != Trial::Right) break;
    }
    return out;
}

Trial Bench::lowered_in_lockstep(const Steps& steps, const std::string& step) const {
    auto applied = apply(steps);
    if (auto* t = std::get_if<Trial>(&applied)) return *t;
    auto low = lower(std::get<Program>(applied), step);
    if (auto* t = std::get_if<Trial>(&low)) return *t;
    return interpreted(in_lockstep(std::get<Program>(low)), reference_, true, {.seed = 3});
}

std::variant<Program, Trial> Bench::lower(const Program& scheduled, const std::string& last) const {
    Program p = fixed(scheduled);
    for (const lower::LoweringStep& step : lowering()) {
        auto next = step.run(p, *r_.target);
        if (!next) return refused(next.why());
        p = std::move(*next);
        if (step.name == last) break;
    }
    return p;
}

Trial Bench::emulated(const Steps& steps) {
    std::vector<int> ids;
    for (const record::Decision& d : steps) ids.push_back(d.id);
    if (const auto it = known_.find(ids); it != known_.end()) return it->second;
    return known_[ids] = emulated(steps, {}, {});
}

Trial Bench::emulated(const Steps& steps, const Change& schedule, const Change& kernels) {
    auto applied = apply(steps);
    if (auto* t = std::get_if<Trial>(&applied)) return refused(*t->finding);    // a wrong program says nothing of its text
    Program p = std::get<Program>(std::move(applied));
    auto low = lower(schedule ? schedule(p) : p);
    if (auto* t = std::get_if<Trial>(&low)) return *t;
    const Program k = kernels ? kernels(std::get<Program>(low)) : std::get<Program>(low);
    Arrays want = r_.inputs;
    if (const Status s = interpret(k, r_.arguments, want); !s) return refused(s.why());
    if (emulations_++ >= r_.most_emulations) return refused({"blame.budget", {}, fmt::format("{} emulations were made", r_.most_emulations)});
    const auto got = r_.emulate(k);
    if (!got) return got.why().exit == Exit::Wrong ? wrong(got.why()) : refused(got.why());
    if (auto d = first_difference(r_.start, want, *got, false)) return {Trial::Wrong, {}, d, {}};
    return {};
}

}  // namespace acu::synth::blame
