#!/usr/bin/env python3
"""Faults that users of other compilers have reported, as tests by kind: on the CPU and on emulated chips, under the default plan and under others.

Every row of the collection has a test or a reason why not, printed as `skipped`. Without --all each run takes one emulated chip and some of the plans, drawn
by a seed that is printed (ACU_SEED chooses it). --large adds tensors of more than 2^31 elements on the CPU, which need 13 GB of memory.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import coverage  # noqa: E402, F401
import determinism  # noqa: E402, F401
import dtypes  # noqa: E402, F401
import empty  # noqa: E402, F401
import gather  # noqa: E402, F401
import index_width  # noqa: E402, F401
import messages  # noqa: E402, F401
import nan  # noqa: E402, F401
import pipelines  # noqa: E402, F401
import strides  # noqa: E402, F401
import wave64  # noqa: E402, F401
from bench import ROWS, Bench, Failure, Options, Row  # noqa: E402
from skipped import IDS, SKIPPED  # noqa: E402

ROOT = HERE.parents[1]


def run_row(row: Row, options: Options, keep: str | None) -> Bench:
    """Runs one test in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"{row.name}-", dir=keep))
    bench = Bench(options, row.name, folder)
    try:
        row.function(bench)
    except Failure as why:
        bench.failures.append(str(why))
    except Exception as why:  # noqa: BLE001 - a mistake in a test is a failure, too
        bench.failures.append(f"{type(why).__name__}: {why}")
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return bench


def without_a_test() -> list[str]:
    """Rows that have neither a test nor a reason, and names that are no rows."""
    tested, reasons = {r for row in ROWS for r in row.rows}, {r for r, _, _ in SKIPPED}
    return sorted(set(IDS) ^ (tested | reasons))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--acuc", help="the compiler itself, in place of BUILD/acuc")
    parser.add_argument("--all", action="store_true", help="every emulated chip, every plan, more repeats")
    parser.add_argument("--large", action="store_true", help="also tensors past 2^31 elements, on the CPU")
    parser.add_argument("--cpu", action="store_true", help="without emulated chips")
    parser.add_argument("--keep", metavar="FOLDER", help="leave inputs, plans and outputs there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("NAME", nargs="*", help="only the tests with this in their name")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    acuc = Path(given.acuc or ROOT / given.build / "acuc").absolute()
    if not os.access(acuc, os.X_OK):
        sys.exit(f"no compiler at {acuc}: build it first")
    seed = int(os.environ.get("ACU_SEED", random.randrange(1 << 16)))
    options = Options(acuc, seed, given.all, given.large, not given.cpu)
    chosen = [r for r in ROWS if not given.NAME or any(n in r.name for n in given.NAME)]
    print(f"seed {seed}: {len(chosen)} tests", flush=True)
    passed, failed = 0, 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for row, bench in zip(chosen, pool.map(lambda r: run_row(r, options, given.keep), chosen)):
            passed, failed = passed + bench.passed, failed + len(bench.failures)
            for why in bench.failures:
                print(f"{row.name}: failed: {why}", flush=True)
    for row, part, why in SKIPPED:
        print(f"skipped: {row} {part}: {why}")
    lost = without_a_test()
    print(f"rows without a test or a reason: {' '.join(lost)}" if lost else f"{len(IDS)} rows, {len(SKIPPED)} parts of them skipped")
    print(f"{passed} passed, {failed + len(lost)} failed")
    return bool(failed + len(lost))


if __name__ == "__main__":
    sys.exit(main())
