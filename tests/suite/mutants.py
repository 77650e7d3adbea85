"""Wrong results that a comparison must reject.

    MUTANTS[name](refs, inputs, other)   outputs made from the reference, or None where the mutant does not apply

`other` is the reference for other inputs: what a previous call may have left in the outputs.
"""
import numpy as np


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
