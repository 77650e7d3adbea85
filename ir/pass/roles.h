#pragma once
#include "ir/pass/edit.h"

/// Roles: where one stands, and how it becomes several.
namespace acu::ir::pass {

struct RolePlace {
    Stmt stmt;                  ///< the roles
    std::vector<Stmt> above;
    size_t index = 0;
    const Role& role() const { return std::get<Roles>(stmt->node).roles[index]; }
};
/// Refuses (`site.unknown`) where there is none.
RolePlace find_role(const Program& p, const std::string& name);
/// `producer`, or with a digit that makes it new.
std::string unique_role(const Program& p, const std::string& stem);
/// The rings of other roles that are waited for and released inside.
std::set<std::string> rings_waited(const Body& body);

/// Copies of one role, each with buffers of its own. Made for roles that wait for what a producer fills; codes `CODE.*`.
class RoleCopies {
  public:
    /// Refuses a role that fills rings, takes turns, writes workspace, reads outputs that it writes, or shares its buffers with statements outside.
    RoleCopies(const Program& p, const RolePlace& at, int64_t count, std::string code);

    /// Puts `make(w)` (a body whose labels and buffers are still those of the role) in place of the role, for w in 0..count-1, `before` in front of all roles;
    /// `shape(w, decl)`: a buffer of the role, declared around the roles, as copy w has it.
    Rewrite build(const std::function<Body(int64_t)>& make, const std::function<Decl(int64_t, const Decl&)>& shape, const Body& before = {}, bool all_read = false) const;
    /// The buffers declared around the roles that are the role's own.
    const std::set<std::string>& own() const { return own_; }

  private:
    void check(bool holds, const char* what, const std::string& message, const std::string& help = {}) const { need(holds, (code_ + what).c_str(), message, help, at_.stmt->loc); }
    std::map<std::string, std::string> renames(int64_t w) const;
    Stmt owner(const Stmt& s, const std::function<Decl(int64_t, const Decl&)>& shape, bool all_read) const;

    const Program& p_;
    const RolePlace& at_;
    int64_t count_;
    std::string code_;
    std::set<std::string> own_, rings_;
};

}  // namespace acu::ir::pass
