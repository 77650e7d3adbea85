"""What values mean: empty sizes, NaN, infinities, integers, casts, masks, ties. Exact, compiled and interpreted."""
import numpy as np

from harness import Cli, bug, require, test

INF, NAN = np.inf, np.nan
MIN32, MAX32 = -(2**31), 2**31 - 1


def f32(*values: object) -> np.ndarray:
    return np.array(values, np.float32)


def i32(*values: object) -> np.ndarray:
    return np.array(values, np.int32)


def map_op(expression: str, x: str = "f32", y: str = "f32") -> str:
    """An operator that maps each element."""
    return f"op f(x: {x}[N]) -> y: {y}[N] {{\n  y[n] = {expression}\n}}\n"


def row_op(expression: str, x: str = "f32", y: str = "f32") -> str:
    """An operator that reduces each row."""
    return f"op f(x: {x}[M, N]) -> y: {y}[M] {{\n  y[m] = {expression}\n}}\n"


# ---- empty dimensions


@test
def empty_sum_prod_max_min(c: Cli) -> None:
    x = np.zeros((2, 0), np.float32)
    for reduction, value in (("sum", 0), ("prod", 1), ("max", -INF), ("min", INF)):
        c.gives(row_op(f"{reduction}(n) x[m, n]"), {"x": x}, {"y": f32(value, value)})


@test
def empty_any_all(c: Cli) -> None:
    x = np.zeros((2, 0), np.int32)
    c.gives(row_op("any(n) x[m, n] > 0", "i32", "bool"), {"x": x}, {"y": [False, False]})
    c.gives(row_op("all(n) x[m, n] > 0", "i32", "bool"), {"x": x}, {"y": [True, True]})


@test
def empty_integer_max(c: Cli) -> None:
    c.gives(row_op("max(n) x[m, n]", "i32", "i32"), {"x": np.zeros((1, 0), np.int32)}, {"y": i32(MIN32)})


@test
def empty_mean_is_nan(c: Cli) -> None:
    c.gives(row_op("(sum(n) x[m, n]) / N"), {"x": np.zeros((1, 0), np.float32)}, {"y": f32(NAN)})


@test
def no_rows(c: Cli) -> None:
    c.gives(row_op("sum(n) x[m, n]"), {"x": np.zeros((0, 3), np.float32)}, {"y": f32()})


@test
def empty_matmul(c: Cli) -> None:
    text = "op f(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] {\n  y[m, n] = sum(k) a[m, k] * b[k, n]\n}\n"
    for m, k, n in ((128, 0, 64), (0, 3, 4), (4, 3, 0), (0, 0, 0)):
        inputs = {"a": np.ones((m, k), np.float32), "b": np.ones((k, n), np.float32)}
        c.gives(text, inputs, {"y": np.zeros((m, n), np.float32)})


@test
def empty_softmax(c: Cli) -> None:
    text = "import std.nn { softmax }\nop f(x: f32[M, N]) -> y: f32[M, N] {\n  y = softmax(x)\n}\n"
    for shape in ((3, 0), (0, 3), (0, 0)):
        c.gives(text, {"x": np.zeros(shape, np.float32)}, {"y": np.zeros(shape, np.float32)})


@test
def empty_scan_and_map(c: Cli) -> None:
    c.gives("op f(x: f32[N]) -> y: f32[N] {\n  y[n] = scan sum(n) x[n]\n}\n", {"x": f32()}, {"y": f32()})
    c.gives(map_op("x[n] + 1"), {"x": f32()}, {"y": f32()})


@test
def empty_argmax_is_refused(c: Cli) -> None:
    source = c.file(row_op("argmax(n) x[m, n]", y="i64"))
    for how in ([], ["--interpret"]):
        c.run("run", source, "--set", "M=2,N=0", *how).expect(1, "shape.fact", "N = 0")


@test
def empty_topk(c: Cli) -> None:
    text = "op f(x: f32[N]) -> (v: f32[3], i: i64[3]) {\n  v[j], i[j] = topk(n, 3) x[n]\n}\n"
    c.gives(text, {"x": f32()}, {"v": f32(-INF, -INF, -INF), "i": [-1, -1, -1]})


