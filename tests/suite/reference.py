"""NumPy references of the 104 suite cases.

    REFERENCE[id](inputs, params)   tuple of float64 or int64 arrays

Inputs go by the names of the operator's parameters and are already widened to float64 or int64; params holds the case's
dimensions, compile-time values and scalars. Images are in the operator's memory order.
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
