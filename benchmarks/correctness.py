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
import functools
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import acuc_run, machine, report  # noqa: E402
from harness.emitted import Emitted, build_all, emit, emit_all, suite_cases  # noqa: E402
from harness.launcher import host_record  # noqa: E402
from harness.options import add_options  # noqa: E402
from harness.pool import Job, Pool  # noqa: E402

Libraries = dict[str, Future[str]]  # by the digest of the text

SERIAL = {'RD03': 20.0, 'EW08': 20.0, 'GV07': 20.0, 'AT07': 15.0, 'AT04': 10.0, 'FG04': 10.0}  # seconds in the fallback plan


def parse_options() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--cases', nargs='*', default=[], metavar='PREFIX', help='ids or prefixes; all without it')
    ap.add_argument('--part', default='1/1', help='K/N: the K-th of N shares of equal estimated time')
    add_options(ap, nvcc_jobs=14, case_seconds=150)
    ap.add_argument('--workers', type=int, default=2, help='processes on the GPU; timed launches are alone on it all the same')
    ap.add_argument('--acuc-run', action='store_true', help='also run `acuc run --check`')
    ap.add_argument('--skip-launchers', action='store_true', help='only what --acuc-run adds')
    ap.add_argument('--acuc-jobs', type=int, default=12)
    ap.add_argument('--acuc-seconds', type=float, default=240, help='time limit of one acuc run')
    ap.add_argument('--acuc-memory', type=float, default=110, help='GB of GPU memory for concurrent acuc runs')
    ap.add_argument('--check-seconds', type=float, default=20, help='for the reference of one output in acuc run')
    return ap.parse_args()


# ---------------------------------------------------------------- which cases, in which order
def costs(suite: str | None, names: list[str]) -> dict[str, float]:
    """estimated seconds of each case"""
    table = machine.read_table(suite, 'cases.tsv')
    found = {}
    for n in names:
        r = table.get(n, {'gflop': '1', 'min_mb': '100'})
        found[n] = 2.0 + float(r['gflop']) / 60 + float(r['min_mb']) / 1000 + SERIAL.get(n, 0.0)
    return found


def chosen(a: argparse.Namespace) -> dict[str, str]:
    """{case: source}, cheap cases first"""
    every = suite_cases(pathlib.Path(a.sources))
    names = machine.chosen(list(every), a.cases)
    price = costs(a.suite, names)
    names.sort(key=lambda n: price[n])
    part, of = (int(v) for v in a.part.split('/'))
    shares: list[list[str]] = [[] for _ in range(of)]
    for n in reversed(names):  # the dearest first, each to the cheapest share
        min(shares, key=lambda s: sum(price[m] for m in s)).append(n)
    return {n: every[n] for n in reversed(shares[part - 1])}


# ---------------------------------------------------------------- the run
class Run:
    def __init__(self, a: argparse.Namespace, folder: pathlib.Path) -> None:
        self.a, self.folder, self.end = a, folder, time.time() + a.budget
        self.t0 = time.time()
        self.meta = {**machine.describe(a.acuc, a.nvcc, a.commit, a.target), 'cases': a.cases, 'part': a.part}
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
        tasks = {c: functools.partial(emit, self.a.acuc, c, source, self.folder / 'code', self.a.target) for c, source in cases.items()}
        self.emitted = emit_all(self.a.nvcc_jobs, tasks, lambda c, error: self.done('launcher', c, {'status': 'emit failed', 'correct': False, 'note': str(error)[:600]}))
        return list(self.emitted.values())

    def launchers(self, jobs: list[Emitted], libraries: Libraries) -> None:
        config = {'suite': os.path.abspath(self.a.suite), 'tolerances': str(HERE.parent / 'tests' / 'suite' / 'tolerance.py'), 'lock': str(self.folder / 'gpu.lock')}
        log = str(self.lines.path.with_suffix('.log'))
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), '--worker', json.dumps(config)]
        pool = Pool(command, log, self.a.workers, self.a.case_seconds, self.end, lambda c, r: self.done('launcher', c, r))
        pool.run([Job(e.case, {'emitted': asdict(e)}, libraries[e.digest]) for e in jobs])

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


def host_check(run: Run, jobs: list[Emitted], libraries: Libraries) -> None:
    for e in jobs:
        try:
            record = host_record(libraries[e.digest].result(), e)
        except Exception as error:
            record = {'status': 'build failed', 'correct': False, 'note': str(error)}
        run.done('launcher', e.case, record)


def perform(a: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix='correctness_') as folder:
        run = Run(a, pathlib.Path(folder))
        jobs = run.emit_all(chosen(a))
        with ThreadPoolExecutor(a.nvcc_jobs) as threads:
            if not a.skip_launchers:
                libraries = build_all(a.nvcc, jobs, run.folder / 'lib', a.target, threads)
                host_check(run, jobs, libraries) if a.host_only else run.launchers(jobs, libraries)
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
