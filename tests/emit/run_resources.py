#!/usr/bin/env python3
"""What the built-in planner makes of the memory-bound cases for sm_70 and gfx90a, full size, without a GPU: kernels that keep everything in registers, whole
warps (waves of 64 on gfx90a), accesses of 16 bytes, and reductions that a single warp joins without the block.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compile_cuda

ROOT = Path(__file__).resolve().parents[2]
WARP = {"sm_70": 32, "gfx90a": 64}
CASES = {"rd": range(1, 9), "nm": range(1, 9), "ew": range(1, 9), "pl": range(1, 9), "fm": range(1, 7), "gv": range(1, 4)}
# Elements that a thread takes together: 16 bytes where rows allow it; single ones where neighbouring threads are to lie beside each other.
WIDTHS = {"EW01": 8, "EW08": 4, "NM01": 8, "NM02": 4, "NM05": 8, "RD01": 4, "RD02": 8, "RD04": 8, "PL04": 8, "FM02": 8, "GV02": 8}
# Threads of the first kernel: one warp for a short row, even shares of a long one.
THREADS = {"sm_70": {"FM06": 16, "NM06": 224, "NM04": 384}, "gfx90a": {"NM06": 448, "NM03": 64, "FM06": 16}}


def emit(acuc: str, case: str, target: str, folder: Path) -> tuple[Path, dict]:
    file = ROOT / "benchmarks/suite" / f"{case[:2].lower()}.acu"
    done = subprocess.run([acuc, "compile", str(file), "--case", case, "--target", target, "-o", str(folder)], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(done.stderr)
    code = next(path for path in folder.iterdir() if path.suffix in (".cu", ".hip"))
    return code, json.loads(next(folder.glob("*.plan.json")).read_text())


def plan_faults(case: str, target: str, plan: dict) -> list[str]:
    vectors = [d["params"] for d in plan["decisions"] if d["pass"] == "vectorize"]
    threads = [p["threads"] for p in vectors if "threads" in p]
    warp, faults = WARP[target], []
    faults += [f"{t} threads are no whole warps of {warp}, nor a part of one" for t in threads if t % warp and warp % t]
    joins = {d["params"]["via"] for d in plan["decisions"] if d["pass"] == "bind_reduce"}
    if threads and threads[0] == warp and any(via.startswith("common.block") for via in joins) and len(threads) == 1:
        faults.append(f"one warp joins by {', '.join(sorted(joins))}")
    if case in WIDTHS and max((p["width"] for p in vectors), default=0) != WIDTHS[case]:
        faults.append(f"vectors of {[p['width'] for p in vectors]} instead of {WIDTHS[case]}")
    wanted = THREADS[target].get(case)
    if wanted and threads[:1] != [wanted]:
        faults.append(f"{threads[:1]} threads instead of {wanted}")
    return faults


def check(acuc: str, case: str, target: str, folder: Path) -> str:
    code, plan = emit(acuc, case, target, folder / case / target)
    spills = compile_cuda.nvrtc_spills(code.read_text(), target) if target == "sm_70" else compile_cuda.hip_spills(code, target)
    faults = plan_faults(case, target, plan) + [f"`{name}` stores {n} to memory for want of registers" for name, n in spills.items() if n and not name.endswith("_unaligned")]
    if not spills:
        faults.append("the compiler names no kernel")
    return f"{case} {target}: {'; '.join(faults)}" if faults else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", nargs="*", metavar="CASE")
    a = parser.parse_args()
    acuc = str(Path(a.build, "acuc").resolve())
    jobs = [(case, target) for family, numbers in CASES.items() for case in (f"{family.upper()}{n:02}" for n in numbers) if not a.only or case in a.only for target in WARP]
    with tempfile.TemporaryDirectory(prefix="acu_resources_") as folder, ThreadPoolExecutor(2) as pool:
        try:
            faults = [fault for fault in pool.map(lambda job: check(acuc, *job, Path(folder)), jobs) if fault]
        except compile_cuda.MissingToolchain as missing:
            print(f"skipped: {missing}\n0 passed, 0 failed, {len(jobs)} skipped")
            return 0
    print("\n".join(faults), end="\n" if faults else "")
    print(f"{len(jobs) - len(faults)} passed, {len(faults)} failed")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