@test
def empty_source_of_gather(c: Cli) -> None:
    text = "op f(x: f32[N], i: i32[M]) -> y: f32[M] {\n  y[m] = x[i[m]]\n}\n"
    c.gives(text, {"x": f32(), "i": i32(0, -1)}, {"y": f32(0, 0)})


@test
def one_element(c: Cli) -> None:
    c.gives(row_op("sum(n) x[m, n]"), {"x": f32([2.5])}, {"y": f32(2.5)})


# ---- rank 0


@test
def rank_zero_output(c: Cli) -> None:
    c.gives("op f(x: f32[N]) -> s: f32[] {\n  s = sum(n) x[n]\n}\n", {"x": f32(1, 2, 3)}, {"s": np.float32(6)})
    c.gives("op f(x: f32[N]) -> s: f32[] {\n  s[] = sum(n) x[n]\n}\n", {"x": f32(1, 2, 3)}, {"s": np.float32(6)})


@test
def rank_zero_input(c: Cli) -> None:
    for read in ("s", "s[]"):
        text = f"op f(x: f32[N], s: f32[]) -> y: f32[N] {{\n  y[n] = x[n] * {read}\n}}\n"
        c.gives(text, {"x": f32(1, 2), "s": np.float32(3)}, {"y": f32(3, 6)})


@test
def scalar_parameter(c: Cli) -> None:
    text = "op f(x: f32[N], s: f32 = 2.0) -> y: f32[N] {\n  y[n] = x[n] * s\n}\n"
    c.gives(text, {"x": f32(1, 2)}, {"y": f32(2, 4)})
    c.gives(text, {"x": f32(1, 2)}, {"y": f32(-1, -2)}, "--set", "s=-1")


@test
def rank_zero_index(c: Cli) -> None:
    text = "op f(x: f32[N], i: i32[]) -> y: f32[] {\n  y = x[i]\n}\n"
    c.gives(text, {"x": f32(1, 2, 3), "i": np.int32(2)}, {"y": np.float32(3)})


# ---- NaN and infinities


@test
def max_propagates_nan(c: Cli) -> None:
    x = f32([1, NAN, 3], [NAN, NAN, NAN], [-INF, -INF, -INF])
    c.gives(row_op("max(n) x[m, n]"), {"x": x}, {"y": f32(NAN, NAN, -INF)})
    c.gives(row_op("min(n) x[m, n]"), {"x": x}, {"y": f32(NAN, NAN, -INF)})


@test
def relu_and_clamp_of_nan(c: Cli) -> None:
    x = f32(NAN, -1, 7, INF, -INF)
    c.gives(map_op("max(x[n], 0)"), {"x": x}, {"y": f32(NAN, 0, 7, INF, 0)})
    c.gives(map_op("max(0, x[n])"), {"x": x}, {"y": f32(NAN, 0, 7, INF, 0)})
    c.gives(map_op("clamp(x[n], -2, 2)"), {"x": x}, {"y": f32(NAN, -1, 2, 2, -2)})
    c.gives(map_op("min(max(x[n], -2), 2)"), {"x": x}, {"y": f32(NAN, -1, 2, 2, -2)})


@test
def nan_literals(c: Cli) -> None:
    for text in ("max(nan, 1)", "max(1, nan)", "min(nan, 1)", "min(1, nan)", "0 * inf", "inf - inf", "clamp(nan, 0, 1)"):
        c.gives(map_op(f"x[n] + {text}"), {"x": f32(1)}, {"y": f32(NAN)})


@test
def comparisons_with_nan(c: Cli) -> None:
    x = f32(NAN, 1)
    c.gives(map_op("if x[n] == x[n] then 1 else 0", y="i32"), {"x": x}, {"y": i32(0, 1)})
    c.gives(map_op("if x[n] != x[n] then 1 else 0", y="i32"), {"x": x}, {"y": i32(1, 0)})
    c.gives(map_op("if !(x[n] < 5) then 1 else 0", y="i32"), {"x": x}, {"y": i32(1, 0)})
    c.gives(map_op("if isnan(x[n]) then 1 else 0", y="i32"), {"x": x}, {"y": i32(1, 0)})


