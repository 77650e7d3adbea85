"""The sweep of speed.py: row operators of open sizes at awkward shapes, types and addresses, against float64 and eager torch."""
from __future__ import annotations

import functools
import itertools
import math
import pathlib
import random
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Sequence

from . import judge, samples
from .emitted import Emitted, Text, declared, write
from .launcher import Launcher, arguments_of, invented_addresses
from .mapping import torch_type
from .operators import Failure, Operator
from .timing import Contender

ROWS = (1, 3, 64, 1000, 8192)
COLUMNS = (1, 7, 64, 1000, 1023, 4096, 7168, 12288, 50257, 131072)
TYPES = ('f32', 'bf16', 'f16')
CHUNK = 1 << 25  # elements that are compared at a time: float64 copies are large
REPEATS, ROUNDS = 20, 2
ROUNDED = 2.0 ** -10  # tau of results in 16 bits


@dataclass(frozen=True)
class Swept:
    """A row operator: where its source is, the names of its two sizes, and the kind and tau of its bound."""
    source: str
    symbol: str
    sizes: tuple[str, str]
    kind: str
    rounded: float = ROUNDED

    def tau(self, dtype: str, columns: int) -> float:
        strict = 8 * 2.0 ** -24 * math.sqrt(max(columns, 64))
        return strict if dtype == 'f32' or self.kind in ('sum', 'elem') else self.rounded


OPERATORS = {
    'softmax': Swept('stdlib/nn.acu', 'softmax', ('B', 'N'), 'rowmax', 2.0 ** -9),
    'layernorm': Swept('stdlib/nn.acu', 'layernorm', ('B', 'N'), 'row'),
    'rmsnorm': Swept('stdlib/nn.acu', 'rmsnorm', ('B', 'N'), 'row'),
    'add_rmsnorm': Swept('stdlib/nn.acu', 'add_rmsnorm', ('M', 'N'), 'row'),
    'sum': Swept('stdlib/reduce.acu', 'row_sum', ('B', 'N'), 'sum'),
    'argmax': Swept('stdlib/reduce.acu', 'row_argmax', ('B', 'N'), 'exact'),
    'cross_entropy': Swept('stdlib/loss.acu', 'cross_entropy', ('N', 'V'), 'elem'),
    'transpose': Swept('benchmarks/suite/pl.acu', 'transpose', ('M', 'N'), 'exact'),
}


@dataclass(frozen=True)
class Point:
    operator: str
    dtype: str
    rows: int
    columns: int
    offset: int  # elements that every tensor is away from an aligned address

    @property
    def library(self) -> str:
        return f'{self.operator} {self.dtype}'

    @property
    def name(self) -> str:
        return f'{self.library} {self.rows}x{self.columns}+{self.offset}'

    def sized(self, t: Text, root: pathlib.Path) -> Emitted:
        s = OPERATORS[self.operator]
        return declared(t, self.name, str(root / s.source), dict(zip(s.sizes, (self.rows, self.columns))))


def points(operators: Sequence[str], seed: int, most: Optional[int] = None) -> list[Point]:
    """in an order by `seed`: where the budget ends, a sample"""
    every = [Point(*p) for p in itertools.product(operators, TYPES, ROWS, COLUMNS, (0, 1))]
    random.Random(seed).shuffle(every)
    return every[:most]


def emitters(acuc: str, root: pathlib.Path, operators: Sequence[str], folder: pathlib.Path, target: str) -> dict[str, Callable[[], Text]]:
    """one library an operator and type"""
    found: dict[str, Callable[[], Text]] = {}
    for name, dtype in itertools.product(operators, TYPES):
        s = OPERATORS[name]
        found[f'{name} {dtype}'] = functools.partial(write, acuc, str(root / s.source), ['--op', s.symbol, '--set', f'T={dtype}'], folder / f'{name}_{dtype}', target)
    return found


