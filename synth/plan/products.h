#pragma once
#include "ir/microkernel.h"
#include "synth/plan/draft.h"

// Sums of products of two matrices: what they are made of, and the tiles that a multiprocessor takes of them.
namespace acu::synth::plan {

/// What is multiplied: a load, or what is computed from one.
struct ProductFactor {
    ir::Value value;    ///< the whole of it
    ir::Value load;     ///< what it reads of the widest tensor
    ir::DType type;     ///< whose values it has
    bool plain;         ///< the load by axes, perhaps widened or rounded to tf32
};

/// y[b…, m, n] += a[b…, m, k] * b[b…, n, k], perhaps times what is constant over runs of k: the axes by who uses them. `batch`: in the order of the statement.
struct Product {
    std::string label, rows, columns, terms;
    std::vector<std::string> batch;
    ProductFactor a, b;    ///< the factor with the axis of the rows, and the other
    std::string segments;  ///< the offsets that divide the axis of the rows; empty: none
    int64_t run = 0;       ///< terms over which the other factors are constant; 0: there are none
    bool whole_numbers = false;    ///< the sum is one of integers
};
/// Nothing where the statement is no such sum.
std::optional<Product> product_of(const ir::Program& p, const ir::Block& b);

/// A microkernel that multiplies such factors, once they are brought to one type, which holds the values of both; none: each as it is.
struct Instruction {
    const ir::Microkernel* microkernel;
    std::optional<ir::DType> type;
};
/// Those of a target, the fastest first.
std::vector<Instruction> instructions_for(const Target& target, const Product& p);
/// Must the factor be computed or converted before the instruction reads it?
bool needs_making(const ProductFactor& f, const Instruction& i);

/// Factors that the copy engine of the target could not bring, because of their order, the length of their lines, or because they are computed, are read from copies, where the product is large enough for that.
void prepare_factors(Draft& d);

/// A tile of the result and who computes it. `swapped`: the columns lie along the rows of the instruction.
struct ProductTile {
    int64_t rows, columns, depth;
    int64_t groups_of_rows, groups_of_columns;
    bool swapped = false;
    int64_t cluster = 1;    ///< blocks, one below the other, that share the boxes of the columns' factor
    int64_t turns = 1;      ///< roles that take tiles in turn: one ends its tile while another multiplies
};
/// Sizes of a product where they are known, else what is likely.
struct ProductSizes {
    int64_t rows, columns, terms, batch, products, bytes;    ///< products: sums that share the tile; bytes: of a factor
    int64_t operations = 0;                                  ///< on each element of the result before it is stored
};
/// What a multiprocessor needs for its tiles, in cycles: rounds of the matrix units or of memory, the exposed end of each tile.
double cycles_of(const ProductTile& t, const ProductSizes& s, const Target& target);

}  // namespace acu::synth::plan
