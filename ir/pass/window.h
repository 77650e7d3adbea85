#pragma once
#include "ir/pass/edit.h"

/// Windows: which part of a buffer one iteration of a loop touches.
namespace acu::ir::pass {

/// The loops among `above` that stand inside `home`, outermost first.
std::vector<Stmt> loops_inside(const std::vector<Stmt>& above, const Stmt& home);
/// What encloses both, outermost first.
std::vector<Stmt> common_path(const Place& a, const Place& b);
/// Does whatever encloses both, and is a condition, hold both in one branch (and roles in one role)?
bool same_branch(const Place& a, const Place& b);

/// The values of `e` over the axes of `b` and the iterations of `loops`, if they are exactly a range: each name counts with the size of what it counts.
std::optional<Window> dense(const Index& e, const Block& b, const std::vector<Stmt>& loops);
/// A range that holds the values of `e`, where it is affine.
std::optional<Window> span(const Index& e, const Block& b, const std::vector<Stmt>& loops);

/// What is known at a point of a block: its ranges and guards, and all around.
Facts facts_in(const Program& p, const std::vector<Stmt>& above, const Block& b);
/// A comparison of index expressions that the facts prove.
bool proven(const Facts& f, const Value& condition);

/// The box of `b` is the whole of the buffer that its first out writes, with plain axes as subscripts.
bool fills_whole(const Block& b, const Decl& d);
/// A subscript, a range, an extent or a condition reads the buffer: it is more than data then.
bool steers(const Program& p, const std::string& buffer);

Scope scope_named(const std::string& word);
/// The parallel loop among `loops` whose iterations cannot share a buffer of this scope, or null.
const Loop* divides_scope(const std::vector<Stmt>& loops, Scope scope);

}  // namespace acu::ir::pass
