"""Default plans of attention and of what else is two products with a softmax between: one kernel, no scores in memory, masks that leave tiles out; on every target, ragged, masked and empty."""
import json
import os
import random

from harness import Cli, require, test

ATTENTION = """
import std.nn { softmax }
op attention<T: f16 | bf16, causal: bool = false>(q: T[B, H, S, D], k: T[B, G, L, D], v: T[B, G, L, D], scale: f32) -> o: T[B, H, S, D]
where H % G == 0 {
  s[b, h, i, j] = scale * (sum(d) q[b, h, i, d] * k[b, h / (H/G), j, d])
  t[b, h, i, j] = if causal && j > i + (L - S) then -inf else s[b, h, i, j]
  p = softmax(t)
  o[b, h, i, d] = sum(j) p[b, h, i, j] * v[b, h / (H/G), j, d]
}
op biased<T: f16 | bf16, window: int = 70>(q: T[H, S, D], k: T[H, S, D], v: T[H, S, D], slope: f32[H]) -> o: T[H, S, D] {
  s[h, i, j] = 0.125 * (sum(d) q[h, i, d] * k[h, j, d])
  c[h, i, j] = 30 * tanh(s[h, i, j] / 30) - slope[h] * (i - j)
  t[h, i, j] = if j <= i && i - j < window then c[h, i, j] else -inf
  p = softmax(t)
  o[h, i, d] = sum(j) p[h, i, j] * v[h, j, d]
}
op lengths<T: f16 | bf16>(q: T[B, S, D], k: T[B, L, D], v: T[B, L, D], lens: i64[B]) -> o: T[B, S, D] {
  s[b, i, j] = 0.125 * (sum(d) q[b, i, d] * k[b, j, d])
  t[b, i, j] = if j < lens[b] then s[b, i, j] else -inf
  p = softmax(t)
  o[b, i, d] = sum(j) p[b, i, j] * v[b, j, d]
}
case some_lengths for lengths { T = f16, B = 3, S = 65, L = 200, D = 64, lens = integers(1, 200) }
"""
PRODUCTS = {"sm_70": ["sm70.mma_f16"] * 2, "sm_80": ["sm80.mma_f16", "sm80.mma_rows_f16"], "sm_90a": ["sm90.wgmma_f16", "sm90.wgmma_rows_f16"], "gfx90a": ["gfx90a.mfma_f16_32"] * 2}
SAMPLES = 6    # of the shapes, for each target


def decisions(c: Cli, *rest: str) -> list[dict]:
    return json.loads(c.run("compile", c.file(ATTENTION), *rest, "--emit", "plan").expect(0).out)["decisions"]


def correct(c: Cli, target: str, *rest: str) -> None:
    done = c.run("run", c.file(ATTENTION), *rest, "--device", f"emu:{target}", "--check").expect(0)
    require("correct: `o`" in done.out, f"{rest} on {target}: {done.out}")


@test
def one_kernel_on_every_target(c: Cli) -> None:
    for target, via in PRODUCTS.items():
        found = decisions(c, "--op", "attention", "--target", target, "--set", "T=f16,causal=true,B=1,H=4,G=2,S=256,L=256,D=64,scale=0.125")
        passes = [d["pass"] for d in found]
        require([d["params"]["via"] for d in found if d["pass"] == "bind_mma"] == via, f"{target} multiplies otherwise")
        require(all(p in passes for p in ("online", "trim", "decide", "narrow", "flip")) and passes.count("fuse") == 1, f"{target}: {passes}")
        require(("warp_specialize" in passes) == (target == "sm_90a"), f"roles on {target}")


@test
def wide_heads_start_the_next_scores_early(c: Cli) -> None:
    sizes = "T=bf16,causal=false,B=1,H=2,G=1,S=256,L=384,D=128,scale=0.1"
    require("overlap" in [d["pass"] for d in decisions(c, "--op", "attention", "--target", "sm_90a", "--set", sizes)], "nothing overlaps")
    c.run("compile", c.file(ATTENTION), "--op", "attention", "--target", "sm_90a", "--set", sizes, "-o", c.folder / "wide").expect(0)
    text = (c.folder / "wide" / "attention.cu").read_text()
    started, landed = text.index("warpgroup_rows<Operand"), text.index("warpgroup_landed<1>(")
    require(started < landed, "the scores are waited for before the other product starts")
    correct(c, "sm_90a", "--op", "attention", "--set", sizes)


@test
def ragged_masked_and_empty(c: Cli) -> None:
    draw = random.Random(int(os.environ.get("ACU_SEED", "1")))
    for target in PRODUCTS:
        for _ in range(SAMPLES):
            s, l, d, h = draw.choice((1, 5, 63, 65, 129, 200)), draw.choice((0, 1, 5, 64, 129, 200)), draw.choice((16, 32, 64, 72, 80, 96, 128)), draw.choice((1, 4))
            type_ = "f16" if target == "sm_70" else draw.choice(("f16", "bf16"))
            correct(c, target, "--op", "attention", "--set", f"T={type_},causal={draw.choice(('true', 'false'))},B=1,H={h},G=1,S={s},L={l},D={d},scale=0.125")


@test
def masks_and_scores_of_any_form(c: Cli) -> None:
    """A soft cap, a bias by distance and a window; lengths from memory: no other code than for the plain one."""
    for target in PRODUCTS:
        sizes = "T=f16,window=70,H=2,S=200,D=64"
        passes = [d["pass"] for d in decisions(c, "--op", "biased", "--target", target, "--set", sizes)]
        require("online" in passes and "trim" in passes, f"biased scores on {target}: {passes}")
        correct(c, target, "--op", "biased", "--set", sizes)
        correct(c, target, "--case", "some_lengths")
