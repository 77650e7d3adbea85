"""Axes without elements, tensors of rank 0, one element."""
import numpy as np

from bench import Bench, normal, real, reported
from plans import over_rows, staged, step, tiled

INF = np.inf


@reported("E1")
def e1_product_without_terms(c: Bench) -> None:
    for m, k, n in ((128, 0, 64), (0, 5, 4), (4, 5, 0), (0, 0, 0)):
        inputs = {"a": np.zeros((m, k), np.float16), "b": np.zeros((k, n), np.float16)}
        c.run("products.matmul", inputs, {"y": np.zeros((m, n))}, "T=f16", exact=True)
        c.under([tiled(16, 16, 8), staged(16, 16, 8), staged(16, 16, 8, 2)], "products.matmul", inputs, {"y": np.zeros((m, n))}, "T=f16", exact=True, count=1)


@reported("E3")
def e3_rank_0(c: Bench) -> None:
    for n in (1, 37):
        x, s = normal(c.draw, "f32", n), normal(c.draw, "f32")
        c.run("sum_of", {"x": x}, {"s": real(x).sum()}, scale=float(np.abs(x).sum()))
        c.run("scaled", {"x": x, "s": s}, {"y": real(x) * real(s)})
        t = (real(x) * real(s)).sum()
        c.run("both", {"x": x, "s": s}, {"t": t, "u": t + real(s), "y": real(x) + t + real(s)}, scale=10 + float(np.abs(x).sum()))


@reported("E4")
def e4_reductions_over_nothing(c: Bench) -> None:
    for dtype in ("f16", "bf16", "f32", "f64"):
        x = normal(c.draw, dtype, 3, 0)
        wanted = {"s": np.zeros(3), "p": np.ones(3), "a": np.full(3, -INF), "b": np.full(3, INF), "mean": np.full(3, np.nan)}
        c.run("reductions", {"x": x}, wanted, f"T={dtype}", exact=True)
        c.run("reductions", {"x": normal(c.draw, dtype, 0, 4)}, {name: np.zeros(0) for name in wanted}, f"T={dtype}", exact=True)
    c.run("truths", {"x": np.zeros((2, 0), np.int32)}, {"some": [False] * 2, "every": [True] * 2, "top": [-(2**31)] * 2}, types={"some": "bool", "every": "bool"})


@reported("E4")
def e4_softmax_over_nothing(c: Bench) -> None:
    for shape in ((3, 0), (0, 3), (0, 0)):
        x = np.zeros(shape, np.float32)
        c.run("normalize", {"x": x}, {"y": x, "z": x}, exact=True)
    c.run("rows_after_softmax", {"x": np.zeros((5, 0), np.float32)}, {"y": np.zeros(5)}, exact=True)


@reported("E4")
def e4_plans_over_nothing(c: Bench) -> None:
    for shape in ((3, 0), (0, 48)):
        x = np.zeros(shape, np.float32)
        plans = [over_rows("s y", 2), over_rows("s y/s n", 1, 128), [*over_rows("s y", 2), step("tile", "s", axes={"n": 8})]]
        c.under(plans, "pipelines.row_sum", {"x": x}, {"y": np.zeros(shape[0])}, exact=True, count=1)


@reported("E4")
def e4_argmax_of_nothing_is_refused(c: Bench) -> None:
    for device in c.devices(("sm_70", "sm_80", "sm_90a", "gfx90a")):
        c.refused("run", [*c.source("first_of_largest"), "--set", "M=2,N=0", "--device", device], 1, "N = 0")