@test
def float_division(c: Cli) -> None:
    c.gives(map_op("x[n] / 0.0"), {"x": f32(1, -1, 0)}, {"y": f32(INF, -INF, NAN)})
    c.gives(map_op("x[n] / (-0.0)"), {"x": f32(1)}, {"y": f32(-INF)})


@test
def domain_of_functions(c: Cli) -> None:
    x = f32(-1, 0, INF)
    c.gives(map_op("sqrt(x[n])"), {"x": x}, {"y": f32(NAN, 0, INF)})
    c.gives(map_op("log(x[n])"), {"x": x}, {"y": f32(NAN, -INF, INF)})
    c.gives(map_op("rsqrt(x[n])"), {"x": x}, {"y": f32(NAN, INF, 0)})
    c.gives(map_op("exp(x[n])"), {"x": f32(-INF, 0, 1000)}, {"y": f32(0, 1, INF)})


@test
def rounding_functions(c: Cli) -> None:
    x = f32(0.5, 1.5, 2.5, -0.5, -1.5, 2.7, -2.7)
    c.gives(map_op("round(x[n])"), {"x": x}, {"y": np.rint(x)})
    c.gives(map_op("floor(x[n])"), {"x": x}, {"y": np.floor(x)})
    c.gives(map_op("ceil(x[n])"), {"x": x}, {"y": np.ceil(x)})
    c.gives(map_op("trunc(x[n])"), {"x": x}, {"y": np.trunc(x)})


# ---- masks


ATTENTION = "import std.nn { attention }\nop f(q: f32[B, H, S, D], k: f32[B, H, L, D], v: f32[B, H, L, D]) -> o: f32[B, H, S, D] {\n  o = attention<causal = true>(q, k, v, 1.0)\n}\n"


@test
def masked_row_of_attention_is_zero(c: Cli) -> None:
    q, k = np.ones((1, 1, 4, 2), np.float32), np.ones((1, 1, 2, 2), np.float32)
    v = f32([5, 6], [7, 8]).reshape(1, 1, 2, 2)
    c.gives(ATTENTION, {"q": q, "k": k, "v": v}, {"o": f32([0, 0], [0, 0], [5, 6], [6, 7]).reshape(1, 1, 4, 2)}, rtol=1e-6)


@test
def nan_in_masked_value_stays_there(c: Cli) -> None:
    ones = np.ones((1, 1, 2, 2), np.float32)
    v = f32([5, 6], [NAN, NAN]).reshape(1, 1, 2, 2)
    c.gives(ATTENTION, {"q": ones, "k": ones, "v": v}, {"o": f32([5, 6], [NAN, NAN]).reshape(1, 1, 2, 2)}, rtol=1e-6)


@test
def nan_in_masked_key_stays_there(c: Cli) -> None:
    ones = np.ones((1, 1, 2, 2), np.float32)
    k = f32([1, 1], [NAN, INF]).reshape(1, 1, 2, 2)
    v = f32([5, 6], [7, 8]).reshape(1, 1, 2, 2)
    c.gives(ATTENTION, {"q": ones, "k": k, "v": v}, {"o": f32([5, 6], [NAN, NAN]).reshape(1, 1, 2, 2)}, rtol=1e-6)


@test
def softmax_of_masked_row_is_nan(c: Cli) -> None:
    text = "import std.nn { softmax }\nop f(x: f32[M, N]) -> y: f32[M, N] {\n  y = softmax(x)\n}\n"
    c.gives(text, {"x": f32([-INF, -INF], [0, -INF])}, {"y": f32([NAN, NAN], [1, 0])})


