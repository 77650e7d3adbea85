#!/usr/bin/env python3
"""Runs the launchers that acuc emits for the suite on a GPU and judges what they compute. See benchmarks/README.md.

    correctness.py --acuc A --suite suite_torch.py --out DIR   emit, build, run, compare, report
    correctness.py … --part 1/2                                half of the cases, equal in estimated time
    correctness.py … --acuc-run                                also `acuc run --check` of every case
    correctness.py … --host-only                               emission, build and refusals: no GPU, no torch
    correctness.py --merge A.jsonl B.jsonl --out DIR           join what several runs wrote
"""
from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import acuc_run, report  # noqa: E402
from harness.emitted import Emitted, build, emit, suite_cases  # noqa: E402
from harness.launcher import Launcher, arguments_of, check_refusals, invented_addresses  # noqa: E402
from harness.pool import Pool  # noqa: E402

SERIAL = {'RD03': 20.0, 'EW08': 20.0, 'GV07': 20.0, 'AT07': 15.0, 'AT04': 10.0, 'FG04': 10.0}  # seconds in the fallback plan


def parse_options() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--cases', nargs='*', default=[], metavar='PREFIX', help='ids or prefixes; all without it')
    ap.add_argument('--part', default='1/1', help='K/N: the K-th of N shares of equal estimated time')
    ap.add_argument('--acuc', default='build/acuc')
    ap.add_argument('--suite', help='suite_torch.py, with cases.tsv beside it')
    ap.add_argument('--sources', default=str(HERE / 'suite'), help='the folder of .acu files')
    ap.add_argument('--out', default=str(HERE / 'results'))
    ap.add_argument('--tag', default='', help='goes into the name of the .jsonl file')
    ap.add_argument('--commit', default='unknown')
    ap.add_argument('--target', default='sm_90a')
    ap.add_argument('--nvcc', default='nvcc')
    ap.add_argument('--nvcc-jobs', type=int, default=14)
    ap.add_argument('--workers', type=int, default=2, help='processes on the GPU; timed launches are alone on it all the same')
    ap.add_argument('--case-seconds', type=float, default=150, help='time limit of a case, waiting for the GPU included')
    ap.add_argument('--budget', type=float, default=560, help='seconds after which no further case is started')
    ap.add_argument('--acuc-run', action='store_true', help='also run `acuc run --check`')
    ap.add_argument('--skip-launchers', action='store_true', help='only what --acuc-run adds')
    ap.add_argument('--acuc-jobs', type=int, default=12)
    ap.add_argument('--acuc-seconds', type=float, default=240, help='time limit of one acuc run')
    ap.add_argument('--acuc-memory', type=float, default=110, help='GB of GPU memory for concurrent acuc runs')
    ap.add_argument('--check-seconds', type=float, default=20, help='for the reference of one output in acuc run')
    ap.add_argument('--host-only', action='store_true')
    ap.add_argument('--merge', nargs='+', metavar='JSONL')
    ap.add_argument('--worker', help=argparse.SUPPRESS)
    return ap.parse_args()


# ---------------------------------------------------------------- which cases, in which order
def costs(suite: str | None, names: list[str]) -> dict[str, float]:
    """estimated seconds of each case"""
    table: dict[str, dict[str, str]] = {}
    path = pathlib.Path(suite).with_name('cases.tsv') if suite else None
    if path and path.exists():
        with open(path, encoding='utf-8') as f:
            table = {r['id']: r for r in csv.DictReader(f, delimiter='\t', quoting=csv.QUOTE_NONE)}
    found = {}
    for n in names:
        r = table.get(n, {'gflop': '1', 'min_mb': '100'})
        found[n] = 2.0 + float(r['gflop']) / 60 + float(r['min_mb']) / 1000 + SERIAL.get(n, 0.0)
    return found


def chosen(a: argparse.Namespace) -> dict[str, str]:
    """{case: source}, cheap cases first"""
    every = suite_cases(pathlib.Path(a.sources))
    names = [n for n in every if not a.cases or any(n.startswith(p) for p in a.cases)]
    price = costs(a.suite, names)
    names.sort(key=lambda n: price[n])
    part, of = (int(v) for v in a.part.split('/'))
    shares: list[list[str]] = [[] for _ in range(of)]
    for n in reversed(names):  # the dearest first, each to the cheapest share
        min(shares, key=lambda s: sum(price[m] for m in s)).append(n)
    return {n: every[n] for n in reversed(shares[part - 1])}


# ---------------------------------------------------------------- what stands beside the numbers
def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ''


def describe(a: argparse.Namespace) -> dict[str, Any]:
    gpu = output_of('nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader').splitlines()
    name, driver, memory = ([v.strip() for v in gpu[0].split(',')] if gpu else ['no GPU', '', ''])[:3]
    nvcc = [line for line in output_of(a.nvcc, '--version').splitlines() if 'release' in line]
    torch = output_of(sys.executable, '-c', 'import importlib.metadata as m; print(m.version("torch"))')
    return {'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'), 'device': name, 'driver': driver, 'memory': memory,
            'nvcc': nvcc[0].split(',', 1)[-1].strip() if nvcc else '', 'torch': torch, 'acuc': output_of(a.acuc, '--version'), 'commit': a.commit, 'target': a.target,
            'cases': a.cases, 'part': a.part}


