#!/usr/bin/env python3
"""Runs every test program of the project and adds up what they count.

A part is a program of its own: it prints anything and ends with `N passed, N failed` (doctest's summary is read too).
A part that fails without counting a failure, prints no summary or runs too long counts as one failure.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed(?:, \d+ skipped)?")
DOCTEST = re.compile(r"\[doctest\] test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SHOWN_LINES = 300


@dataclass(frozen=True)
class Part:
    name: str
    command: list[str]


@dataclass(frozen=True)
class Result:
    name: str
    passed: int
    failed: int
    seconds: float
    note: str = ""


def all_parts(build: str) -> list[Part]:
    """The one list of test programs."""

    def python(script: str, *arguments: str) -> list[str]:
        return [sys.executable, script, *arguments]

    return [
        Part("layers", python("tools/check_layers.py")),
        Part("size", python("tools/size_report.py", "--check")),
        Part("unit", [f"{build}/unit_tests"]),
        Part("diagnostics", python("tests/diagnostics/run_diagnostics.py", "--build", build)),
        Part("cli", python("tests/cli/run_cli.py", "--build", build)),
        Part("suite", python("tests/suite/run_suite.py", "--build", build)),
        Part("samples", python("tests/suite/run_samples.py", "--build", build)),
        Part("passes", [f"{build}/pass_tests"]),
        Part("plans", python("tests/plans/run_plans.py", "--build", build)),
        Part("faults", [f"{build}/fault_tests"]),
        Part("property", [f"{build}/property_tests", "--sample", "10", "--plans", "2", "--emulate", "1"]),
        Part("operators", [f"{build}/operator_tests", "--count", "500"]),
        Part("reported", python("tests/reported/run_reported.py", "--build", build)),
        Part("emulation", python("tests/suite/run_emulation.py", "--build", build)),
        Part("emit", python("tests/emit/run_emit.py", "--build", build)),
        Part("resources", python("tests/emit/run_resources.py", "--build", build)),
        Part("microkernels", python("tests/emit/run_microkernels.py", "--build", build)),
    ]


def read_counts(output: str) -> tuple[int, int] | None:
    """The passed and failed counts of the last summary that a part printed."""
    for line in reversed(output.splitlines()):
        if match := SUMMARY.fullmatch(line.strip()) or DOCTEST.match(line):
            return int(match[1]), int(match[2])
    return None


def run_command(command: list[str], seed: int, limit: float) -> tuple[str, str]:
    """Runs a part to its end or to the time limit, with all that it started; returns its output and what went wrong."""
    environment = {**os.environ, "ACU_SEED": str(seed), "PYTHONUNBUFFERED": "1"}
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return "", f"cannot start: {error.strerror}"
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output, f"stopped after {limit:.0f} s"
    return output, f"exit status {process.returncode}" if process.returncode else ""


def run_part(part: Part, seed: int, limit: float, verbose: bool) -> Result:
    print(f"running {part.name} …", flush=True)
    start = time.monotonic()
    output, wrong = run_command(part.command, seed, limit)
    seconds = time.monotonic() - start
    output = COLOUR.sub("", output)
    passed, failed = read_counts(output) or (0, 0)
    if not wrong and read_counts(output) is None:
        wrong = "printed no summary"
    result = Result(part.name, passed, max(failed, int(bool(wrong))), seconds, wrong)
    if result.failed or verbose:
        show(part, output)
    return result


def show(part: Part, output: str) -> None:
    """Prints a part's output without its closing line, so that one such line stands in the whole log."""
    print(f"--- {' '.join(part.command)}")
    lines = [line for line in output.splitlines() if not SUMMARY.fullmatch(line.strip())]
    if len(lines) > SHOWN_LINES:
        print(f"(… {len(lines) - SHOWN_LINES} earlier lines left out)")
    print("\n".join(lines[-SHOWN_LINES:]))
    print(f"--- end of {part.name}", flush=True)


def print_table(results: list[Result]) -> None:
    print(f"\n{'part':<12} {'passed':>7} {'failed':>7} {'seconds':>8}")
    for result in results:
        print(f"{result.name:<12} {result.passed:>7} {result.failed:>7} {result.seconds:>8.1f}  {result.note}".rstrip())


def read_arguments() -> argparse.Namespace:
    names = [part.name for part in all_parts("build")]
    parser = argparse.ArgumentParser(description="Runs AlphaCu's tests.")
    parser.add_argument("--build", default="build", help="the Meson build folder (default: build)")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"run one part; may be repeated: {', '.join(names)}")
    parser.add_argument("--seed", default="1", help="seed of the random tests, a number or `random` (default: 1)")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="time limit of a part (default: 1800)")
    parser.add_argument("--verbose", action="store_true", help="show the output of parts that pass, too")
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    seed = random.randrange(2**31) if arguments.seed == "random" else int(arguments.seed)
    print(f"seed {seed} (the same again: scripts/test --seed {seed})")
    parts = [part for part in all_parts(arguments.build) if not arguments.only or part.name in arguments.only]
    results = [run_part(part, seed, arguments.limit, arguments.verbose) for part in parts]
    print_table(results)
    failed = sum(result.failed for result in results)
    print(f"\n{sum(result.passed for result in results)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
