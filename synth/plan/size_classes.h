#pragma once
#include "synth/plan/groups.h"
#include "target/target.h"

// For which sizes, of an operator whose sizes are open, plans of their own pay.
namespace acu::synth::plan {

/// Dimensions and the sizes that they do not exceed, or of which they are multiples.
struct SizeClass {
    ir::Env most = {}, multiple = {};
    bool empty() const { return most.empty() && multiple.empty(); }
};

/// `M <= 64 && K % 8 == 0`
std::string words_of(const SizeClass& c);
/// Are these sizes, of all dimensions that the class speaks of, as it says?
bool admits(const SizeClass& c, const ir::Env& sizes);
/// The program with the bounds among its facts.
ir::Program assuming(ir::Program p, const SizeClass& c);

/// Narrow before wide; the last says nothing. `is_product`: which statements multiply matrices with instructions of the target; where there are some, few rows, and lines of whole vectors, as the copy
/// engine wants them. Lengths of rows by what a warp, a block, its registers and its shared memory hold; numbers of rows by what fills the device; sides of what is
/// read across the direction in which it is written by whether a square tile would be empty for the most part.
std::vector<SizeClass> size_classes(const ir::Program& loops, const Target& target, const std::function<bool(const ir::Block&)>& is_product);

}  // namespace acu::synth::plan
