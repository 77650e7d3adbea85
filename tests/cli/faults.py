"""Faults that users of other compilers have reported, on the cpu: the rows of the collection by their names."""
import numpy as np

from harness import Cli, require, test
from semantics import ATTENTION, INF, bits16, f32, i32, map_op, row_op

MATMUL = "op f<T: f16 | bf16 | f32>(a: T[M, K], b: T[K, N]) -> y: T[M, N] {\n  y[m, n] = sum(k) a[m, k] * b[k, n]\n}\n"
ATTENTION_F16 = ATTENTION.replace("f32", "f16").replace("<causal = true>", "")
NORM = "import std.nn { %s }\nop f(x: %s[M, N], g: %s[N], b: %s[N]) -> y: %s[M, N] {\n  y = %s\n}\n"


def checked(c: Cli, text: str, sets: str) -> None:
    """Runs on drawn inputs against the f64 definition."""
    c.run("run", c.file(text), "--set", sets, "--check", "--seed", c.seed).expect(0, text="correct")


@test
def d1_every_k(c: Cli) -> None:
    for k in (8, 24, 40, 56):
        checked(c, MATMUL, f"T=f16,M=64,N=64,K={k}")


@test
def d2_trailing_columns(c: Cli) -> None:
    for n in (100, 104, 120):
        checked(c, MATMUL, f"T=f32,M=16,N={n},K=5")
        checked(c, "op f(x: f32[M, N]) -> y: f32[M, N] {\n  y[m, n] = x[m, n]\n}\n", f"M=16,N={n}")


@test
def d6_widths(c: Cli) -> None:
    for n in (48, 96, 7):
        checked(c, "op f(d: f32[J]) -> y: f32[I, J] {\n  y[i, j] = d[j] * 2\n}\n", f"I=3,J={n}")


@test
def d7_block_sizes(c: Cli) -> None:
    for k in (96, 160):
        checked(c, MATMUL, f"T=bf16,M=8,N=8,K={k}")


@test
def d8_few_rows(c: Cli) -> None:
    for m in (1, 3, 8):
        checked(c, MATMUL, f"T=f16,M={m},N=128,K=128")


@test
def d9_attention_lengths(c: Cli) -> None:
    for s in (1, 63, 65):
        checked(c, ATTENTION, f"B=1,H=2,S={s},L={s},D=16")


@test
def d11_layernorm_widths(c: Cli) -> None:
    text = NORM % ("layernorm", "f32", "f32", "f32", "f32", "layernorm(x, g, b)")
    for n in (257, 1000, 1023):
        checked(c, text, f"M=5,N={n}")


@test
def d13_large_logits(c: Cli) -> None:
    for d in (72, 80, 96):
        q = np.full((1, 1, 2, d), 28, np.float16)
        v = np.arange(2 * d, dtype=np.float16).reshape(1, 1, 2, d)
        mean = ((v[:, :, :1].astype(np.float32) + v[:, :, 1:]) / 2).astype(np.float16)
        c.gives(ATTENTION_F16, {"q": q, "k": q, "v": v}, {"o": np.repeat(mean, 2, 2)}, rtol=1e-3)


@test
def d14_d15_sizes_are_accepted(c: Cli) -> None:
    for target in ("sm_70", "sm_80", "sm_90a", "gfx90a"):
        c.run("compile", c.file(MATMUL), "--target", target, "-o", c.folder, "--set", "T=f16,M=100,N=100,K=100").expect(0)


@test
def t13_bf16_on_sm_70(c: Cli) -> None:
    c.run("compile", c.file(MATMUL), "--target", "sm_70", "-o", c.folder, "--set", "T=bf16").expect(0)


@test
def e1_no_terms(c: Cli) -> None:
    c.gives(MATMUL, {"a": np.zeros((128, 0), np.float16), "b": np.zeros((0, 64), np.float16)}, {"y": np.zeros((128, 64), np.float16)}, "--set", "T=f16")


@test
def e3_scalars(c: Cli) -> None:
    c.gives("op f(a: f32[N], s: f32[]) -> (o: f32[N], t: f32[]) {\n  o[i] = a[i] * s\n  t = sum(i) a[i]\n}\n", {"a": f32(1, 2), "s": np.float32(3)}, {"o": f32(3, 6), "t": np.float32(3)})


@test
def s6_shift_is_refused(c: Cli) -> None:
    c.run("check", c.file("op f(A: f32[N]) -> O: f32[N] {\n  O[i] = A[i + 8]\n}\n")).expect(1, "bounds.outside")


@test
def n1_masked_row(c: Cli) -> None:
    text = "import std.nn { safe_softmax }\nop f(x: f32[M, N]) -> y: f32[M, N] {\n  y = safe_softmax(x)\n}\n"
    c.gives(text, {"x": f32([-INF, -INF], [3, -INF])}, {"y": f32([0, 0], [1, 0])})


