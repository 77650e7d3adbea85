"""NaN and infinities: what is masked, what propagates, what is not lost by folding or by a reduction."""
import numpy as np

from bench import Bench, normal, real, reported, stored
from coverage import attention
from plans import over_rows, step

INF, NAN = np.inf, np.nan


def softmax(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)


@reported("N1")
def n1_masked_row_of_softmax(c: Bench) -> None:
    x = normal(c.draw, "f32", 5, 9)
    x[3] = -INF
    x[1, ::2] = -INF
    y = softmax(real(x))
    c.run("normalize", {"x": x}, {"y": y, "z": np.nan_to_num(y)})


@reported("N1")
def n1_masked_rows_of_attention(c: Bench) -> None:
    for s, length in ((7, 4), (5, 1), (6, 6)):
        q, k, v = (normal(c.draw, "f16", 1, 2, n, 8) for n in (s, length, length))
        c.run("products.attend", {"q": q, "k": k, "v": v}, {"o": attention(real(q), real(k), real(v), 0.5, causal=True)}, "T=f16,causal=true,scale=0.5", scale=1.0)


@reported("N4")
def n4_rows_of_almost_only_infinities(c: Bench) -> None:
    x = np.full((2, 50257), -INF, np.float32)
    x[0, 777] = 2.5
    c.run("lse", {"x": x}, {"y": [2.5, -INF]})
    x[:, 40000] = (1.0, -3.0)
    wanted = [np.log(np.exp(2.5) + np.exp(1.0)) - 2.5, 0]
    c.run("entropy", {"x": x, "target": np.array([777, 40000])}, {"y": wanted}, scale=3.0)


@reported("N5")
def n5_large_scores(c: Bench) -> None:
    q = stored([133120.0] + [0.0] * 15, "bf16").reshape(1, 1, 1, 16)
    v = stored(np.arange(16.0), "bf16").reshape(1, 1, 1, 16)
    for scale in ("1", "0.25", "0.7"):
        c.run("products.attend", {"q": q, "k": q, "v": v}, {"o": real(v)}, f"T=bf16,scale={scale}", exact=True, every=scale == "0.25")


@reported("N7")
def n7_nan_passes_a_clamp(c: Bench) -> None:
    values = np.array([NAN, -INF, -1, -0.0, 0.5, 2, INF, -NAN])
    held = np.clip(values, 0, 1)
    for dtype in ("f16", "bf16", "f32"):
        c.run("held", {"x": stored(values, dtype)}, {"a": held, "b": held, "c": held, "r": np.maximum(values, 0)}, f"T={dtype}", exact=True)


@reported("N7")
def n7_folding_keeps_nan(c: Bench) -> None:
    x = np.array([1, -2, INF, NAN, 0], np.float32)
    nans = np.full(5, NAN)
    c.run("folded", {"x": x}, {"a": nans, "b": nans, "c": nans, "d": nans, "e": [0, 0, NAN, NAN, 0]}, exact=True)


@reported("N8")
def n8_extremes_in_narrow_types(c: Bench) -> None:
    for dtype in ("f8e4m3", "f8e5m2", "f16", "bf16", "i8"):
        x = stored(np.array([[-100, -5, -7], [3, -0.5, 2], [-96, -96, -112]]), dtype)
        wide = real(x, dtype)
        c.run("top", {"x": x}, {"a": wide.max(1), "b": wide.min(1)}, f"T={dtype}", exact=True, every=dtype == "f16", types={"a": dtype, "b": dtype})


@reported("N8")
def n8_extremes_of_nothing(c: Bench) -> None:
    for dtype, low, high in (("f16", -INF, INF), ("bf16", -INF, INF), ("f8e5m2", -57344, 57344), ("f8e4m3", -448, 448)):
        c.run("top", {"x": stored(np.zeros((2, 0)), dtype)}, {"a": [low] * 2, "b": [high] * 2}, f"T={dtype}", types={"a": dtype, "b": dtype})


@reported("N9")
def n9_logarithms(c: Bench) -> None:
    x = np.array([0, -0.0, 1e-40, 1e-45, 1.1754944e-38, 0.5, 1, 4, 3e38, INF, NAN, -1], np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = {"e": np.log(real(x)), "t": np.log2(real(x)), "p": np.log1p(real(x))}
    c.run("logarithms", {"x": x}, wanted, scale=1.0, every=True)


@reported("A12")
def a12_nan_in_reductions(c: Bench) -> None:
    x = normal(c.draw, "f32", 6, 37)
    for row, at in enumerate((0, 36, 17)):
        x[row, at] = NAN
    x[2, 30], x[3, 5], x[4, 9] = NAN, INF, -INF
    wide = real(x)
    largest, smallest = np.argmax(wide, 1), np.argmin(wide, 1)
    wanted = {"a": wide.max(1), "b": wide.min(1), "i": largest, "j": smallest}
    c.run("best", {"x": x}, wanted, exact=True, every=True)
    plans = [over_rows("s y", 4), over_rows("s y/s n", 1, 128)]
    plans += [[*over_rows("s y", 2), step("tile", "s", axes={"n": 8})], [step("split_reduction", "s", axis="n", count=4)]]
    c.under(plans, "best_alone", {"x": x}, {"y": wide.max(1)}, exact=True)
