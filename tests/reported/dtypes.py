"""Element types: the width of sums, functions in narrow types, exact operations, promotion."""
from math import erf

import numpy as np

from bench import TARGETS, Bench, normal, real, reported, stored
from coverage import product
from plans import over_rows, staged, step, tiled


@reported("T1", "H7")
def t1_bytes_are_summed_in_32_bits(c: Bench) -> None:
    high, low = np.full((2, 4096), 127, np.int8), np.full((3, 4096), -128, np.int8)
    for a, b in ((high, high), (high, low), (low, low)):
        c.run("products.matmul_i8", {"a": a, "b": b}, {"y": a.astype(np.int64) @ b.T.astype(np.int64)})
    a, b = (c.draw.integers(-128, 128, (m, 96)).astype(np.int8) for m in (17, 24))
    wanted = {"y": a.astype(np.int64) @ b.T.astype(np.int64)}
    c.run("products.matmul_i8", {"a": a, "b": b}, wanted, targets=("gfx90a",))
    c.under([tiled(16, 16, 32), staged(16, 16, 32, 2)], "products.matmul_i8", {"a": a, "b": b}, wanted, count=1)


@reported("T2")
def t2_sums_of_truth_values(c: Bench) -> None:
    for n in (256, 1024):
        c.run("sums", {"x": np.ones((2, n), np.uint8), "t": np.ones((2, n), bool)}, {"a": [n] * 2, "b": [n] * 2, "c": [0] * 2}, types={"c": "u8"})


@reported("T4")
def t4_f32_is_not_tf32(c: Bench) -> None:
    a, b = c.draw.uniform(0.5, 1, (8, 512)).astype(np.float32), c.draw.uniform(0.5, 1, (512, 8)).astype(np.float32)
    c.run("products.matmul", {"a": a, "b": b}, {"y": real(a) @ real(b)}, "T=f32", every=True)
    c.under([tiled(8, 8, 64), staged(8, 8, 32, 2)], "products.matmul", {"a": a, "b": b}, {"y": real(a) @ real(b)}, "T=f32", count=1)
    if c.options.everything:
        product(c, "f32", 512, 512, 512, only=["cpu"])


@reported("T5")
def t5_functions_in_narrow_types(c: Bench) -> None:
    for dtype in ("f16", "bf16"):
        x = stored(np.append(c.draw.uniform(-6, 6, 60), [0.5, -0.25, 1, -1, 3]), dtype)
        w = real(x)
        wanted = {"e": np.exp(w), "e2": np.exp2(w), "t": np.tanh(w), "r": np.abs(w) ** -0.5, "g": np.array([erf(v) for v in w]), "p": np.abs(w) ** 1.5,
                  "l": np.log(np.abs(w)), "s": np.sin(w), "c": np.cos(w)}
        c.run("functions", {"x": x}, wanted, f"T={dtype}", scale=1.0, every=dtype == "bf16")


@reported("T7")
def t7_constants_fill_their_own_bytes(c: Bench) -> None:
    for n in (1, 9, 130):
        c.run("constants", {"x": np.zeros(n, np.int8)}, {"a": np.full(n, -1), "b": np.full(n, 255), "c": np.full(n, -2)}, types={"b": "u8"})
    x = np.zeros(9, np.int8)
    c.run("constants", {"x": x}, {"a": np.full(9, -1)}, steps=[step("fuse", "a", over={"n": 4}, kind="grid"), step("vectorize", "a", width=4)])


@reported("T7")
def t7_division_and_roots_are_exact(c: Bench) -> None:
    x, y = normal(c.draw, "f64", 200), normal(c.draw, "f64", 200)
    c.run("exact", {"x": x, "y": y}, {"q": x / y, "r": np.sqrt(np.abs(x)), "p": x * y, "s": x + y}, exact=True, every=True)
    x, y = normal(c.draw, "f16", 200), normal(c.draw, "f16", 200)
    f, g = x.astype(np.float32), y.astype(np.float32)
    c.run("exact_f16", {"x": x, "y": y}, {"q": f / g, "r": np.sqrt(np.abs(f))}, exact=True)


