#pragma once
#include "ir/pass/mask.h"

namespace acu::ir::pass {

/// What a loop's iteration leaves behind when a condition on indices holds at every point of it: `edge >= 1`, where `edge` is affine in the loop's variable.
/// Knows no operator: a statement leaves nothing behind where its guard is false, where it writes only buffers of the iteration, where it takes the maximum with
/// -inf, where it stores what is there already, and where it rescales sums of exponentials by the change of a maximum that does not change.
class HiddenIteration {
  public:
    HiddenIteration(const Program& p, const Place& loop, Index edge);

    /// A statement that may leave something behind; null: none does.
    Stmt effect() const;

  private:
    struct Writer {
        Place at;
        enum Where { Before, Inside, After } where;
    };
    std::optional<bool> holds(const Value& condition, const Place& at) const;
    std::optional<bool> compared(const Value& condition, const Place& at) const;
    bool inactive(const Place& at) const;
    bool no_effect(const Place& at) const;
    bool is_negative_infinity(const Value& v, const Place& at) const;
    bool holds_negative_infinity(const std::string& buffer) const;
    bool unchanged(const Value& v, const Access& out, const Place& at) const;
    bool rescales_exponentials(const std::string& sum, const std::string& maximum) const;
    bool only_grows(const std::string& maximum, std::set<std::string>& over) const;

    Value resolved(const Value& v) const;
    std::string exponential_of(const Value& v, Value& exponent) const;
    std::string unit_factor(const Value& v) const;
    std::vector<Writer> writers(const std::string& buffer) const;

    const Program& p_;
    const Place& loop_;
    const Index edge_;
    const Facts facts_;
    std::set<std::string> owned_;    // buffers of an iteration
    std::vector<Writer> blocks_;
    mutable std::set<std::string> asked_;    // buffers whose values are being looked at
};

}  // namespace acu::ir::pass
