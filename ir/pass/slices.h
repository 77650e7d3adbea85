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

/// The result of a reduction over one slice: buffers with the slice as their first dimension, one, or of a pair two.
struct Partial {
    std::vector<Decl> decls;
    std::vector<Block> inits;
    Block block;    ///< still over the whole axis
    /// The results of a slice.
    std::vector<Value> values_at(const Index& slice) const;
    /// Of what is no pair.
    Value load_at(const Index& slice) const { return values_at(slice)[0]; }
};
/// `types`: of the buffers.
Partial partial_of(const Program& p, const Block& b, const Slices& s, const std::vector<DType>& types);

/// The reduction of the slices' results `vals`, in their order, instead of what `b` reduces.
Block joined(Block b, const Slices& s, std::vector<Value> vals);

/// Declares the buffers of partial results where all slices reach them.
Program declare_slices(Program p, const std::vector<Stmt>& above, std::vector<Decl> decls, const Slices& s);

}  // namespace acu::ir::pass
