"""Default plans of matrix products: instructions of each target, ragged and empty sizes in every order of the operands, addresses that the copy engine cannot take."""
import itertools
import json
import os
import random

from harness import Cli, require, test

ORDERS = {"nn": ("M, K", "K, N", "a[m, k] * b[k, n]"), "nt": ("M, K", "N, K", "a[m, k] * b[n, k]"), "tn": ("K, M", "K, N", "a[k, m] * b[k, n]"), "tt": ("K, M", "N, K", "a[k, m] * b[n, k]")}
SIZES = (0, 1, 3, 8, 16, 17, 63, 64, 65, 127, 129)
SAMPLES = 10    # of the shapes, for each target
INSTRUCTIONS = {"sm_70": "sm70.mma_f16", "sm_80": "sm80.mma_f16", "sm_90a": "sm90.wgmma_f16", "gfx90a": "gfx90a.mfma_f16"}


def product(order: str) -> str:
    a, b, term = ORDERS[order]
    return f"op matmul<T: f16 | bf16>(a: T[{a}], b: T[{b}], bias: T[N]) -> y: T[M, N] {{\n  acc[m, n] = sum(k) {term}\n  y[m, n] = max(acc[m, n] + bias[n], 0)\n}}\n"


def bound(c: Cli, source: object, target: str, sizes: str) -> set[str]:
    plan = json.loads(c.run("compile", source, "--target", target, "--set", sizes, "--emit", "plan").expect(0).out)
    return {d["params"]["via"] for d in plan["decisions"] if d["pass"] == "bind_mma"}


@test
def every_target_multiplies_by_its_instructions(c: Cli) -> None:
    for order, (target, via) in itertools.product(ORDERS, INSTRUCTIONS.items()):
        found = bound(c, c.file(product(order)), target, "T=f16,M=512,N=768,K=1024")
        require(len(found) == 1 and found.pop().startswith(via), f"{order} on {target} is computed otherwise")
        c.run("compile", c.file(product(order)), "--target", target, "--set", "T=f16", "-o", c.folder / f"{order}.{target}").expect(0)


@test
def ragged_and_empty_products(c: Cli) -> None:
    draw = random.Random(int(os.environ.get("ACU_SEED", "1")))
    for target in INSTRUCTIONS:
        for _ in range(SAMPLES):
            order, m, n, k = draw.choice(list(ORDERS)), draw.choice(SIZES), draw.choice(SIZES), draw.choice(SIZES)
            type_ = "f16" if target == "sm_70" else draw.choice(("f16", "bf16"))
            done = c.run("run", c.file(product(order)), "--device", f"emu:{target}", "--set", f"T={type_},M={m},N={n},K={k}", "--check").expect(0)
            require("correct: `y`" in done.out, f"{order} {m}x{n}x{k} {type_} on {target}: {done.out}")


@test
def products_over_many_tiles(c: Cli) -> None:
    """Roles go round: more tiles than blocks of a cluster, more terms than stages, lines that are no whole vectors."""
    for order, sizes in (("nt", "M=300,N=520,K=640"), ("nn", "M=257,N=261,K=299"), ("tn", "M=264,N=264,K=512"), ("nn", "M=256,N=256,K=8192")):
        source = c.file(product(order))
        require(bound(c, source, "sm_90a", f"T=bf16,{sizes}") == {"sm90.wgmma_f16"}, f"{order} {sizes} is computed otherwise")
        done = c.run("run", source, "--device", "emu:sm_90a", "--set", f"T=bf16,{sizes}", "--check").expect(0)
        require("correct: `y`" in done.out, f"{order} {sizes}: {done.out}")


@test
def few_rows_in_a_ring_of_swizzled_tiles(c: Cli) -> None:
    """A tile of 16 rows is shorter than the pattern of its lines could be: the versions of its ring must be permuted alike."""
    source = c.file("op apply(p: f32[B, H, L], c: bf16[B, L, D]) -> o: bf16[B, H, D] {\n  o[b, h, d] = sum(j) p[b, h, j] * c[b, j, d]\n}\n")
    for target in ("sm_80", "sm_90a"):
        done = c.run("run", source, "--device", f"emu:{target}", "--set", "B=32,H=16,L=256,D=512", "--check").expect(0)
        require("correct: `o`" in done.out, f"{target}: {done.out}")


@test
def other_addresses_have_other_kernels(c: Cli) -> None:
    c.run("compile", c.file(product("nt")), "--target", "sm_90a", "--set", "T=f16,M=512,N=512,K=512", "-o", c.folder / "fixed").expect(0)
    text = (c.folder / "fixed" / "matmul.cu").read_text()
    require("if (is_multiple(a->data, 16) && is_multiple(b->data, 16)" in text and "warpgroup_tile<Operand" in text and "mma_tile<Operand" in text, "the copy engine's kernel has no other behind it")


