#pragma once
#include "ir/pass/terms.h"

namespace acu::ir::pass {

struct SliceRequest {
    int64_t count, align;
    LoopKind kind;
};

/// A reduced axis in `count` slices of `length`, which start on multiples of `align`: slice v holds base + v*length … as far as the axis goes.
struct Slices {
    std::string axis, var, join;    ///< the axis, the loop over slices, and the axis of the join
    Index base, size, length;
    int64_t count;
    LoopKind kind;
    bool even;    ///< the slices are all of the length

    /// The statement over the slice of the iteration.
    Block cut(Block b) const;
};
/// Refuses with codes `CODE.*` where slices of this kind cannot run.
Slices slices_of(const Program& p, const Place& at, const Axis& a, const SliceRequest& r, const std::string& code);

/// The result of a reduction over one slice: a buffer with the slice as its first dimension.
struct Partial {
    Decl decl;
    Block init, block;    ///< `block` still over the whole axis
    DType type;
    Value load_at(const Index& slice) const;
};
Partial partial_of(const Program& p, const Block& b, const Slices& s, DType type);

/// Declares the buffers of partial results where all slices reach them.
Program declare_slices(Program p, const std::vector<Stmt>& above, std::vector<Decl> decls, const Slices& s);

}  // namespace acu::ir::pass
