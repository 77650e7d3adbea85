#!/usr/bin/env python3
"""Plans: the published schema, plan files and schedule blocks as two forms of one thing, replay, and refusals with their reason.

Every plan here goes through the JSON Schema of `acuc passes --json` (checked by the package jsonschema) and through acuc, and both must agree.
"""
import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE)]

import conversion  # noqa: E402, F401
import refusals  # noqa: E402, F401
import replay  # noqa: E402, F401
import schema  # noqa: E402, F401
from harness import ROOT, TESTS, Cli, Failure, Test  # noqa: E402


def run_test(function: Test, acuc: Path, seed: int) -> str:
    """Runs one test in a folder of its own; answers what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            function(Cli(acuc, Path(folder), seed))
        except Failure as why:
            return str(why) or "failed"
        except Exception as why:  # noqa: BLE001 - a mistake in a test is a failure, too
            return f"{type(why).__name__}: {why}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests plans.")
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--acuc", help="the compiler itself, in place of BUILD/acuc")
    parser.add_argument("NAME", nargs="*", help="only the tests with this in their name")
    arguments = parser.parse_args()
    acuc = Path(arguments.acuc or ROOT / arguments.build / "acuc").absolute()
    if not os.access(acuc, os.X_OK):
        sys.exit(f"no compiler at {acuc}: build it first")
    seed = int(os.environ.get("ACU_SEED", "1"))
    chosen = [t for t in TESTS if not arguments.NAME or any(n in t.__name__ for n in arguments.NAME)]
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for function, why in zip(chosen, pool.map(lambda t: run_test(t, acuc, seed), chosen)):
            failed += bool(why)
            if why:
                print(f"{function.__name__}: failed: {why}")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
