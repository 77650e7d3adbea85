"""Options that every run on a device has: what emits and builds, where results go, how long it may take."""
from __future__ import annotations

import argparse
import pathlib

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent


def add_options(ap: argparse.ArgumentParser, nvcc_jobs: int, case_seconds: float) -> None:
    ap.add_argument('--acuc', default='build/acuc')
    ap.add_argument('--suite', help='suite_torch.py, with cases.tsv (and, for peers of another run, baselines_h200.tsv) beside it')
    ap.add_argument('--sources', default=str(BENCHMARKS / 'suite'), help='the folder of .acu files')
    ap.add_argument('--out', default=str(BENCHMARKS / 'results'))
    ap.add_argument('--tag', default='', help='goes into the name of the .jsonl file')
    ap.add_argument('--commit', default='unknown')
    ap.add_argument('--target', default='sm_90a')
    ap.add_argument('--nvcc', default='nvcc')
    ap.add_argument('--nvcc-jobs', type=int, default=nvcc_jobs)
    ap.add_argument('--budget', type=float, default=560, help='seconds after which no further case is started')
    ap.add_argument('--case-seconds', type=float, default=case_seconds, help='time limit of a case, waiting for the GPU included')
    ap.add_argument('--host-only', action='store_true')
    ap.add_argument('--merge', nargs='+', metavar='JSONL')
    ap.add_argument('--worker', help=argparse.SUPPRESS)
