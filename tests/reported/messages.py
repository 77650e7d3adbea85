"""What is said when something fails: the place, the step, the numbers."""
import os
import shutil
import subprocess

from bench import Bench, Steps, reported
from plans import fused, staged, step, tiled

HEAD = "T=f32,M=64,N=64,K=64"
REFUSALS: list[tuple[Steps, tuple[str, ...]]] = [
    ([step("tile", "acc", axes={"q": 8})], ("tile.axis", "step 1, `tile(acc, q = 8)`", "`q`")),
    ([step("tile", "ac", axes={"k": 8})], ("site.unknown", "did you mean `acc`?")),
    ([step("tile", "acc", axes={"k": 0})], ("step 1", "0")),
    ([*tiled(16, 16, 16), step("pipeline", "k.o", stages=2)], ("step 4", "k.o")),
    ([*staged(16, 16, 16), step("pipeline", "k.o", stages=17)], ("step 5", "17", "16")),
    ([*fused(16, 16), step("persist", "m.o", ctas=4)], ("step 3", "m.o", "n.o")),
    ([*tiled(16, 16, 16), step("rasterize", "m.o", group=4)], ("step 4", "flatten")),
    ([*fused(16, 16), step("vectorize", "y", width=3)], ("step 3", "3")),
    ([*fused(16, 16), step("vectorize", "y", width=1, threads=33)], ("step 3", "33", "32")),
    ([step("split_reduction", "y", axis="k", count=2)], ("step 1", "not a reduction")),
]


@reported("M2")
def m2_refused_steps_say_what_and_why(c: Bench) -> None:
    for i, (steps, texts) in enumerate(REFUSALS):
        (c.folder / str(i)).mkdir()
        plan = c.plan("products.matmul", steps, "emu:sm_80", c.folder / str(i))
        c.refused("compile", [*c.source("products.matmul"), "--set", HEAD, "--plan", plan, "-o", c.folder / "out"], 1, *texts)
    c.verdict("files were written" if (c.folder / "out").exists() else "", "refused")


@reported("M1")
def m1_a_missing_compiler_is_named(c: Bench) -> None:
    """No compiler for what is emitted: its name and how to get it, no inner error, nothing left behind."""
    if not c.options.emulated:
        return
    words = [str(c.options.acuc), "run", *map(str, c.source("coverage.copy")), "--set", "T=f32,M=2,N=3", "--device", "emu:sm_80"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env={"PATH": str(c.folder)})
    c.verdict("" if done.returncode == 3 and "g++" in done.stderr else f"exit {done.returncode}: {done.stdout}{done.stderr}", "no host compiler")


@reported("M1")
def m1_a_compiler_that_fails_is_quoted(c: Bench) -> None:
    """What the compiler said comes with the operator and the compiler's name."""
    real = shutil.which("g++")
    if not c.options.emulated or not real:
        return
    fake = c.folder / "g++"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *--version*) exec {real} "$@";; esac\necho "matmul.cu:12: error: injected fault" >&2\nexit 1\n')
    fake.chmod(0o755)
    words = [str(c.options.acuc), "run", *map(str, c.source("products.matmul")), "--set", "T=f32,M=2,N=3,K=4", "--device", "emu:sm_80"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": f"{c.folder}:{os.environ['PATH']}", "ACU_HOST_CXX": str(fake)})
    said = done.stdout + done.stderr
    missing = [t for t in ("injected fault", "matmul", "g++") if t not in said]
    c.verdict(f"exit {done.returncode}, no {missing}: {said[:800]}" if missing or done.returncode not in (3, 4) else "", "a host compiler that fails")
