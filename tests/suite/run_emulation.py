#!/usr/bin/env python3
"""Reduced cases of the suite on emulated devices, compared with float64: the emitted text of every target runs, and every access is checked.

Without --all a sample, drawn by a seed that is printed (ACU_SEED chooses it); some runs are in guard mode or in a random order of threads.
"""
import argparse
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import Case, read_cases

TARGETS = ("sm_70", "sm_80", "sm_90a", "gfx90a")
SAMPLE = 120
Run = tuple[Case, str, tuple[str, ...]]


def command(acuc: str, run: Run) -> list[str]:
    case, target, extra = run
    return [acuc, "run", str(case.file), "--case", case.name, "--device", f"emu:{target}", "--check", *extra]


def call(acuc: str, run: Run) -> str:
    """Empty, or what went wrong."""
    words = command(acuc, run)
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return f"{' '.join(words)}: no end after 600 s"
    return "" if done.returncode == 0 else f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}"


def ways(draw: random.Random) -> tuple[str, ...]:
    """In order, in guard mode, or in a random order."""
    return draw.choice([(), (), ("--emu-guard",), ("--emu-shift", "8"), ("--emu-seed", str(draw.randrange(1, 1000)))])


def chosen(everything: bool, draw: random.Random) -> list[Run]:
    runs = [(case, target, ways(draw)) for case in read_cases().values() if case.name.endswith("_small") for target in TARGETS]
    return runs if everything else draw.sample(runs, min(SAMPLE, len(runs)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--all", action="store_true", help="every case on every target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    acuc = str(Path(options.build) / "acuc")
    seed = int(os.environ.get("ACU_SEED", random.randrange(1 << 16)))
    runs = chosen(options.all, random.Random(seed))
    print(f"seed {seed}: {len(runs)} runs", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        failed = [error for error in pool.map(lambda run: call(acuc, run), runs) if error]
    print("\n".join(failed), end="\n" if failed else "")
    print(f"{len(runs) - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