@test
def reduction_masks_leave_out(c: Cli) -> None:
    x = f32([1, NAN, 4], [2, NAN, 6])
    c.gives(row_op("sum(n where n != 1) x[m, n]"), {"x": x}, {"y": f32(5, 8)})
    c.gives(row_op("max(n where n > 5) x[m, n]"), {"x": x}, {"y": f32(-INF, -INF)})
    c.gives(row_op("prod(n where x[m, n] < 3) x[m, n]"), {"x": x}, {"y": f32(1, 2)})


@test
def condition_guards_an_access(c: Cli) -> None:
    text = "op f(x: f32[N]) -> y: f32[N] {\n  y[n] = if n > 0 then x[n - 1] else 9\n}\n"
    c.gives(text, {"x": f32(1, 2, 3)}, {"y": f32(9, 1, 2)})


# ---- reads and writes outside


@test
def gather_outside_gives_zero(c: Cli) -> None:
    text = "op f(x: f32[N, D], i: i64[M]) -> y: f32[M, D] {\n  y[m, d] = x[i[m], d]\n}\n"
    i = np.array([0, -1, 2, 1, 2**62, -(2**63)])
    x = f32([1, 2], [3, 4])
    c.gives(text, {"x": x, "i": i}, {"y": f32([1, 2], [0, 0], [0, 0], [3, 4], [0, 0], [0, 0])})


@test
def gather_outside_gives_default(c: Cli) -> None:
    text = "op f(x: i32[N], i: i32[M]) -> y: i32[M] {\n  y[m] = x[i[m] + 1] or -7\n}\n"
    c.gives(text, {"x": i32(1, 2), "i": i32(-2, -1, 0, 1, MAX32)}, {"y": i32(-7, 1, 2, -7, -7)})


@test
def scatter_outside_is_dropped(c: Cli) -> None:
    text = "op f(x: f32[M], i: i32[M]) -> y: f32[N] {\n  y[i[m]] += x[m]\n}\n"
    c.gives(text, {"x": f32(1, 2, 4, 8, 16), "i": i32(0, -1, 3, 2, 0)}, {"y": f32(17, 0, 8)}, "--set", "N=3")


@test
def defaults_outside(c: Cli) -> None:
    c.gives(map_op("x[n - 1] or 0.5"), {"x": f32(1, 2, 3)}, {"y": f32(0.5, 1, 2)})
    c.gives(map_op("(x[n - 1] or -inf) + (x[n + 1] or 0)"), {"x": f32(1, 2, 3)}, {"y": f32(-INF, 4, 2)})


@test
def default_may_be_an_expression(c: Cli) -> None:
    c.gives(map_op("x[n - 1] or x[n] * 10"), {"x": f32(1, 2)}, {"y": f32(10, 1)})


# ---- integers


@test
def floor_division_and_remainder(c: Cli) -> None:
    x, z = i32(7, -7, 7, -7, 0, 5), i32(2, 2, -2, -2, 3, 0)
    text = "op f(x: i32[N], z: i32[N]) -> (q: i32[N], r: i32[N]) {\n  q[n] = x[n] / z[n]\n  r[n] = x[n] % z[n]\n}\n"
    c.gives(text, {"x": x, "z": z}, {"q": i32(3, -4, -4, 3, 0, 0), "r": i32(1, 1, -1, -1, 0, 0)})


@test
def smallest_integer_over_minus_one(c: Cli) -> None:
    text = "op f(x: i32[N], z: i32[N]) -> (q: i32[N], r: i32[N]) {\n  q[n] = x[n] / z[n]\n  r[n] = x[n] % z[n]\n}\n"
    c.gives(text, {"x": i32(MIN32), "z": i32(-1)}, {"q": i32(MIN32), "r": i32(0)})
    wide = text.replace("i32", "i64")
    c.gives(wide, {"x": np.array([-(2**63)]), "z": np.array([-1])}, {"q": np.array([-(2**63)]), "r": np.array([0])})


