"""What the tests of the command line share: running `acuc`, small files, and the list of tests."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 10.0
CRASH = re.compile(r"error\[internal\]|Stack dump|terminate called|AddressSanitizer|runtime error:")
CODE = re.compile(r"error\[([\w.-]+)\]")

COPY = "op f(x: f32[N]) -> y: f32[N] {\n  y[n] = x[n]\n}\n"


class Failure(Exception):
    """What a test found wrong."""


class Skip(Exception):
    """Why a test cannot run here."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise Failure(what)


@dataclass(frozen=True)
class Done:
    """One finished command."""

    command: str
    exit: int
    out: str
    err: str

    def expect(self, exit_code: int, code: str = "", text: str = "") -> "Done":
        """Requires an exit code, the code of a diagnostic, and a text in what was printed."""
        shown = f"{self.command}\n{self.out[-600:]}{self.err[:1200]}"
        require(self.exit == exit_code, f"exit code {self.exit} instead of {exit_code}: {shown}")
        require(not code or code in CODE.findall(self.err), f"no {code}: {shown}")
        require(text in self.out + self.err, f"no `{text}`: {shown}")
        return self


class Cli:
    """`acuc` and a folder for one test."""

    def __init__(self, acuc: Path, folder: Path, seed: int) -> None:
        self.acuc, self.folder, self.seed = acuc, folder, seed

    def run(self, *arguments: object, cwd: Path = ROOT) -> Done:
        """Runs `acuc`, and requires what holds for every command: it ends in time and does not crash."""
        words = [str(a) for a in arguments]
        shown = " ".join(["acuc", *words])
        try:
            done = subprocess.run([self.acuc, *words], cwd=cwd, capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Failure(f"took more than {LIMIT:.0f} s: {shown}") from None
        result = Done(shown, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        require(result.exit >= 0, f"ended by signal {-result.exit}: {shown}\n{result.err[-1500:]}")
        require(not CRASH.search(result.out + result.err), f"speaks of an inner error: {shown}\n{result.err[-1500:]}")
        return result

    def file(self, text: str | bytes, name: str = "test.acu") -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def array(self, name: str, value: np.ndarray) -> str:
        """Saves an input; answers the argument of `--in`."""
        path = self.folder / f"{name}.npy"
        np.save(path, value)
        return f"{name}={path}"

    def outputs(self, source: Path, inputs: Mapping[str, np.ndarray], *options: str) -> dict[str, np.ndarray]:
        """What `acuc run` on the cpu writes."""
        files = [w for n, v in inputs.items() for w in ("--in", self.array(n, v))]
        out = Path(tempfile.mkdtemp(dir=self.folder))
        self.run("run", source, "--device", "cpu", *files, "--out", out, *options).expect(0)
        return {p.stem: np.load(p) for p in out.glob("*.npy")}

    def gives(self, text: str, inputs: Mapping[str, np.ndarray], wanted: Mapping[str, object], *options: str, rtol: float = 0) -> None:
        """Requires the outputs of the operator of `text`, by the compiled code and by the interpreter."""
        source = self.file(text)
        for how in ([], ["--interpret"]):
            outputs = self.outputs(source, inputs, *options, *how)
            for name, value in wanted.items():
                same(outputs[name], np.asarray(value), rtol, f"{name} {' '.join(how)}")


def same(actual: np.ndarray, wanted: np.ndarray, rtol: float, what: str) -> None:
    """Requires equal shapes and values; NaN equals NaN."""
    require(actual.shape == wanted.shape, f"{what}: shape {actual.shape} instead of {wanted.shape}")
    real = np.issubdtype(actual.dtype, np.floating)
    if real:
        equal = np.isclose(actual.astype(np.float64), wanted.astype(np.float64), rtol, 0, equal_nan=True)
    else:
        equal = actual == wanted
    require(np.all(equal), f"{what}: {actual.ravel()[:12]} instead of {wanted.ravel()[:12]}")


# ---- the list

Test = Callable[[Cli], None]
TESTS: list[Test] = []
KNOWN: dict[str, str] = {}


def test(function: Test) -> Test:
    """Adds a function to the tests."""
    TESTS.append(function)
    return function


def bug(what: str) -> Callable[[Test], Test]:
    """A test that the compiler does not pass yet: its failure is shown, but not counted."""

    def add(function: Test) -> Test:
        KNOWN[function.__name__] = what
        return test(function)

    return add


# ---- running it


def run_test(function: Test, acuc: Path, seed: int) -> tuple[str, str]:
    """Runs one test in a folder of its own; answers `passed`, `failed` or `skipped`, and why."""
    known = KNOWN.get(function.__name__, "")
    with tempfile.TemporaryDirectory() as folder:
        try:
            function(Cli(acuc, Path(folder), seed))
        except Skip as why:
            return "skipped", f"skipped: {why}"
        except Failure as why:
            return ("skipped", f"known fault: {known}") if known else ("failed", f"failed: {why}")
        except Exception as why:  # noqa: BLE001 - a mistake in a test is a failure, too
            return "failed", f"failed: {type(why).__name__}: {why}"
    return "passed", "right now, so its `@bug` can go" if known else ""


def main(description: str) -> int:
    """Runs the tests that the names on the command line choose, and counts them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--acuc", help="the compiler itself, in place of BUILD/acuc")
    parser.add_argument("NAME", nargs="*", help="only the tests with this in their name")
    arguments = parser.parse_args()
    acuc = Path(arguments.acuc or ROOT / arguments.build / "acuc").absolute()
    if not os.access(acuc, os.X_OK):
        sys.exit(f"no compiler at {acuc}: build it first")
    seed = int(os.environ.get("ACU_SEED", "1"))
    chosen = [t for t in TESTS if not arguments.NAME or any(n in t.__name__ for n in arguments.NAME)]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for function, (outcome, why) in zip(chosen, pool.map(lambda t: run_test(t, acuc, seed), chosen)):
            counts[outcome] += 1
            if why:
                print(f"{function.__name__}: {why}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0
