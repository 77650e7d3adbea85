"""The same result each time, resources of a chip, compile time, saved plans, and a check that is not fooled."""
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench import TARGETS, Bench, difference, normal, real, reported, stored
from coverage import attention, product
from plans import staged, step, tiled


@reported("A2")
def a2_outputs_begin_anew(c: Bench) -> None:
    src, at = c.draw.integers(-9, 9, 60).astype(np.float32), c.draw.integers(0, 5, 60)
    out = np.bincount(at, real(src), 5)
    for _ in range(2):
        c.run("collect", {"src": src, "at": at}, {"out": out}, "B=5", exact=True)


@reported("A3")
def a3_wide_heads_run_on_every_chip(c: Bench) -> None:
    q, k, v = (normal(c.draw, "f32", 1, 1, n, 512) for n in (9, 11, 11))
    wanted = {"o": attention(real(q), real(k), real(v), 0.0625)}
    c.run("attend", {"q": q, "k": k, "v": v}, wanted, "scale=0.0625", targets=("sm_70",))
    product(c, "f64", 17, 40, 24, targets=("sm_70", "gfx90a"))
    product(c, "f64", 17, 40, 24, [tiled(8, 8, 16), staged(8, 8, 16)], targets=("sm_70", "gfx90a"), count=1)


@reported("A3", "H3")
def shared_memory_past_the_limit_is_refused(c: Bench) -> None:
    for target, limit in (("sm_70", 98304), ("gfx90a", 65536)):
        plan, out = c.plan("products.matmul", staged(128, 128, 128, 2), f"emu:{target}", c.folder), c.folder / target
        words = [*c.source("products.matmul"), "--target", target, "--set", "T=f32,M=512,N=512,K=512", "--plan", plan, "-o", out]
        c.refused("compile", words, 1, "shared", str(limit))
        c.verdict("files were written" if out.exists() and any(out.iterdir()) else "", f"refused for {target}")


@reported("A5")
def a5_many_processes_at_once(c: Bench) -> None:
    words = ["compile", *c.source("scores"), "--target", "sm_80"]
    c.call(*words, "-o", c.folder / "alone")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: c.call(*words, "-o", c.folder / "shared"), range(16 if c.options.everything else 8)))
    c.verdict(next((d.stderr for d in done if d.returncode), ""), "processes at once")
    for path in sorted((c.folder / "alone").iterdir()):
        c.verdict("" if path.read_bytes() == (c.folder / "shared" / path.name).read_bytes() else "another file than one process alone writes", path.name)


@reported("A8")
def a8_compile_time(c: Bench) -> None:
    tests = [("scores", f"M=4,N={n}", ()) for n in (65536, 131072)]
    tests += [("products.matmul", "T=f32,M=64,N=64,K=4096", [*tiled(16, 16, 16), step("unroll", "k.o", factor=64)])]
    for op, sets, steps in tests:
        for target in c.some(TARGETS, 1):
            start = time.monotonic()
            out = c.folder / f"{target}-{sets}"
            plan = ["--plan", c.plan(op, steps, f"emu:{target}", c.folder)] if steps else []
            done = c.call("compile", *c.source(op), "--target", target, "--set", sets, *plan, "-o", out)
            seconds, size = time.monotonic() - start, sum(p.stat().st_size for p in out.glob("*"))
            good = done.returncode == 0 and seconds < 20 and size < 2**20
            c.verdict("" if good else f"exit {done.returncode}, {seconds:.1f} s, {size} bytes\n{done.stderr[:800]}", f"{op} {sets} for {target}")


@reported("A9")
def a9_wrong_results_are_seen(c: Bench) -> None:
    """What compares here: of an empty kernel, of one that leaves the last answer, of one that writes NaN."""
    now, before = c.draw.normal(size=(5, 7)), c.draw.normal(size=(5, 7))
    for dtype in ("f16", "bf16", "f32", "f64"):
        for wrong in (np.zeros((5, 7)), before, np.full((5, 7), np.nan), now[:, ::-1], np.where(np.arange(7) < 6, now, np.nan), now * 1.1):
            c.verdict("" if difference(stored(wrong, dtype), now, dtype, False, None) else "is taken as right", f"a wrong {dtype}")
        c.verdict(difference(stored(now, dtype), now, dtype, False, None), f"a right {dtype}")


@reported("A9", "M4")
def a9_m4_the_check_says_where(c: Bench) -> None:
    x = np.array([0, 0.3, 0.25], np.float32)
    for device in c.devices(TARGETS):
        words = [*c.source("lost"), *c.files({"x": x}, c.folder), "--device", device, "--check"]
        c.refused("run", words, 4, "wrong: `y`", "element 1 is 0 but should be 0.3")
    before = (c.folder / "x.npy").read_bytes()
    c.refused("run", [*c.source("kept"), *c.files({"x": x}, c.folder), "--check"], 0, "correct: `y`")
    c.verdict("" if (c.folder / "x.npy").read_bytes() == before else "an input file has changed", "inputs stay")


@reported("A10")
def a10_a_plan_of_another_chip_is_refused(c: Bench) -> None:
    plan = c.plan("products.matmul", tiled(16, 16, 16), "emu:sm_90a", c.folder)
    words = [*c.source("products.matmul"), "--plan", plan]
    for target in ("sm_80", "gfx90a", "sm_70"):
        c.refused("compile", [*words, "--target", target, "--set", "T=f32", "-o", c.folder / "out"], 1, "plan.target", f"the plan is for sm_90a, not for {target}")
    c.refused("run", [*words, "--device", "emu:sm_80", "--set", "T=f32,M=8,N=8,K=8"], 1, "plan.target")
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "definition": "0123456789abcdef"}))
    c.refused("compile", [*words, "--target", "sm_90a", "--set", "T=f32", "-o", c.folder / "out"], 1, "plan.stale")
