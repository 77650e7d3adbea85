"""What the tests of reported faults share: running an operator on the CPU and on emulated devices, under plans, against a float64 reference."""
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "suite"))

from formats import ROUNDOFF, STORED, rounded, widen  # noqa: E402

TARGETS = ("sm_70", "sm_80", "sm_90a", "gfx90a")
LIMIT = 600.0
CRASH = re.compile(r"error\[internal\]|Stack dump|terminate called|AddressSanitizer|runtime error:")

Array = np.ndarray
Steps = Sequence[Mapping[str, Any]]
NO_STEPS: Optional[Steps] = None  # the compiler decides; an empty plan is one thread a cell


class Failure(Exception):
    """What a test found wrong."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise Failure(what)


# ---- values


def stored(x: object, dtype: str) -> Array:
    """An array as a file of this element type holds it, rounded to nearest even."""
    x = np.asarray(x)
    if dtype == "bf16":
        return (rounded(x.astype(np.float64), "bf16").astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in ("f8e4m3", "f8e5m2"):
        values = widen(np.arange(256, dtype=np.uint8), dtype)
        distance = np.abs(np.where(np.isfinite(values), values, 1e30) - x[..., None])
        return distance.argmin(-1).astype(np.uint8)
    with np.errstate(over="ignore"):
        return x.astype(STORED[dtype])


def normal(draw: np.random.Generator, dtype: str, *shape: int) -> Array:
    return stored(draw.normal(size=shape), dtype)


def real(x: Array, dtype: str = "") -> Array:
    """The values of a stored array, in float64 or int64; 16-bit patterns are bf16."""
    return widen(x, dtype or dtype_of(x))


def dtype_of(x: Array) -> str:
    return "bf16" if x.dtype == np.uint16 else next(name for name, t in STORED.items() if t == x.dtype and not name.startswith("f8"))


def difference(actual: Array, wanted: object, dtype: str, exact: bool, scale: float | None) -> str:
    """Empty, or where an output is wrong. Exact: as the type rounds the reference; else the rounding of the type and of sums in f32."""
    wanted = np.asarray(wanted)
    if actual.shape != wanted.shape:
        return f"shape {actual.shape} instead of {wanted.shape}"
    if actual.dtype != STORED[dtype]:
        return f"stored as {actual.dtype}, not as {dtype}"
    got = real(actual, dtype)
    if dtype not in ROUNDOFF:
        bad = got != wanted
    else:
        wanted = rounded(wanted.astype(np.float64), dtype)
        bad = outside(got, wanted, 0 if exact else ROUNDOFF[dtype], 0 if exact else slack(wanted, dtype, scale))
    if not bad.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} wrong: [{', '.join(map(str, first))}] is {got[first]} but should be {wanted[first]}"


def slack(wanted: Array, dtype: str, scale: float | None) -> float:
    finite = np.abs(wanted[np.isfinite(wanted)])
    return (1e-12 if dtype == "f64" else 1e-6) * (scale if scale is not None else float(finite.max(initial=0)))


def outside(got: Array, wanted: Array, relative: float, absolute: float) -> Array:
    """Where two arrays differ by more than the bounds; NaN equals NaN, an infinity only itself."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(got - wanted) <= absolute + relative * np.abs(wanted)
    return ~(near | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))


# ---- running


@dataclass(frozen=True)
class Options:
    """Of the whole run."""

    acuc: Path
    seed: int
    everything: bool = False
    large: bool = False
    emulated: bool = True