@test
def integers_wrap(c: Cli) -> None:
    c.gives(map_op("x[n] + 1", "i32", "i32"), {"x": i32(MAX32)}, {"y": i32(MIN32)})
    c.gives(map_op("x[n] * x[n]", "i32", "i32"), {"x": i32(65536, 46341)}, {"y": i32(0, -2147479015)})
    c.gives(map_op("-x[n]", "i32", "i32"), {"x": i32(MIN32)}, {"y": i32(MIN32)})
    c.gives(map_op("abs(x[n])", "i32", "i32"), {"x": i32(MIN32, -5)}, {"y": i32(MIN32, 5)})
    c.gives(map_op("x[n] + 1", "i64", "i64"), {"x": np.array([2**63 - 1])}, {"y": np.array([-(2**63)])})


@test
def integer_sum_wraps(c: Cli) -> None:
    c.gives(row_op("sum(n) x[m, n]", "i32", "i32"), {"x": i32([MAX32, 1])}, {"y": i32(MIN32)})
    c.gives(row_op("prod(n) x[m, n]", "i32", "i32"), {"x": i32([65536, 65536])}, {"y": i32(0)})


@test
def narrow_stores_wrap(c: Cli) -> None:
    c.gives(map_op("x[n]", "i32", "i8"), {"x": i32(300, -129, 127)}, {"y": np.array([44, 127, 127], np.int8)})
    c.gives(map_op("x[n]", "i32", "u8"), {"x": i32(-5, 256)}, {"y": np.array([251, 0], np.uint8)})
    c.gives(map_op("x[n]", "i64", "i32"), {"x": np.array([2**32 + 5])}, {"y": i32(5)})


@test
def casts_saturate(c: Cli) -> None:
    c.gives(map_op("i8(x[n])", "i32", "i8"), {"x": i32(300, -129, 5)}, {"y": np.array([127, -128, 5], np.int8)})
    c.gives(map_op("u8(x[n])", "i32", "u8"), {"x": i32(-5, 256)}, {"y": np.array([0, 255], np.uint8)})
    c.gives(map_op("i8(x[n])", "i64", "i8"), {"x": np.array([2**40, -(2**40)])}, {"y": np.array([127, -128], np.int8)})


@test
def cast_of_long_to_int_saturates(c: Cli) -> None:
    c.gives(map_op("i32(x[n])", "i64", "i32"), {"x": np.array([2**40, -(2**40)])}, {"y": i32(MAX32, MIN32)})


@test
def casts_of_floats(c: Cli) -> None:
    x = f32(2.9, -2.9, 3e9, -3e9, INF, -INF, NAN)
    c.gives(map_op("i32(x[n])", y="i32"), {"x": x}, {"y": i32(2, -2, MAX32, MIN32, MAX32, MIN32, 0)})
    c.gives(map_op("i8(x[n])", y="i8"), {"x": x}, {"y": np.array([2, -2, 127, -128, 127, -128, 0], np.int8)})
    c.gives(map_op("u8(x[n])", y="u8"), {"x": x}, {"y": np.array([2, 0, 255, 0, 255, 0, 0], np.uint8)})
    big = [2, -2, 3000000000, -3000000000, 2**63 - 1, -(2**63), 0]
    c.gives(map_op("i64(x[n])", y="i64"), {"x": x}, {"y": np.array(big)})


@test
def cast_to_bool(c: Cli) -> None:
    c.gives(map_op("bool(x[n])", "i32", "bool"), {"x": i32(0, 1, 2, 256, -1)}, {"y": [False, True, True, True, True]})


@test
def bit_operations(c: Cli) -> None:
    x = i32(5, -1, MIN32)
    c.gives(map_op("(x[n] & 3) | 8", "i32", "i32"), {"x": x}, {"y": (x & 3) | 8})
    c.gives(map_op("~x[n] ^ 1", "i32", "i32"), {"x": x}, {"y": ~x ^ 1})
    c.gives(map_op("x[n] >> 1", "i32", "i32"), {"x": x}, {"y": x >> 1})
    c.gives(map_op("x[n] << 1", "i32", "i32"), {"x": x}, {"y": i32(10, -2, 0)})


