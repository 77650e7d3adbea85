"""Steps of plans, in short, and the plans of a product that the tests try."""
from bench import Steps


def step(name: str, scope: str, **params: object) -> dict[str, object]:
    """One decision; the scope is names with blanks between."""
    return {"pass": name, "scope": scope.split(), "params": {("in" if k == "in_" else "for" if k == "for_" else "as" if k == "as_" else k): v for k, v in params.items()}, "by": "user"}


def fused(m: int, n: int) -> list[dict[str, object]]:
    """Tiles of the output as blocks of the grid, the sum in registers."""
    return [step("fuse", "acc y", over={"m": m, "n": n}, kind="grid"), step("keep", "acc", in_="register")]


def tiled(m: int, n: int, k: int) -> Steps:
    return [*fused(m, n), step("tile", "acc", axes={"k": k})]


def staged(m: int, n: int, k: int, stages: int = 1, a: str = "a", b: str = "b") -> list[dict[str, object]]:
    """Tiles of both operands by way of shared memory; with stages they come ahead."""
    steps = [*tiled(m, n, k), step("stage", f"{a} {b}", at="k.o")]
    return steps + [step("pipeline", "k.o", stages=stages)] if stages > 1 else steps


def widened(m: int, n: int, k: int) -> Steps:
    """Both operands become f32 on their way to shared memory, where the MFMA of f32 reads them: it keeps what the MFMA of f16 would take for zero."""
    wide = [step("outline", "acc", reads=x, into=f"{x}.f", in_="shared", as_="f32") for x in "ab"]
    return [*fused(m, n), step("tile", "acc", axes={"k": k}), *wide, step("pad", "a.f b.f"), step("relax", "acc"), step("bind_mma", "acc", via="gfx90a.mfma_f32_16")]


def persistent(inner: Steps, ctas: int, group: int = 0) -> Steps:
    """A few blocks take all tiles in turn, in bands of `group` rows of tiles."""
    band = [step("rasterize", "u", group=group)] if group else []
    return [*inner, step("flatten", "m.o n.o", into="u"), *band, step("persist", "u", ctas=ctas)]


def over_rows(blocks: str, m: int, threads: int = 0) -> Steps:
    """Statements fused over rows; the one named last, or its axis, fixes the threads of a block: `s y/s n`."""
    names, _, site = blocks.partition("/")
    fuse = step("fuse", names, over={"m": m}, kind="grid")
    return [fuse, step("vectorize", site or names.split()[-1], width=1, threads=threads)] if threads else [fuse]
