"""Worker processes with time limits: a case that crashes or hangs costs itself only."""
from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import threading
import time
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Callable, Optional

from .emitted import Emitted

START_SECONDS = 120


class Lost(Exception):
    pass


class Process:
    """A worker and the lines it answers."""

    def __init__(self, command: list[str], log: str) -> None:
        self.log = open(log, 'ab')
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.pending = b''
        self.hello: Optional[dict[str, Any]] = None

    def read(self, seconds: float) -> dict[str, Any]:
        end = time.time() + seconds
        assert self.p.stdout
        while b'\n' not in self.pending:
            if not select.select([self.p.stdout], [], [], max(0.0, end - time.time()))[0]:
                raise Lost(f'no answer after {seconds:.0f} s')
            part = os.read(self.p.stdout.fileno(), 1 << 16)
            if not part:
                raise Lost(f'the worker died with {self.p.wait(timeout=30)}')
            self.pending += part
        line, _, self.pending = self.pending.partition(b'\n')
        return json.loads(line)

    def start(self) -> dict[str, Any]:
        if self.hello is None:
            self.hello = self.read(START_SECONDS)
        return self.hello

    def ask(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self.p.stdin
        try:
            self.p.stdin.write(json.dumps(job).encode() + b'\n')
            self.p.stdin.flush()
        except BrokenPipeError:
            raise Lost('the worker had died') from None
        return self.read(seconds)

    def alive(self) -> bool:
        return self.p.poll() is None

    def end(self) -> None:
        if self.alive():
            self.p.kill()
        try:
            self.p.wait(timeout=20)
        except subprocess.TimeoutExpired:
            pass  # stuck in the driver; the lock file is freed when it goes
        self.log.close()


class Pool:
    """`count` threads, each with one worker at a time."""

    def __init__(self, command: list[str], log: str, count: int, limit: float, deadline: float, done: Callable[[str, dict[str, Any]], None]) -> None:
        self.command, self.log, self.count, self.limit, self.deadline, self.done = command, log, count, limit, deadline, done
        self.jobs: queue.Queue[tuple[Emitted, Future[str]]] = queue.Queue()
        self.hello: dict[str, Any] = {}

    def run(self, jobs: list[tuple[Emitted, 'Future[str]']]) -> None:
        for j in jobs:
            self.jobs.put(j)
        threads = [threading.Thread(target=self.serve, daemon=True) for _ in range(min(self.count, len(jobs)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def serve(self) -> None:
        worker: Optional[Process] = Process(self.command, self.log)
        while True:
            try:
                e, library = self.jobs.get_nowait()
            except queue.Empty:
                break
            try:
                so = library.result()
            except Exception as error:
                self.done(e.case, {'status': 'build failed', 'correct': False, 'note': str(error)})
                continue
            if time.time() > self.deadline:
                self.done(e.case, {'status': 'not reached', 'note': 'the budget is spent'})
                continue
            if worker is None or not worker.alive():
                worker = Process(self.command, self.log)
            worker = self.one(worker, e, so)
        if worker:
            worker.end()

    def one(self, worker: Process, e: Emitted, so: str) -> Optional[Process]:
        try:
            self.hello = worker.start()
            t0 = time.time()
            record = worker.ask({'emitted': asdict(e), 'library': so}, self.limit)
            record.setdefault('wall_s', round(time.time() - t0, 2))
            self.done(e.case, record)
            if record['status'] in ('correct', 'wrong') and 'seconds' in record:
                return worker
            worker.p.wait(timeout=20)
        except (Lost, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            if not isinstance(error, subprocess.TimeoutExpired):
                self.done(e.case, {'status': 'timeout' if 'no answer' in str(error) else 'crashed', 'correct': False, 'note': str(error)})
        worker.end()
        return None