def host_record(library: str, e: Emitted) -> dict[str, Any]:
    """a launcher must refuse each tensor that is missing, before it calls CUDA"""
    good, faults, made = arguments_of(e, invented_addresses(e)), [], 0
    for at, p in enumerate(e.params):
        if p.role != 'scalar':
            answer = Launcher(library, e).call([*good[:at], None, *good[at + 1:]])
            made += 1
            faults += [] if answer.status == 'ARGUMENT' else [f'no {p.name}: {answer.status}']
    return {'status': 'host only' if not faults else 'wrong', 'correct': not faults, 'refusals': {'calls': made, 'faults': faults}, 'note': ' '.join(faults)}


# ---------------------------------------------------------------- on the device
def draw(torch: Any, random_of: Any, e: Emitted, seed: int) -> list[Any]:
    """inputs in the order of the operator"""
    r, found = random_of('cuda', seed), []
    for p in e.inputs:
        kind = torch_type(torch, p.type)
        if p.type == 'i64':
            found.append(r.i(*p.sizes, hi=e.inputs[0].sizes[-1]))
        elif len(p.sizes) == 1:
            found.append(r.gain(p.sizes[0], kind) if p.name == 'gain' else r.bias(p.sizes[0], kind))
        elif e.symbol == 'row_sum':
            found.append(r.red(*p.sizes, dt=kind))
        elif p.name == 'logits' or p.name == 'res' or p.sizes[0] < 3:
            found.append(r.n(*p.sizes, dt=kind, s_=2.0))
        else:
            found.append(r.rows(*p.sizes, dt=kind))
    return found


def placed(torch: Any, shape: Sequence[int], dtype: Any, offset: int, strided: bool = False) -> Any:
    """an empty tensor whose address is `offset` elements away from an aligned one; strided: each row of a matrix is, and one longer"""
    if strided and len(shape) == 2:
        return torch.empty((shape[0], shape[1] + offset), dtype=dtype, device='cuda')[:, offset:]
    count = math.prod(shape)
    return torch.empty(count + offset, dtype=dtype, device='cuda')[offset:].view(tuple(shape))


def eager_of(torch: Any, e: Emitted, x: Sequence[Any]) -> Callable[[], Any]:
    import torch.nn.functional as F
    a, n, eps = x[0], x[0].shape[-1:], next((p.value for p in e.params if p.role == 'scalar'), 0.0)

    def add_rmsnorm() -> Any:
        h = a + x[1]
        return F.rms_norm(h, n, x[2], eps), h
    return {'softmax': lambda: F.softmax(a, -1), 'layernorm': lambda: F.layer_norm(a, n, x[1], x[2], eps), 'rmsnorm': lambda: F.rms_norm(a, n, x[1], eps),
            'add_rmsnorm': add_rmsnorm, 'row_sum': lambda: a.sum(-1, dtype=torch.float32), 'row_argmax': lambda: a.argmax(-1),
            'cross_entropy': lambda: F.cross_entropy(a.float(), x[1], reduction='none'), 'transpose': lambda: a.t().clone(memory_format=torch.contiguous_format)}[e.symbol]


def reference(torch: Any, e: Emitted, x: Sequence[Any], rows: slice) -> tuple[Any, ...]:
    """float64 results for some rows of the first input"""
    import torch.nn.functional as F
    if e.symbol == 'transpose':
        return (x[0][rows].t(),)
    a, eps = x[0][rows].double(), next((p.value for p in e.params if p.role == 'scalar'), 0.0)
    rms = lambda t, gain: t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + eps) * gain.double()
    if e.symbol == 'add_rmsnorm':
        h = a + x[1][rows].double()
        return rms(h, x[2]), h
    if e.symbol == 'row_argmax':
        places = torch.arange(a.shape[1], device=a.device)
        return (torch.where(a == a.amax(-1, keepdim=True), places, a.shape[1]).amin(-1),)
    return ({'softmax': lambda: F.softmax(a, -1), 'layernorm': lambda: F.layer_norm(a, a.shape[-1:], x[1].double(), x[2].double(), eps), 'rmsnorm': lambda: rms(a, x[1]),
             'row_sum': lambda: a.sum(-1), 'cross_entropy': lambda: F.cross_entropy(a, x[1][rows], reduction='none')}[e.symbol](),)


