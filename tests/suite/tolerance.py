"""Tolerances of the 104 suite cases.

    TOLERANCE[id]                   (kind, tau): tau a number or a function of (inputs, params)
    compare(id, outputs, refs, inputs, params, out_dtypes)   (ok, worst ratio to the bound, message)

Outputs are widened to float64 or int64; refs, inputs and params are those of `reference.REFERENCE`. `self_test.py` and
`run_suite.py` check that a correct result passes and that every mutant of `mutants.py` fails.
"""
import math

import numpy as np
from formats import ROUNDOFF
from reference import router_p, top

# Kinds: gemm and sum scale with sqrt(length) of the contraction; row, rowmax, all, elem, one by the reference itself;
# stats is for (variance, mean); chain-… adds the rounding of a value that passes through an MMA operand; the rest is special.
PLAIN = 2.0 ** -10


def mma(length):
    """f16 and bf16 operands summed in f32, truncating"""
    return lambda i, p: max(2.0 ** -13, length(i, p) * 2.0 ** -28)


def strict(length):
    """f32 all the way"""
    return lambda i, p: 8 * 2.0 ** -24 * math.sqrt(length(i, p))


def by_k(i, p): return p['K']
def filter_size(i, p): return i['w'][0].size
def row_length(i, p): return i['x'].shape[-1]
def everything(i, p): return next(iter(i.values())).size
def channel_size(i, p): return i['x'].size // i['x'].shape[1]
def rows_of_first(i, p): return next(iter(i.values())).shape[0]


BOUNDS = {
    'GD01 GD02 GD03 GD04 GD05 GD06 GT01 GT02 GT03 GT04 GT05 GT06 GT07 GT08 GV01 GV02 GV03 GV04 GV05 GV06 GV07': ('gemm', mma(by_k)),
    'GD07': ('gemm', strict(by_k)),
    'GD08 CV08': ('gemm', 2.0 ** -9),
    'CV01 CV02 CV03 CV04 CV05 CV06 CV07': ('gemm', mma(filter_size)),
    'GV08 FG04 FG05 FC06 FC08 NM08 PL02 PL03': ('all', PLAIN),
    'QN02 QN03': ('all', 2.0 ** -13),
    'QN04 QN05': ('all', 2.0 ** -7),
    'QN06 QN07 QN08 FG06 FC04 FM07 FM08': ('chain-all', PLAIN),
    'AT01 AT02 AT03 AT04 AT05 AT06 AT07 AT08': ('chain-row', PLAIN),
    'QN01 PL01 PL04 PL05 PL06 PL07 EW05': ('exact', 0.0),
    'RD01': ('sum', strict(row_length)),
    'RD02': ('sum', strict(rows_of_first)),
    'RD03': ('sum', strict(everything)),
    'RD04': ('elem', strict(row_length)),
    'RD05': ('argmax', 0.0),
    'RD06': ('topk', 0.0),
    'RD07': ('row', strict(row_length)),
    'RD08': ('stats', strict(channel_size)),
    'NM01 FM03': ('rowmax', 2.0 ** -9),
    'NM02': ('rowmax', strict(row_length)),
    'NM03 NM04 NM05 NM06 NM07 EW01 EW02 EW03 EW04 EW06 FG03 FM01 FM02 FM04 FM06': ('row', PLAIN),
    'PL08': ('all', 8 * 8 * 2.0 ** -24),
    'EW07': ('elem', strict(rows_of_first)),
    'EW08': ('elem', strict(everything)),
    'FG01 FG02 FC01 FC02 FC03 FC05 FC07': ('one', PLAIN),
    'FG07': ('router', PLAIN),
    'FG08': ('elem', PLAIN),
    'FM05': ('quant', 2.0 ** -12),
}
TOLERANCE = {cid: b for ids, b in BOUNDS.items() for cid in ids.split()}


def rms(x, **axis):
    return np.sqrt((np.asarray(x, float) ** 2).mean(**axis))


def scale_of(kind, at, refs, inputs, params):
    """s of the bound for output `at`"""
    r = refs[at].astype(float)
    finite = np.where(np.isfinite(r), r, 0.0)
    if kind == 'gemm':
        a, b = list(inputs.values())[:2]
        return math.sqrt(params['K'] if 'K' in params else b[0].size) * rms(a) * rms(b)
    if kind == 'sum':
        x = next(iter(inputs.values()))
        return math.sqrt(x.size / max(1, r.size)) * rms(x)
    if kind == 'stats':
        return refs[0] if at == 0 else np.sqrt(refs[0] + refs[1] ** 2)
    if kind == 'row':
        return rms(finite, axis=-1, keepdims=True) if r.ndim else np.abs(finite)
    if kind == 'rowmax':
        return np.abs(finite).max(-1, keepdims=True)
    if kind == 'all':
        return rms(finite)
    if kind == 'elem':
        return np.maximum(np.abs(finite), 1.0)
    assert kind == 'one', kind
    return 1.0


