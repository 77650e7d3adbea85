"""`acuc run --device cuda:0 --check --json` of every case: acuc's own inputs, NVRTC and float64 check."""
from __future__ import annotations

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from .emitted import Emitted, workspace_estimate

LONG = ('RD03', 'EW07', 'EW08')  # one element of the result is a reduction over everything


class Memory:
    """GPU memory promised to runs; a run larger than everything waits until it is alone."""

    def __init__(self, total: int) -> None:
        self.total, self.free, self.change = total, total, threading.Condition()

    def take(self, amount: int) -> int:
        amount = min(amount, self.total)
        with self.change:
            self.change.wait_for(lambda: self.free >= amount)
            self.free -= amount
        return amount

    def give(self, amount: int) -> None:
        with self.change:
            self.free += amount
            self.change.notify_all()


def status_of(checks: list[dict[str, Any]], code: int) -> str:
    if not checks:
        return 'failed'
    if any(c['text'].startswith('not checked') for c in checks):
        return 'unchecked'
    return 'correct' if code == 0 and all(c['correct'] for c in checks) else 'wrong'


def run_one(acuc: str, e: Emitted, device: str, check_seconds: float, limit: float) -> dict[str, Any]:
    seconds = min(limit - 25, 90) if e.case in LONG else check_seconds
    command = [acuc, 'run', e.source, '--case', e.case, '--device', device, '--check', '--json', '--check-seconds', f'{seconds:g}']
    t0 = time.time()
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {'status': 'timeout', 'note': f'over {limit:.0f} s'}
    record: dict[str, Any] = {'wall_s': round(time.time() - t0, 2), 'exit': r.returncode}
    try:
        answer = json.loads(r.stdout)
    except json.JSONDecodeError:
        return {**record, 'status': 'failed', 'note': (r.stderr or r.stdout).strip()[:400]}
    checks = answer.get('checks', [])
    status = status_of(checks, r.returncode)
    note = '' if status == 'correct' else '; '.join(c['text'] for c in checks if not c['correct']) or r.stderr.strip()[:400]
    return {**record, 'status': status, 'seconds': answer.get('seconds'), 'by': answer.get('by'), 'checks': checks, 'note': note}


def run_all(acuc: str, jobs: list[Emitted], device: str, check_seconds: float, limit: float, count: int, gigabytes: float, deadline: float,
            done: Callable[[str, dict[str, Any]], None]) -> None:
    memory = Memory(int(gigabytes * 1e9))

    def work(e: Emitted) -> None:
        if time.time() > deadline:
            return done(e.case, {'status': 'not reached', 'note': 'the budget is spent'})
        held = memory.take(int(1.2 * (e.tensor_bytes + workspace_estimate(e))) + (600 << 20))
        try:
            record = run_one(acuc, e, device, check_seconds, limit)
        except Exception as error:
            record = {'status': 'failed', 'note': str(error)[:300]}
        finally:
            memory.give(held)
        done(e.case, record)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, sorted(jobs, key=lambda e: -e.tensor_bytes)))  # drawing inputs takes longest: large ones first