@test
def shifts_by_too_much_agree(c: Cli) -> None:
    source = c.file("op f(x: i32[N], s: i32[N]) -> (l: i32[N], r: i32[N]) {\n  l[n] = x[n] << s[n]\n  r[n] = x[n] >> s[n]\n}\n")
    inputs = {"x": i32(5, -5, 5, -5), "s": i32(32, 40, -1, MIN32)}
    compiled, interpreted = (c.outputs(source, inputs, *how) for how in ([], ["--interpret"]))
    require(all((compiled[k] == interpreted[k]).all() for k in "lr"), f"{compiled} and {interpreted}")


@test
def promotion_of_integers_and_floats(c: Cli) -> None:
    c.gives(map_op("x[n] / 2", "i32", "i32"), {"x": i32(-3)}, {"y": i32(-2)})
    c.gives(map_op("x[n] / 2.0", "i32", "f32"), {"x": i32(-3)}, {"y": f32(-1.5)})
    c.gives(map_op("x[n] + n", "i32", "i64"), {"x": i32(MAX32, MAX32)}, {"y": np.array([MAX32, 2**31])})
    c.gives(map_op("x[n] / 3", "f64", "f64"), {"x": np.array([1.0])}, {"y": np.array([1 / 3])})
    c.gives(map_op("x[n] * 0.1", "f64", "f64"), {"x": np.array([1.0])}, {"y": np.array([0.1])})


# ---- narrow floats


def bits16(*values: float) -> np.ndarray:
    """The bits of bf16 values that are exact."""
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


@test
def f16_overflows_to_infinity(c: Cli) -> None:
    x = f32(65504, 65519, 65520, -1e6, NAN, 2**-25, 3 * 2**-25)
    c.gives(map_op("x[n]", y="f16"), {"x": x}, {"y": np.array([65504, 65504, INF, -INF, NAN, 0, 2**-23], np.float16)})


@test
def f16_sum_does_not_overflow(c: Cli) -> None:
    c.gives(row_op("sum(n) x[m, n]", "f16", "f32"), {"x": np.full((1, 4), 60000, np.float16)}, {"y": f32(240000 - 4 * 16 + 64)})


@test
def bf16_rounds_to_even(c: Cli) -> None:
    x = f32(1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, NAN)
    source = c.file(map_op("x[n]", y="bf16"))
    for how in ([], ["--interpret"]):
        y = c.outputs(source, {"x": x}, *how)["y"].view(np.uint16)
        require((y[:3] == np.array([0x3F80, 0x3F82, 0x7F80])).all() and (y[3] & 0x7FFF) > 0x7F80, f"{y} {how}")


@test
def bf16_arithmetic_is_wide(c: Cli) -> None:
    c.gives(map_op("x[n] + 0.001", "bf16", "f32"), {"x": bits16(1)}, {"y": f32(np.float32(1) + np.float32(0.001))})


@test
def f8_saturates(c: Cli) -> None:
    x = f32(448, 500, 1e9, -1e9, INF)
    source = c.file("op f(x: f32[N]) -> (a: f8e4m3[N], b: f8e5m2[N]) {\n  a[n] = f8e4m3(x[n])\n  b[n] = f8e5m2(x[n])\n}\n")
    for how in ([], ["--interpret"]):
        y = {k: v.view(np.uint8).tolist() for k, v in c.outputs(source, {"x": x}, *how).items()}
        require(y["a"] == [0x7E, 0x7E, 0x7E, 0xFE, 0x7E], f"f8e4m3 {y['a']} {how}")
        require(y["b"] == [0x5F, 0x60, 0x7B, 0xFB, 0x7B], f"f8e5m2 {y['b']} {how}")


@test
def f8_nan_and_small_values(c: Cli) -> None:
    source = c.file(map_op("f8e4m3(x[n])", y="f8e4m3"))
    for how in ([], ["--interpret"]):
        y = c.outputs(source, {"x": f32(NAN, 2**-9, 2**-10, 0.0, 17)}, *how)["y"].view(np.uint8)
        require((y[0] & 0x7F) == 0x7F and y[1:].tolist() == [1, 0, 0, 0x58], f"{y} {how}")


