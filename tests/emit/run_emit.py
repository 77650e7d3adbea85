#!/usr/bin/env python3
"""Emits the 104 full-size cases of `benchmarks/suite` for every target and compiles what is emitted, without a GPU.

Emitting twice gives the same bytes, and the plan is JSON. Each distinct text of a target is compiled once: for sm_80 and
sm_90a with nvcc, for sm_70 with NVRTC 12 (device code only), for gfx90a with hipcc. nvcc and hipcc read the launchers, too.
One case of each operator, and a few with HIP, also go through the host compiler, and the operator's header through a C99 compiler.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import compile_cuda
from compile_cuda import MissingToolchain

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("sm_70", "sm_80", "sm_90a", "gfx90a")
PROCESSES = 2
HIP_OBJECTS = 6
SHOWN_LINES = 6
SECONDS = 60

CASE = re.compile(r"^case (?P<name>\w+) for (?P<operator>\w+)", re.MULTILINE)
HEADER_COMMENT = re.compile(r"\A(?://[^\n]*\n)+")


@dataclass(frozen=True)
class Emitted:
    """What a case gave for a target."""

    case: str
    operator: str
    target: str
    folder: Path

    @property
    def label(self) -> str:
        return f"{self.case} {self.target}"

    @property
    def source(self) -> Path:
        return self.folder / f"{self.operator}.{'hip' if self.target.startswith('gfx') else 'cu'}"


@dataclass(frozen=True)
class Job:
    """A text to compile, and what it stands for."""

    labels: list[str]
    path: Path


class Report:
    """Counts what passed and prints what did not."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def add(self, labels: Sequence[str], fault: str) -> None:
        if not fault:
            self.passed += len(labels)
            return
        self.failed += len(labels)
        lines = fault.splitlines()
        more = f"\n  (… {len(lines) - SHOWN_LINES} more lines)" if len(lines) > SHOWN_LINES else ""
        print(", ".join(labels) + ":\n  " + "\n  ".join(lines[:SHOWN_LINES]) + more, flush=True)


def find_cases(only: Sequence[str] | None) -> list[tuple[Path, str, str]]:
    """(file, case, operator) of every full-size case."""
    files = sorted((ROOT / "benchmarks" / "suite").glob("*.acu"))
    found = [(file, match["name"], match["operator"]) for file in files for match in CASE.finditer(file.read_text(encoding="utf-8"))]
    return [case for case in found if not case[1].endswith("_small") and (not only or case[1] in only)]


# ---- stage 1: emit


