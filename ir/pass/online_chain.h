#pragma once
#include "ir/pass/terms.h"

namespace acu::ir::pass {

/// A sum that is linear in the exponentials: it can be multiplied by what corrects them.
struct OnlineUse {
    Place at;
    IndexMap rows;    ///< the axes of the maximum, as words over the use's own parallel axes
    Terms terms;      ///< when it has a term
    const Block& block() const { return block_of(at); }
};

/// m max= t[j];  e[j] = exp(t[j] - m);  l += e[j]*…   around one axis, and the law exp(t - n) = exp(t - m)*exp(m - n) that lets the reference m change: the sums may use any
/// reference and be corrected later.
///
/// What holds for rows that are not finite, where the reference is `safe`, (0 if m == -inf else m): a row with +inf or NaN is NaN in every sum that has a term, in both forms; a
/// term that is -inf counts 0; a row of -inf alone counts 0 but is NaN by definition if it has a term, which `fix` restores. For this the sums must leave out only terms that are -inf.
struct OnlineChain {
    Place max, exp;
    std::string axis;
    std::vector<OnlineUse> uses;
    std::vector<Place> escapes;     ///< others that read the exponentials
    std::vector<Stmt> group;        ///< all that goes into one loop, in order: also what computes t
    IndexMap rows;                  ///< the axes of the maximum, as words over the axes of `exp`
    bool corrects = false;          ///< the definition subtracts m itself, so a row of -inf is NaN

    const Block& top() const { return block_of(max); }
    const Block& exponential() const { return block_of(exp); }
    bool is_use(const Stmt& s) const;
    const OnlineUse& use_of(const Stmt& s) const;
    /// The value of the exponential with another reference.
    Value with_reference(const Value& m) const;
    /// What an old value is multiplied by when its reference `from` becomes `to`.
    Value factor(const Value& from, const Value& to) const;
    DType factor_type() const;
    std::set<std::string> labels() const;
    /// After the sums are complete: NaN where the definition subtracts -inf from -inf.
    std::vector<Stmt> fixes(const Program& p) const;
    Value top_at(const IndexMap& words) const;    ///< m at a row
};

/// Refuses with codes `CODE.*` where the statements are not such a chain.
OnlineChain online_chain(const Program& p, const std::string& top, const std::string& exp, const std::string& axis, const std::string& code);

}  // namespace acu::ir::pass