@dataclass
class Bench:
    """One test: its folder, its choices, and what it found."""

    options: Options
    name: str
    folder: Path
    failures: list[str] = field(default_factory=list)
    passed: int = 0

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng([self.options.seed, *self.name.encode()])
        self.choice = random.Random(f"{self.options.seed} {self.name}")

    def verdict(self, wrong: str, of: str) -> None:
        """Counts one comparison."""
        if wrong:
            self.failures.append(f"{of}: {wrong}")
        else:
            self.passed += 1

    def call(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Runs `acuc`, which must end and not crash, whatever its exit code is."""
        command = [str(self.options.acuc), *map(str, words)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {LIMIT:.0f} s: {shown(words)}") from None
        require(done.returncode >= 0, f"ended by signal {-done.returncode}: {shown(words)}\n{done.stderr[-800:]}")
        require(not CRASH.search(done.stdout + done.stderr), f"speaks of an inner error: {shown(words)}\n{done.stderr[-800:]}")
        return done

    def devices(self, targets: Iterable[str], every: bool = False) -> list[str]:
        """The CPU and emulated targets: all of them, or one that the seed chooses."""
        emulated = [f"emu:{t}" for t in targets] if self.options.emulated else []
        if emulated and not (every or self.options.everything):
            emulated = [self.choice.choice(emulated)]
        return ["cpu", *emulated]

    def some(self, things: Sequence[Any], count: int) -> Sequence[Any]:
        """Things to do by default, out of all of them."""
        return things if self.options.everything else self.choice.sample(list(things), min(count, len(things)))

    def outputs(self, op: str, inputs: Mapping[str, Array], sets: str = "", device: str = "cpu", steps: Optional[Steps] = NO_STEPS, *more: str) -> dict[str, Array]:
        """What `acuc run` gives; raises where it does not end well."""
        out = Path(tempfile.mkdtemp(dir=self.folder))
        words = [*self.source(op), "--device", device, *self.files(inputs, out), *(["--set", sets] if sets else []), "--out", out / "out", *more]
        if steps is not None:
            words += ["--plan", self.plan(op, steps, device, out)]
        done = self.call("run", *words)
        require(done.returncode == 0, f"exit {done.returncode}: {shown(['run', *words])}\n{(done.stdout + done.stderr)[:1500]}")
        return {p.stem: np.load(p) for p in (out / "out").glob("*.npy")}

    def source(self, op: str) -> list[object]:
        """`file.operator` as words of a command; the file may be left out where it has the test's kind."""
        file, _, name = op.rpartition(".")
        return [HERE / f"{file or self.name.split('.')[0]}.acu", "--op", name]

    @staticmethod
    def files(inputs: Mapping[str, Array], folder: Path) -> list[str]:
        for name, value in inputs.items():
            np.save(folder / f"{name}.npy", value)
        return [word for name in inputs for word in ("--in", f"{name}={folder / name}.npy")]

    def plan(self, op: str, steps: Steps, device: str, folder: Path) -> Path:
        """A plan file for the target of a device; on the CPU without microkernels, which it does not have."""
        target = device.removeprefix("emu:")
        decisions = [s for s in steps if device != "cpu" or not s["pass"].startswith("bind_")]
        path = folder / "plan.json"
        path.write_text(json.dumps({"schema": 1, "operator": op.rpartition(".")[2], "target": target, "decisions": decisions}))
        return path

    def run(self, op: str, inputs: Mapping[str, Array], wanted: Mapping[str, object], sets: str = "", **how: Any) -> None:
        """Requires the outputs of an operator, by the CPU and by emulated targets.

        `targets`: of these; `every`: of all of them, always; `only`: on these devices; `steps`: under a plan; `types`: of outputs;
        `exact`, `scale`: see `difference`; `more`: further words of the command.
        """
        for device in how.get("only") or self.devices(how.get("targets", TARGETS), how.get("every", False)):
            self.run_on(device, op, inputs, wanted, sets, how)

    def run_on(self, device: str, op: str, inputs: Mapping[str, Array], wanted: Mapping[str, object], sets: str, how: Mapping[str, Any]) -> None:
        steps = how.get("steps", NO_STEPS)
        label = f"{op} on {device} {sets} {sizes_of(inputs)}" + (f" under {words_of(steps)}" if steps else "")
        try:
            got = self.outputs(op, inputs, sets, device, steps, *how.get("more", ()))
        except Failure as why:
            self.verdict(str(why), label)
            return
        for name, value in wanted.items():
            dtype = how.get("types", {}).get(name) or dtype_of(got[name])
            self.verdict(difference(got[name], value, dtype, how.get("exact", False), how.get("scale")), f"{label}: `{name}`")

    def under(self, plans: Sequence[Steps], op: str, inputs: Mapping[str, Array], wanted: Mapping[str, object], sets: str = "", **how: Any) -> None:
        """The same under each of some plans."""
        for steps in self.some(plans, how.pop("count", 2)):
            self.run(op, inputs, wanted, sets, steps=steps, **how)

    def same_bits(self, op: str, inputs: Mapping[str, Array], ways: Iterable[tuple[str, Sequence[str]]], sets: str = "", steps: Optional[Steps] = NO_STEPS) -> None:
        """Requires equal bytes of all outputs, however the operator is run: pairs of a device and further words."""
        first: dict[str, Array] = {}
        for device, more in ways:
            label = f"{op} on {device} {' '.join(more)} {sets} {sizes_of(inputs)}"
            try:
                got = self.outputs(op, inputs, sets, device, steps, *more)
            except Failure as why:
                self.verdict(str(why), label)
                continue
            first = first or got
            wrong = [n for n in got if got[n].tobytes() != first[n].tobytes()]
            self.verdict(f"other bits in {', '.join(wrong)}" if wrong else "", label)

    def text(self, op: str, target: str, sets: str = "") -> str:
        """The emitted source for a target."""
        words = [*self.source(op), "--target", target, "--emit", "hip" if target.startswith("gfx") else "cuda", *(["--set", sets] if sets else [])]
        done = self.call("compile", *words)
        require(done.returncode == 0, f"exit {done.returncode}: {shown(['compile', *words])}\n{done.stderr[:1500]}")
        return done.stdout

    def refused(self, command: str, words: Sequence[object], exit_code: int, *texts: str) -> None:
        """Requires an exit code and texts in what is said."""
        done = self.call(command, *words)
        said = done.stdout + done.stderr
        missing = [t for t in texts if t not in said]
        wrong = f"no `{missing[0]}` in: {said[:800]}" if missing else ""
        if done.returncode != exit_code:
            wrong = f"exit {done.returncode} instead of {exit_code}: {said[:800]}"
        self.verdict(wrong, shown([command, *words]))


def shown(words: Sequence[object]) -> str:
    return " ".join(["acuc", *map(str, words)])


def sizes_of(inputs: Mapping[str, Array]) -> str:
    return " ".join(f"{n}{list(x.shape)}".replace(" ", "") for n, x in inputs.items())


def words_of(steps: Steps) -> str:
    return "; ".join(f"{s['pass']}({', '.join(s['scope'])} {json.dumps(s['params'])})" for s in steps)


# ---- the list

Test = Callable[[Bench], None]


@dataclass(frozen=True)
class Row:
    """One test of one or more rows."""

    kind: str
    rows: tuple[str, ...]
    function: Test

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.function.__name__}"


ROWS: list[Row] = []


def reported(*rows: str) -> Callable[[Test], Test]:
    """A test of these rows; its module is their kind."""

    def add(function: Test) -> Test:
        ROWS.append(Row(function.__module__, rows, function))
        return function

    return add
