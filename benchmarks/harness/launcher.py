"""Calls of an emitted C launcher through ctypes, and the checks of its refusals. Needs no torch and no GPU."""
from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from .emitted import BYTES, TYPES, Emitted, Param

STATUS = ('OK', 'ARGUMENT', 'TYPE', 'SHAPE', 'LAYOUT', 'ALIAS', 'WORKSPACE', 'LAUNCH')
SCALARS = {'f32': ctypes.c_float, 'f64': ctypes.c_double, 'i32': ctypes.c_int, 'i64': ctypes.c_longlong, 'bool': ctypes.c_bool}


class AcuTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('type', ctypes.c_int), ('rank', ctypes.c_int),
                ('sizes', ctypes.POINTER(ctypes.c_longlong)), ('strides', ctypes.POINTER(ctypes.c_longlong))]


@dataclass(frozen=True)
class Descriptor:
    """What an acu_tensor says; strides None: contiguous."""
    data: int
    type: str
    sizes: tuple[int, ...]
    strides: Optional[tuple[int, ...]] = None

    def c(self) -> AcuTensor:
        array = ctypes.c_longlong * max(1, len(self.sizes))
        t = AcuTensor(self.data or None, TYPES.index(self.type), len(self.sizes), array(*self.sizes), None)
        if self.strides is not None:
            t.strides = array(*self.strides)
        return t


Argument = Descriptor | float | None


@dataclass(frozen=True)
class Answer:
    status: str
    message: str


