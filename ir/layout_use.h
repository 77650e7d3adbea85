#pragma once
#include "ir/layout.h"

namespace acu::ir {

/// Lanes that one phase of a shared-memory access serves together: consecutive ones (8, 16, 32 for 16, 8, up to 4 bytes a lane), or those of
/// ds_read_b128 on CDNA ({0-3, 20-23}, …: cosets of span{1, 2, 20}). microkernel-facts 1.3, 2.3, 4.6: a model.
enum class Phases { Consecutive, CdnaRead128 };
/// Most words that one of the 32 banks of 4 bytes must serve in one phase; `addresses` in bytes, one a lane, multiples of `bytes` (1 … 16).
int conflicts(const std::vector<int64_t>& addresses, int bytes, Phases phases = Phases::Consecutive);
/// The same of `address` (to one coordinate, in units of `unit` bytes) on 32 or 64 lanes that move `bytes` each; linear lanes by rank:
/// 2^(rank of the phase's lane bits in the address - rank of them in address bits max(2, log2 bytes) … 6).
int conflicts(const Layout& address, int unit, int bytes, int lanes, Phases phases = Phases::Consecutive);

/// 16-byte chunk in which chunk `chunk` of row `row` stands, rows of `width` = 32, 64 or 128 bytes (the TMA modes; 2.3): chunk ^ (row >> s & mask).
int64_t swizzle_chunk(int width, int64_t row, int64_t chunk);
/// offset (elements) -> (row, column): panels of rows of `swizzle` bytes (32, 64, 128), one after another; 0: plain rows. Needs rows % 8 = 0 and
/// columns a multiple of the width.
Result<Layout> shared_tile(int64_t rows, int64_t columns, int element_bytes, int swizzle);
int widest_swizzle(int64_t rows, int64_t row_bytes);    ///< that `shared_tile` accepts; 0 if none

/// One exchange: lane l gives register `from[l]`, takes from lane `lane[l]` into register `to[l]`; -1: takes nothing. `local`: nobody moves.
struct ShuffleRound {
    std::vector<int> from, lane, to;
    bool local = false;
};
struct Relayout {
    enum Kind { Identity, Rename, Shuffle, Shared } kind;
    std::vector<int64_t> registers = {};       ///< Identity, Rename: register of a for every register of b
    std::vector<ShuffleRound> rounds = {};     ///< Shuffle: the same in every warp
    Layout address = Layout(1);                ///< Shared: coordinates d0, d1, … -> offset in elements
    int64_t elements = 0;                      ///< Shared: size of the buffer
    int64_t store_width = 0, load_width = 0;   ///< Shared: elements an access
    int store_ways = 0, load_ways = 0;         ///< Shared: conflict degrees
    int shuffles() const;                      ///< rounds that move something
};
std::string_view name_of(Relayout::Kind kind);
/// What moving a tile from the owners of `a` to the owners of `b` takes. Refused where `b` wants an element that `a` lacks; elements beyond `shape`
/// (where `b` overshoots) do not count.
Result<Relayout> relayout(const Layout& a, const Layout& b, int element_bytes, const Coord& shape = {});
/// A table over lanes as xor: `out[0]` ^ the `out[1 + i]` of the set bits i; nothing where it is not of that kind.
std::optional<std::vector<int>> xor_form(const std::vector<int>& table);

/// A row: reg 0 … vec-1 side by side, then lanes, then warps of `warp` lanes, then `repeats` (on reg).
Layout row_tile(int64_t threads, int64_t warp, int64_t vec, int64_t repeats);
/// A tile spread over threads in chunks of `vec` along `vector_axis`, that axis fastest, then the others from the last to the first. An axis takes
/// the fewest lanes (warps) that reach its end, a divisor of those left; then registers go on. `covered`, at least the shape, is what is reached.
struct Distribution {
    Layout layout;
    Coord covered;
    bool exact;
};
Result<Distribution> distribute(const Coord& shape, int64_t threads, int64_t warp, int vector_axis, int64_t vec);

/// Fragments of matrix instructions (microkernel-facts 1.1, 2.1, 3.1, 4.2) by name: `wgmma.D` (m64n8), `wgmma.A16`, `mma.m16n8k16.A`, …
struct Fragment {
    std::string_view name;
    Coord shape;
    Layout layout;
};
const std::vector<Fragment>& fragments();
const Layout* fragment_named(std::string_view name);
Layout wgmma_accumulator(int64_t n);    ///< m64 x n, n a multiple of 8

/// How the sums of a matrix product lie over its threads: the fragment of one instruction, `deep` x `wide` of them in the registers of a group of threads (the columns first), and the groups of
/// threads of `rows` x `columns` such parts.
struct MatrixTiles {
    int64_t deep = 1, wide = 1, rows = 1, columns = 1;
};
Layout matrix_layout(const Layout& fragment, const Coord& shape, const MatrixTiles& t);
/// The inverse: how a layout is made of them. Nothing where it is not.
std::optional<MatrixTiles> matrix_tiles(const Layout& l, const Layout& fragment, const Coord& shape);
/// The same layout with its coordinates at other places of a tensor: coordinate i goes to `to[i]`, the rest is 0.
Result<Layout> embedded(const Layout& l, int rank, const std::vector<int>& to);

}  // namespace acu::ir
