#pragma once
#include <optional>
#include <variant>

#include "ir/layout.h"
#include "ir/value.h"
#include "support/result.h"

namespace acu::ir {

/// `In`, `Out`: the operator's tensors; `Param`: a scalar passed by value; `Temp`: workspace. The rest belong to a loop iteration: `Register`: spread over the
/// threads of a block; `Shared`: its shared memory; `Cluster`: the shared memories of a cluster, one part a block.
enum class Scope { In, Out, Param, Temp, Register, Shared, Cluster };
std::string_view name_of(Scope scope);

/// One dimension of a buffer: logical coordinates `origin .. origin + size - 1`.
struct Window {
    Index origin;
    Index size;
};

/// A bounded queue of `versions` windows, each named by the values of `keys` in the iteration that fills it. `readers`: roles that release a version.
struct Ring {
    int64_t versions = 0;    ///< 0: not a ring
    std::vector<std::string> keys = {};
    int64_t readers = 1;
};

/// A buffer: a window in logical coordinates. `strided`: the launcher passes its strides; all others are contiguous, the last dimension fastest.
/// `swizzle`: bytes of the pattern that permutes 16-byte chunks of the rows of a shared buffer (0, 32, 64, 128); `swizzle_rows` rows have the same permutation (a power of 2).
struct Decl {
    std::string name;
    Scope scope;
    DType type;
    std::vector<Window> dims;
    bool strided = false;
    Loc loc = {};
    Ring ring = {};
    int64_t swizzle = 0, swizzle_rows = 1;
    bool panels = false;    ///< rows longer than the pattern are cut into panels of that width, one after another
    std::optional<Layout> layout = {};    ///< how a register tile is spread: hardware inputs to coordinates relative to the origin
};

/// A cell that a block writes, of the named version where the buffer is a ring. A top-k block leaves out the last subscript: it writes all k of them.
struct Access {
    std::string tensor;
    std::vector<Index> subscripts;
    std::vector<Index> version = {};
};

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;
using Body = std::vector<Stmt>;

/// For every point of the box of `axes` where all `guards` hold: evaluate `vals`, then `outs monoid= vals`. `Monoid::None` is `=`, which writes a
/// cell at most once. With a scan axis `outs[0]` is the running value, and `outs[1]` receives it at every point: after
/// combining, or before if `exclusive`. ArgMax and ArgMin have outs (value, position); TopK likewise, with `k` cells each.
struct Block {
    std::string label;
    std::vector<Axis> axes;
    std::vector<Access> outs;
    Monoid monoid = Monoid::None;
    std::vector<Value> vals;
    std::vector<Value> guards = {};
    bool exclusive = false;
    int64_t k = 0;
    std::string via = {};    ///< the microkernel that does it
    int64_t pending = 0;     ///< so many groups of products may be on their way behind it, where the hardware runs them by itself; `until_needed`: as long as nothing needs its sums
};

inline constexpr int64_t until_needed = 8;
/// A product that the hardware computes beside the threads, which wait for its sums.
bool runs_by_itself(const Block& b);

/// `Thread`: made by lowering, one iteration a thread. `Vector`: serial, a few iterations under way together; `Unroll`: serial, repeated in the text.
enum class LoopKind { Serial, Grid, Cluster, Warpgroup, Thread, Vector, Unroll };
std::string_view name_of(LoopKind kind);
inline bool is_parallel(LoopKind k) { return k == LoopKind::Grid || k == LoopKind::Cluster || k == LoopKind::Warpgroup || k == LoopKind::Thread; }

struct Let {
    std::string name;
    Index value;
};

/// Threads of each block, where those of a kernel are a cluster of several.
inline constexpr int64_t block_of_cluster = 512;

/// `var` counts from 0; `lets` are names derived from it; `allocs` are fresh, unwritten buffers in each iteration. `order` is that of the axis it came from.
struct Loop {
    std::string var;
    Index extent;
    LoopKind kind = LoopKind::Serial;
    AxisKind order = AxisKind::Par;
    std::vector<Let> lets = {};
    std::vector<Decl> allocs = {};
    Body body;
    int64_t threads = 0;    ///< of a block, on the outermost grid loop of a kernel; 0: lowering decides
    bool early = false;     ///< on the outermost grid loop of a kernel: it may start while the kernel before ends
};

struct If {
    Value condition;
    Body body;
    Body otherwise = {};
};

/// A part of the threads of a block. Roles run at the same time and meet only in rings and turns.
struct Role {
    std::string name;
    int64_t threads = 0;      ///< 0: lowering decides
    int64_t registers = 0;    ///< a thread, who then stand in whole warpgroups; 0: as the compiler likes
    Body body = {};
};
struct Roles {
    std::vector<Role> roles;
};

/// `Acquire`: wait until the slot of this version is released by all readers; `Commit`: publish it; `Wait`: until it is committed; `Release`: give it back.
/// `Take`, `Pass`: a turn, which one role holds at a time. Made by lowering: `Barrier`, of the threads of the block or role; `CopyCommit` closes a group of
/// asynchronous copies of each thread, `CopyWait{n}` waits until at most n of them are on their way; `Fence`: what threads wrote to shared memory is there for the copy engine;
/// `StoreWait`: the copy engine has read what it stores.
enum class SyncOp { Acquire, Commit, Wait, Release, Take, Pass, Barrier, CopyCommit, CopyWait, Fence, StoreWait };
std::string_view name_of(SyncOp op);
struct Sync {
    SyncOp op;
    std::string name = {};             ///< of the ring or turn
    std::vector<Index> key = {};
};

struct StmtNode {
    Loc loc;
    std::variant<Block, Loop, If, Roles, Sync> node;
    std::vector<int> decisions = {};    ///< ids of the plan's steps that made or changed it, in order
};

template <class T>
Stmt make_stmt(Loc loc, T node) {
    return std::make_shared<const StmtNode>(StmtNode{loc, std::move(node)});
}
/// The same place and decisions with another node.
template <class T>
Stmt with_node(const Stmt& s, T node) {
    return std::make_shared<const StmtNode>(StmtNode{s->loc, std::move(node), s->decisions});
}

/// Exhaustive dispatch: a node kind without a handler does not compile.
template <class... F>
struct Match : F... {
    using F::operator()...;
};
template <class... F>
Match(F...) -> Match<F...>;
template <class... F>
decltype(auto) match(const Stmt& s, F&&... f) {
    return std::visit(Match{std::forward<F>(f)...}, s->node);
}

/// A dimension; `value` where the size is fixed at compile time; `pack`: stands for any number of leading dimensions, flattened.
struct Dim {
    std::string name;
    std::optional<int64_t> value = {};
    bool pack = false;
};

/// `Tensor`: the definition, blocks only, values may hold reductions. `Loop`: blocks, loops and conditions, no reductions inside values.
enum class Level { Tensor, Loop };

/// Each top-level statement of a loop program is one kernel; a `Temp` that lives across two is workspace.
/// `facts` are conditions on dimensions that the launcher checks.
struct Program {
    Level level = Level::Tensor;
    std::string name;
    std::vector<Dim> dims;
    std::vector<Value> facts;
    std::vector<Decl> decls;
    Body body;

