#!/usr/bin/env python3
"""NumPy references, tolerances and mutants of the 104 suite cases.

    REFERENCE[id](inputs, params)   tuple of float64 or int64 arrays
    TOLERANCE[id]                   (kind, tau): tau a number or a function of (inputs, params)
    compare(id, outputs, refs, inputs, params, out_dtypes)   (ok, worst ratio to the bound, message)
    MUTANTS[name](refs, inputs, other)                       outputs that compare() must reject, or None

Inputs go by the names of the operator's parameters and are already widened to float64 or int64; params holds the case's
dimensions, compile-time values and scalars. Images are in the operator's memory order. `python3 tests/suite/reference.py`
draws inputs for every reduced case of benchmarks/suite and checks that a correct result passes and every mutant fails.
"""
import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


# ---------------------------------------------------------------- building blocks
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logsumexp(x):
    top = x.max(-1)
    return top + np.log(np.exp(x - top[..., None]).sum(-1))


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def mish(x):
    return x * np.tanh(np.logaddexp(0, x))


def relu(x):
    return np.maximum(x, 0)


def layer_norm(x, gain, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def rms_norm(x, gain, eps):
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps) * gain


def per_channel(v, x):
    """v[C] so that it broadcasts over x[N, C, …]"""
    return v.reshape((1, -1) + (1,) * (x.ndim - 2))


def group_norm(x, groups, gain, bias, eps):
    z = x.reshape(x.shape[0], groups, -1)
    z = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + eps)
    return z.reshape(x.shape) * per_channel(gain, x) + per_channel(bias, x)


def batch_norm(x, i, eps):
    mean, var, gain, bias = (per_channel(i[k], x) for k in ('mean', 'var', 'gain', 'bias'))
    return (x - mean) / np.sqrt(var + eps) * gain + bias


