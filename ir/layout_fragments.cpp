#include <algorithm>

#include "ir/layout_use.h"

namespace acu::ir {

namespace {

struct Row {
    std::string_view name;
    Coord shape;
    std::string_view text;
};

/// Coordinates: A (row m, column k), B (k, n), C and D (m, n); m8n8k4 has a third, the quad pair. Sources: PTX ISA 9.7.14.5.1 (m8n8k4),
/// 9.7.14.5.7-10 (mma.sync), 9.7.15.5.1 (wgmma), AMD matrix instruction calculator (mfma). `reg` counts elements, low half of a register first.
const std::vector<Row>& rows() {
    static const std::vector<Row> table{
        {"m8n8k4.A.row", {8, 4, 4}, "{reg: (0,1,0) (0,2,0), lane: (1,0,0) (2,0,0) (0,0,1) (0,0,2) (4,0,0)}"},
        {"m8n8k4.A.col", {8, 4, 4}, "{reg: (1,0,0) (2,0,0), lane: (0,1,0) (0,2,0) (0,0,1) (0,0,2) (4,0,0)}"},
        {"m8n8k4.B.row", {4, 8, 4}, "{reg: (0,1,0) (0,2,0), lane: (1,0,0) (2,0,0) (0,0,1) (0,0,2) (0,4,0)}"},
        {"m8n8k4.B.col", {4, 8, 4}, "{reg: (1,0,0) (2,0,0), lane: (0,1,0) (0,2,0) (0,0,1) (0,0,2) (0,4,0)}"},
        {"m8n8k4.C.f16", {8, 8, 4}, "{reg: (0,1,0) (0,2,0) (0,4,0), lane: (1,0,0) (2,0,0) (0,0,1) (0,0,2) (4,0,0)}"},
        {"m8n8k4.C.f32", {8, 8, 4}, "{reg: (0,1,0) (2,0,0) (0,4,0), lane: (1,0,0) (0,2,0) (0,0,1) (0,0,2) (4,0,0)}"},
        {"m8n8k4.16x16.C", {16, 16}, "{reg: (0,1) (2,0) (0,8), lane: (1,0) (0,2) (4,0) (0,4) (8,0)}"},
        {"lanes.16x32", {16, 32}, "{reg: (0,1) (0,2) (1,0) (2,0), lane: (0,4) (0,8) (0,16) (4,0) (8,0)}"},
        {"mma.m16n8.C", {16, 8}, "{reg: (0,1) (8,0), lane: (0,2) (0,4) (1,0) (2,0) (4,0)}"},
        {"mma.m16n8k16.A", {16, 16}, "{reg: (0,1) (8,0) (0,8), lane: (0,2) (0,4) (1,0) (2,0) (4,0)}"},
        {"mma.m16n8k16.B", {16, 8}, "{reg: (1,0) (8,0), lane: (2,0) (4,0) (0,1) (0,2) (0,4)}"},
        {"mma.m16n8k8.tf32.A", {16, 8}, "{reg: (8,0) (0,4), lane: (0,1) (0,2) (1,0) (2,0) (4,0)}"},
        {"mma.m16n8k8.tf32.B", {8, 8}, "{reg: (4,0), lane: (1,0) (2,0) (0,1) (0,2) (0,4)}"},
        {"mma.m16n8k32.s8.A", {16, 32}, "{reg: (0,1) (0,2) (8,0) (0,16), lane: (0,4) (0,8) (1,0) (2,0) (4,0)}"},
        {"mma.m16n8k32.s8.B", {32, 8}, "{reg: (1,0) (2,0) (16,0), lane: (4,0) (8,0) (0,1) (0,2) (0,4)}"},
        {"wgmma.D", {64, 8}, "{reg: (0,1) (8,0), lane: (0,2) (0,4) (1,0) (2,0) (4,0), warp: (16,0) (32,0)}"},
        {"wgmma.A16", {64, 16}, "{reg: (0,1) (8,0) (0,8), lane: (0,2) (0,4) (1,0) (2,0) (4,0), warp: (16,0) (32,0)}"},
        {"wgmma.A.tf32", {64, 8}, "{reg: (8,0) (0,4), lane: (0,1) (0,2) (1,0) (2,0) (4,0), warp: (16,0) (32,0)}"},
        {"wgmma.A8", {64, 32}, "{reg: (0,1) (0,2) (8,0) (0,16), lane: (0,4) (0,8) (1,0) (2,0) (4,0), warp: (16,0) (32,0)}"},
        {"mfma.32x32.D", {32, 32}, "{reg: (1,0) (2,0) (8,0) (16,0), lane: (0,1) (0,2) (0,4) (0,8) (0,16) (4,0)}"},
        {"mfma.32x32x8.A", {32, 8}, "{reg: (0,1) (0,2), lane: (1,0) (2,0) (4,0) (8,0) (16,0) (0,4)}"},
        {"mfma.32x32x8.B", {8, 32}, "{reg: (1,0) (2,0), lane: (0,1) (0,2) (0,4) (0,8) (0,16) (4,0)}"},
        {"mfma.16x16.D", {16, 16}, "{reg: (1,0) (2,0), lane: (0,1) (0,2) (0,4) (0,8) (4,0) (8,0)}"},
        {"mfma.16x16x16.A", {16, 16}, "{reg: (0,1) (0,2), lane: (1,0) (2,0) (4,0) (8,0) (0,4) (0,8)}"},
        {"mfma.16x16x16.B", {16, 16}, "{reg: (1,0) (2,0), lane: (0,1) (0,2) (0,4) (0,8) (4,0) (8,0)}"},
    };
    return table;
}

std::vector<Fragment> parsed() {
    std::vector<Fragment> out;
    for (const Row& r : rows()) out.push_back({r.name, r.shape, *parse_layout(r.text)});
    return out;
}

}  // namespace

const std::vector<Fragment>& fragments() {
    static const std::vector<Fragment> table = parsed();
    return table;
}

const Layout* fragment_named(std::string_view name) {
    const auto it = std::ranges::find(fragments(), name, &Fragment::name);
    return it == fragments().end() ? nullptr : &it->layout;
}

Layout matrix_layout(const Layout& fragment, const Coord& shape, const MatrixTiles& t) {
    return fragment.times("reg", t.wide, {0, shape[1]}).times("reg", t.deep, {shape[0], 0}).times("warp", t.columns, {0, t.wide * shape[1]}).times("warp", t.rows, {t.deep * shape[0], 0});
}

std::optional<MatrixTiles> matrix_tiles(const Layout& l, const Layout& fragment, const Coord& shape) {
    const Coord all = l.extent();
    const int64_t groups = l.size("warp") / fragment.size("warp"), registers = l.size("reg") / fragment.size("reg");
    for (int64_t columns = 1; columns <= groups; ++columns) {
        const MatrixTiles t{all[0] / (shape[0] * std::max<int64_t>(1, groups / columns)), all[1] / (shape[1] * columns), groups / columns, columns};
        if (t.deep * t.wide == registers && t.rows * t.columns == groups && same(matrix_layout(fragment, shape, t), l)) return t;
    }
    return {};
}

Result<Layout> embedded(const Layout& l, int rank, const std::vector<int>& to) {
    const auto moved = [&](const Coord& c) {
        Coord out(static_cast<size_t>(rank), 0);
        for (size_t i = 0; i < c.size(); ++i) out[static_cast<size_t>(to[i])] = c[i];
        return out;
    };
    std::vector<InputBits> atom = l.atom();
    std::vector<Repeat> repeats = l.repeats();
    for (InputBits& b : atom)
        for (Coord& c : b.images) c = moved(c);
    for (Repeat& r : repeats) r.step = moved(r.step);
    return Layout::make(rank, std::move(atom), std::move(repeats));
}

Layout wgmma_accumulator(int64_t n) { return fragment_named("wgmma.D")->times("reg", n / 8, {0, 8}); }

}  // namespace acu::ir