@test
def n4_mostly_minus_infinity(c: Cli) -> None:
    text = "import std.nn { logsumexp }\nop f(x: f32[M, N]) -> y: f32[M] {\n  y = logsumexp(x)\n}\n"
    x = np.full((2, 50257), -INF, np.float32)
    x[0, 777] = 2.5
    c.gives(text, {"x": x}, {"y": f32(2.5, -INF)})


@test
def n4_cross_entropy(c: Cli) -> None:
    text = "import std.loss { cross_entropy }\nop f(x: f32[M, N], t: i64[M]) -> y: f32[M] {\n  y = cross_entropy(x, t)\n}\n"
    x = np.full((1, 5000), -INF, np.float32)
    x[0, 7] = -3
    c.gives(text, {"x": x, "t": np.array([7])}, {"y": f32(0)})


@test
def n5_large_scores(c: Cli) -> None:
    source = c.file(ATTENTION.replace("f32", "bf16").replace("<causal = true>", ""))
    q = bits16(133120, *[0] * 15).reshape(1, 1, 1, 16)
    v = bits16(*range(16)).reshape(1, 1, 1, 16)
    for how in ([], ["--interpret"]):
        o = c.outputs(source, {"q": q, "k": q, "v": v}, *how)["o"].view(np.uint16)
        require((o == v).all(), f"{o} instead of {v}")


@test
def n7_clamp_keeps_nan(c: Cli) -> None:
    x = f32(np.nan, 0.5)
    for text in ("min(max(x[n], 0), 1)", "max(min(x[n], 1), 0)", "clamp(x[n], 0, 1)", "max(x[n], 0.5)"):
        c.gives(map_op(text), {"x": x}, {"y": x})


@test
def n8_max_into_narrow_types(c: Cli) -> None:
    for target in ("sm_80", "gfx90a"):
        for t in ("f8e4m3", "f8e5m2", "f16", "bf16"):
            c.run("compile", c.file(row_op("max(n) x[m, n]", t, t)), "--target", target, "-o", c.folder).expect(0)
        c.run("compile", c.file(row_op("max(n) x[m, n]", "i8", "i8")), "--target", target, "-o", c.folder).expect(0)
    c.gives(row_op("max(n) x[m, n]", "i8", "i8"), {"x": np.array([[-128, -5]], np.int8)}, {"y": np.array([-5], np.int8)})


@test
def n9_logarithms(c: Cli) -> None:
    x = f32(0, 1e-40, 1, 4)
    c.gives(map_op("log(x[n])"), {"x": x}, {"y": f32(-INF, np.log(np.float64(x[1])), 0, np.log(4))}, rtol=1e-6)


@test
def t1_product_of_bytes(c: Cli) -> None:
    text = "op f(a: i8[M, K], b: i8[N, K]) -> y: i32[M, N] {\n  y[m, n] = sum(k) a[m, k] * b[n, k]\n}\n"
    a = np.full((1, 4096), 127, np.int8)
    c.gives(text, {"a": a, "b": a}, {"y": i32([4096 * 127 * 127])})
    c.gives(text, {"a": np.full((1, 4096), -128, np.int8), "b": a}, {"y": i32([4096 * -128 * 127])})


@test
def t2_sum_of_truth_values(c: Cli) -> None:
    for k in (256, 1024):
        c.gives(row_op("sum(n) x[m, n]", "bool", "i32"), {"x": np.ones((1, k), bool)}, {"y": i32(k)})
        c.gives(row_op("sum(n) x[m, n]", "u8", "i32"), {"x": np.ones((1, k), np.uint8)}, {"y": i32(k)})
        c.gives(row_op("sum(n) x[m, n]", "u8", "u8"), {"x": np.ones((1, k), np.uint8)}, {"y": np.array([0], np.uint8)})


@test
def t4_f32_stays_f32(c: Cli) -> None:
    draw = np.random.default_rng(c.seed)
    a, b = draw.uniform(0.5, 1, (4, 512)).astype(np.float32), draw.uniform(0.5, 1, (512, 4)).astype(np.float32)
    c.gives(MATMUL, {"a": a, "b": b}, {"y": a.astype(np.float64) @ b}, "--set", "T=f32", rtol=1e-6)


@test
def t5_functions_in_narrow_types(c: Cli) -> None:
    x = np.array([-2, -0.5, 0.25, 1, 3], np.float16)
    wide = x.astype(np.float64)
    for text, value in (("exp(x[n])", np.exp(wide)), ("tanh(x[n])", np.tanh(wide)), ("pow(abs(x[n]), 1.5)", np.abs(wide) ** 1.5), ("rsqrt(abs(x[n]))", np.abs(wide) ** -0.5)):
        c.gives(map_op(text, "f16", "f16"), {"x": x}, {"y": value.astype(np.float16)}, rtol=1e-3)