# ---------------------------------------------------------------- the run
class Run:
    def __init__(self, a: argparse.Namespace, folder: pathlib.Path) -> None:
        self.a, self.folder, self.end = a, folder, time.time() + a.budget
        self.t0 = time.time()
        self.meta = describe(a)
        tag = f'_{a.tag}' if a.tag else f"_{a.part.replace('/', 'of')}" if a.part != '1/1' else ''
        self.lines = report.Lines(pathlib.Path(a.out) / f"correctness_{report.slug(self.meta['device'])}{tag}.jsonl")
        self.lines.add({'meta': self.meta})
        self.emitted: dict[str, Emitted] = {}
        self.count, self.lock = 0, threading.Lock()

    def done(self, phase: str, case: str, record: dict[str, Any]) -> None:
        e = self.emitted.get(case)
        self.lines.add({'id': case, 'phase': phase, 'operator': e.symbol if e else None, 'plan': e.plan if e else None, 'digest': e.digest if e else None, 'record': record})
        with self.lock:
            self.count += 1
            print(f'{time.time() - self.t0:5.0f} s {self.count:3} {line_of(phase, case, record)}', flush=True)

    def emit_all(self, cases: dict[str, str]) -> list[Emitted]:
        with ThreadPoolExecutor(self.a.nvcc_jobs) as threads:
            jobs = {c: threads.submit(emit, self.a.acuc, c, source, self.folder / 'code', self.a.target) for c, source in cases.items()}
        for c, job in jobs.items():
            try:
                self.emitted[c] = job.result()
            except Exception as error:
                self.done('launcher', c, {'status': 'emit failed', 'correct': False, 'note': str(error)[:600]})
        return [self.emitted[c] for c in cases if c in self.emitted]

    def build_all(self, jobs: list[Emitted], threads: ThreadPoolExecutor) -> list[tuple[Emitted, 'Future[str]']]:
        libraries = self.folder / 'lib'
        libraries.mkdir(parents=True, exist_ok=True)
        found: dict[str, Future[str]] = {}
        for e in jobs:
            if e.digest not in found:
                found[e.digest] = threads.submit(build, self.a.nvcc, e, libraries, self.a.target)
        return [(e, found[e.digest]) for e in jobs]

    def launchers(self, built: list[tuple[Emitted, 'Future[str]']]) -> None:
        config = {'suite': os.path.abspath(self.a.suite), 'tolerances': str(HERE.parent / 'tests' / 'suite' / 'tolerance.py'), 'lock': str(self.folder / 'gpu.lock')}
        log = str(self.lines.path.with_suffix('.log'))
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), '--worker', json.dumps(config)]
        Pool(command, log, self.a.workers, self.a.case_seconds, self.end, lambda c, r: self.done('launcher', c, r)).run(built)

    def acuc(self, jobs: list[Emitted]) -> None:
        acuc_run.run_all(self.a.acuc, jobs, 'cuda:0', self.a.check_seconds, self.a.acuc_seconds, self.a.acuc_jobs, self.a.acuc_memory, self.end,
                         lambda c, r: self.done('acuc', c, r))


def line_of(phase: str, case: str, r: dict[str, Any]) -> str:
    if phase == 'acuc':
        return f"{case} acuc run {report.acuc_cells(r).replace('**', '')} {r.get('wall_s', '')} s {r.get('note', '')[:100]}".rstrip()
    text = f"{case} {r['status']}"
    if 'microseconds' in r:
        text += f" worst {report.number(r.get('worst'))} plain {report.number(r.get('viol'))} {report.microseconds(r['microseconds'])} us"
        text += {True: '', False: ' NOT DETERMINISTIC', None: ' (determinism exempt)'}[r['deterministic']]
    faults = r.get('refusals', {}).get('faults', [])
    return f"{text}{f' refusals: {faults[:2]}' if faults else ''} {str(r.get('note', ''))[:140]}".rstrip()


def host_check(run: Run, built: list[tuple[Emitted, 'Future[str]']]) -> None:
    """the refusals alone, with invented addresses: a launcher looks at its arguments before it calls CUDA"""
    for e, library in built:
        try:
            made, faults = check_refusals(Launcher(library.result(), e), arguments_of(e, invented_addresses(e)))
            record = {'status': 'host only', 'refusals': {'calls': made, 'faults': faults}, 'note': ''}
        except Exception as error:
            record = {'status': 'build failed', 'correct': False, 'note': str(error)}
        run.done('launcher', e.case, record)


def perform(a: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix='correctness_') as folder:
        run = Run(a, pathlib.Path(folder))
        jobs = run.emit_all(chosen(a))
        with ThreadPoolExecutor(a.nvcc_jobs) as threads:
            if not a.skip_launchers:
                built = run.build_all(jobs, threads)
                host_check(run, built) if a.host_only else run.launchers(built)
        if a.acuc_run and not a.host_only:
            run.acuc(jobs)
        return finish([run.lines.path], pathlib.Path(a.out))


def finish(lines: list[pathlib.Path], out: pathlib.Path) -> int:
    runs, cases = report.read_lines(lines)
    base = report.write(out, runs[-1]['device'] if runs else 'unknown', runs, cases)
    s = report.summary(cases)
    print(f'{report.sentence(s)}; written to {base}.json and .md')
    judged = [c['launcher'] for c in cases.values() if 'launcher' in c]
    good = all(r['status'] in ('correct', 'host only') and r.get('deterministic') is not False for r in judged) and not s['refusals_wrong']
    return 0 if good and s['acuc_correct'] == s['acuc_run'] else 4


def main() -> int:
    a = parse_options()
    if a.worker:
        from harness import worker
        worker.serve(json.loads(a.worker))
        return 0
    if a.merge:
        return finish([pathlib.Path(p) for p in a.merge], pathlib.Path(a.out))
    if not a.suite and not (a.host_only or a.skip_launchers):
        sys.exit('--suite PATH/suite_torch.py is needed (or --host-only)')
    return perform(a)


if __name__ == '__main__':
    sys.exit(main())
