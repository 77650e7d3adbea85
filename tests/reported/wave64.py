"""Wavefronts of 64, and what CUDA and HIP must compute alike, bit for bit."""
import numpy as np

from bench import TARGETS, Bench, normal, real, reported, stored
from coverage import attend, product
from plans import over_rows, staged, step, tiled, widened

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, -1e-40, 1.1754944e-38, 65504, 65519.9, 65520, 1e30, 448, 464, 465,
           1e-9, 127.5, -128.5, 3e9, np.inf, -np.inf, np.nan]


@reported("H2")
def h2_elements_have_the_same_bits(c: Bench) -> None:
    x = np.concatenate([SPECIAL, c.draw.normal(0, 100, 76)]).astype(np.float32)
    y, d = c.draw.permutation(x), c.draw.normal(0, 100, 100)
    everywhere = [("cpu", ())] + [(f"emu:{t}", ()) for t in (TARGETS if c.options.emulated else ())]
    c.same_bits("exact", {"x": x, "y": y, "d": d}, everywhere)
    c.same_bits("library", {"x": x}, everywhere[1:] or everywhere)
    i, j = (c.draw.integers(-(2**31), 2**31, 100).astype(np.int32) for _ in range(2))
    j[:9] = (0, -1, 1, 2, -2, 2**31 - 1, -(2**31), 3, -3)
    i[:2] = -(2**31)
    c.same_bits("integers", {"x": i, "y": j}, everywhere)


@reported("H2")
def h2_elements_have_the_right_bits(c: Bench) -> None:
    x = np.concatenate([SPECIAL, c.draw.normal(0, 100, 76)]).astype(np.float32)
    y, d = c.draw.normal(0, 100, 100).astype(np.float32), c.draw.normal(0, 100, 100)
    with np.errstate(all="ignore"):
        wanted = {"r": np.rint(x), "f": np.floor(x), "c": np.ceil(x), "t": np.trunc(x), "q": x / y, "s": np.sqrt(x), "m": np.maximum(x, y), "k": np.minimum(x, y),
                  "h": x, "b": x, "z": np.sqrt(np.abs(d)) / 3, "u": real(x) * real(y) + real(x),
                  "i": np.nan_to_num(np.clip(np.trunc(real(x)), -(2**31), 2**31 - 1)), "j": np.nan_to_num(np.clip(np.trunc(real(x)), -128, 127))}
    c.run("exact", {"x": x, "y": y, "d": d}, wanted, exact=True, every=True)


@reported("H3")
def h3_wide_heads(c: Bench) -> None:
    for d in (128, 256):
        attend(c, "f16", 1, 13, 17, d, targets=("gfx90a",))


@reported("H4")
def h4_rows_shorter_than_a_wavefront(c: Bench) -> None:
    for m, n in ((3, 1), (5, 32), (2, 63), (4, 65)):
        x = normal(c.draw, "f32", m, n)
        wanted, scale = {"y": real(x).sum(1)}, float(np.abs(x).sum(1).max())
        c.run("pipelines.row_sum", {"x": x}, wanted, scale=scale, targets=("gfx90a",))
        block = [*over_rows("s y/s n", 1, 64), step("keep", "s"), step("bind_reduce", "s", via="common.block_reduce")]
        c.under([block, over_rows("s y/s n", 3, 64)], "pipelines.row_sum", {"x": x}, wanted, scale=scale, targets=("gfx90a",), count=1)


@reported("H4")
def h4_parts_of_a_wavefront(c: Bench) -> None:
    """Blocks smaller than a wave share one, and join their own lanes only; what is no even part is refused, and so is a join of whole waves."""
    for m, n in ((1, 40), (7, 33), (64, 3)):
        x = normal(c.draw, "f32", m, n)
        part = [*over_rows("s y/s n", 1, 16), step("keep", "s"), step("bind_reduce", "s", via="common.lanes_reduce")]
        c.under([part, over_rows("s y/s n", 1, 32)], "pipelines.row_sum", {"x": x}, {"y": real(x).sum(1)}, scale=float(np.abs(x).sum(1).max()), targets=("gfx90a",))
    block = [*over_rows("s y/s n", 1, 32), step("keep", "s"), step("bind_reduce", "s", via="common.block_reduce")]
    for steps, words in ((over_rows("s y/s n", 1, 48), ("48 threads", "64")), (block, ("32 threads", "64"))):
        plan = c.plan("pipelines.row_sum", steps, "emu:gfx90a", c.folder)
        c.refused("compile", [*c.source("pipelines.row_sum"), "--target", "gfx90a", "--plan", plan, "-o", c.folder / "out"], 1, *words)


@reported("H5")
def h5_few_rows_of_rmsnorm(c: Bench) -> None:
    for m in (1, 3):
        x, gain = normal(c.draw, "f16", m, 7168), normal(c.draw, "f16", 7168)
        w = real(x)
        wanted = {"y": w / np.sqrt((w * w).mean(1, keepdims=True) + 1e-6) * real(gain)}
        c.run("rms", {"x": x, "gain": gain}, wanted, targets=("gfx90a",))
        c.under([over_rows("ms.acc ms y", 1, 256)], "rms", {"x": x, "gain": gain}, wanted, targets=("gfx90a",))


@reported("H8", "H9")
def h8_subnormal_operands_count(c: Bench) -> None:
    """MFMA takes subnormal f16 for zero, as its emulation does; plans without it, or with the MFMA of f32, keep them; so do other chips."""
    for low, high in ((1e-7, 6e-5), (6e-8, 6e-8)):
        a, b = stored(c.draw.uniform(low, high, (16, 64)), "f16"), stored(c.draw.uniform(0.5, 1, (64, 16)), "f16")
        wanted = {"y": real(a) @ real(b)}
        chip = ("emu:gfx90a",) if c.options.emulated else ()
        if chip:
            c.run("products.matmul_wide", {"a": a, "b": b}, {"y": 0 * wanted["y"]}, only=chip, exact=True)
            c.run("products.matmul_wide", {"a": a, "b": b}, wanted, only=chip, steps=widened(16, 16, 16))
        c.run("products.matmul_wide", {"a": a, "b": b}, wanted, targets=("sm_80", "sm_90a"))
        c.run("products.matmul", {"a": a, "b": b}, wanted, "T=f16", targets=("sm_70",))
        c.under([tiled(8, 8, 16), staged(8, 8, 16, 2)], "products.matmul_wide", {"a": a, "b": b}, wanted, targets=("gfx90a",), count=1)
    product(c, "f16", 16, 64, 8, targets=("sm_80", "gfx90a"))
