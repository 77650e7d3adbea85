"""torch.compile of the cases ahead of the timing: several processes fill Inductor's cache on disk and time roughly what they compiled."""
from __future__ import annotations

import contextlib
import fcntl
import statistics
import time
from typing import Any, Iterator

from .timing import Contender, Timer
from .worker import Gpu, load

MODES = ('default', 'max-autotune-no-cudagraphs')
SAMPLES = 10
ENVIRONMENT = {'TORCHINDUCTOR_COMPILE_THREADS': '1', 'TORCHINDUCTOR_FX_GRAPH_CACHE': '1', 'TORCHINDUCTOR_AUTOGRAD_CACHE': '1', 'OMP_NUM_THREADS': '1'}


class Alone:
    """The lock between processes, which the same process may take again."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.depth = gpu, 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        if self.depth == 0:
            fcntl.flock(self.gpu.file, fcntl.LOCK_EX)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.gpu.torch.cuda.synchronize()
                fcntl.flock(self.gpu.file, fcntl.LOCK_UN)


def lock_autotuning(alone: Alone) -> None:
    """no two processes time candidates at once"""
    import torch._inductor.runtime.benchmarking as benchmarking

    def locked(plain: Any) -> Any:
        def benchmark_gpu(*a: Any, **k: Any) -> Any:
            with alone.held():
                return plain(*a, **k)
        return benchmark_gpu
    for name in ('Benchmarker', 'TritonBenchmarker', 'InductorBenchmarker'):
        kind = getattr(benchmarking, name, None)
        if kind is not None and 'benchmark_gpu' in kind.__dict__:
            setattr(kind, 'benchmark_gpu', locked(kind.__dict__['benchmark_gpu']))


class Compiler:
    """A worker of `worker.serve`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.suite = load(config['suite'], 'suite_torch')
        self.torch, self.random = self.suite.define()
        self.torch.set_grad_enabled(False)
        self.torch.backends.cudnn.benchmark = True
        self.suite.inductor_setup()
        self.alone = Alone(Gpu(self.torch, config['lock']))
        lock_autotuning(self.alone)
        self.timer = Timer(self.torch)

    def answer(self, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """(record, may the process go on): every form of the case in one mode"""
        t0, case = time.time(), self.suite.CASES[job['case']]
        record: dict[str, Any] = {'status': 'compiled', 'us': {}, 'note': ''}
        for v in case.comp:
            try:
                self.suite.set_tf32(self.torch, case.tf32)
                record['us'][v.name] = self.compile(case, v, job['mode'])
            except Exception as error:
                record.update(status='failed', note=self.suite.short(error)[:200])
                if self.suite.fatal(error):
                    return record, False
        record['seconds'] = {'all': round(time.time() - t0, 2)}
        return record, True

    def compile(self, case: Any, v: Any, mode: str) -> float:
        """microseconds of a launch, from few samples"""
        import torch._dynamo
        torch._dynamo.reset()
        with self.alone.held():
            inputs = case.build(self.random('cuda', 0))
            arguments = v.prep(*inputs) if v.prep else inputs
        fn = self.suite.compiled(self.torch, v, mode)
        with (v.ctx or contextlib.nullcontext)():
            fn(*arguments)
        with self.alone.held():
            ways = self.timer.both_ways(Contender(v.name, 'compile', 'stream', [lambda: fn(*arguments)], v.ctx or contextlib.nullcontext), self.suite.fatal)
            return min(statistics.median(self.timer.block(c, SAMPLES)) for c in ways)


def jobs_of(cases: list[str]) -> list[dict[str, str]]:
    """the quick mode of every case first, so that each has a compiled peer"""
    return [{'case': c, 'mode': mode} for mode in MODES for c in cases]


def best(records: list[tuple[dict[str, str], dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """{case: the fastest form and mode} of what was compiled in time"""
    found: dict[str, tuple[float, str, str]] = {}
    for job, record in records:
        for variant, us in record.get('us', {}).items():
            found[job['case']] = min(found.get(job['case'], (float('inf'), '', '')), (us, variant, job['mode']))
    return {case: {'variant': variant, 'mode': mode} for case, (_, variant, mode) in found.items()}
