"""Worker processes with time limits: a case that crashes or hangs costs itself only."""
from __future__ import annotations

import collections
import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable, Optional

START_SECONDS = 120
LOSSES = 3
Done = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Job:
    name: str
    message: dict[str, Any]  # what the worker is asked
    library: 'Optional[Future[str]]' = None  # waited for, and added to the message
    group: str = ''  # of like jobs: after LOSSES lost workers the rest of a group is left out

    def complete(self) -> dict[str, Any]:
        return {**self.message, **({'library': self.library.result()} if self.library else {})}


class Lost(Exception):
    pass


class Process:
    """A worker and the lines it answers."""

    def __init__(self, command: list[str], log: str) -> None:
        self.log = open(log, 'ab')
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True)
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
            os.killpg(self.p.pid, signal.SIGKILL)  # with the processes that it started
        try:
            self.p.wait(timeout=20)
        except subprocess.TimeoutExpired:
            pass  # stuck in the driver; the lock file is freed when it goes
        self.log.close()


class Pool:
    """`count` threads, each with one worker at a time. A worker that answers without `seconds` is not asked again."""

    def __init__(self, command: list[str], log: str, count: int, limit: float, deadline: float, done: Done, grace: float = 600.0) -> None:
        self.command, self.log, self.count, self.limit, self.deadline, self.done, self.grace = command, log, count, limit, deadline, done, grace
        self.jobs: queue.Queue[Job] = queue.Queue()
        self.losses: collections.Counter[str] = collections.Counter()
        self.hello: dict[str, Any] = {}

    def run(self, jobs: list[Job], ready: Optional[threading.Event] = None) -> None:
        """the workers start at once, the jobs when `ready` is set"""
        for j in jobs:
            self.jobs.put(j)
        threads = [threading.Thread(target=self.serve, args=[ready], daemon=True) for _ in range(min(self.count, len(jobs)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def serve(self, ready: Optional[threading.Event]) -> None:
        worker: Optional[Process] = Process(self.command, self.log)
        if ready:
            ready.wait()
        while True:
            try:
                job = self.jobs.get_nowait()
            except queue.Empty:
                break
            if time.time() > self.deadline or (job.group and self.losses[job.group] >= LOSSES):
                self.done(job.name, {'status': 'not reached', 'note': 'the budget is spent' if time.time() > self.deadline else 'others like it were lost'})
                continue
            try:
                message = job.complete()
            except Exception as error:
                self.done(job.name, {'status': 'build failed', 'correct': False, 'note': str(error)})
                continue
            if worker is None or not worker.alive():
                worker = Process(self.command, self.log)
            worker = self.one(worker, job.name, message)
            self.losses[job.group] += worker is None
        if worker:
            worker.end()

    def one(self, worker: Process, name: str, message: dict[str, Any]) -> Optional[Process]:
        try:
            self.hello = worker.start()
            t0 = time.time()
            record = worker.ask(message, max(1.0, min(self.limit, self.deadline + self.grace - t0)))
            record.setdefault('wall_s', round(time.time() - t0, 2))
            self.done(name, record)
            if 'seconds' in record:
                return worker
            worker.p.wait(timeout=20)
        except (Lost, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            if not isinstance(error, subprocess.TimeoutExpired):
                self.done(name, {'status': 'timeout' if 'no answer' in str(error) else 'crashed', 'correct': False, 'note': str(error)})
        worker.end()
        return None