@reported("T7")
def t7_rounding_is_half_to_even(c: Bench) -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, -7.75, 3, 100.5])
    for dtype in ("f16", "bf16", "f32", "f64"):
        x = stored(values, dtype)
        w = real(x)
        c.run("rounds", {"x": x}, {"a": np.rint(w), "b": np.trunc(w), "c": np.floor(w), "d": np.ceil(w)}, f"T={dtype}", exact=True)


@reported("T8")
def t8_squares_past_the_range_of_f16(c: Bench) -> None:
    x, gain = (c.draw.uniform(0.9e4, 1.1e4, (2, 4096))).astype(np.float16), normal(c.draw, "f16", 4096)
    w = real(x)
    c.run("rms", {"x": x, "gain": gain}, {"y": w / np.sqrt((w * w).mean(1, keepdims=True) + 1e-6) * real(gain)})


@reported("T9")
def t9_variance_does_not_cancel(c: Bench) -> None:
    for n in (1000, 8192):
        x = (1e4 + 1e-3 * np.where(np.arange(n) % 2, 1, -1)).astype(np.float32)[None]
        w = real(x)
        wanted = (w - w.mean()) / w.std()
        c.run("layer_norm", {"x": x, "gain": np.ones(n, np.float32), "bias": np.zeros(n, np.float32)}, {"y": wanted}, scale=1e3)


@reported("T11")
def t11_reductions_of_functions(c: Bench) -> None:
    x = normal(c.draw, "f32", 5, 77)
    w = real(x)
    c.run("of_functions", {"x": x}, {"s": np.exp(w).sum(1), "t": np.abs(w).max(1), "u": (w * w + 1).sum(1)})
    c.under([over_rows("s", 2), over_rows("s/s n", 1, 64)], "of_functions", {"x": x}, {"s": np.exp(w).sum(1)}, count=1)


@reported("T13")
def t13_bf16_on_sm_70(c: Bench) -> None:
    product(c, "bf16", 17, 40, 24, targets=("sm_70",))
    product(c, "bf16", 17, 40, 24, [tiled(8, 8, 16), staged(8, 8, 16, 2)], targets=("sm_70",), count=1)


@reported("T14")
def t14_operands_of_two_types(c: Bench) -> None:
    a, b = normal(c.draw, "f16", 65), normal(c.draw, "bf16", 65)
    f, g = real(a).astype(np.float32), real(b).astype(np.float32)
    ones = np.full(65, np.float32(1) / np.float32(3))
    c.run("mixed", {"a": a, "b": b}, {"s": f + g, "p": f * g, "q": f - g, "d": ones, "m": np.maximum(f, 0)}, exact=True)
    a, b = normal(c.draw, "f16", 9, 40), normal(c.draw, "bf16", 40, 9)
    c.run("mixed_matmul", {"a": a, "b": b}, {"y": real(a) @ real(b)}, scale=20.0)


@reported("T15")
def t15_the_place_of_a_widening(c: Bench) -> None:
    a, b = normal(c.draw, "f16", 9, 64), normal(c.draw, "f16", 64, 9)
    wide = {"a": a.astype(np.float32), "b": b.astype(np.float32)}
    for device in c.devices(TARGETS):
        for steps in ((), *c.some([tiled(8, 8, 16), staged(8, 8, 16, 2)], 1)):
            inside = c.outputs("products.matmul_wide", {"a": a, "b": b}, "", device, steps)["y"]
            outside = c.outputs("products.matmul", wide, "T=f32", device, steps)["y"]
            c.verdict("" if inside.tobytes() == outside.tobytes() else "the place of an exact widening changes bits", f"matmul_wide and matmul on {device}")
