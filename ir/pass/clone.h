#pragma once
#include "ir/pass/edit.h"

/// Copies of statements, and the names by which they are found again.
namespace acu::ir::pass {

/// The statements that a name means once passes have copied it: itself, `s.pre`, `s.0`, `s.1`, `s.full`, … in program order. `consumer/s`: those of one role.
/// Refuses (`site.unknown`) where there is none.
std::vector<Place> family(const Program& p, const std::string& name);

/// A copy whose labels end in `suffix`, made unique; `loops`: its loops do, too, where both copies stand in one role. Notes which label came from which.
Stmt clone(const Program& p, const Stmt& s, const std::string& suffix, bool loops, std::vector<Lineage>& lineage);

/// A copy that has nothing in common with the statement: its labels, loops, derived names and own buffers end in `suffix`, made unique. Not of roles, signals
/// between them, and loops that own a ring. Notes which label and which loop came from which.
Stmt copy_apart(const Program& p, const Stmt& s, const std::string& suffix, std::vector<Lineage>& lineage);

/// The buffers that conditions, extents, derived names and windows inside read: what decides which statements run, which `read` does not count.
std::set<std::string> control_reads(const Body& body);

}  // namespace acu::ir::pass