    const Decl* find(std::string_view name) const;
};

/// Sizes of the dimensions that are fixed.
Env known_dims(const Program& p);
/// Rebuilds `s` from `f(body)`; answers `s` itself where nothing changed.
Stmt map_bodies(const Stmt& s, const std::function<Body(const Body&)>& f);
/// The bodies inside a statement, in order.
std::vector<const Body*> bodies_of(const Stmt& s);
/// Is there a statement of this kind in the body, or inside one of it?
bool any_inside(const Body& body, const std::function<bool(const Stmt&)>& f);
/// The same of blocks, and of signals: of a ring or turn of that name, or of any.
bool any_block(const Body& body, const std::function<bool(const Block&)>& f);
bool has_sync(const Body& body, SyncOp op, const std::string& name = {});
/// All blocks, in order.
void for_each_block(const Body& body, const std::function<void(const Block&, Loc)>& f);
/// The tensors that a block reads (in values, guards and subscripts).
std::set<std::string> tensors_read(const Block& b);
/// Rewrites every value and index expression of a block.
Block map_block(Block b, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g);
Decl map_decl(Decl d, const std::function<Index(const Index&)>& g);
/// Rewrites every value and index expression of a statement and all inside it; answers `s` itself where nothing changed.
Stmt map_expressions(const Stmt& s, const std::function<Value(const Value&)>& f, const std::function<Index(const Index&)>& g);
/// Buffers under other names: where they are declared inside, read and written.
Stmt rename_buffers(const Stmt& s, const std::map<std::string, std::string>& names);

/// The parallel axes of a block, or the others.
std::vector<Axis> axes_of_kind(const Block& b, bool parallel);
bool is_scatter(const Block& b);    ///< an out subscript holds a load

/// The program as text; `with_locations` adds `// @file:line:column d3` (source and decisions) to statements.
std::string print(const Program& p, bool with_locations = false);
std::string print(const Stmt& s, int depth = 0);

/// Reads what `print` writes. Codes `ir.syntax`, `ir.name`.
Result<Program> parse_program(std::string_view text);

/// A broken rule of the table in verify.cpp.
struct Violation {
    std::string rule;
    std::string what;
    Loc loc;
};
std::vector<Violation> verify(const Program& p);

}  // namespace acu::ir