def emit(acuc: str, file: Path, item: Emitted) -> str:
    """Emits a case twice and its plan; returns what is wrong."""
    select = [acuc, "compile", str(file), "--case", item.case, "--target", item.target]
    again = item.folder.with_name(item.folder.name + ".again")
    for options in (["-o", str(item.folder)], ["-o", str(again)], ["--emit", "plan"]):
        done = subprocess.run([*select, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        if done.returncode:
            return f"exit status {done.returncode}: {done.stderr.strip()}"
    return file_fault(item, again) or plan_fault(item, done.stdout)


def file_fault(item: Emitted, again: Path) -> str:
    names = sorted(path.name for path in item.folder.iterdir())
    wanted = sorted([item.source.name, f"{item.operator}.h", f"{item.operator}.plan.json"])
    if names != wanted:
        return f"wrote {', '.join(names)} instead of {', '.join(wanted)}"
    different = [name for name in names if (item.folder / name).read_bytes() != (again / name).read_bytes()]
    return f"the second time, {', '.join(different)} differs" if different else ""


def plan_fault(item: Emitted, printed: str) -> str:
    try:
        plan, stored = json.loads(printed), json.loads((item.folder / f"{item.operator}.plan.json").read_text())
    except ValueError as error:
        return f"the plan is not JSON: {error}"
    if plan != stored:
        return "--emit plan differs from the plan file"
    if (plan.get("operator"), plan.get("target")) != (item.operator, item.target):
        return f"the plan is for {plan.get('operator')} on {plan.get('target')}"
    return ""


def emit_all(report: Report, acuc: str, cases: Iterable[tuple[Path, str, str]], folder: Path) -> list[Emitted]:
    """Emits every case for every target; returns those that were emitted."""
    items = [(file, Emitted(case, operator, target, folder / case / target)) for file, case, operator in cases for target in TARGETS]
    with ThreadPoolExecutor(PROCESSES) as pool:
        faults = list(pool.map(lambda pair: emit(acuc, *pair), items))
    for (_, item), fault in zip(items, faults):
        report.add([f"{item.label} emit"], fault)
    return [item for _, item in items if item.source.is_file()]


# ---- stage 2: compile


def distinct(items: Iterable[Emitted], folder: Path) -> list[Job]:
    """One job for each text, without the comment at its top; the text stands beside its header in a folder of its own."""
    jobs: dict[str, Job] = {}
    for item in items:
        text = HEADER_COMMENT.sub("", item.source.read_text(encoding="utf-8"))
        if text not in jobs:
            path = folder / str(len(jobs)) / item.source.name
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            shutil.copy(item.folder / f"{item.operator}.h", path.parent)
            jobs[text] = Job([], path)
        jobs[text].labels.append(item.label)
    return list(jobs.values())


def one_per_operator(items: Iterable[Emitted]) -> list[Emitted]:
    return list({item.operator: item for item in items}.values())


def compile_jobs(report: Report, name: str, jobs: Sequence[Job], compile_one: Callable[[Path], list[str]]) -> None:
    """Compiles two at a time; skips the stage if its compiler is not here."""
    start = time.monotonic()
    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            found = list(pool.map(lambda job: compile_one(job.path), jobs))
        except MissingToolchain as missing:
            report.skipped += sum(len(job.labels) for job in jobs)
            print(f"skipped {name}: {missing}", flush=True)
            return
    for job, errors in zip(jobs, found):
        report.add([f"{label} {name}" for label in job.labels], "\n".join(error.removeprefix(f"{job.path}:\n") for error in errors))
    print_time(name, start, len(jobs), "compiled")


def check_header(path: Path) -> list[str]:
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", str(path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [done.stdout.strip() or "gcc failed"] if done.returncode else []


def split(items: Sequence[Emitted], chosen: Sequence[Emitted], folder: Path) -> tuple[list[Job], list[Job]]:
    """Jobs for the host compiler, and those that are left for the device compiler, which reads the launcher but is faster."""
    others = [item for item in items if item not in chosen]
    return distinct(chosen, folder / "host"), distinct(others, folder / "device")


def compile_stages(report: Report, emitted: list[Emitted], folder: Path, seed: int) -> None:
    sm_70, sm_80, sm_90a, gfx90a = ([item for item in emitted if item.target == target] for target in TARGETS)
    texts = distinct(sm_70, folder / "sm_70")
    compile_jobs(report, "NVRTC", texts, lambda path: compile_cuda.nvrtc_compile_all([path], "sm_70", [path.parent]))
    host, device = split(sm_80, one_per_operator(sm_80), folder / "sm_80")
    compile_jobs(report, "nvcc host", host, lambda path: compile_cuda.compile_object([path], "sm_80"))
    compile_jobs(report, "C99 header", [Job(job.labels, job.path.with_suffix(".h")) for job in host], check_header)
    compile_jobs(report, "nvcc -cubin", device, lambda path: compile_cuda.compile_cubin([path], "sm_80"))
    texts = distinct(sm_90a, folder / "sm_90a")
    compile_jobs(report, "nvcc -cubin", texts, lambda path: compile_cuda.compile_cubin([path], "sm_90a"))
    some = random.Random(seed).sample(gfx90a, min(HIP_OBJECTS, len(gfx90a)))
    host, device = split(gfx90a, some, folder / "gfx90a")
    compile_jobs(report, "hipcc host", host, lambda path: compile_cuda.compile_hip_object([path]))
    compile_jobs(report, "hipcc device", device, lambda path: compile_cuda.compile_hip([path]))


def print_time(stage: str, start: float, count: int, verb: str) -> None:
    print(f"[{time.monotonic() - start:6.1f} s] {stage}: {count} {verb}", flush=True)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Emits and compiles the full-size cases of benchmarks/suite.")
    parser.add_argument("--build", default="build", help="the folder of the compiler (default: build)")
    parser.add_argument("--acuc", help="the compiler itself (default: acuc of --build)")
    parser.add_argument("--only", nargs="*", metavar="ID", help="some cases, such as GD01")
    parser.add_argument("--keep", metavar="DIR", help="write to this folder and leave it there")
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    acuc = arguments.acuc or str(Path(arguments.build, "acuc").resolve())
    report, start = Report(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="acu_emit_") as temporary:
        folder = Path(arguments.keep or temporary).resolve()
        emitted = emit_all(report, acuc, find_cases(arguments.only), folder / "emitted")
        print_time("emit", start, len(emitted), "emitted twice")
        compile_stages(report, emitted, folder / "distinct", int(os.environ.get("ACU_SEED", "1")))
    skipped = f", {report.skipped} skipped" if report.skipped else ""
    print(f"{report.passed} passed, {report.failed} failed{skipped}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
