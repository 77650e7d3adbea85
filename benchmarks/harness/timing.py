"""Timing on the GPU by the contract of the suite: one event pair a launch, L2 flushed before it, contenders interleaved A-B-C-C-B-A."""
from __future__ import annotations

import contextlib
import ctypes
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

from .samples import palindrome, ratio_of_rounds, summary

ROUNDS = 5
LEAD = 4  # flushes before a block, so that the host gets ahead of the device
BLOCK_US = 40e3  # a contender has the device for about so long at a time
GRAPH_US = 5e3  # launches that take longer are not captured
COPY_BYTES = 1 << 30
SUSTAINED_US, SUSTAINED_ROUNDS = 30e3, 6

Call = Callable[[], Any]
Context = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass
class Contender:
    """One implementation, called in one way: `calls` has an entry for each set of inputs."""
    name: str
    kind: str  # acuc, eager, vendor or compile
    how: str  # stream: plain calls; graph: each call replayed from a CUDA graph
    calls: Sequence[Call]
    context: Context = contextlib.nullcontext
    guess_us: float = 100.0
    rounds: list[list[float]] = field(default_factory=list)
    made: int = 0

    @property
    def samples(self) -> list[float]:
        return [t for r in self.rounds for t in r]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def next(self) -> None:
        self.calls[self.made % len(self.calls)]()
        self.made += 1

    def record(self) -> dict[str, Any]:
        return {'name': self.name, 'kind': self.kind, 'how': self.how, **summary(self.samples)}


def capture(torch: Any, calls: Sequence[Call], context: Context) -> list[Call]:
    """a CUDA graph for each call; they share memory for what they allocate"""
    found: list[Call] = []
    side, pool = torch.cuda.Stream(), None
    side.wait_stream(torch.cuda.current_stream())
    with context():
        with torch.cuda.stream(side):
            calls[0]()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        for call in calls:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                call()
            pool = pool or graph.pool()
            found.append(graph.replay)
    return found


class Timer:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
        self.buffer = torch.ones(2 * self.cache // 4, dtype=torch.float32, device='cuda')
        self.sink = torch.empty((), dtype=torch.float32, device='cuda')
        self.events: list[tuple[Any, Any]] = []
        try:
            self.driver: Optional[Any] = ctypes.CDLL('libcuda.so.1')
        except OSError:
            self.driver = None

    def flush(self) -> None:
        """reads twice the L2: what it leaves is clean, so that the timed call pays for no one's write-back"""
        self.torch.sum(self.buffer, 0, out=self.sink)

    def reset_persisting(self) -> None:
        if self.driver is not None:
            self.driver.cuCtxResetPersistingL2Cache()

    def pair(self, at: int) -> tuple[Any, Any]:
        while at >= len(self.events):
            self.events.append(tuple(self.torch.cuda.Event(enable_timing=True) for _ in range(2)))
        return self.events[at]

    # ------------------------------------------------------------ blocks of launches
    def block(self, c: Contender, count: int) -> list[float]:
        """microseconds of each of `count` launches"""
        self.reset_persisting()
        with c.context():
            for _ in range(LEAD):
                self.flush()
            for i in range(count):
                a, b = self.pair(i)
                self.flush()
                a.record()
                c.next()
                b.record()
            self.torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e3 for a, b in self.events[:count]]

    def both_ways(self, c: Contender, fatal: Callable[[Exception], bool]) -> list[Contender]:
        """the contender, and its calls as CUDA graphs where that works and can gain anything"""
        c.guess_us = self.block(c, 2)[-1]
        if c.guess_us > GRAPH_US:
            return [c]
        try:
            return [c, Contender(c.name, c.kind, 'graph', capture(self.torch, c.calls, c.context), c.context, c.guess_us)]
        except Exception as error:
            if fatal(error):
                raise
            with contextlib.suppress(Exception):
                self.torch.cuda.synchronize()
            return [c]

    def unflushed(self, c: Contender, count: int) -> float:
        """microseconds a launch, back to back"""
        a, b = self.pair(0)
        with c.context():
            a.record()
            for _ in range(count):
                c.next()
            b.record()
            self.torch.cuda.synchronize()
        return a.elapsed_time(b) * 1e3 / count

    def warm(self, contenders: Sequence[Contender], seconds: float) -> None:
        """all in turn for `seconds` at least, each twice at least"""
        end, turns = time.perf_counter() + seconds, 0
        while turns < 2 or time.perf_counter() < end:
            for c in contenders:
                us = self.block(c, 1 if turns < 2 else self.per_block(c, 5))[-1]
                c.guess_us = us if turns == 1 else c.guess_us
            turns += 1

    def per_block(self, c: Contender, wanted: int) -> int:
        return max(1, min(wanted, int(BLOCK_US / max(1.0, c.guess_us))))

    def interleave(self, contenders: Sequence[Contender], repeats: int, seed: int, rounds: int = ROUNDS) -> None:
        """about `repeats` samples of each contender, fewer of slow ones; replaces what they had"""
        rng = random.Random(seed)
        for c in contenders:
            c.rounds = [[] for _ in range(rounds)]
        for r in range(rounds):
            for c in palindrome(contenders, rng):
                c.rounds[r] += self.block(c, self.per_block(c, max(1, repeats // (2 * rounds))))

    def sustained(self, ours: Contender, peer: Contender) -> dict[str, float]:
        """alternating blocks of at least 30 ms without a flush: the clocks that a long run settles at"""
        times: dict[int, list[list[float]]] = {0: [], 1: []}
        for r in range(SUSTAINED_ROUNDS):
            for k, c in ((0, ours), (1, peer)) if r % 2 == 0 else ((1, peer), (0, ours)):
                times[k].append([self.unflushed(c, max(2, int(SUSTAINED_US / max(1.0, c.median)) + 1))])
        medians = [statistics.median(t[0] for t in times[k]) for k in (0, 1)]
        return {'us': medians[0], 'peer_us': medians[1], 'ratio': ratio_of_rounds(times[0], times[1]) or 0.0}

    # ------------------------------------------------------------ the device itself
    def copy_rate(self) -> dict[str, float]:
        """TB/s of a large device-to-device copy, bytes read and written, and what an empty pair of events reads"""
        source = self.torch.ones(COPY_BYTES, dtype=self.torch.uint8, device='cuda')
        target = self.torch.empty_like(source)
        copy = Contender('copy', 'copy', 'stream', [lambda: target.copy_(source)])
        empty = Contender('nothing', 'nothing', 'stream', [lambda: None])
        self.block(copy, 3)
        return {'copy_tbps': 2 * COPY_BYTES / statistics.median(self.block(copy, 15)) / 1e6, 'event_pair_us': statistics.median(self.block(empty, 15))}


def read_clocks() -> dict[str, float]:
    """clocks, power and temperature as they are now; empty without nvidia-ml-py"""
    try:
        import pynvml as n
        n.nvmlInit()
        h = n.nvmlDeviceGetHandleByIndex(0)
        return {'sm_mhz': n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM), 'memory_mhz': n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
                'power_w': n.nvmlDeviceGetPowerUsage(h) / 1e3, 'temperature_c': n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)}
    except Exception:
        return {}
