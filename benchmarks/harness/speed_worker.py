"""The worker of speed.py: checks and times one case, or one point of the sweep, beside torch's ways to compute the same."""
from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import asdict
from typing import Any, Optional, Sequence

from . import judge as judging
from . import machine, mapping, samples, sweep
from .emitted import Emitted
from .launcher import Launcher
from .operators import Operator
from .timing import Contender, Timer, read_clocks
from .worker import EXEMPT, POISON, Worker, raw_bytes

SETS, SETS_BYTES = 4, 24e9  # sets of inputs, fewer of very large ones
SLOW_US = 100e3  # a launch that takes longer is not repeated for the timing
WARM_SECONDS = 0.2


class SpeedWorker(Worker):
    """config, besides that of Worker: repeats, compile_seconds, compiles"""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.config, self.table = config, machine.read_table(config['suite'], 'cases.tsv')
        self.torch.backends.cudnn.benchmark = True
        self.timer = Timer(self.torch)
        self.device = samples.device_of(self.torch.cuda.get_device_name())
        if config['compiles']:  # while nothing else is to do: the first compilation loads Inductor
            with contextlib.suppress(Exception):
                self.torch.compile(lambda x: x + 1)(self.torch.zeros(8, device='cuda'))

    @functools.cached_property
    def rates(self) -> dict[str, float]:
        return self.timer.copy_rate()

    def run(self, e: Emitted, job: dict[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {'seconds': {}, **self.rates}
        if 'point' in job:
            with self.timed(record, 'all', True):
                sweep.measure(self, e, job, record)
            return record
        Case(self, e, job, record).perform()
        return record

    def floor(self, case: str, e: Emitted, row: Optional[dict[str, str]], nbytes: float) -> float:
        flop = float(row['gflop']) * 1e9 if row else 0.0
        written = float(sum(p.nbytes for p in e.outputs))
        return samples.floor_us(self.device, nbytes, written, float(self.timer.cache), flop, samples.arithmetic(case))


class Case:
    """One case of the suite in device memory."""

    def __init__(self, w: SpeedWorker, e: Emitted, job: dict[str, Any], record: dict[str, Any]) -> None:
        self.w, self.e, self.job, self.record = w, e, job, record
        self.torch, self.suite, self.case = w.torch, w.suite, w.suite.CASES[e.case]
        self.row = w.table.get(e.case)
        self.notes: list[str] = []
        self.slow: list[float] = []
        self.peers: list[Contender] = []

    def perform(self) -> None:
        record, timed = self.record, self.w.timed
        with timed(record, 'prepare', True):
            self.prepare()
        with timed(record, 'check', True):
            first = self.check(0, POISON[0])
        if record['correct']:
            with timed(record, 'peers', True):
                self.find_peers()
            self.ref = None
            with timed(record, 'time', True):
                self.time()
            with timed(record, 'recheck', True):
                self.check_again(first)
        record['status'] = 'correct' if record['correct'] else record.get('status', 'wrong')
        record['note'] = '; '.join(n for n in [record.get('note', ''), *self.notes] if n)

    def prepare(self) -> None:
        count = SETS if SETS * self.e.tensor_bytes < SETS_BYTES else 1
        self.sets = [self.case.build(self.w.random('cuda', seed)) for seed in range(count)]
        mapped = [mapping.operator_inputs(self.torch, self.e, s) for s in self.sets]
        mapping.check_types(self.torch, self.e, mapped[0])
        outputs = [self.torch.empty(p.sizes, dtype=mapping.torch_type(self.torch, p.type), device='cuda') for p in self.e.outputs]
        self.operator = Operator(self.torch, Launcher(self.job['library'], self.e), mapped, outputs)
        self.record.update(workspace_bytes=self.operator.needed, input_sets=count)

    # ------------------------------------------------------------ correctness
    def check(self, at: int, byte: int) -> list[Any]:
        """one poisoned launch on a set of inputs against float64; the outputs"""
        us = self.operator.poisoned(at, byte)
        if us > SLOW_US:  # once more: the first launch of a library loads it
            us = self.operator.poisoned(at, byte)
        if us > SLOW_US:
            self.slow.append(us)
        self.ref = self.case.ref(*self.sets[at])
        outs = mapping.reference_layout(self.e, self.operator.outputs)
        v = judging.judge(self.torch, self.suite, self.w.tolerances, self.e, self.case, outs, self.ref, self.sets[at])
        worst = max(v.worst, self.record.get('worst', 0.0))
        self.record.update({**asdict(v), 'worst': worst, 'correct': v.correct and self.record.get('correct', True)})
        return [t.clone() for t in self.operator.outputs]

    def check_again(self, first: Sequence[Any]) -> None:
        """after the timing: another set of inputs against float64, then the first set again, which must give the same bits"""
        if not self.slow:
            self.check(len(self.sets) - 1, POISON[1])
            self.ref = None
        us = self.operator.poisoned(0, POISON[2])
        if self.slow:
            self.slow.append(us)
            self.take(self.slow_contender())
        same = all(self.torch.equal(raw_bytes(self.torch, a), raw_bytes(self.torch, b)) for a, b in zip(first, self.operator.outputs))
        self.record['same_bits'] = None if self.e.case in EXEMPT else same
        if not same and self.e.case not in EXEMPT:
            self.record.update(correct=False, note='another result after the timing')

    # ------------------------------------------------------------ who takes part
    def find_peers(self) -> None:
        self.suite.set_tf32(self.torch, self.case.tf32)
        errors: dict[str, Any] = {}
        for v, kind in [(self.case.eager, 'eager'), *((v, 'vendor') for v in self.case.variants)]:
            if not v.uncounted:
                self.add_peer(v, kind, v.name, v.fn, errors)
        chosen = self.job.get('compile')
        if chosen:
            self.add_compiled(chosen['variant'], chosen['mode'], errors)
        elif self.case.comp and self.job.get('expect_compile'):
            self.notes.append('no compiled peer in time')
        self.suite.set_tf32(self.torch, False)

    def add_compiled(self, variant: str, mode: str, errors: dict[str, Any]) -> None:
        import torch._dynamo
        torch._dynamo.reset()
        self.suite.inductor_setup()
        v = next(v for v in self.case.comp if v.name == variant)
        fn, name = self.suite.compiled(self.torch, v, mode), f'{v.name} {mode}'
        try:
            with self.suite.limit(self.w.config['compile_seconds']), (v.ctx or contextlib.nullcontext)():
                fn(*(v.prep(*self.sets[0]) if v.prep else self.sets[0]))
                self.torch.cuda.synchronize()
        except self.suite.Alarm:
            self.notes.append(f'{name}: not compiled in time')
        except Exception as error:
            self.notes.append(f'{name}: {self.suite.short(error)[:80]}')
        else:
            self.add_peer(v, 'compile', name, fn, errors)

    def add_peer(self, v: Any, kind: str, name: str, fn: Any, errors: dict[str, Any]) -> None:
        """takes part if it runs and is as exact as asked, or about as exact as eager"""
        context = v.ctx or contextlib.nullcontext
        try:
            with context():
                each = [v.prep(*s) if v.prep else s for s in self.sets]
                c = self.suite.compare(self.torch, self.case, fn(*each[0]), self.ref, self.sets[0])
            errors.setdefault('viol', c['viol'])
            errors.setdefault('err', c['err'])
            if not (c['viol'] <= max(1.0, 2 * errors['viol']) or c['err'] <= 2 * errors['err']):
                self.notes.append(f"{name} left out: {c['viol']:.2g} of the tolerance")
                return
            self.peers += self.both_ways(Contender(name, kind, 'stream', [functools.partial(fn, *a) for a in each], context))
        except Exception as error:
            if self.suite.fatal(error):
                raise
            self.notes.append(f'{name}: {self.suite.short(error)[:80]}')

    def both_ways(self, c: Contender) -> list[Contender]:
        return self.w.timer.both_ways(c, self.suite.fatal)

    # ------------------------------------------------------------ the timing
    def slow_contender(self) -> Contender:
        return Contender('acuc', 'acuc', 'stream', self.operator.calls, rounds=[list(self.slow)])

    def time(self) -> None:
        timer, seed = self.w.timer, sum(map(ord, self.e.case))
        self.suite.set_tf32(self.torch, self.case.tf32)
        ours = [] if self.slow else self.both_ways(Contender('acuc', 'acuc', 'stream', self.operator.calls))
        everyone = [*ours, *self.peers]
        timer.warm(everyone, WARM_SECONDS)
        timer.interleave(everyone, self.w.config['repeats'], seed)
        self.record['clocks'] = read_clocks()
        self.nbytes = samples.compulsory_bytes(self.e.case, self.row, self.e.tensor_bytes)
        self.record.update(bytes=self.nbytes, floor_us=self.w.floor(self.e.case, self.e, self.row, self.nbytes), peers=[c.record() for c in self.peers])
        if ours:
            best = min(ours, key=lambda c: c.median)
            peer = self.best_peer()
            self.quieter(best, peer)
            self.take(best)
            if peer and samples.compute_bound(self.e.case, self.row):
                self.record['sustained'] = timer.sustained(best, peer)
        self.suite.set_tf32(self.torch, False)

    def best_peer(self) -> Optional[Contender]:
        possible = [c for c in self.peers if c.median >= self.record['floor_us']]
        return min(possible, key=lambda c: c.median, default=None)

    def quieter(self, ours: Contender, peer: Optional[Contender]) -> None:
        """times the two that matter once more if they are noisy, and keeps the calmer times"""
        two = [c for c in (ours, peer) if c]
        noise = lambda: max(c.record()['iqr'] for c in two)
        before, kept = noise(), [c.rounds for c in two]
        if before <= samples.NOISY:
            return
        self.w.timer.interleave(two, self.w.config['repeats'], 1)
        if noise() > before:
            for c, rounds in zip(two, kept):
                c.rounds = rounds

    def take(self, ours: Contender) -> None:
        """the result of the case"""
        peer, record, mine = self.best_peer(), self.record, ours.record()
        too_fast = [c.name for c in self.peers if c.median < record['floor_us']]
        if too_fast:
            self.notes.append(f"below the floor, refused: {', '.join(sorted(set(too_fast)))}")
        tbps = self.nbytes / mine['median'] / 1e6
        noise = max([mine['iqr'], *([peer.record()['iqr']] if peer else [])])
        record.update(us=mine['median'], p10=mine['p10'], p90=mine['p90'], n=mine['n'], how=ours.how, iqr=mine['iqr'], noisy=noise > samples.NOISY, tbps=tbps,
                      of_copy=tbps / record['copy_tbps'], peer=peer.record() if peer else None, ratio=samples.ratio_of_rounds(ours.rounds, peer.rounds) if peer else None)
        if mine['median'] < record['floor_us'] or not math.isfinite(mine['median']):
            record.update(correct=False, status='below the floor', ratio=None, note=f"{mine['median']:.1f} us, the floor is {record['floor_us']:.1f}")
