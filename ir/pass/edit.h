#pragma once
#include "ir/analysis/affine.h"
#include "ir/analysis/dependence.h"
#include "ir/analysis/facts.h"
#include "ir/pass/pass.h"

/// What passes share: finding the place that a name means, rebuilding around it, and asking what is known there.
namespace acu::ir::pass {

using namespace analysis;

// ---- places

/// A statement with all that encloses it, outermost first. `role`: of the innermost role around, empty: none.
struct Place {
    Stmt stmt;
    std::vector<Stmt> above;
    std::string role;
};
/// `s` or `consumer/s`. Refuses (`site.unknown`) where there is none; the driver has resolved sites already, this serves names in parameters.
Place find_block(const Program& p, const std::string& label);
Place find_loop(const Program& p, const std::string& name);
std::optional<Place> try_block(const Program& p, const std::string& label);
std::optional<Place> try_loop(const Program& p, const std::string& name);
inline const Block& block_of(const Place& x) { return std::get<Block>(x.stmt->node); }
inline const Loop& loop_of(const Place& x) { return std::get<Loop>(x.stmt->node); }
const Block* as_block(const Stmt& s);
const Loop* as_loop(const Stmt& s);
/// The loops among `above`, outermost first.
std::vector<Stmt> loops_of(const std::vector<Stmt>& above);
/// Every place, in order.
void for_each_place(const Program& p, const std::function<void(const Place&)>& f);

/// All blocks inside, in order.
std::vector<Stmt> block_stmts(const Body& body);
std::set<std::string> labels_in(const Stmt& s);
/// The buffer that a name means: in the program or in any loop. Refuses (`site.unknown`).
const Decl& find_buffer(const Program& p, const std::string& name);
/// The buffer alive at a place (the innermost one of that name), or null.
const Decl* buffer_at(const Program& p, const Place& at, const std::string& name);
/// Loop variables and derived names of the loops inside a body.
std::set<std::string> names_made_in(const Body& body);
/// Names that mean something to the block at a place: dimensions, its axes, the loops around it.
std::set<std::string> names_around(const Program& p, const Place& at);
/// The buffers that the loops among `above` own.
std::set<std::string> local_buffers(const std::vector<Stmt>& above);

// ---- new names

/// `stem`, or with the first digit that makes it new to the program (labels, loops, derived names, buffers, axes).
std::string unique_name(const Program& p, const std::string& stem);
/// `m.o`, or `m.i.o`, … : the first that no loop of the program has.
std::string tile_loop_name(const Program& p, const std::string& axis);

// ---- rebuilding; untouched parts keep their identity

/// Replaces each statement for which `f` answers something by that list; does not look inside what was replaced.
Body edit(const Body& body, const std::function<std::optional<Body>(const Stmt&)>& f);
Program edit(Program p, const std::function<std::optional<Body>(const Stmt&)>& f);
Program replace_stmt(Program p, const Stmt& old, Body now);
/// Changes the declarations of the buffers of this name that loops own.
Program edit_decls(Program p, const std::string& buffer, const std::function<void(Decl&)>& change);
/// Rebuilds the one sequence whose members hold exactly the blocks named, from before, the run from first to last, and after. Refuses (`CODE.adjacent`) where they are not
/// the statements of one sequence; `code` is the pass.
Program edit_run(Program p, const std::set<std::string>& labels, const std::string& code, const std::function<Body(Body before, Body run, Body after)>& f);
/// Splits a run into the statements that hold a block named, and the others, which must be able to go first (`CODE.between`).
struct Gathered {
    Body mine, others;
};
Gathered gather(const Body& run, const std::set<std::string>& labels, const std::string& code);

Program map_program(Program p, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g);
/// Replaces names in every index expression of a statement and all inside it (loop names and axes that shadow are the caller's concern).
Stmt substitute(const Stmt& s, const IndexMap& names);
/// Replaces whole loads (from the outside in) in the values of a statement and all inside it.
Stmt replace_loads(const Stmt& s, const std::function<Value(const Value&)>& f);
/// Temporaries go where all iterations of a parallel loop have their own: into the innermost loop among `above` (as `local`), else the program (as `Temp`).
Program declare(Program p, const std::vector<Stmt>& above, std::vector<Decl> decls, Scope local = Scope::Register);

// ---- parts of blocks

std::vector<Value> without(const std::vector<Value>& guards, const std::set<std::string>& names);
bool contains(const std::vector<Value>& guards, const Value& g);
/// v = (product of num) / (product of den), by its multiplications and divisions; casts between floats that widen are looked through only by `loads_product`.
struct Factors {
    std::vector<Value> num, den;
};
Factors factors(const Value& v);
Value product_of(const std::vector<Value>& factors);
/// op `=`, no load in the value.
bool is_fill(const Block& b);
/// op `=`, one plain load as value (a select with a constant beside it, and a default, allowed), outs indexed by plain axes.
bool is_copy(const Block& b);
/// The fill of an accumulation: the block that sets its state, or null.
Stmt fill_of(const Program& p, const Block& b);
/// A reduction's name takes its fill along: labels and those of the fills of accumulations among them, in program order.
/// The cells of a scatter are filled apart, over axes of their own.
std::vector<std::string> with_fills(const Program& p, const std::vector<std::string>& labels);

// ---- what is known

/// Dimensions and facts of the program, and the ranges of the loops among `above`.
Facts facts_at(const Program& p, const std::vector<Stmt>& above);
/// f divides e in every run that the facts allow.
bool divides(const Program& p, const Index& e, int64_t f);
std::optional<int64_t> constant_value(const Index& e);
/// The same where it is known with the dimensions that are fixed.
std::optional<int64_t> known_value(const Program& p, const Index& e);
LoopKind kind_named(const std::string& word);

}  // namespace acu::ir::pass
