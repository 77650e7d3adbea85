#!/usr/bin/env python3
"""Runs `acuc` on bad input, bad command lines, edge sizes and special values.

Every test is a function of one `Cli`, in `files.py`, `commands.py`, `semantics.py` or `faults.py`. Whatever it asks for,
no command may crash, speak of an inner error, or take ten seconds.
"""
import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import commands  # noqa: E402, F401
import faults  # noqa: E402, F401
import files  # noqa: E402, F401
import semantics  # noqa: E402, F401
from harness import KNOWN, ROOT, TESTS, Cli, Failure, Skip, Test  # noqa: E402


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


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs acuc on bad input and edge cases.")
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


if __name__ == "__main__":
    sys.exit(main())
