#pragma once
#include "ir/microkernel.h"
#include "ir/pass/edit.h"

/// What `bind_copy`, `bind_reduce` and `bind_scan` ask of a microkernel and a statement; codes `bind.*`.
namespace acu::ir::pass {

/// The microkernel of that id (`bind.unknown`), which must be of that kind (`bind.kind`), exist on the target (`bind.target`) and have a valid stamp (`bind.stamp`);
/// where no target is given, the last two are asked when there is one.
const Microkernel& microkernel_for(const Context& context, const std::string& id, MicrokernelKind kind);

void check_type(const Microkernel& m, const Block& b, const Decl& d, Loc loc);
void check_monoid(const Microkernel& m, const Block& b, Loc loc);
/// Does the buffer lie where the operand may?
bool may_lie(const MicrokernelOperand& operand, const Decl& d);
void check_scope(const Microkernel& m, const MicrokernelOperand& operand, const Block& b, const Decl& d, Loc loc);
/// Who calls the microkernel together must be there: whole warps, no more than it allows, a cluster, not one role of several.
void check_group(const Microkernel& m, const Place& at, const Context& context);

/// A copy: of a type and between scopes that the microkernel takes; neighbours that one access moves must be aligned, and be there or not be there together.
void check_copy(const Program& p, const Microkernel& m, const Place& at);

/// Sets `via` of every statement that the names mean (with its copies), once `check` has passed for each.
Rewrite bind_statements(const Program& p, const std::vector<std::string>& names, const Microkernel& m, const std::function<void(const Place&)>& check);

}  // namespace acu::ir::pass