@test
def tf32_rounds_ties_away(c: Cli) -> None:
    x = f32(1 + 2**-11, 1 + 2**-12, -(1 + 2**-11))
    c.gives(map_op("tf32(x[n])"), {"x": x}, {"y": f32(1 + 2**-10, 1, -(1 + 2**-10))})


# ---- ties, order


@test
def argmax_takes_the_first(c: Cli) -> None:
    x = f32([1, 3, 3, 2], [5, 5, 5, 5], [-INF, -INF, -INF, -INF])
    c.gives(row_op("argmax(n) x[m, n]", y="i64"), {"x": x}, {"y": np.array([1, 0, 0])})
    c.gives(row_op("argmin(n) x[m, n]", y="i64"), {"x": x}, {"y": np.array([0, 0, 0])})


@test
def argmax_of_nan(c: Cli) -> None:
    c.gives(row_op("argmax(n) x[m, n]", y="i64"), {"x": f32([1, NAN, 7, NAN])}, {"y": np.array([1])})


@test
def argmax_with_value(c: Cli) -> None:
    text = "op f(x: f32[M, N]) -> (v: f32[M], i: i64[M]) {\n  v[m], i[m] = argmax(n) x[m, n]\n}\n"
    c.gives(text, {"x": f32([1, 3, 3])}, {"v": f32(3), "i": np.array([1])})


@test
def topk_ties_and_nan(c: Cli) -> None:
    text = "op f(x: f32[N]) -> (v: f32[4], i: i64[4]) {\n  v[j], i[j] = topk(n, 4) x[n]\n}\n"
    c.gives(text, {"x": f32(2, 7, 7, NAN, 2)}, {"v": f32(NAN, 7, 7, 2), "i": np.array([3, 1, 2, 0])})
    c.gives(text, {"x": f32(5, 6)}, {"v": f32(6, 5, -INF, -INF), "i": np.array([1, 0, -1, -1])})


@test
def topk_of_minus_infinity(c: Cli) -> None:
    text = "op f(x: f32[N]) -> (v: f32[3], i: i64[3]) {\n  v[j], i[j] = topk(n, 3) x[n]\n}\n"
    c.gives(text, {"x": f32(-INF, -INF, 1)}, {"v": f32(1, -INF, -INF), "i": np.array([2, 0, 1])})


@test
def topk_into_a_shorter_output(c: Cli) -> None:
    source = c.file("op f(x: f32[N]) -> (v: f32[2], i: i64[2]) {\n  v[j], i[j] = topk(n, 8) x[n]\n}\n")
    for how in ([], ["--interpret"]):
        require(c.run("run", source, "--set", "N=16", *how).exit == 1, "eight elements are written into two")


@test
def scans(c: Cli) -> None:
    x = i32(3, -1, 4)
    for what, values in (("sum", (3, 2, 6)), ("max", (3, 3, 4)), ("prod", (3, -3, -12)), ("exclusive sum", (0, 3, 2)), ("exclusive prod", (1, 3, -3))):
        c.gives(f"op f(x: i32[N]) -> y: i32[N] {{\n  y[n] = scan {what}(n) x[n]\n}}\n", {"x": x}, {"y": i32(*values)})


@test
def segments_with_empty_groups(c: Cli) -> None:
    offsets = i32(0, 0, 3, 3, 5)
    c.gives("op f(x: i32[N], offsets: i32[E]) -> y: i64[N] {\n  y[n] = segment(offsets, n)\n}\n", {"x": i32(0, 0, 0, 0, 0), "offsets": offsets}, {"y": np.array([1, 1, 1, 3, 3])})
    text = "op f(x: f32[N], w: f32[E], offsets: i32[E + 1]) -> y: f32[N] {\n  y[n] = x[n] * w[segment(offsets, n)]\n}\n"
    c.gives(text, {"x": f32(1, 1, 1, 1, 1), "w": f32(10, 20, 30, 40), "offsets": offsets}, {"y": f32(20, 20, 20, 40, 40)})