def chunks(e: Emitted) -> Iterator[slice]:
    rows, columns = e.inputs[0].sizes
    step = max(1, CHUNK // columns)
    return (slice(at, min(rows, at + step)) for at in range(0, rows, step))


def compare(torch: Any, point: Point, e: Emitted, x: Sequence[Any], outs: Sequence[Any]) -> tuple[float, str]:
    """(largest error in units of the bound, where), every element of every output"""
    s, worst, where = OPERATORS[point.operator], 0.0, ''
    for rows in chunks(e):
        refs = reference(torch, e, x, rows)
        for at, r in enumerate(refs):
            y = outs[at][:, rows] if e.symbol == 'transpose' else outs[at][rows]
            if s.kind == 'exact':
                ratio, text = (0.0 if torch.equal(y, r) else math.inf), 'not equal'
            else:
                ratio, text = judge.worst_ratio(torch, y.double(), r, s.tau(point.dtype, point.columns), judge.scale(torch, s.kind, at, refs, [x[0][rows]], 1.0), e.outputs[at].type)
            if ratio > worst:
                worst, where = ratio, f'rows from {rows.start}, output {at}: {text}'
    return worst, where


def build(torch: Any, w: Any, e: Emitted, library: str, offset: int, strided: bool) -> tuple[Operator, list[Any]]:
    drawn = draw(torch, w.random, e, 0)
    inputs = [placed(torch, t.shape, t.dtype, offset, strided).copy_(t) for t in drawn]
    outputs = [placed(torch, p.sizes, torch_type(torch, p.type), offset, strided) for p in e.outputs]
    return Operator(torch, Launcher(library, e), [inputs], outputs), inputs


def launched(torch: Any, w: Any, e: Emitted, library: str, point: Point, record: dict[str, Any]) -> tuple[Operator, list[Any]] | None:
    """a first poisoned launch: with offset addresses, and if those are refused with offset rows"""
    for strided in (False, True) if point.offset else (False,):
        operator, inputs = build(torch, w, e, library, point.offset, strided)
        try:
            record['launch_us'] = operator.poisoned(0, 0xff)
            record['placed'] = 'rows' if strided else 'all' if point.offset else 'aligned'
            return operator, inputs
        except Failure as error:
            refused = str(error).startswith('LAYOUT') and bool(point.offset)
            record.update(status='refused' if refused else 'wrong', correct=refused, note=str(error))
            if not refused:
                return None
    return None


def measure(w: Any, e: Emitted, job: dict[str, Any], record: dict[str, Any]) -> None:
    """one point: launch, compare, time against eager, launch again over another poison"""
    torch, point = w.torch, Point(**job['point'])
    made = launched(torch, w, e, job['library'], point, record)
    if made is None:
        return
    operator, inputs = made
    worst, where = compare(torch, point, e, inputs, operator.outputs)
    record.update(status='correct', correct=True, worst=worst, note='')
    if not worst <= 1.0:
        record.update(status='wrong', correct=False, note=where)
        return
    kept = [t.clone() for t in operator.outputs]
    time(w, e, operator, eager_of(torch, e, inputs), record)
    operator.poisoned(0, 0x7f)
    if not all(torch.equal(a, b) for a, b in zip(kept, operator.outputs)):
        record.update(status='wrong', correct=False, note='another result after the timing')


def time(w: Any, e: Emitted, operator: Operator, eager: Callable[[], Any], record: dict[str, Any]) -> None:
    timer, fatal = w.timer, w.suite.fatal
    ours, theirs = (timer.both_ways(Contender(name, kind, 'stream', calls), fatal) for name, kind, calls in (('acuc', 'acuc', operator.calls), ('eager', 'eager', [eager])))
    timer.interleave([*ours, *theirs], REPEATS, 0, ROUNDS)
    mine, peer = (min(cs, key=lambda c: c.median) for cs in (ours, theirs))
    floor = w.floor('', e, None, float(e.tensor_bytes))
    record.update(us=mine.median, how=mine.how, eager_us=peer.median, eager_how=peer.how, ratio=samples.ratio_of_rounds(mine.rounds, peer.rounds), floor_us=floor,
                  tbps=e.tensor_bytes / mine.median / 1e6)
    if mine.median < floor:
        record.update(status='below the floor', correct=False, ratio=None)
