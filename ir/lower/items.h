#pragma once
#include "ir/program.h"
#include "support/result.h"

/// What roles exchange, in order. A ring's versions are named by the loops around the statement that fills them; hardware counts them.
namespace acu::ir::lower {

/// Numbers of the versions of rings between roles, and of turns. Iteration (k0, k1, …) of loops of E0, E1, … iterations is number (k0*E1 + k1)*…: E1, … must be known
/// where the ring lives. Code `lower.roles`.
class Items {
  public:
    static Result<Items> of(const Loop& kernel);

    bool has(const std::string& ring) const { return extents_.contains(ring); }
    /// The number of a version, from 0.
    Index number(const std::string& ring, const std::vector<Index>& key) const;
    /// `take turn`: the how manieth this is.
    Body numbered_turns(const Body& body) const;

  private:
    struct Level {
        std::string var;
        Index extent;    ///< in words of what is known around the roles
    };
    struct Walk {
        std::vector<Level> loops;
        IndexMap lets;
        bool conditional = false;
    };

    void around(const Body& body, const std::vector<Decl>& home);
    void inside(const Body& body, const Walk& walk, const std::string& role);
    void acquire(const Sync& y, const Walk& walk, Loc loc);
    void wait(const Sync& y, const Walk& walk, const std::string& role, Loc loc);
    void known(const Walk& walk, Loc loc);
    void check(bool holds, Loc loc, const std::string& message, const std::string& help = {});
    Stmt numbered(const Stmt& s, const Walk& walk) const;
    static Walk entered(Walk walk, const Loop& l);
    static Index horner(const std::vector<Index>& key, const std::vector<Index>& extents);
    static std::vector<Index> extents_of(const Walk& walk);

    std::map<std::string, std::vector<Index>> extents_;    ///< of the key loops, by ring
    std::set<std::string> takes_;                          ///< roles that take turns
    std::vector<Decl> home_;                               ///< buffers of the loop around the roles
    std::optional<Diagnostic> why_;
};

}  // namespace acu::ir::lower
