#pragma once
#include "ir/pass/edit.h"

/// Buffers of a loop's iterations become rings of a loop around it.
namespace acu::ir::pass {

/// The derived names of a loop in words of its variable and of what encloses it.
IndexMap let_values(const Loop& l);

/// `versions` by buffer of the loop; `keys`: the loops whose iterations name a version, outermost first; `closed`: derived names of those loops, which are not
/// known where the ring lives. Codes `CODE.index`, `CODE.shadow`.
class Rings {
  public:
    Rings(const Program& p, const Stmt& home, const Stmt& loop, std::map<std::string, int64_t> versions, std::vector<std::string> keys, const IndexMap& closed, const std::string& code);

    /// The declarations at home.
    const std::vector<Decl>& decls() const { return decls_; }
    /// The name there: that of the buffer, unless something else around has that name.
    const std::string& name_at_home(const std::string& buffer) const { return names_.at(buffer); }
    bool moves(const std::string& buffer) const { return names_.contains(buffer); }
    /// A statement of the loop with each access naming the version of its own iteration.
    Stmt versioned(const Stmt& s) const;
    std::vector<Index> key() const;

  private:
    Value versioned(const Value& v) const;
    std::map<std::string, std::string> names_;
    std::vector<std::string> keys_;
    std::vector<Decl> decls_;
};

/// `loop`, which stands in `home`, becomes `now`; `home` owns `decls`, too.
Program rehome(Program p, const Stmt& home, const std::vector<Decl>& decls, const Stmt& loop, const Body& now);

}  // namespace acu::ir::pass