@test
def segment_outside_all_groups(c: Cli) -> None:
    source = c.file("op f(x: f32[N], w: f32[E], offsets: i32[E + 1]) -> y: f32[N] {\n  y[n] = x[n] * w[segment(offsets, n)]\n}\n")
    inputs = {"x": f32(1, 1, 1, 1), "w": f32(10, 20), "offsets": i32(1, 2, 3)}
    compiled, interpreted = (c.outputs(source, inputs, *how)["y"] for how in ([], ["--interpret"]))
    require((compiled[1:3] == f32(10, 20)).all() and (compiled == interpreted).all(), f"{compiled} and {interpreted}")


@test
def extent_from_a_tensor(c: Cli) -> None:
    source = c.file("op f(x: f32[N], l: i32[M]) -> y: f32[M] {\n  y[m] = sum(k in l[m]) (x[k] or 100)\n}\n")
    for how in ([], ["--interpret"]):
        done = c.run("run", source, "--in", c.array("x", f32(1, 2)), "--in", c.array("l", i32(1, 3)), "--out", c.folder / "o", *how)
        require(done.exit == 1 or (np.load(c.folder / "o" / "y.npy") == f32(1, 103)).all(), "neither refused nor right")


@test
def precedence(c: Cli) -> None:
    c.gives(map_op("2 + 3 * 4 - 10 / 2 / 5", y="f32"), {"x": f32(0)}, {"y": f32(13)})
    c.gives(map_op("-x[n] * 2 + 1"), {"x": f32(3)}, {"y": f32(-5)})
    c.gives(row_op("sum(n) x[m, n] + 1"), {"x": f32([1, 2])}, {"y": f32(5)})
    c.gives(row_op("(sum(n) x[m, n]) + 1"), {"x": f32([1, 2])}, {"y": f32(4)})
    c.gives(map_op("1 << 2 + 1 & 8 | 1", "i32", "i32"), {"x": i32(0)}, {"y": i32(9)})
    c.gives(map_op("if x[n] > 0 && x[n] < 2 || x[n] == 5 then 1 else 0", "i32", "i32"), {"x": i32(1, 3, 5)}, {"y": i32(1, 0, 1)})


@test
def short_circuit_guards(c: Cli) -> None:
    text = "op f(x: f32[N]) -> y: i32[N] {\n  y[n] = if n > 0 && x[n - 1] > 1 then 1 else 0\n}\n"
    c.gives(text, {"x": f32(2, 0, 2)}, {"y": i32(0, 1, 0)})


@test
def strided_and_packs(c: Cli) -> None:
    text = "op f(x: f32[..B, N]) -> y: f32[..B] {\n  y[..b] = sum(n) x[..b, n]\n}\n"
    source = c.file(text)
    for shape in ((2, 3), (2, 2, 3), (3,), (0, 2, 3)):
        for how in ([], ["--interpret"]):
            y = c.outputs(source, {"x": np.ones(shape, np.float32)}, *how)["y"]
            require(y.size == int(np.prod(shape[:-1])) and (y == 3).all(), f"{shape}: {y}")


@test
def duplicated_index_reads_the_diagonal(c: Cli) -> None:
    c.gives("op f(x: f32[N, N]) -> y: f32[N] {\n  y[n] = x[n, n]\n}\n", {"x": f32([1, 2], [3, 4])}, {"y": f32(1, 4)})


@test
def literals(c: Cli) -> None:
    c.gives(map_op("x[n] + 0x1f + 1_000", "i32", "i32"), {"x": i32(0)}, {"y": i32(1031)})
    c.gives(map_op("x[n] + 1.5e1 + pi"), {"x": f32(0)}, {"y": f32(np.float32(15) + np.float32(np.pi))}, rtol=1e-7)
    c.gives(map_op("x[n] + 9007199254740993", "i64", "i64"), {"x": np.array([0])}, {"y": np.array([9007199254740993])})