def windows(x, kernel, stride, pad, fill):
    """yields (offset in the window, the strided view of padded x[N, C, …] that this offset reads)"""
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * len(kernel), constant_values=fill)
    size = [(n - k) // stride + 1 for n, k in zip(x.shape[2:], kernel)]
    for off in np.ndindex(*kernel):
        yield off, x[(slice(None), slice(None)) + tuple(slice(o, o + stride * (n - 1) + 1, stride) for o, n in zip(off, size))]


def conv(x, w, stride=1, pad=0, depthwise=False):
    """x[N, C, …], w[O, C, …] or, depthwise, w[C, …]; channels first"""
    y = 0.0
    for off, v in windows(x, w.shape[1 if depthwise else 2:], stride, pad, 0.0):
        tap = w[(slice(None),) * (1 if depthwise else 2) + off]
        y = y + (v * per_channel(tap, v) if depthwise else np.moveaxis(np.tensordot(v, tap, ((1,), (1,))), -1, 1))
    return y


def max_pool(x, kernel, stride, pad):
    y = None
    for _, v in windows(x, (kernel, kernel), stride, pad, -np.inf):
        y = v if y is None else np.maximum(y, v)
    return y


def first(x):
    """channels last to channels first"""
    return np.moveaxis(x, -1, 1)


def last(x):
    return np.moveaxis(x, 1, -1)


def conv_of(i, p, stride=1, pad=0, **how):
    """convolution of channels-last x and w, channels first"""
    return conv(first(i['x']), i['w'] if how else first(i['w']), p.get('stride', stride), p.get('pad', pad), **how)


def attention(q, k, v, scale, mask=None):
    """mask(b) is a boolean [S, L] array of the keys that each query sees; a query without keys gives 0"""
    out = np.zeros(q.shape[:3] + v.shape[3:])
    share = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        see = None if mask is None else mask(b)
        for h in range(q.shape[1]):
            s = scale * (q[b, h] @ k[b, h // share].T)
            if see is None:
                out[b, h] = softmax(s) @ v[b, h // share]
                continue
            for row in range(len(s)):
                on = np.flatnonzero(see[row])
                if len(on):
                    out[b, h, row] = softmax(s[row, on]) @ v[b, h // share][on]
    return out


def rotate(x, cs, sn):
    half = x.shape[-1] // 2
    return x * cs[:, None] + np.concatenate((-x[..., half:], x[..., :half]), -1) * sn[:, None]


def top(x, count):
    order = np.argsort(-x, -1, kind='stable')[..., :count]
    return np.take_along_axis(x, order, -1), order


def grouped(x, w, offsets, finish=lambda h: h):
    parts = [finish(x[offsets[e]:offsets[e + 1]] @ w[e].T) for e in range(len(w))]
    return np.concatenate(parts)


def swiglu_halves(h):
    half = h.shape[-1] // 2
    return silu(h[..., :half]) * h[..., half:]


def blocks(scale, length, axis):
    return np.repeat(scale, length // scale.shape[axis], axis)


# ---------------------------------------------------------------- references: (inputs, params) -> array or tuple
def nn(i, p): return i['a'] @ i['b']
def nt(i, p): return i['x'] @ i['w'].T
def gemv(i, p): return i['w'] @ i['x']
def eps(p, default=1e-5): return p.get('eps', default)


def w8a8(i, p): return (i['x'] @ i['w'].T).astype(float) * i['sx'][:, None] * i['sw'][None]


def fp8_block(i, p):
    n, k = i['w'].shape
    return (i['x'] * blocks(i['sx'], k, 1)) @ (i['w'] * blocks(blocks(i['sw'], n, 0), k, 1)).T


def w4a16(i, p):
    n, half = i['wq'].shape
    q = np.stack((i['wq'] & 15, i['wq'] >> 4), -1).reshape(n, 2 * half)
    return i['x'] @ ((q - blocks(i['zero'], 2 * half, 1)) * blocks(i['scale'], 2 * half, 1)).T


def batch_stats(i, p): return i['x'].var((0, 2, 3)), i['x'].mean((0, 2, 3))


def index_add(i, p):
    out = np.zeros((p['R'], i['src'].shape[1]))
    np.add.at(out, i['idx'], i['src'])
    return out


def causal(i, p):
    n, m = i['q'].shape[2], i['k'].shape[2]
    see = np.tri(n, m, m - n, dtype=bool)
    return attention(i['q'], i['k'], i['v'], p['scale'], lambda b: see)


def plain(i, p): return attention(i['q'], i['k'], i['v'], p['scale'])


def padded(i, p):
    n, m = i['q'].shape[2], i['k'].shape[2]
    return attention(i['q'], i['k'], i['v'], p['scale'], lambda b: np.broadcast_to(np.arange(m) < i['lens'][b], (n, m)))


def window(i, p):
    d = np.subtract.outer(np.arange(i['q'].shape[2]), np.arange(i['k'].shape[2]))
    see = (d >= 0) & (d < p['window'])
    return attention(i['q'], i['k'], i['v'], p['scale'], lambda b: see)


def mla(i, p):
    return softmax(p['scale'] * (i['q'] @ i['c'].transpose(0, 2, 1))) @ i['c'][..., :p['D2']]


def causal_softmax(i, p):
    n = i['x'].shape[-1]
    return softmax(np.where(np.tri(n, dtype=bool), i['x'] * p.get('scale', 0.088388), -np.inf))


def causal_fill(i, p):
    return np.where(np.tri(*i['x'].shape[-2:], dtype=bool), i['x'], -np.inf)


def cross_entropy(i, p):
    return (logsumexp(i['logits']) - np.take_along_axis(i['logits'], i['target'][:, None], 1)[:, 0]).mean()


def router_p(i): return softmax(i['x'] @ i['w'].T)


def router(i, p):
    v, at = top(router_p(i), 2)
    return v / v.sum(-1, keepdims=True), at


def clamp_lse_mish(i, p):
    c = (i['x'] @ i['w'].T + i['bias']) * p.get('factor', 4.0)
    z = logsumexp(np.clip(c, p.get('lo', -10.0), p.get('hi', 10.0)))
    return z * mish(z)


def separable(i, p):
    a = conv(first(i['x']), i['wd'], p.get('stride', 1), p.get('pad', 0), depthwise=True)
    return last(relu(batch_norm(a, i, eps(p)))) @ i['wp'].reshape(len(i['wp']), -1).T


def conv_transpose(i, p):
    n, h, w, _ = i['x'].shape
    st = p.get('stride', 2)
    y = np.zeros((n, st * h, st * w, i['w'].shape[-1]))
    for r in range(st):
        for s in range(st):
            y[:, r::st, s::st] = i['x'] @ i['w'][:, r, s]
    return relu(y + i['bias'])


def add_rms(i, p):
    h = i['x'] + i['res']
    return rms_norm(h, i['gain'], eps(p)), h


def rms_quant(i, p):
    y = rms_norm(i['x'], i['gain'], eps(p))
    s = np.abs(y).max(-1) / 127
    return np.clip(np.round(y / s[:, None]), -127, 127).astype(np.int64), s


def lora(i, p):
    return i['x'] @ i['w'].T + (i['x'] @ i['la'].T) @ i['lb'].T * p.get('scale', 2.0)


def batched(a, b): return a @ b


FORMS = {
    'GD01 GD07 GD08 GT05 GT06 GT07 QN01': nn,
    'GD02 GD03 GD04 GD05 GD06 GT02 GT04 GT08': nt,
    'GT01': lambda i, p: i['a'].T @ i['b'],
    'GT03': lambda i, p: i['a'].T @ i['b'].T,
    'GV01 GV02 GV03': gemv,
    'GV04': lambda i, p: batched(i['x'], i['w'].transpose(0, 2, 1)),
    'GV05 GV06': lambda i, p: batched(i['x'], i['w']),
    'GV07': lambda i, p: grouped(i['x'], i['w'], i['offsets']),
    'GV08': lambda i, p: grouped(i['x'], i['w'], i['offsets'], swiglu_halves),
    'QN02 QN03': w8a8,
    'QN04': lambda i, p: (i['x'] @ i['w'].T) * (i['sx'] * i['sw']),
    'QN05': fp8_block,
    'QN06 QN07': w4a16,
    'QN08': lambda i, p: i['x'] @ (i['wq'] * i['scale'][:, None]).T,
    'CV01 CV02 CV03 CV04 CV05 CV07': lambda i, p: last(conv_of(i, p)),
    'CV06': lambda i, p: last(conv_of(i, p, depthwise=True)),
    'CV08': lambda i, p: conv(i['x'], i['w'], p.get('stride', 1), p.get('pad', 0)),
    'RD01': lambda i, p: i['x'].sum(-1),
    'RD02': lambda i, p: i['x'].sum(0),
    'RD03': lambda i, p: i['x'].sum(),
    'RD04': lambda i, p: logsumexp(i['x']),
    'RD05': lambda i, p: i['x'].argmax(-1),
    'RD06': lambda i, p: top(i['x'], 8),
    'RD07': lambda i, p: i['x'].cumsum(-1),
    'RD08': batch_stats,
    'NM01 NM02': lambda i, p: softmax(i['x']),
    'NM03 NM04': lambda i, p: layer_norm(i['x'], i['gain'], i['bias'], eps(p)),
    'NM05 NM06': lambda i, p: rms_norm(i['x'], i['gain'], eps(p)),
    'NM07': lambda i, p: group_norm(i['x'], p.get('groups', 32), i['gain'], i['bias'], eps(p)),
    'NM08': lambda i, p: batch_norm(i['x'], i, eps(p)),
    'PL01': lambda i, p: max_pool(i['x'], 3, p.get('stride', 2), p.get('pad', 1)),
    'PL02': lambda i, p: sum(v for _, v in windows(i['x'], (2, 2), 2, 0, 0.0)) / 4,
    'PL03': lambda i, p: i['x'].mean((2, 3)),
    'PL04': lambda i, p: i['x'].T,
    'PL05': lambda i, p: i['x'].transpose(0, 2, 1, 3),
    'PL06': lambda i, p: i['x'].transpose(0, 2, 3, 1),
    'PL07': lambda i, p: i['table'][i['ids']],
    'PL08': index_add,
    'EW01': lambda i, p: i['a'] + i['b'],
    'EW02': lambda i, p: gelu(i['x']),
    'EW03': lambda i, p: silu(i['x']),
    'EW04': lambda i, p: i['x'] + i['bias'],
    'EW05': causal_fill,
    'EW06': lambda i, p: tuple(rotate(i[t], i['cs'], i['sn']) for t in 'qk'),
    'EW07': cross_entropy,
    'EW08': lambda i, p: ((i['a'] - i['b']) ** 2).mean(),
    'AT01 AT05 AT06': plain,
    'AT02': padded,
    'AT03 AT04': causal,
    'AT07': window,
    'AT08': mla,
    'FG01': lambda i, p: gelu(nt(i, p) + i['bias']),
    'FG02': lambda i, p: relu(nt(i, p) + i['bias']),
    'FG03': lambda i, p: layer_norm(nt(i, p) + i['bias'] + i['res'], i['gain'], i['beta'], eps(p)),
    'FG04': lambda i, p: silu(i['x'] @ i['wg'].T) * (i['x'] @ i['wu'].T),
    'FG05': lambda i, p: gelu_tanh(i['x'] @ i['w0'].T) * (i['x'] @ i['w1'].T),
    'FG06': lambda i, p: rms_norm(i['x'], i['gain'], eps(p)) @ i['w'].T,
    'FG07': router,
    'FG08': clamp_lse_mish,
    'FC01': lambda i, p: last(relu(batch_norm(conv_of(i, p), i, eps(p)))),
    'FC02': lambda i, p: relu(last(batch_norm(conv_of(i, p), i, eps(p))) + i['res']),
    'FC03': lambda i, p: last(np.clip(batch_norm(conv_of(i, p, depthwise=True), i, eps(p)), 0, 6)),
    'FC04': separable,
    'FC05': lambda i, p: last(max_pool(relu(batch_norm(conv_of(i, p, 2, 3), i, eps(p))), 3, 2, 1)),
    'FC06': lambda i, p: last(silu(group_norm(conv_of(i, p), p.get('groups', 32), i['gain'], i['bias'], eps(p)))),
    'FC07': conv_transpose,
    'FC08': lambda i, p: gelu(last(conv_of(i, p, 1, 1)) + i['bias']).mean((1, 2)),
    'FM01': add_rms,
    'FM02': lambda i, p: layer_norm(i['x'] + i['bias'] + i['res'], i['gain'], i['beta'], eps(p)),
    'FM03': causal_softmax,
    'FM04': lambda i, p: swiglu_halves(i['x']),
    'FM05': rms_quant,
    'FM06': lambda i, p: rotate(rms_norm(i['x'], i['gain'], eps(p, 1e-6)), i['cs'], i['sn']),
    'FM07': lambda i, p: relu(i['a'] @ i['b']) @ i['c'],
    'FM08': lora,
}


def as_tuple(f):
    def g(inputs, params):
        r = f(inputs, params)
        return tuple(np.asarray(v) for v in (r if isinstance(r, tuple) else (r,)))
    return g


REFERENCE = {cid: as_tuple(f) for ids, f in FORMS.items() for cid in ids.split()}

# ---------------------------------------------------------------- tolerances
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
ROUNDOFF = {'f16': 2.0 ** -10, 'bf16': 2.0 ** -7, 'f32': 2.0 ** -23, 'f64': 2.0 ** -52, 'f8e4m3': 2.0 ** -3, 'f8e5m2': 2.0 ** -2}


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


# ---------------------------------------------------------------- mutants: (refs, inputs, refs of other inputs) -> outputs or None
def of_each(f):
    return lambda refs, inputs, other: [f(r) for r in refs]


def row_mean(refs, inputs, other):
    if any(r.ndim == 0 or r.shape[-1] < 2 for r in refs):
        return None
    return [np.broadcast_to(r.mean(-1, keepdims=True), r.shape).astype(r.dtype) for r in refs]


def tile_missing(refs, inputs, other):
    if any(r.ndim == 0 for r in refs):
        return None

    def cut(r):
        r = r.copy()
        for axis in (r.ndim - 1, r.ndim - 2)[:r.ndim]:
            np.moveaxis(r, axis, 0)[-max(1, r.shape[axis] // 8):] = 0
        return r
    return [cut(r) for r in refs]


def nan_planted(refs, inputs, other):
    if not any(r.dtype.kind == 'f' for r in refs):
        return None

    def plant(r):
        r = r.copy()
        if r.dtype.kind == 'f':
            r.reshape(-1)[r.size // 2] = np.nan
        return r
    return [plant(np.ascontiguousarray(r).reshape(r.shape)) for r in refs]


def input_copy(refs, inputs, other):
    x = next(iter(inputs.values()))
    return [np.resize(x, r.shape).astype(r.dtype) for r in refs]


MUTANTS = {
    'zeros': of_each(np.zeros_like),
    'poison NaN': of_each(lambda r: np.full(r.shape, np.nan) if r.dtype.kind == 'f' else np.full(r.shape, 0x7f7f7f7f)),
    'poison 0x7f': of_each(lambda r: np.full(r.shape, 3.3961514e38) if r.dtype.kind == 'f' else np.full(r.shape, 0x7f7f7f7f)),
    'input copy': input_copy,
    'row mean': row_mean,
    'tile missing': tile_missing,
    'NaN planted': nan_planted,
    'previous call': lambda refs, inputs, other: list(other),
}


# ---------------------------------------------------------------- self-test on the reduced cases of benchmarks/suite
def to_bf16(x):
    b = np.ascontiguousarray(x, np.float32).reshape(np.shape(x)).view(np.uint32).astype(np.uint64)
    return ((b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000).astype(np.uint32).view(np.float32).astype(float)


def to_e4m3(x):
    x = np.clip(x, -448, 448)
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-9))), -6) - 3)
    return np.round(x / step) * step


def store(x, dtype):
    with np.errstate(over='ignore'):
        f = {'f16': lambda v: v.astype(np.float16).astype(float), 'bf16': to_bf16, 'f8e4m3': to_e4m3, 'f32': lambda v: v.astype(np.float32).astype(float)}
        return f[dtype](x) if dtype in f else x


def draw(g, how, shape, dtype):
    name, args = how if how else ('normal', (0, 1))
    if name == 'integers':
        return g.integers(args[0], args[1] + 1, shape).astype(np.int64 if dtype[0] in 'iu' else float)
    if name == 'list':
        return np.array(args, np.int64)
    if dtype[0] in 'iu':
        raise SystemExit(f'no distribution for an integer tensor {shape}')
    x = g.standard_normal(shape)
    if name == 'normal':
        x = args[0] + args[1] * x
    elif name == 'uniform':
        x = g.uniform(args[0], args[1], shape)
    elif name == 'rows':
        x = x * np.exp2(g.uniform(-6, 6, shape[:-1] + (1,)))
        flat = x.reshape(-1, shape[-1])
        flat[len(flat) // 2] = np.where(flat[len(flat) // 2] < 0, -1e4, 1e4)
    elif name == 'spikes':
        u = g.random(shape)
        x = np.where(u < 0.001, 1e3 * np.sign(g.random(shape) - 0.4), 2 * u - 0.9)
    elif name == 'pareto':
        x = g.uniform(2.0 ** -24, 1, shape) ** (-1 / args[0])
    else:
        assert name == 'angles', name
        x = g.uniform(-1, 1, shape)
    return store(x, dtype)


def read_cases(folder):
    """{case: (parameters, outputs, settings)}: enough of the language for the signatures and cases of the suite"""
    import glob
    import re

    def split(text):
        return [s.strip() for s in re.split(r',(?![^\[(]*[\])])', text) if s.strip()]
    found = {}
    for path in sorted(glob.glob(folder + '/*.acu')):
        text = re.sub(r'//[^\n]*', '', open(path, encoding='utf-8').read())
        ops = {}
        for name, generics, params, outs, where in re.findall(
                r'op (\w+)(?:<(.*?)>)?\((.*?)\)\s*->\s*(\([^)]*\)|\w+: \w+\[[^\]]*\])\s*(?:where (.*?))? \{\n', text, re.S):
            ops[name] = (split(generics), split(params), split(outs.strip('()')), split(where))
        for name, op, body in re.findall(r'case (\w+) for (\w+) \{(.*?)\}', text, re.S):
            found[name] = (ops[op], dict(map(str.strip, s.split('=', 1)) for s in split(body)))
    return found


def instance(op, settings, g):
    """(inputs, params, output types) of a case, drawn with g; the declared shapes must agree"""
    import re
    generics, params, outs, where = op
    types, env, scalars, inputs = {}, {}, {}, {}
    how = {k: v for k, v in settings.items() if re.match(r'\w+\(|\[', v) and k != 'B'}
    for k, v in settings.items():
        if k not in how:
            v = v.strip('[]') if k == 'B' else v
            if v in ROUNDOFF:
                types[k] = v
            else:
                env[k] = {'true': True, 'false': False}[v] if v in ('true', 'false') else float(v) if re.search(r'[.e]', v) else int(v)
    for item in generics:
        name, _, default = item.partition('=')
        name = name.split(':')[0].strip()
        assert default or name in types or name in env, f'{name} is not bound'
        if default.strip().isdigit():
            env.setdefault(name, int(default))
    if 'E' in env and any(w.startswith('E1') for w in where):
        env['E1'] = env['E'] + 1
    for cond in where:
        left, _, right = cond.partition('==')
        if right and left.strip().isidentifier():
            env.setdefault(left.strip(), eval(right.replace('/', '//'), {}, env))
        assert eval(cond.replace('/', '//'), {}, env), cond
    sized = lambda dims: tuple(eval(d.replace('..', '').replace('/', '//'), {}, env) for d in dims.split(',') if d.strip())
    for item in params:
        name, dtype, dims, default = re.match(r'(\w+): (?:strided )?(\w+)(?:\[(.*?)\])?(?: = (.*))?$', item, re.S).groups()
        if dims is None:
            scalars[name] = env.get(name, float(default) if default else None)
            assert scalars[name] is not None, f'{name} is not given'
            continue
        dtype = types.get(dtype, dtype)
        spec = how.pop(name, None)
        if spec and spec.startswith('['):
            spec = ('list', [int(v) for v in spec.strip('[]').split(',')])
        elif spec:
            fn, args = re.match(r'(\w+)\((.*)\)', spec).groups()
            spec = (fn, tuple(float(a) if re.search(r'[.e]', a) else int(a) for a in args.split(',') if a.strip()))
        elif dtype == 'i64':
            spec = ('integers', (0, env['V'] - 1))
        inputs[name] = draw(g, spec, sized(dims), dtype)
        assert inputs[name].shape == sized(dims), f'{name} has shape {inputs[name].shape}, declared {sized(dims)}'
    assert not how, f'settings of nothing: {how}'
    out = [re.match(r'\w+: (\w+)\[(.*)\]', o, re.S).groups() for o in outs]
    return inputs, {**env, **scalars}, [types.get(t, t) for t, _ in out], [sized(d) for _, d in out]


def self_test():
    import os
    cases = read_cases(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'benchmarks', 'suite'))
    passed, faults = 0, []
    for cid in REFERENCE:
        assert cid in cases, cid
        op, settings = cases[cid + '_small']
        draws = [instance(op, settings, np.random.default_rng(seed)) for seed in (1, 2)]
        (inputs, params, dtypes, shapes), other = draws[0], REFERENCE[cid](*draws[1][:2])
        refs = REFERENCE[cid](inputs, params)
        good = [store(r, t) if r.dtype.kind == 'f' else r for r, t in zip(refs, dtypes)]
        ok, worst, message = compare(cid, good, refs, inputs, params, dtypes)
        here = [] if ok else [f'{cid}: a correct result is rejected: {message}']
        here += [f'{cid}: shape {r.shape}, declared {s}' for r, s in zip(refs, shapes) if r.shape != s]
        for name, mutate in MUTANTS.items():
            bad = mutate(refs, inputs, other)
            if bad is not None and compare(cid, bad, refs, inputs, params, dtypes)[0]:
                here.append(f'{cid}: mutant "{name}" is accepted')
        passed += not here
        faults += here
    print('\n'.join(faults + [f'{passed} ok']))
    return bool(faults) or set(REFERENCE) != set(TOLERANCE) or len(REFERENCE) != 104


if __name__ == '__main__':
    raise SystemExit(self_test())