def bounded(y, r, bound):
    """(worst |y - r| / bound, message); NaN and infinities must stand in the same places"""
    y, r = y.astype(float), r.astype(float)
    for name, bad in (('NaN', np.isnan(y) != np.isnan(r)), ('infinity', np.where(np.isinf(y) | np.isinf(r), y != r, False) & ~np.isnan(r))):
        if bad.any():
            at = tuple(int(v) for v in np.argwhere(bad)[0])
            return math.inf, f'{name} disagrees at {at}: {y[at]} for {r[at]} ({int(bad.sum())} places)'
    with np.errstate(invalid='ignore'):
        diff = np.where((y == r) | np.isnan(r), 0.0, np.abs(y - r))
    with np.errstate(over='ignore'):
        ratio = diff / np.maximum(np.broadcast_to(bound, diff.shape), 1e-300)
    if not ratio.size:
        return 0.0, 'empty'
    at = tuple(int(v) for v in np.unravel_index(np.argmax(ratio), ratio.shape))
    return float(ratio[at]), f'worst at {at}: {y[at]:.8g} for {r[at]:.8g}, {ratio[at]:.3g} of the bound'


def check_argmax(outputs, refs, inputs):
    x, i = inputs['x'], outputs[0].astype(np.int64)
    if ((i < 0) | (i >= x.shape[-1])).any():
        return math.inf, 'an index outside the row'
    got = np.take_along_axis(x, i[:, None], -1)[:, 0]
    bad = int((got != x.max(-1)).sum())
    return (math.inf if bad else 0.0), f'{bad} rows name no maximum, {int((i != refs[0]).sum())} rows not the lowest index'


def check_topk(outputs, refs, inputs):
    x, v, i = inputs['x'], outputs[0].astype(float), outputs[1].astype(np.int64)
    if ((i < 0) | (i >= x.shape[-1])).any():
        return math.inf, 'an index outside the row'
    bad = int((~(v == refs[0])).sum()) + int((np.take_along_axis(x, i, -1) != refs[0]).sum())
    twice = int((np.diff(np.sort(i, -1), axis=-1) == 0).sum())
    return (math.inf if bad or twice else 0.0), f'{bad} wrong values, {twice} repeated indices, {int((i != refs[1]).sum())} not the lowest index'


def check_router(outputs, refs, inputs, tau):
    p, v, i = router_p(inputs), outputs[0].astype(float), outputs[1].astype(np.int64)
    if ((i < 0) | (i >= p.shape[-1])).any() or (i[:, 0] == i[:, 1]).any():
        return math.inf, 'an invalid or repeated index'
    got = np.take_along_axis(p, i, -1)
    err = np.abs(v - got / got.sum(-1, keepdims=True))
    worse = float((top(p, 2)[0] - got).max(initial=0.0))
    ratio = math.inf if np.isnan(err).any() else max(float(err.max(initial=0.0)) / tau, worse / 2.0 ** -7)
    return ratio, f'weights off by {err.max(initial=0.0):.2e}, picks worse by {worse:.2e}, {int((i != refs[1]).any(-1).sum())} rows with other indices'


def check_quant(outputs, refs, tau):
    q, s = outputs[0].astype(float), outputs[1].astype(float).reshape(refs[1].shape)
    step = np.abs(q - refs[0])
    off = float((step >= 1).mean()) if step.size else 0.0
    rel = np.abs(s - refs[1]) / np.maximum(np.abs(refs[1]), 1e-300)
    if np.isnan(s).any() or step.max(initial=0.0) > 1:
        return math.inf, f'a value is off by {step.max(initial=0.0):.0f}, or a scale is NaN'
    return max(off / 1e-3, float(rel.max(initial=0.0)) / tau), f'share off by one {off:.1e}, scales off by {rel.max(initial=0.0):.1e}'


def compare(cid, outputs, refs, inputs, params, out_dtypes):
    """|y - r| <= tau*s + u*|r| for every element of every output, u twice the unit roundoff of its type"""
    kind, tau = TOLERANCE[cid]
    tau = tau(inputs, params) if callable(tau) else tau
    outputs = [np.asarray(y).reshape(r.shape) for y, r in zip(outputs, refs)]
    if kind in ('argmax', 'topk', 'router', 'quant'):
        check = {'argmax': lambda: check_argmax(outputs, refs, inputs), 'topk': lambda: check_topk(outputs, refs, inputs),
                 'router': lambda: check_router(outputs, refs, inputs, tau), 'quant': lambda: check_quant(outputs, refs, tau)}[kind]
        worst, message = check()
        return worst <= 1.0, worst, message
    worst, message = 0.0, ''
    for at, (y, r, dtype) in enumerate(zip(outputs, refs, out_dtypes)):
        if kind == 'exact':
            ratio, text = bounded(y, r, 0.0)
        else:
            chain = kind.startswith('chain-')
            s = scale_of(kind[6:] if chain else kind, at, refs, inputs, params)
            u = ROUNDOFF.get(dtype, 0.0)
            ratio, text = bounded(y, r, (tau + (u if chain else 0.0)) * s + u * np.where(np.isfinite(r), np.abs(r), 0.0))
        if ratio >= worst:
            worst, message = ratio, f'output {at}: {text}'
    return worst <= 1.0, worst, message
