#include "synth/blame/blame.h"

#include <fmt/format.h>

#include <algorithm>

#include "synth/blame/bench.h"
#include "synth/blame/minimal.h"
#include "synth/record/plan.h"

namespace acu::synth::blame {

std::string_view name_of(Cause cause) {
    constexpr std::string_view names[] = {"none", "decision", "together", "lowering", "microkernel", "text"};
    return names[static_cast<size_t>(cause)];
}

namespace {

using Test = std::function<Trial(const Steps&)>;

class Search {
  public:
    explicit Search(const Request& r) : r_(r), bench_(r) {
        for (const record::Decision& d : r.decisions)
            if (record::is_replayed(d)) steps_.push_back(d);
    }

    Result<Blame> run() {
        if (const Status s = bench_.prepare(); !s) return s.why();
        for (size_t n = 0; n <= steps_.size(); ++n) {
            const Trial t = note(bench_.scheduled(prefix(n)), name_of_prefix(n));
            if (t.verdict == Trial::Refused) return *t.finding;
            if (t.verdict == Trial::Wrong) return decision(n, t);
        }
        if (!r_.target) return out_;
        for (Trial& t : bench_.lowered(steps_)) {
            const std::string step = t.of;
            t = note(t, fmt::format("lowering, `{}`", step));
            if (t.verdict == Trial::Refused) return *t.finding;
            if (t.verdict == Trial::Wrong) return lowering(step, t);
        }
        return r_.emulate ? emulation() : Result<Blame>(out_);
    }

  private:
    Steps prefix(size_t n) const { return {steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(n)}; }
    std::string name_of_prefix(size_t n) const { return n == 0 ? "as written" : record::name_of(steps_[n - 1]); }

    Trial note(Trial t, std::string of) {
        t.of = std::move(of);
        out_.trials.push_back(t);
        return t;
    }

    /// `items` less those that it does not take; of the rest, `needed` are those without which it is right (without the others it cannot be made).
    struct Witness {
        Steps least, needed;
    };
    Witness reduce(const Steps& items, const Steps& always, const Test& test) const {
        const auto with = [&](Steps part) {
            part.insert(part.end(), always.begin(), always.end());
            return part;
        };
        Witness w;
        w.least = minimal<record::Decision>(items, [&](const Steps& part) { return same(test(with(part))); });
        for (size_t i = 0; i < w.least.size(); ++i) {
            Steps rest = w.least;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
            if (test(with(rest)).verdict == Trial::Right) w.needed.push_back(w.least[i]);
        }
        w.least = with(w.least);
        return w;
    }
    /// Wrong in the way that is looked into: what another fault does says nothing.
    bool same(const Trial& t) const { return t.verdict == Trial::Wrong && t.detector() == out_.evidence.detector(); }
    void take(const Steps& steps) {
        for (const record::Decision& d : steps) out_.decisions.push_back(d.id);
    }

    /// The program is wrong after step n, and was right before.
    Blame decision(size_t n, const Trial& evidence) {
        out_.evidence = evidence;
        out_.cause = Cause::Decision;
        if (n == 0) return out_;
        const record::Decision& last = steps_[n - 1];
        take(reduce(prefix(n - 1), {last}, [&](const Steps& s) { return bench_.scheduled(s); }).needed);
        if (!out_.decisions.empty()) out_.cause = Cause::Together;
        out_.decisions.push_back(last.id);
        out_.part = last.step.pass;
        return out_;
    }

    Blame lowering(const std::string& step, const Trial& evidence) {
        out_.evidence = evidence;
        out_.cause = Cause::Lowering;
        out_.part = meets(evidence) && right(bench_.lowered_in_lockstep(steps_, step)) ? "place_barriers" : step;
        take(reduce(steps_, {}, [&](const Steps& s) { return bench_.lowered_at_all(s); }).needed);
        return out_;
    }

