#pragma once
#include "ir/pass/window.h"

namespace acu::ir::pass {

struct StageRequest {
    std::string at;
    Scope scope = Scope::Shared;
    bool box = false;
    std::vector<std::string> readers = {};    ///< none: all inside the loop
    std::string via = {};
};

/// Whom a copy of a buffer serves, and where it goes. The constructor refuses what `stage` does not do.
struct StageSource {
    StageSource(const Program& p, std::string name, const StageRequest& r);

    const Program& program;
    std::string buffer;
    const Decl* decl = nullptr;
    Place home;                         ///< the loop
    std::vector<Place> readers;
    Value load;                         ///< the one way in which they read it
    bool conditional = false;           ///< a reader reads it only where a condition in its value holds
    size_t first = 0;                   ///< the statement of the loop before which the copy goes
    std::set<std::string> inner;        ///< names that loops inside make

    std::vector<Stmt> loops_of_reader(const Place& r) const { return loops_inside(r.above, home.stmt); }
    std::vector<Stmt> above() const;    ///< of the copy

  private:
    void find_readers(const StageRequest& r);
    void find_load();
    void find_place(const StageRequest& r);
};

}  // namespace acu::ir::pass