@test
def warpgroups_take_turns_and_registers(c: Cli) -> None:
    """Few terms and heavy ends: one warpgroup ends its tile while another multiplies. The role that copies leaves its registers to those that multiply where the block is alone."""
    for sizes, turns, shares in (("M=8192,N=4096,K=1024", True, True), ("M=4096,N=4096,K=14336", False, True), ("M=16,N=14336,K=4096", False, False)):
        c.run("compile", c.file(product("nt")), "--target", "sm_90a", "--set", f"T=f16,{sizes}", "-o", c.folder / sizes).expect(0)
        text = (c.folder / sizes / "matmul.cu").read_text()
        plan = json.loads((c.folder / sizes / "matmul.plan.json").read_text())
        require(any(d["pass"] == "ping_pong" for d in plan["decisions"]) == turns, f"{sizes}: turns")
        for sign in ("set_registers<232, true>();", "set_registers<40, false>();", "__launch_bounds__(384, 1)"):
            require((sign in text) == shares, f"{sizes}: {sign}")


COMPUTED = """op dequantised<T: f16 | bf16>(x: T[M, K], w: i8[N, K], s: T[N]) -> y: T[M, N] {
  acc[m, n] = sum(k) x[m, k] * w[n, k]
  y[m, n] = acc[m, n] * s[n]
}

op scaled(x: f8e4m3[M, K], w: f8e4m3[N, K], sx: f32[M, K/64], sw: f32[N/64, K/64]) -> y: f32[M, N]
where K % 64 == 0, N % 64 == 0 {
  y[m, n] = sum(k) x[m, k] * sx[m, k / 64] * w[n, k] * sw[n / 64, k / 64]
}

op rounded<T: f16 | bf16>(x: T[M, K], g: f32[K], w: T[N, K]) -> y: T[M, N] {
  y[m, n] = sum(k) T(x[m, k] * g[k]) * w[n, k]
}

op strict(a: f32[M, K], b: f16[K, N]) -> y: f32[M, N] {
  y[m, n] = sum(k) a[m, k] * b[k, n]
}

op grouped<T: f16 | bf16>(x: T[M, K], w: T[E, N, K], offsets: i64[E1]) -> y: T[M, N]
where E1 == E + 1 {
  y[t, n] = sum(k) x[t, k] * w[segment(offsets, t), n, k]
}
"""
# operator, types, what multiplies on each target, at sizes of which all are large
MADE = (
    ("dequantised", "T=f16,M=512,N=512,K=512", {"sm_90a": "sm90.wgmma_f16", "sm_80": "sm80.mma_f16", "sm_70": "sm70.mma_f16", "gfx90a": "gfx90a.mfma_f16"}),
    ("dequantised", "T=f16,M=16,N=512,K=512", {"sm_90a": "sm80.mma_f16", "sm_80": "sm80.mma_f16", "sm_70": "sm70.mma_f16", "gfx90a": "gfx90a.mfma_f16"}),
    ("scaled", "M=512,N=512,K=512", {"sm_90a": "sm90.wgmma_f8", "sm_80": "sm80.mma_f16", "sm_70": "sm70.mma_f16", "gfx90a": "gfx90a.mfma_f16"}),
    ("rounded", "T=bf16,M=512,N=512,K=512", {"sm_90a": "sm90.wgmma_f16", "sm_80": "sm80.mma_f16", "sm_70": "common.mma_fma", "gfx90a": "gfx90a.mfma_f16"}),
    ("strict", "M=512,N=512,K=512", {"sm_90a": "common.mma_fma", "sm_80": "common.mma_fma", "sm_70": "common.mma_fma"}),
    ("grouped", "T=bf16,M=512,N=512,K=512,E=4", {"sm_90a": "sm90.wgmma_f16", "sm_80": "sm80.mma_f16", "gfx90a": "gfx90a.mfma_f16"}),
)


@test
def factors_are_made_for_the_instructions(c: Cli) -> None:
    source = c.file(COMPUTED)
    for op, sizes, targets in MADE:
        for target, via in targets.items():
            c.run("compile", source, "--op", op, "--target", target, "--set", sizes, "-o", c.folder / f"{op}.{target}").expect(0)
            plan = json.loads((c.folder / f"{op}.{target}" / f"{op}.plan.json").read_text())
            found = {d["params"]["via"] for d in plan["decisions"] if d["pass"] == "bind_mma"}
            require(len(found) == 1 and found.pop().startswith(via), f"{op} {sizes} on {target} is computed otherwise")


@test
def products_of_made_factors(c: Cli) -> None:
    """Ragged, of several tiles, empty; groups of rows of any length."""
    source = c.file(COMPUTED)
    draw = random.Random(int(os.environ.get("ACU_SEED", "1")))
    shapes = (("dequantised", "T=f16,M=17,N=130,K=300"), ("dequantised", "T=bf16,M=300,N=264,K=272"), ("scaled", "M=150,N=192,K=320"), ("scaled", "M=3,N=64,K=0"), ("rounded", "T=bf16,M=65,N=127,K=129"),
              ("rounded", "T=f16,M=260,N=264,K=256"), ("strict", "M=65,N=130,K=67"), ("strict", "M=128,N=0,K=5"), ("grouped", "T=f16,M=300,N=264,K=128,E=5"), ("grouped", "T=bf16,M=37,N=70,K=33,E=9"), ("grouped", "T=bf16,M=0,N=8,K=8,E=3"))
    for op, sizes in shapes:
        target = draw.choice(("sm_70", "sm_80", "sm_90a", "sm_90a", "gfx90a"))
        if target == "gfx90a" and op == "strict": target = "sm_80"
        done = c.run("run", source, "--op", op, "--device", f"emu:{target}", "--set", sizes, "--check").expect(0)
        require("correct: `y`" in done.out, f"{op} {sizes} on {target}: {done.out}")
