#!/usr/bin/env python3
"""Runs the 104 reduced cases of `benchmarks/suite` on the CPU and checks the compiler against itself and against NumPy.

Per case: the interpreter's outputs are those of the machine code byte for byte; they are NumPy's within the tolerance, for
two draws of inputs; the compiler's own check against float64 passes; and the comparison rejects every mutant.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from cases import Case, Tensor, read_cases
from formats import widen
from mutants import MUTANTS
from reference import REFERENCE
from tolerance import compare

PROCESSES = 2
SECONDS = 60
Arrays = dict[str, np.ndarray]


class Fault(Exception):
    """A property does not hold; says why in a line."""


@dataclass(frozen=True)
class Run:
    """One run of a case: the folders that it wrote and how it ended."""

    case: Case
    folder: Path
    status: int
    text: str

    def read(self, kind: str, tensors: tuple[Tensor, ...]) -> Arrays:
        """The arrays of a folder, checked against their declarations, as float64 or int64."""
        if self.status not in (0, 4):  # 4: --check found a wrong value
            raise Fault(f"exit status {self.status}: {self.text}")
        return {tensor.name: self._read_one(self.folder / kind / f"{tensor.name}.npy", tensor) for tensor in tensors}

    @staticmethod
    def _read_one(path: Path, tensor: Tensor) -> np.ndarray:
        try:
            array = widen(np.load(path), tensor.dtype)
        except (OSError, TypeError, ValueError) as error:
            raise Fault(f"{path.name}: {error}") from error
        if array.shape != tensor.shape:
            raise Fault(f"`{tensor.name}` has shape {array.shape}, declared {tensor.shape}")
        return array

    def inputs(self) -> Arrays:
        return self.read("inputs", self.case.inputs)

    def outputs(self) -> list[np.ndarray]:
        return list(self.read("outputs", self.case.outputs).values())

    def references(self) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            return REFERENCE[self.case.id](self.inputs(), self.case.params)

    def compare(self, outputs: list[np.ndarray], refs: tuple[np.ndarray, ...]) -> tuple[bool, float, str]:
        return compare(self.case.id, outputs, refs, self.inputs(), self.case.params, [tensor.dtype for tensor in self.case.outputs])


def run_case(acuc: str, case: Case, folder: Path, seed: int, *options: str) -> Run:
    """Runs a case on the CPU, with inputs and outputs written to the folder."""
    command = [acuc, "run", str(case.file), "--case", case.name, "--seed", str(seed)]
    command += ["--out", str(folder / "outputs"), "--inputs-out", str(folder / "inputs"), *options]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Run(case, folder, 124, f"stopped after {SECONDS} s")
    return Run(case, folder, done.returncode, " ".join(done.stdout.split())[-300:])


def check_own_check(compiled: Run) -> None:
    if compiled.status:
        raise Fault(f"exit status {compiled.status}: {compiled.text}")


def check_interpreter(compiled: Run, interpreted: Run) -> None:
    """Byte for byte, inputs too."""
    for kind, tensors in (("inputs", compiled.case.inputs), ("outputs", compiled.case.outputs)):
        ours, theirs = compiled.read(kind, tensors), interpreted.read(kind, tensors)
        for name in ours:
            if (compiled.folder / kind / f"{name}.npy").read_bytes() != (interpreted.folder / kind / f"{name}.npy").read_bytes():
                raise Fault(f"`{name}` of {kind}: {first_difference(ours[name], theirs[name])}")


def first_difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    different = ~((ours == theirs) | ((ours != ours) & (theirs != theirs)))
    if not different.any():
        return "the files differ in NaN bits or signs of zeros"
    at = tuple(int(i) for i in np.argwhere(different)[0])
    return f"{different.sum()} of {different.size} differ, first {at}: machine code {ours[at]:.9g}, interpreter {theirs[at]:.9g}"


def check_numpy(runs: list[Run]) -> None:
    for run in runs:
        accepted, _, message = run.compare(run.outputs(), run.references())
        if not accepted:
            raise Fault(message)


def check_mutants(run: Run, other: Run) -> None:
    refs, stale = run.references(), other.references()
    inputs = run.inputs()
    made = {name: mutate(refs, inputs, stale) for name, mutate in MUTANTS.items()}
    accepted = [name for name, bad in made.items() if bad is not None and run.compare(bad, refs)[0]]
    if accepted:
        raise Fault(f"accepted: {', '.join(accepted)}")


def faults_of(acuc: str, seed: int, case: Case) -> dict[str, str]:
    """Runs one case; returns each property with what is wrong with it, or an empty text."""
    with tempfile.TemporaryDirectory(prefix="acu_suite_") as name:
        folder = Path(name)
        compiled = run_case(acuc, case, folder / "compiled", seed, "--check")
        other = run_case(acuc, case, folder / "other", seed + 1)
        interpreted = run_case(acuc, case, folder / "interpreted", seed, "--interpret")
        checks: dict[str, Callable[[], None]] = {
            "own check": partial(check_own_check, compiled),
            "interpreter = machine code": partial(check_interpreter, compiled, interpreted),
            "= NumPy": partial(check_numpy, [compiled, other]),
            "mutants rejected": partial(check_mutants, compiled, other),
        }
        return {name: fault_of(check) for name, check in checks.items()}


def fault_of(check: Callable[[], None]) -> str:
    try:
        check()
    except Fault as fault:
        return str(fault)
    return ""


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the reduced cases of benchmarks/suite on the CPU.")
    parser.add_argument("--build", default="build", help="the folder of the compiler (default: build)")
    parser.add_argument("--acuc", help="the compiler itself (default: acuc of --build)")
    parser.add_argument("--only", nargs="*", metavar="ID", help="some cases, such as GD01")
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    seed = int(os.environ.get("ACU_SEED", "1"))
    acuc = arguments.acuc or str(Path(arguments.build, "acuc").resolve())
    cases = [case for name, case in read_cases().items() if name.endswith("_small") and (not arguments.only or case.id in arguments.only)]
    passed = failed = 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        for case, faults in zip(cases, pool.map(partial(faults_of, acuc, seed), cases)):
            for name, fault in faults.items():
                passed, failed = passed + (not fault), failed + bool(fault)
                print(f"{case.id}: {name}: {fault}\n" if fault else "", end="", flush=True)
    missing = sorted(REFERENCE.keys() - {case.id for case in cases}) if not arguments.only else []
    print("".join(f"{name}: there is no case {name}_small\n" for name in missing), end="")
    print(f"{passed} passed, {failed + len(missing)} failed")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
