"""The bounds of benchmarks/README.md on the device: |y - r| <= tau*s + u*|r| against float64 references."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Sequence

from .emitted import Emitted

Tolerances = dict[str, tuple[str, Any]]  # {case: (kind, tau)}: TOLERANCE of tests/suite/tolerance.py
FEW = 64  # elements, whose RMS error is chance
SPECIAL = ('argmax', 'topk', 'router', 'quant')
ROUNDOFF = {'f16': 2.0 ** -10, 'bf16': 2.0 ** -7, 'f32': 2.0 ** -23, 'f64': 2.0 ** -52, 'f8e4m3': 2.0 ** -3, 'f8e5m2': 2.0 ** -2}
SMALLEST_NORMAL = {'f16': 2.0 ** -14, 'bf16': 2.0 ** -126, 'f32': 2.0 ** -126, 'f64': 2.0 ** -1022, 'f8e4m3': 2.0 ** -6, 'f8e5m2': 2.0 ** -14}


class Shape:
    """What the tolerances of tests/suite/tolerance.py ask of an array: its shape and size."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape, self.size = tuple(shape), math.prod(shape)

    def __getitem__(self, at: int) -> 'Shape':
        return Shape(self.shape[1:])


@dataclass
class Verdict:
    correct: bool
    worst: float  # of the bound of README.md, tau from tests/suite/tolerance.py
    viol: float  # of the bound of suite_torch.py
    rms_ratio: Optional[float]  # RMS error over that of eager torch
    note: str = ''


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def rms(torch: Any, x: Any, **axis: Any) -> Any:
    return x.pow(2).mean(**axis).sqrt() if axis else x.pow(2).mean().sqrt()


def scale(torch: Any, kind: str, at: int, refs: Sequence[Any], inputs: Sequence[Any], length: float) -> Any:
    r = refs[at]
    finite = torch.where(torch.isfinite(r), r, torch.zeros((), dtype=r.dtype, device=r.device))
    small = lambda t: float(t.float().pow(2).mean().sqrt())
    if kind == 'gemm':
        return math.sqrt(length) * small(inputs[0]) * small(inputs[1])
    if kind == 'sum':
        return math.sqrt(inputs[0].numel() / max(1, r.numel())) * small(inputs[0])
    if kind == 'stats':
        return refs[0] if at == 0 else torch.sqrt(refs[0] + refs[1] ** 2)
    if kind == 'row':
        return rms(torch, finite, dim=-1, keepdim=True) if r.dim() else finite.abs()
    if kind == 'rowmax':
        return finite.abs().amax(-1, keepdim=True)
    if kind == 'all':
        return rms(torch, finite)
    if kind == 'elem':
        return finite.abs().clamp(min=1.0)
    assert kind == 'one', kind
    return 1.0


def difference(torch: Any, y: Any, r: Any) -> Any:
    """|y - r|: 0 where equal (infinities too), infinite where NaN or an infinity stands in one only"""
    zero, inf = (torch.tensor(v, dtype=torch.float64, device=r.device) for v in (0.0, math.inf))
    d = (y - r).abs()
    return torch.where((y == r) | (torch.isnan(y) & torch.isnan(r)), zero, torch.where(torch.isnan(d), inf, d))


def worst_ratio(torch: Any, y: Any, r: Any, tau: float, s: Any, dtype: str = '') -> tuple[float, str]:
    """(largest error in units of the bound, where); with tau = 0 and no `dtype` everything must be exact"""
    d, u = difference(torch, y, r), ROUNDOFF.get(dtype, 0.0)
    size = torch.where(torch.isfinite(r), r.abs(), torch.zeros((), dtype=r.dtype, device=r.device)).clamp(min=SMALLEST_NORMAL.get(dtype, 0.0))
    ratio = d / (tau * s + u * size).clamp(min=1e-300) if tau or u else torch.where(d == 0, d, torch.full_like(d, math.inf))
    flat = ratio.reshape(-1)
    k = int(flat.argmax())
    place = f'worst at {k}: {float(y.reshape(-1)[k]):.8g} for {float(r.reshape(-1)[k]):.8g}'
    return float(flat[k]), place


def bounds_of(tolerances: Tolerances, e: Emitted) -> tuple[str, float, float]:
    """(kind, tau, length of a contraction) by tests/suite/tolerance.py"""
    kind, tau = tolerances[e.case]
    shapes = {p.name: Shape(p.sizes) for p in e.inputs}
    length = e.dims['K'] if 'K' in e.dims else list(shapes.values())[1][0].size if len(shapes) > 1 and len(e.inputs[1].sizes) else 1
    return kind, (tau(shapes, e.dims) if callable(tau) else tau), float(length)