class Launcher:
    """The function of one library."""

    def __init__(self, library: str, e: Emitted) -> None:
        self.emitted = e
        self.function = getattr(ctypes.CDLL(library), e.symbol)
        self.function.restype = ctypes.c_int
        parts = [SCALARS[p.type] if p.role == 'scalar' else ctypes.POINTER(AcuTensor) for p in e.params]
        self.function.argtypes = [*parts, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def bind(self, arguments: list[Argument], workspace: int = 0, workspace_bytes: int = 0, message_size: int = 1024) -> Callable[[int], Answer | None]:
        """what launches with these arguments on a given stream; None: it answered OK and said nothing"""
        keep = [a.c() if isinstance(a, Descriptor) else a for a in arguments]
        values = [ctypes.byref(a) if isinstance(a, AcuTensor) else a for a in keep]
        text = ctypes.create_string_buffer(max(1, message_size))
        rest = [workspace or None, workspace_bytes]
        pointer = ctypes.cast(text, ctypes.c_void_p) if message_size else None

        def launch(stream: int) -> Answer | None:
            code = self.function(*values, *rest, stream or None, pointer, message_size)
            return None if code == 0 and text[0] == b'\0' else Answer(STATUS[code] if 0 <= code < len(STATUS) else f'status {code}', text.value.decode('utf-8', 'replace'))
        return launch

    def call(self, arguments: list[Argument], workspace: int = 0, workspace_bytes: int = 0, stream: int = 0, message_size: int = 1024) -> Answer:
        return self.bind(arguments, workspace, workspace_bytes, message_size)(stream) or Answer(STATUS[0], '')

    def workspace_bytes(self, arguments: list[Argument]) -> int:
        """What an explicit workspace must have. Launches if that is nothing."""
        a = self.call(arguments, workspace=1 << 20, workspace_bytes=0)
        found = re.search(r'but (\d+) are needed', a.message)
        return int(found.group(1)) if a.status == 'WORKSPACE' and found else 0


def arguments_of(e: Emitted, addresses: dict[str, int]) -> list[Argument]:
    """correct arguments, the tensors at `addresses`"""
    return [p.value if p.role == 'scalar' else Descriptor(addresses[p.name], p.type, p.sizes) for p in e.params]


# ---------------------------------------------------------------- refusals
Change = Callable[[Descriptor], Optional[Argument]]


def other_type(d: Descriptor) -> Descriptor:
    return replace(d, type='f16' if d.type == 'f64' else 'f64')


def size_off(d: Descriptor) -> Optional[Descriptor]:
    return replace(d, sizes=(*d.sizes[:-1], d.sizes[-1] + 1)) if d.sizes else None


def negative_size(d: Descriptor) -> Optional[Descriptor]:
    return replace(d, sizes=(-d.sizes[0], *d.sizes[1:])) if d.sizes else None


def rank_off(d: Descriptor) -> Descriptor:
    return replace(d, sizes=d.sizes[1:] if d.sizes else (2,))


def contiguous_strides(sizes: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for n in reversed(sizes):
        strides.insert(0, step)
        step *= n
    return strides


def stretched(d: Descriptor) -> Optional[Descriptor]:
    """every second element"""
    if not d.sizes or d.sizes[-1] == 1:
        return None
    return replace(d, strides=tuple(2 * s for s in contiguous_strides(d.sizes)))


def swapped(d: Descriptor) -> Optional[Descriptor]:
    """column-major: the first two dimensions of more than one element change places"""
    big = [i for i, n in enumerate(d.sizes) if n > 1]
    if len(big) < 2:
        return None
    a, b = big[0], big[1]
    sizes = list(d.sizes)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    strides = contiguous_strides(tuple(sizes))
    strides[a], strides[b] = strides[b], strides[a]
    return replace(d, strides=tuple(strides))


def unaligned(d: Descriptor) -> Optional[Descriptor]:
    return replace(d, data=d.data + 1) if BYTES[d.type] > 1 else None


CHANGES: list[tuple[str, str, Change]] = [
    ('NULL descriptor', 'ARGUMENT', lambda d: None), ('NULL data', 'ARGUMENT', lambda d: replace(d, data=0)),
    ('wrong type', 'TYPE', other_type), ('wrong size', 'SHAPE', size_off), ('negative size', 'SHAPE', negative_size), ('wrong rank', 'SHAPE', rank_off),
    ('every second element', 'LAYOUT', stretched), ('transposed', 'LAYOUT', swapped), ('unaligned', 'LAYOUT', unaligned)]


def single_faults(e: Emitted, good: list[Argument]) -> list[tuple[str, str, str, list[Argument]]]:
    """(fault, expected status, name that the message must hold, arguments)"""
    found = []
    for at, (p, d) in enumerate(zip(e.params, good)):
        if not isinstance(d, Descriptor):
            continue
        for label, status, change in CHANGES:
            bad = change(d)
            if bad is not None or label == 'NULL descriptor':
                found.append((f'{label} of {p.name}', status, p.name, [*good[:at], bad, *good[at + 1:]]))
    return found


def tail_of(p: Param, d: Descriptor) -> int:
    """an address within the last bytes of a tensor"""
    return d.data + max(0, p.nbytes - 16) // 16 * 16


def overlaps(e: Emitted, good: list[Argument]) -> list[tuple[str, str, str, list[Argument]]]:
    """outputs laid over inputs and over other outputs, at the start and at the last bytes"""
    found = []
    for at, (p, d) in enumerate(zip(e.params, good)):
        if p.role != 'output' or not isinstance(d, Descriptor):
            continue
        for q, other in zip(e.params, good):
            if q is p or not isinstance(other, Descriptor):
                continue
            for label, address in (('start', other.data), ('end', tail_of(q, other))):
                found.append((f'{p.name} over the {label} of {q.name}', 'ALIAS', p.name, [*good[:at], replace(d, data=address), *good[at + 1:]]))
    return found


def check_refusals(launcher: Launcher, good: list[Argument]) -> tuple[int, list[str]]:
    """(calls made, what was not refused as it should be). No call may launch."""
    faults, made = [], 0
    for label, status, name, arguments in [*single_faults(launcher.emitted, good), *overlaps(launcher.emitted, good)]:
        made += 1
        a = launcher.call(arguments)
        if a.status != status:
            faults.append(f'{label}: {a.status} instead of {status}')
        elif f'`{name}`' not in a.message:
            faults.append(f'{label}: the message does not name it: {a.message}')
    first = single_faults(launcher.emitted, good)[0]
    for size in (0, 8):  # no room for the message
        made += 1
        a = launcher.call(first[3], message_size=size)
        if a.status != first[1] or len(a.message) >= max(1, size):
            faults.append(f'message of {size} bytes: {a.status}, {a.message!r}')
    return made, faults


def invented_addresses(e: Emitted) -> dict[str, int]:
    """addresses that nothing lies at, apart from each other"""
    at, found = 0x10_0000_0000, {}
    for p in e.params:
        if p.role != 'scalar':
            found[p.name] = at
            at += (p.nbytes + (1 << 20)) // 256 * 256
    return found


def host_record(library: str, e: Emitted) -> dict[str, Any]:
    """the refusals alone, with invented addresses: a launcher looks at its arguments before it calls CUDA"""
    made, faults = check_refusals(Launcher(library, e), arguments_of(e, invented_addresses(e)))
    return {'status': 'host only', 'refusals': {'calls': made, 'faults': faults}, 'note': ''}
