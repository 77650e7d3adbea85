#pragma once
#include "synth/plan/draft.h"

// Sums of products of two matrices: what they are made of, and the tiles that a multiprocessor takes of them.
namespace acu::synth::plan {

/// y[b…, m, n] += a[b…, m, k] * b[b…, n, k]: the axes by who uses them. `batch`: in the order of the statement.
struct Product {
    std::string label, rows, columns, terms;
    std::vector<std::string> batch;
    ir::Value a, b;    ///< the load with the axis of the rows, and the other
    ir::DType type;    ///< of the factors, as matrix instructions name them; of that of the rows where `mixed`
    bool mixed = false;    ///< the factors have two types
};
/// Nothing where the statement is no such sum.
std::optional<Product> product_of(const ir::Program& p, const ir::Block& b);

/// The microkernels of a target that multiply such factors, the fastest first.
std::vector<std::string> matrix_microkernels(const Target& target, const Product& p);

/// Factors that the copy engine of the target could not bring, because of their order or the length of their lines, are read from copies, where the product is large enough for that.
void repack_factors(Draft& d);

/// A tile of the result and who computes it. `swapped`: the columns lie along the rows of the instruction.
struct ProductTile {
    int64_t rows, columns, depth;
    int64_t groups_of_rows, groups_of_columns;
    bool swapped = false;
    int64_t cluster = 1;    ///< blocks, one below the other, that share the boxes of the columns' factor
};
/// Sizes of a product where they are known, else what is likely.
struct ProductSizes {
    int64_t rows, columns, terms, batch, products, bytes;    ///< products: sums that share the tile; bytes: of a factor
};
/// What a multiprocessor needs for its tiles, in cycles: rounds of the matrix units or of memory, the exposed end of each tile.
double cycles_of(const ProductTile& t, const ProductSizes& s, const Target& target);

}  // namespace acu::synth::plan