    /// Threads meet in a cell. That a barrier lacks may show only where the versions of a ring have become slots.
    static bool meets(const Trial& t) { return t.detector() == "run.D5"; }

    // ---- the program is right, the text may be wrong

    Result<Blame> emulation() {
        const Trial whole = note(bench_.emulated(steps_), fmt::format("text, emulated for {}", r_.target->name));
        if (whole.verdict == Trial::Refused) return *whole.finding;
        if (whole.verdict == Trial::Right) return out_;
        out_.evidence = whole;
        const size_t n = first_wrong();
        out_.evidence = n < steps_.size() ? note(bench_.emulated(prefix(n)), fmt::format("text, {}", name_of_prefix(n))) : whole;
        const Steps before = n ? prefix(n - 1) : Steps{}, last = n ? Steps{steps_[n - 1]} : Steps{};
        Witness w = reduce(before, last, [&](const Steps& s) { return bench_.emulated(s); });
        take(w.needed);
        take(last);
        part_of_text(w.least);
        return out_;
    }

    /// The least prefix whose text is wrong, by bisection.
    size_t first_wrong() {
        size_t right = 0, wrong = steps_.size();
        if (wrong == 0 || same(bench_.emulated({}))) return 0;
        while (right + 1 < wrong) {
            const size_t middle = (right + wrong) / 2;
            (same(bench_.emulated(prefix(middle))) ? wrong : right) = middle;
        }
        return wrong;
    }

    /// Limits are the lowering's to check. Else one part after the other is replaced by something plainer that does the same. Barriers are none of these parts: the interpreter
    /// has seen that no threads meet. But copies land at once there.
    void part_of_text(const Steps& least) {
        const std::string found = out_.evidence.detector();
        out_.cause = Cause::Lowering;
        if (found == "emu.shared-limit") return void(out_.part = "check_resources");
        if (found == "emu.missing-wait" && right(note(bench_.emulated(least, {}, in_lockstep), "text, in lockstep"))) return void(out_.part = "place_barriers");
        for (const std::string& id : microkernels_in(std::get<ir::Program>(bench_.apply(least)))) {
            const auto without = [&](const ir::Program& p) { return without_microkernel(p, id); };
            if (!right(note(bench_.emulated(least, without, {}), fmt::format("text, without `{}`", id)))) continue;
            out_.cause = Cause::Microkernel;
            return void(out_.part = id);
        }
        out_.cause = Cause::Text;
    }
    static bool right(const Trial& t) { return t.verdict == Trial::Right; }

    const Request& r_;
    Bench bench_;
    Steps steps_;
    Blame out_;
};

std::string listed(const std::vector<int>& ids) {
    std::string s;
    for (size_t i = 0; i < ids.size(); ++i) s += fmt::format("{}{}", i == 0 ? "" : i + 1 == ids.size() ? " and " : ", ", ids[i]);
    return s;
}

}  // namespace

Result<Blame> find_blame(const Request& request) { return Search(request).run(); }

std::string Blame::text() const {
    const std::string shown = decisions.empty() ? "" : fmt::format("; it shows with decision{} {}", decisions.size() == 1 ? "" : "s", listed(decisions));
    switch (cause) {
        case Cause::None: return "nothing is blamed: every stage gives what the definition says";
        case Cause::Decision: return decisions.empty() ? "the program is wrong before any decision" : fmt::format("decision {} is blamed: `{}` is right before it and wrong after it", decisions[0], part);
        case Cause::Together: return fmt::format("decisions {} are blamed together: without one of them the result is right", listed(decisions));
        case Cause::Lowering: return fmt::format("the step `{}` of the lowering is blamed{}", part, shown);
        case Cause::Microkernel: return fmt::format("the microkernel `{}` is blamed{}", part, shown);
        case Cause::Text: return fmt::format("the emitted text is blamed: the program that it was emitted from is right{}", shown);
    }
    return {};
}

}  // namespace acu::synth::blame
