#!/usr/bin/env python3
"""Times what acuc emits beside torch's ways to compute the same, in one run on one GPU. See benchmarks/README.md.

    speed.py --acuc A --suite suite_torch.py --cases RD NM --out DIR   emit, build, check, time, report
    speed.py … --budget 200                                            nothing new starts after 200 seconds
    speed.py … --no-compile-peers                                      eager and libraries only: torch.compile takes most of the time
    speed.py … --sweep                                                 row operators of open sizes at many shapes, types and addresses
    speed.py … --host-only                                             emission, build and refusals: no GPU, no torch
    speed.py --merge A.jsonl B.jsonl --out DIR                         join what several runs wrote
    speed.py --self-test                                               statistics, floor, merge and tables on invented times
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
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
from harness import compile_peers, machine, report, speed_report, sweep  # noqa: E402
from harness.emitted import Emitted, build_all, emit, emit_all, provenance, suite_cases  # noqa: E402
from harness.launcher import host_record  # noqa: E402
from harness.options import add_options  # noqa: E402
from harness.pool import Done, Job, Pool  # noqa: E402

Libraries = dict[str, Future[str]]  # by the digest of the text
LOAD_SECONDS = 15  # for a compiled peer that Inductor's cache should hold
COMPILE_SECONDS = 60  # for one case in one mode
GRACE_SECONDS = 20  # a case that started in time may go on for so long
COMPILE_SHARE = 0.45  # of the budget at most goes to compiling peers
SHOWN_POINTS = 100  # one line for so many points of the sweep


def parse_options() -> argparse.Namespace:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--cases', nargs='*', metavar='PREFIX', help='ids or prefixes; all without it')
    ap.add_argument('--sweep', nargs='*', metavar='OPERATOR', help=f"the sweep, of some or all of {', '.join(sweep.OPERATORS)}; alone unless --cases is given too")
    ap.add_argument('--seed', type=int, default=1, help='which points of the sweep come first')
    ap.add_argument('--points', type=int, help='of the sweep at most; without it as many as the budget allows')
    add_options(ap, nvcc_jobs=12, case_seconds=60)
    ap.add_argument('--repeats', type=int, default=100, help='launches of each contender and case')
    ap.add_argument('--no-compile-peers', action='store_true')
    ap.add_argument('--precompile', type=float, help=f'seconds for torch.compile ahead of the timing; {COMPILE_SHARE} of the budget without it')
    ap.add_argument('--compile-workers', type=int, default=10)
    ap.add_argument('--plans', metavar='DIR', help='CASE.json of this folder is the plan of the case; without it the compiler decides')
    ap.add_argument('--self-test', action='store_true')
    ap.add_argument('--compiler', help=argparse.SUPPRESS)
    return ap.parse_args()


def chosen_cases(a: argparse.Namespace) -> dict[str, str]:
    """{case: source}, the first of every family, then the second: where the budget ends, each has had its share"""
    if a.sweep is not None and a.cases is None:
        return {}
    every = suite_cases(pathlib.Path(a.sources))
    return {n: every[n] for n in sorted(machine.chosen(list(every), a.cases or []), key=lambda n: (n[2:], n))}


class Run:
    """What is emitted, built, compiled and measured, and where it is written."""

    def __init__(self, a: argparse.Namespace, folder: pathlib.Path) -> None:
        self.a, self.folder, self.t0 = a, folder, time.time()
        self.end = self.t0 + a.budget
        self.meta = {**machine.describe(a.acuc, a.nvcc, a.commit, a.target), **{k: getattr(a, k) for k in ('cases', 'sweep', 'seed', 'budget', 'repeats', 'no_compile_peers')}}
        tag = f'_{a.tag}' if a.tag else ''
        self.lines = report.Lines(pathlib.Path(a.out) / f"speed_{report.slug(self.meta['device'])}{tag}.jsonl")
        self.lines.add({'meta': self.meta})
        self.cases = chosen_cases(a)
        self.emitted: dict[str, Emitted] = {}
        self.messages: dict[str, dict[str, Any]] = {}  # what the worker is asked, by the name of a case or point
        self.count, self.lock = 0, threading.Lock()

    # ------------------------------------------------------------ records
    def done(self, name: str, record: dict[str, Any]) -> None:
        e, phase = self.emitted.get(name), 'speed' if name in self.cases else 'sweep'
        if phase == 'sweep' and record['status'] == 'not reached':
            return
        record['date'] = self.meta['date']
        if e and phase == 'speed':
            record.update(provenance(e.code, e.source))
        self.lines.add({'id': name, 'phase': phase, 'operator': e.symbol if e else None, 'plan': e.plan if e else None, 'digest': e.digest if e else None, 'record': record})
        with self.lock:
            self.count += 1
            if phase == 'speed' or record['status'] not in ('correct', 'refused', 'host only') or self.count % SHOWN_POINTS == 0:
                self.say(f'{self.count:3} {line_of(name, record)}')

    def say(self, text: str) -> None:
        print(f'{time.time() - self.t0:5.0f} s {text}', flush=True)

    def failed(self, name: str, error: Exception) -> None:
        self.done(name, {'status': 'emit failed', 'correct': False, 'note': str(error)[:600]})

    # ------------------------------------------------------------ emission
    def emit(self) -> None:
        a, code = self.a, self.folder / 'code'
        tasks = {c: functools.partial(emit, a.acuc, c, source, code, a.target, a.plans) for c, source in self.cases.items()}
        self.emitted = emit_all(a.nvcc_jobs, tasks, self.failed)
        self.messages = {c: {'emitted': asdict(e), 'expect_compile': not a.no_compile_peers} for c, e in self.emitted.items()}
        if a.sweep is not None:
            self.emit_sweep(a.sweep or list(sweep.OPERATORS))

    def emit_sweep(self, operators: list[str]) -> None:
        a = self.a
        texts = emit_all(a.nvcc_jobs, sweep.emitters(a.acuc, ROOT, operators, self.folder / 'code', a.target), self.failed)
        for p in sweep.points(operators, a.seed, a.points):
            if p.library in texts:
                e = self.emitted[p.name] = p.sized(texts[p.library], ROOT)
                self.messages[p.name] = {'emitted': asdict(e), 'point': asdict(p)}

    # ------------------------------------------------------------ on the device
    def pool(self, flag: str, config: dict[str, Any], count: int, limit: float, deadline: float, done: Done, grace: float) -> Pool:
        config = {'suite': os.path.abspath(self.a.suite), 'lock': str(self.folder / 'gpu.lock'), **config}
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), flag, json.dumps(config)]
        return Pool(command, str(self.lines.path.with_suffix('.log')), count, limit, deadline, done, grace)

    def compile_peers(self) -> None:
        """tells each case which compiled form to take"""
        a, records = self.a, []
        wanted = {f"{w['case']} {w['mode']}": w for w in compile_peers.jobs_of([c for c in self.emitted if c in self.cases])}
        deadline = self.t0 + (COMPILE_SHARE * a.budget if a.precompile is None else a.precompile)
        pool = self.pool('--compiler', {}, a.compile_workers, COMPILE_SECONDS, deadline, lambda name, record: records.append((wanted[name], record)), 0)
        pool.run([Job(name, w) for name, w in wanted.items()])
        for case, choice in compile_peers.best(records).items():
            self.messages[case]['compile'] = choice
        self.lines.add({'compiled': [{**w, **record} for w, record in records]})
        late = [f"{w['case']} {w['mode']}" for w, record in records if record['status'] != 'compiled']
        self.say(f"torch.compile: {len(records) - len(late)} of {len(records)} in time{'; not: ' + ', '.join(late[:12]) if late else ''}")

    def measure(self, libraries: Libraries) -> None:
        """the worker starts, and kernels are built, while the peers are compiled"""
        ready = threading.Event()

        def prepare() -> None:
            try:
                if not self.a.no_compile_peers and self.cases:
                    self.compile_peers()
                wait(libraries.values())
            finally:
                ready.set()
        threading.Thread(target=prepare, daemon=True).start()
        config = {'tolerances': str(ROOT / 'tests' / 'suite' / 'tolerance.py'), 'repeats': self.a.repeats, 'compile_seconds': LOAD_SECONDS,
                  'compiles': bool(self.cases) and not self.a.no_compile_peers}
        jobs = [Job(name, m, libraries[self.emitted[name].digest], group_of(m)) for name, m in self.messages.items()]
        self.pool('--worker', config, 1, self.a.case_seconds, self.end, self.done, GRACE_SECONDS).run(jobs, ready)

    def host(self, libraries: Libraries) -> None:
        """loads what was built and calls it with arguments that it must refuse"""
        for name, message in self.messages.items():
            e = self.emitted[name]
            try:
                record = (sweep.host_record if 'point' in message else host_record)(libraries[e.digest].result(), e)
            except Exception as error:
                record = {'status': 'build failed', 'correct': False, 'note': str(error)}
            self.done(name, record)


def group_of(message: dict[str, Any]) -> str:
    """the points of the sweep that one fault would lose"""
    return '{operator} {dtype} +{offset}'.format(**message['point']) if 'point' in message else ''


def line_of(name: str, r: dict[str, Any]) -> str:
    text = f"{name} {r['status']}"
    if 'us' in r:
        peer = r.get('peer') or {'name': 'eager', 'median': r.get('eager_us')}
        text += f" {r['us']:.1f} us, {peer['name']} {report.number(peer['median'], '.1f')}: {speed_report.factor(r.get('ratio'))}, {r['tbps']:.2f} TB/s"
    faults = r.get('refusals', {}).get('faults', [])
    return f"{text}{f' refusals: {faults[:2]}' if faults else ''}{' noisy' if r.get('noisy') else ''} {str(r.get('note', ''))[:140]}".rstrip()


def perform(a: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix='speed_', ignore_cleanup_errors=True) as folder:
        os.environ.update(compile_peers.ENVIRONMENT, TORCHINDUCTOR_CACHE_DIR=str(pathlib.Path(folder) / 'inductor'))
        run = Run(a, pathlib.Path(folder))
        run.emit()
        with ThreadPoolExecutor(a.nvcc_jobs) as threads:
            libraries = build_all(a.nvcc, run.emitted.values(), run.folder / 'lib', a.target, threads)
            run.host(libraries) if a.host_only else run.measure(libraries)
        return finish(a, [run.lines.path])


def finish(a: argparse.Namespace, lines: list[pathlib.Path]) -> int:
    runs, cases = report.read_lines(lines)
    other = machine.read_table(a.suite, 'baselines_h200.tsv') if any(r.get('no_compile_peers') for r in runs) else {}
    right, total = speed_report.write_all(pathlib.Path(a.out), runs, cases, other, print)
    return 0 if right == total else 4


def serve(a: argparse.Namespace) -> None:
    from harness import worker
    from harness.speed_worker import SpeedWorker
    kind = SpeedWorker if a.worker else compile_peers.Compiler
    worker.serve(json.loads(a.worker or a.compiler), kind)


def main() -> int:
    a = parse_options()
    if a.worker or a.compiler:
        serve(a)
        return 0
    if a.self_test:
        from harness import speed_self_test
        return speed_self_test.main()
    if a.merge:
        return finish(a, [pathlib.Path(p) for p in a.merge])
    if not a.suite and not a.host_only:
        sys.exit('--suite PATH/suite_torch.py is needed (or --host-only)')
    return perform(a)


if __name__ == '__main__':
    sys.exit(main())
