#!/usr/bin/env python3
"""Runs `acuc` on wrong programs and compares what it finds with what stands at the top of each file.

    // expect CODE LINE:COLUMN   one finding; `-` in place of LINE:COLUMN when it belongs to the whole file
    // help TEXT                 the output holds a `help:` line with TEXT
    // run: compile --op f …     the command, without the file; `check` where this line is missing
    // exit: 2                   the exit code; 1 where this line is missing
    // bug: TEXT                 the compiler does not do this yet: a difference is shown, but not counted as a failure

At the end every code of the sources that no test expects is listed.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FINDING = re.compile(r"^(?P<file>[^\s].*?)(?::(?P<line>\d+):(?P<column>\d+))?: (?:error|warning)\[(?P<code>[\w.-]+)\]: ", re.M)
HELP = re.compile(r"^  help: (.*)$", re.M)
LITERAL = re.compile(r'"([a-z]+\.[a-z0-9]+(?:-[a-z0-9]+)*)"')
INSIDES = re.compile(r"error\[internal\]|Stack dump|terminate called|\b\d+l\b")  # `0l` is how the IR prints 64-bit integers
LIMIT = 10.0

# Codes that this machine cannot provoke: they speak of devices, of compilers on the machine, or of acuc itself.
OUT_OF_REACH = ("device.", "toolkit.", "library.", "compile.", "codegen.", "llvm.", "ir.", "run.level", "run.input-changed")
NOT_CODES = ("acu.", "out.", "std.", "libnvrtc.", "libhiprtc.")

Place = tuple[str, int, int]


@dataclass
class Wanted:
    """What stands at the top of a file."""

    places: set[Place] = field(default_factory=set)
    helps: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=lambda: ["check"])
    exit: int = 1
    bug: str = ""


def read_place(text: str) -> Place:
    """`CODE LINE:COLUMN` or `CODE -`."""
    code, place = text.split()
    line, column = (0, 0) if place == "-" else map(int, place.split(":"))
    return code, line, column


def read_wanted(path: Path) -> Wanted:
    """Reads the comments at the top of a file."""
    wanted = Wanted()
    for line in path.read_bytes().decode(errors="replace").splitlines():
        word, _, rest = line.removeprefix("// ").partition(" ")
        match word if line.startswith("// ") else "":
            case "expect": wanted.places.add(read_place(rest))
            case "help": wanted.helps.append(rest)
            case "run:": wanted.command = rest.split()
            case "exit:": wanted.exit = int(rest)
            case "bug:": wanted.bug = rest
            case _: break
    return wanted


def run_compiler(acuc: Path, path: Path, command: list[str]) -> tuple[int, str]:
    """Runs one command on one file; answers its exit code and what it printed to standard error."""
    with tempfile.TemporaryDirectory() as folder:
        output = ["-o", folder] if command[0] == "compile" and "--emit" not in command else []
        full = [str(acuc), command[0], str(path.relative_to(ROOT)), *command[1:], *output]
        try:
            done = subprocess.run(full, cwd=ROOT, capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return -1, f"stopped after {LIMIT:.0f} s"
    return done.returncode, done.stderr.decode(errors="replace")


def found_in(text: str) -> set[Place]:
    """The findings of an output, as (code, line, column)."""
    return {(m["code"], int(m["line"] or 0), int(m["column"] or 0)) for m in FINDING.finditer(text)}


def show(place: Place) -> str:
    code, line, column = place
    return f"{code} {line}:{column}" if line else f"{code} -"


def differences(wanted: Wanted, exit_code: int, text: str) -> list[str]:
    """What is not as the file says."""
    found = found_in(text)
    out = [f"missing {show(p)}" for p in sorted(wanted.places - found)]
    out += [f"surplus {show(p)}" for p in sorted(found - wanted.places)]
    if exit_code != wanted.exit:
        out.append(f"exit code {exit_code} instead of {wanted.exit}")
    helps = HELP.findall(text)
    out += [f"no help says `{h}`" for h in wanted.helps if not any(h in line for line in helps)]
    if not wanted.places:
        out.append("the file expects nothing")
    if INSIDES.search(text):
        out.append("the output speaks of the compiler's insides")
    return out


@dataclass
class Result:
    path: Path
    wanted: Wanted
    wrong: list[str]
    text: str


def check_file(acuc: Path, path: Path) -> Result:
    wanted = read_wanted(path)
    exit_code, text = run_compiler(acuc, path, wanted.command)
    return Result(path, wanted, differences(wanted, exit_code, text), text)


def report(r: Result, verbose: bool) -> str:
    """Prints what is worth printing; answers which count the result belongs to."""
    if not r.wrong and r.wanted.bug:
        print(f"{r.path.name}: right now, so its `bug` line can go")
    if r.wrong and r.wanted.bug:
        print(f"{r.path.name}: known fault: {r.wanted.bug}" + (f" ({'; '.join(r.wrong)})" if verbose else ""))
        return "skipped"
    if r.wrong:
        print("\n  ".join([f"{r.path.name}: failed", *r.wrong, *r.text.splitlines()[:12]]))
    return "failed" if r.wrong else "passed"


# ---- every code has a test


def codes_of_sources() -> set[str]:
    """The string literals of the sources that look like a code."""
    codes: set[str] = set()
    for folder in ("frontend", "acuc", "codegen", "support", "runtime", "ir"):
        for path in (ROOT / folder).rglob("*.cpp"):
            lines = path.read_text(errors="replace").splitlines()
            codes.update(c for line in lines if not line.startswith("#include") for c in LITERAL.findall(line))
    return {c for c in codes if not c.startswith(NOT_CODES)}


def untested(results: list[Result]) -> list[str]:
    """The codes that neither a file here nor the tests of the command line expect."""
    expected = {code for r in results for code, _, _ in r.wanted.places}
    cli = ROOT / "tests/cli"
    for path in cli.glob("*.py"):
        expected.update(LITERAL.findall(path.read_text()))
    return sorted(c for c in codes_of_sources() - expected if not c.startswith(OUT_OF_REACH))


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs acuc on wrong programs.")
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--acuc", help="the compiler itself, in place of BUILD/acuc")
    parser.add_argument("--verbose", action="store_true", help="show how known faults differ")
    parser.add_argument("NAME", nargs="*", help="only the files with this in their name")
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    acuc = Path(arguments.acuc or ROOT / arguments.build / "acuc").absolute()
    if not os.access(acuc, os.X_OK):
        sys.exit(f"no compiler at {acuc}: build it first")
    chosen = [p for p in sorted(HERE.glob("*.acu")) if not arguments.NAME or any(n in p.name for n in arguments.NAME)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda p: check_file(acuc, p), chosen))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for r in results:
        counts[report(r, arguments.verbose)] += 1
    if not arguments.NAME and (missing := untested(results)):
        print(f"codes that no test expects: {', '.join(missing)}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