def by_bound(torch: Any, tolerances: Tolerances, e: Emitted, outs: Sequence[Any], refs: Sequence[Any], inputs: Sequence[Any]) -> tuple[float, str]:
    kind, tau, length = bounds_of(tolerances, e)
    worst, where = 0.0, ''
    for at, (y, r) in enumerate(zip(outs, refs)):
        assert tuple(y.shape) == tuple(r.shape), f'output {at} is {tuple(y.shape)}, its reference {tuple(r.shape)}'
        r = r.double()
        if kind == 'exact':
            ratio, text = worst_ratio(torch, y.double(), r, 0.0, 1.0)
        else:
            dtype = e.outputs[at].type
            chain = kind.startswith('chain-')
            s = scale(torch, kind.removeprefix('chain-'), at, refs, inputs, length)
            ratio, text = worst_ratio(torch, y.double(), r, tau + (ROUNDOFF.get(dtype, 0.0) if chain else 0.0), s, dtype)
        if ratio > worst or not where:
            worst, where = ratio, f'output {at} {text}'
    return worst, where


def invalid_indices(torch: Any, e: Emitted, kind: str, outs: Sequence[Any]) -> str:
    """what suite_torch's own checks would stumble over: indices outside the row, or twice the same"""
    if kind not in ('argmax', 'topk', 'router'):
        return ''
    i, row = outs[-1], (e.dims['E'] if kind == 'router' else e.inputs[0].sizes[-1])
    if int(((i < 0) | (i >= row)).sum()):
        return 'an index outside the row'
    if kind != 'argmax' and int((i.sort(-1).values.diff(dim=-1) == 0).sum()):
        return 'an index twice in a row'
    return ''


def rms_errors(torch: Any, outs: Sequence[Any], refs: Sequence[Any]) -> list[float]:
    found = []
    for y, r in zip(outs, refs):
        d = difference(torch, y.double(), r.double())
        found.append(float(d.pow(2).mean().sqrt()))
    return found


def against_eager(torch: Any, suite: Any, case: Any, e: Emitted, outs: Sequence[Any], refs: Sequence[Any], inputs: Sequence[Any]) -> tuple[Optional[float], str]:
    """README.md: RMS error <= 2x that of torch at the same type. Below one unit roundoff of the result's RMS, and of a few elements, nothing is asked."""
    try:
        suite.set_tf32(torch, case.tf32)
        v = case.eager
        peer = as_tuple(v.fn(*(v.prep(*inputs) if v.prep else inputs)))
        theirs = rms_errors(torch, peer, refs)
    except Exception as error:  # the peer is torch's business: without one there is no ratio
        return None, f'eager failed: {suite.short(error)[:80]}'
    finally:
        suite.set_tf32(torch, False)
    worst = 0.0
    for at, (ours, their) in enumerate(zip(rms_errors(torch, outs, refs), theirs)):
        if refs[at].numel() < FEW:
            continue
        finite = refs[at].double()
        finite = finite[torch.isfinite(finite)]
        floor = ROUNDOFF.get(e.outputs[at].type, 0.0) / 2 * float(rms(torch, finite))
        if math.isfinite(ours) and ours > floor:
            worst = max(worst, ours / max(their, 1e-300))
        elif not math.isfinite(ours):
            worst = math.inf
    return worst, ''


def judge(torch: Any, suite: Any, tolerances: Tolerances, e: Emitted, case: Any, outs: Any, ref: Any, inputs: Sequence[Any]) -> Verdict:
    """`outs` and `ref` in the layout of suite_torch, `inputs` as it built them"""
    kind = tolerances[e.case][0]
    fault = invalid_indices(torch, e, kind, as_tuple(outs))
    if fault:
        return Verdict(False, math.inf, math.inf, None, fault)
    c = suite.compare(torch, case, outs, ref, inputs)
    note = c.get('note', '')
    if kind in SPECIAL:
        return Verdict(c['viol'] <= 1.0, c['viol'], c['viol'], None, note)
    worst, where = by_bound(torch, tolerances, e, as_tuple(outs), as_tuple(ref), inputs)
    if kind == 'exact':
        return Verdict(worst == 0.0, worst, c['viol'], None, note if worst == 0.0 else where)
    ratio, text = against_eager(torch, suite, case, e, as_tuple(outs), as_tuple(ref), inputs)
    good = worst <= 1.0 and (ratio is None or ratio <= 2.0)
    return Verdict(good, worst, c['viol'], ratio, ' '.join(t for t in (note, '' if good else where, text) if t))