@test
def t7_constants(c: Cli) -> None:
    c.gives("op f(x: i8[N]) -> y: i8[N] {\n  y[n] = -1\n}\n", {"x": np.zeros(9, np.int8)}, {"y": np.full(9, -1, np.int8)})


@test
def t7_f64_is_exact(c: Cli) -> None:
    x = np.random.default_rng(c.seed).uniform(0.1, 9, 50)
    c.gives(map_op("x[n] / 3", "f64", "f64"), {"x": x}, {"y": x / 3})
    c.gives(map_op("sqrt(x[n])", "f64", "f64"), {"x": x}, {"y": np.sqrt(x)})


@test
def t7_round_of_bf16(c: Cli) -> None:
    c.gives(map_op("round(x[n])", "bf16", "f32"), {"x": bits16(0.5, 1.5, 2.5, -2.5)}, {"y": f32(0, 2, 2, -2)})


@test
def t8_squares_of_f16(c: Cli) -> None:
    text = "import std.nn { rmsnorm }\nop f(x: f16[M, N], g: f16[N]) -> y: f16[M, N] {\n  y = rmsnorm(x, g)\n}\n"
    ones = np.ones((1, 4096), np.float16)
    c.gives(text, {"x": ones * np.float16(1e4), "g": ones[0]}, {"y": ones}, rtol=1e-3)


@test
def t9_variance_does_not_cancel(c: Cli) -> None:
    text = NORM % ("layernorm", "f32", "f32", "f32", "f32", "layernorm(x, g, b, 0.0)")
    x = (1e4 + 1e-3 * np.where(np.arange(1000) % 2, 1, -1)).astype(np.float32)[None]
    g, b = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean()) / wide.std()
    c.gives(text, {"x": x, "g": g, "b": b}, {"y": wanted}, rtol=0.02)


@test
def t11_reductions_of_functions(c: Cli) -> None:
    x = f32([-1, 0.5, -3])
    c.gives(row_op("sum(n) exp(x[m, n])"), {"x": x}, {"y": np.exp(x.astype(np.float64)).sum(1)}, rtol=1e-6)
    c.gives(row_op("max(n) abs(x[m, n])"), {"x": x}, {"y": f32(3)})


@test
def t14_mixed_operands(c: Cli) -> None:
    text = "op f(a: f16[N], b: bf16[N]) -> (s: f32[N], q: f32[N]) {\n  s[n] = a[n] + b[n]\n  q[n] = a[n] / a[n] / 3\n}\n"
    c.gives(text, {"a": np.array([1.5, 0.1], np.float16), "b": bits16(2, 4)}, {"s": f32(3.5, np.float32(np.float16(0.1)) + np.float32(4)), "q": f32(np.float32(1) / np.float32(3))[[0, 0]]})
    c.gives(map_op("max(x[n], 0.0)", "f16", "f16"), {"x": np.array([-1, 2], np.float16)}, {"y": np.array([0, 2], np.float16)})


@test
def t15_widening_is_exact(c: Cli) -> None:
    draw = np.random.default_rng(c.seed)
    a, b = draw.normal(size=(3, 64)).astype(np.float16), draw.normal(size=(64, 3)).astype(np.float16)
    inside = c.outputs(c.file(MATMUL.replace("-> y: T", "-> y: f32")), {"a": a, "b": b}, "--set", "T=f16")["y"]
    outside = c.outputs(c.file(MATMUL, "wide.acu"), {"a": a.astype(np.float32), "b": b.astype(np.float32)}, "--set", "T=f32")["y"]
    require((inside == outside).all(), "the place of an exact widening changes the bits")


@test
def c4_gather_then_gather(c: Cli) -> None:
    text = "op f(a: f32[N, L], i: i32[B]) -> o: f32[B, L] {\n  o[b, l] = a[i[b], l]\n}\n"
    c.gives(text, {"a": f32([1, 2], [3, 4]), "i": i32(1, 0)}, {"o": f32([3, 4], [1, 2])})
    c.gives(text, {"a": f32([1, 2], [3, 4]), "i": i32(7, -3)}, {"o": f32([0, 0], [0, 0])})


@test
def c6_first_layer_and_depthwise(c: Cli) -> None:
    text = "import std.conv { conv2d }\nop f(x: f32[N, C, H, W], w: f32[O, C, 7, 7]) -> y: f32[N, O, P, Q]\nwhere P == (H + 6 - 7) / 2 + 1, Q == (W + 6 - 7) / 2 + 1 {\n  y = conv2d<stride = 2, pad = 3>(x, w)\n}\n"
    checked(c, text, "N=1,C=3,H=9,W=9,O=2")


@test
def a9_check_is_not_fooled_by_nan(c: Cli) -> None:
    c.run("run", c.file(map_op("x[n] * nan")), "--set", "N=3", "--check").expect(0)
