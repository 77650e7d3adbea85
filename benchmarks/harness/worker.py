"""A worker process: takes cases as JSON lines, runs their launchers on the GPU with torch's tensors, answers one JSON line a case."""
from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import statistics
import sys
import time
import traceback
from dataclasses import asdict
from typing import Any, Callable, Iterator, Optional, TextIO

from . import judge as judging
from . import mapping
from .emitted import Emitted, Param
from .launcher import Answer, Argument, Launcher, arguments_of, check_refusals
from .operators import Failure

GUARD, GUARD_BYTE = 1 << 16, 0xa5
POISON = (0xff, 0x7f, 0x55)  # a byte for each run: an element that is not written differs between runs
EXEMPT = ('PL08',)  # from determinism
QUICK_US, SLOW_US = 500e3, 15e6  # below: three more launches are timed; above: two runs must do
WORKSPACE_LIMIT = 60 << 30  # an explicit workspace at most


def load(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader, path
    module = importlib.util.module_from_spec(spec)
    sys.path.append(os.path.dirname(path))  # what it imports from beside it
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Gpu:
    """A lock between the workers: timed launches are alone on the GPU, everything else is shared."""

    def __init__(self, torch: Any, path: str) -> None:
        self.torch, self.file = torch, open(path, 'w', encoding='utf-8')

    @contextlib.contextmanager
    def use(self, alone: bool) -> Iterator[None]:
        fcntl.flock(self.file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
            self.torch.cuda.synchronize()
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)


class Guarded:
    """Device memory between two zones that nobody may write."""

    def __init__(self, torch: Any, nbytes: int) -> None:
        self.torch, self.nbytes = torch, nbytes
        self.raw = torch.full((nbytes + 2 * GUARD,), GUARD_BYTE, dtype=torch.uint8, device='cuda')
        self.body = self.raw[GUARD:GUARD + nbytes]

    def intact(self) -> bool:
        zones = (self.raw[:GUARD], self.raw[GUARD + self.nbytes:])
        return all(bool((z == GUARD_BYTE).all()) for z in zones)

    def typed(self, p: Param) -> Any:
        return self.body.view(mapping.torch_type(self.torch, p.type)).view(p.sizes)


def raw_bytes(torch: Any, t: Any) -> Any:
    return t.reshape(-1).view(torch.uint8)


class Session:
    """One case in device memory."""

    def __init__(self, torch: Any, launcher: Launcher, tensors: list[Any]) -> None:
        self.torch, self.launcher, self.emitted, self.originals = torch, launcher, launcher.emitted, tensors
        self.inputs = [Guarded(torch, p.nbytes) for p in self.emitted.inputs]
        for buffer, t in zip(self.inputs, tensors):
            buffer.body.copy_(raw_bytes(torch, t))
        self.outputs = [Guarded(torch, p.nbytes) for p in self.emitted.outputs]
        named = zip([*self.emitted.inputs, *self.emitted.outputs], [*self.inputs, *self.outputs])
        self.arguments: list[Argument] = arguments_of(self.emitted, {p.name: b.body.data_ptr() for p, b in named})
        self.workspace: Optional[Guarded] = None
        self.needed = 0

    def poison(self, byte: int) -> None:
        for b in [*self.outputs, *([self.workspace] if self.workspace else [])]:
            b.body.fill_(byte)
        self.torch.cuda.synchronize()

    def untouched(self, byte: int) -> bool:
        return all(bool((b.body == byte).all()) for b in self.outputs)

    def refusals(self) -> dict[str, Any]:
        self.poison(POISON[0])
        calls, faults = check_refusals(self.launcher, self.arguments)
        self.torch.cuda.synchronize()
        if not self.untouched(POISON[0]) or not self.unharmed():
            faults.append('a refused call wrote memory')
        self.needed = self.launcher.workspace_bytes(self.arguments)
        if self.needed and not self.untouched(POISON[0]):
            faults.append('a call with a workspace that is too small wrote memory')
        return {'calls': calls + 1, 'faults': faults}

    def unharmed(self) -> bool:
        return all(b.intact() for b in [*self.inputs, *self.outputs, *([self.workspace] if self.workspace else [])])

    def launch(self, stream: Any) -> float:
        """microseconds between events"""
        a, b = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        address, size = (self.workspace.body.data_ptr(), self.needed) if self.workspace else (0, 0)
        a.record(stream)
        answer: Answer = self.launcher.call(self.arguments, address, size, stream.cuda_stream)
        b.record(stream)
        if answer.status != 'OK':
            raise Failure(f'{answer.status}: {answer.message}')
        self.torch.cuda.synchronize()
        if answer.message:
            raise Failure(f'a message without an error: {answer.message}')
        return a.elapsed_time(b) * 1e3

    def run(self, byte: int, stream: Any) -> tuple[float, list[Any]]:
        self.poison(byte)
        us = self.launch(stream)
        if not self.unharmed():
            raise Failure('wrote outside a buffer: a guard zone has changed')
        if not all(self.torch.equal(b.body, raw_bytes(self.torch, t)) for b, t in zip(self.inputs, self.originals)):
            raise Failure('an input has changed')
        return us, [b.body.clone() for b in self.outputs]

    def take_workspace(self) -> bool:
        self.torch.cuda.empty_cache()
        if 0 < self.needed <= WORKSPACE_LIMIT:
            self.workspace = Guarded(self.torch, self.needed)
        return self.workspace is not None


def repeat(s: Session, record: dict[str, Any]) -> None:
    """Three runs: default stream; another stream; another stream with a poisoned workspace of the caller. All must agree in every bit."""
    torch, side = s.torch, s.torch.cuda.Stream()
    us, first = s.run(POISON[0], torch.cuda.default_stream())
    times, same, made = [us], True, 1
    for byte in POISON[1:]:
        if byte == POISON[2]:
            if us > SLOW_US:
                break
            record['explicit_workspace'] = s.take_workspace()
        t, again = s.run(byte, side)
        times.append(t)
        made += 1
        same &= all(torch.equal(a, b) for a, b in zip(first, again))
        del again
    if max(times[1:]) < QUICK_US:
        times = [s.launch(side) for _ in range(3)]
    for b, kept in zip(s.outputs, first):
        b.body.copy_(kept)
    record.update(microseconds=statistics.median(times), runs=made, deterministic=same)


class Worker:
    def __init__(self, config: dict[str, Any]) -> None:
        suite = load(config['suite'], 'suite_torch')
        self.tolerances = load(config['tolerances'], 'suite_tolerance').TOLERANCE
        self.suite = suite
        self.torch, self.random = suite.define()
        self.torch.set_grad_enabled(False)
        suite.set_tf32(self.torch, False)
        self.gpu = Gpu(self.torch, config['lock'])
        self.torch.zeros(1, device='cuda')

    def run(self, e: Emitted, job: dict[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {'seconds': {}}
        case = self.suite.CASES[e.case]
        with self.timed(record, 'prepare', False):
            built = case.build(self.random('cuda', 0))
            tensors = mapping.operator_inputs(self.torch, e, built)
            mapping.check_types(self.torch, e, tensors)
            s = Session(self.torch, Launcher(job['library'], e), tensors)
            record['refusals'] = s.refusals()
            record['workspace_bytes'] = s.needed
            self.torch.cuda.empty_cache()
        with self.timed(record, 'launch', True):
            repeat(s, record)
        s.workspace = None
        with self.timed(record, 'compare', False):
            outs = mapping.reference_layout(e, [b.typed(p) for b, p in zip(s.outputs, e.outputs)])
            verdict = judging.judge(self.torch, self.suite, self.tolerances, e, case, outs, case.ref(*built), built)
        record.update(asdict(verdict))
        return self.conclude(e, record)

    def conclude(self, e: Emitted, record: dict[str, Any]) -> dict[str, Any]:
        if e.case in EXEMPT:
            record['note'] = f"{record['note']} determinism exempt, bits {'agree' if record['deterministic'] else 'differ'}".strip()
            record['deterministic'] = None
        record['status'] = 'correct' if record['correct'] else 'wrong'
        return record

    @contextlib.contextmanager
    def timed(self, record: dict[str, Any], name: str, alone: bool) -> Iterator[None]:
        with self.gpu.use(alone):
            t0 = time.time()
            try:
                yield
            finally:
                record['seconds'][name] = round(time.time() - t0, 2)

    def answer(self, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """(record, may the process go on)"""
        e = Emitted(**{**job['emitted'], 'params': tuple(Param(**{**p, 'sizes': tuple(p['sizes'])}) for p in job['emitted']['params'])})
        try:
            return self.run(e, job), True
        except Failure as error:
            return {'status': 'wrong', 'correct': False, 'note': str(error)}, False
        except Exception as error:
            traceback.print_exc()
            return {'status': 'failed', 'correct': False, 'note': self.suite.short(error)}, False


def serve(config: dict[str, Any], kind: Callable[[dict[str, Any]], Any] = Worker) -> None:
    """The protocol has standard output to itself; what libraries print goes to standard error."""
    out: TextIO = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)
    worker = kind(config)
    print(json.dumps({'ready': worker.torch.cuda.get_device_name(), 'torch': worker.torch.__version__}), file=out, flush=True)
    for line in sys.stdin:
        record, sound = worker.answer(json.loads(line))
        print(json.dumps(record), file=out, flush=True)
        if not sound:  # a sticky CUDA error, or memory in an unknown state: a fresh process takes the next case
            os._exit(3)
        worker.torch.cuda.empty_cache()
