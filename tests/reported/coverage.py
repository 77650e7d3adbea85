"""Tiles that do not divide: every element is computed, and nothing else takes part."""
from collections.abc import Sequence

import numpy as np

from bench import TARGETS, Bench, Steps, normal, real, reported, stored
from plans import over_rows, persistent, staged, step, tiled


def product(c: Bench, dtype: str, m: int, k: int, n: int, plans: Sequence[Steps] = (), **how: object) -> None:
    """A random product under the default plan and under some of the plans."""
    a, b = normal(c.draw, dtype, m, k), normal(c.draw, dtype, k, n)
    wanted = {"y": real(a) @ real(b)}
    if not plans:
        c.run("products.matmul", {"a": a, "b": b}, wanted, f"T={dtype}", **how)
    else:
        c.under(plans, "products.matmul", {"a": a, "b": b}, wanted, f"T={dtype}", **how)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool = False) -> np.ndarray:
    """softmax(scale q kᵀ) v in float64, one query at a time; a query without keys gives 0."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, i in np.ndindex(q.shape[:3]):
        keys = min(k.shape[2], i + k.shape[2] - q.shape[2] + 1) if causal else k.shape[2]
        if keys <= 0:
            continue
        s = scale * (k[b, h, :keys] @ q[b, h, i])
        e = np.exp(s - s.max())
        out[b, h, i] = e @ v[b, h, :keys] / e.sum()
    return out


def attend(c: Bench, dtype: str, heads: int, s: int, length: int, d: int, **how: object) -> None:
    q, k, v = (normal(c.draw, dtype, 1, heads, n, d) for n in (s, length, length))
    scale = float(np.float32(d**-0.5))
    wanted = attention(real(q), real(k), real(v), scale)
    c.run("products.attend", {"q": q, "k": k, "v": v}, {"o": wanted}, f"T={dtype},scale={scale}", **how)


@reported("D1")
def d1_every_slice_of_k(c: Bench) -> None:
    for k in (8, 24, 40, 56):
        product(c, "f16", 64, k, 64)
        product(c, "f16", 64, k, 64, [tiled(16, 32, 8), tiled(32, 16, 24), staged(16, 16, 16), staged(32, 32, 40, 2)], count=1)


@reported("D2")
def d2_trailing_columns(c: Bench) -> None:
    for n in (100, 104, 120):
        product(c, "f16", 16, 24, n)
        a = normal(c.draw, "f32", 16, n)
        c.run("copy", {"a": a}, {"y": real(a)}, "T=f32", exact=True)


@reported("D2")
def d2_threads_that_do_not_divide(c: Bench) -> None:
    for n in (100, 104, 120):
        a = normal(c.draw, "f32", 16, n)
        for threads in c.some((96, 192, 384), 1):
            c.under([[step("fuse", "y", over={"m": m}, kind="grid"), step("vectorize", "y", width=1, threads=threads)] for m in (1, 5, 16)],
                    "copy", {"a": a}, {"y": real(a)}, "T=f32", exact=True, count=1, targets=TARGETS[:3] if threads % 64 else TARGETS)


@reported("D3")
def d3_tiles_of_8_mod_16_columns(c: Bench) -> None:
    for n in c.some((24, 40, 56, 72), 2):
        product(c, "f16", 33, 32, 2 * n, [tiled(16, n, 16), staged(16, n, 16, 2)], count=1, targets=("sm_90a",))


@reported("D4")
def d4_persistent_bands_drop_no_tile(c: Bench) -> None:
    for rows, columns in c.some([(m, n) for m in (1, 7) for n in (9, 13, 17)], 3):
        plans = [persistent(tiled(4, 8, 8), ctas, group) for ctas in (1, 4, 5) for group in (2, 3, 8)]
        product(c, "f32", 4 * rows, 8, 8 * columns, plans, count=1)
        product(c, "f32", 4 * rows - 1, 8, 8 * columns - 3, plans, count=1)


@reported("D6")
def d6_widths_of_a_row(c: Bench) -> None:
    for n in (48, 96, 7):
        d = normal(c.draw, "f32", n)
        wanted = {"o": np.tile(real(d) * 2, (5, 1))}
        c.run("spread_twice", {"d": d}, wanted, "M=5", exact=True)
        c.under([[step("fuse", "o", over={"m": 2, "n": t}, kind="grid")] for t in (32, 48, 5)], "spread_twice", {"d": d}, wanted, "M=5", exact=True, count=1)


@reported("D7")
def d7_depths_of_48_and_80(c: Bench) -> None:
    for k, tile in ((96, 48), (160, 80)):
        product(c, "f16", 20, k, 24)
        swizzled = [[*staged(16, 16, tile), step("swizzle", "a.t", pattern=p)] for p in ("32",)]
        product(c, "f16", 20, k, 24, [staged(16, 16, tile), staged(16, 16, tile, 3), *swizzled], count=2)


@reported("D8")
def d8_few_rows(c: Bench) -> None:
    for m in (1, 3, 8):
        product(c, "f16", m, 256, 256)
        product(c, "f16", m, 256, 40, [tiled(16, 16, 32), staged(16, 32, 64, 2)], count=1)
    if c.options.everything:
        product(c, "f16", 1, 4096, 4096, only=["cpu"])


@reported("D9")
def d9_lengths_of_attention(c: Bench) -> None:
    for s, d in ((1, 64), (1, 128), (63, 64), (65, 64), (63, 128), (129, 64)):
        attend(c, "f16", 1, s, s, d)
    if c.options.everything:
        attend(c, "bf16", 1, 1000, 1000, 64, only=["cpu"])


@reported("D14")
def d14_heads_of_128_on_matrix_instructions(c: Bench) -> None:
    attend(c, "f16", 1, 65, 129, 128)


@reported("P10")
def p10_several_products_of_narrow_heads(c: Bench) -> None:
    for s in (64, 200):
        attend(c, "f16", 2, s, s, 32)


@reported("D11")
def d11_rows_of_layernorm(c: Bench) -> None:
    for m, n in ((129, 257), (3, 1000), (2, 1023)):
        x, gain, bias = c.draw.normal(3, 2, (m, n)).astype(np.float32), normal(c.draw, "f32", n), normal(c.draw, "f32", n)
        wide = real(x)
        mean, var = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
        c.run("layer_norm", {"x": x, "gain": gain, "bias": bias}, {"y": (wide - mean) / np.sqrt(var + 1e-5) * real(gain) + real(bias)})


@reported("D11")
def d11_masked_lanes_stay_out_of_the_variance(c: Bench) -> None:
    for m, n in ((7, 257), (129, 33)):
        x = c.draw.normal(3, 2, (m, n)).astype(np.float32)
        wide = real(x)
        wanted = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        c.under([over_rows("mean.acc mean var.acc var y", t, threads) for t in (1, 4, 16) for threads in (0, 128)], "norm_in_steps", {"x": x}, {"y": wanted}, count=1)


@reported("D13")
def d13_logits_near_the_range_of_f16(c: Bench) -> None:
    for d in (72, 80, 96):
        q = np.full((1, 1, 2, d), 28, np.float16)
        k = q.copy()
        k[..., 0] += stored([0, 1 / 64], "f16")
        v = normal(c.draw, "f16", 1, 1, 2, d)
        c.run("products.attend", {"q": q, "k": k, "v": v}, {"o": attention(real(q), real(k), real(v), 1.0)}, "T=f16,scale=1")


@reported("D14")
def d14_depths_on_sm_70(c: Bench) -> None:
    attend(c, "f16", 1, 17, 19, 128, targets=("sm_70",))
    for k in (64, 128):
        product(c, "f16", 9, 2 * k + 8, 24, [tiled(8, 8, k), staged(8, 16, k)], targets=("sm_70",))


@reported("D15")
def d15_guarded_tiles_are_accepted(c: Bench) -> None:
    product(c, "f32", 100, 100, 100, [tiled(16, 16, 16), staged(16, 16, 16), staged(16, 16, 16, 2)], count=1)
