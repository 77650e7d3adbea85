"""Emission by acuc, what the header of an emitted operator says, and the build of its shared library. Needs no torch and no GPU."""
from __future__ import annotations

import hashlib
import json
import math
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

# In the order of enum acu_type.
TYPES = ('bool', 'i8', 'u8', 'i16', 'i32', 'i64', 'f8e4m3', 'f8e5m2', 'f16', 'bf16', 'tf32', 'f32', 'f64')
BYTES = dict(zip(TYPES, (1, 1, 1, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8)))
C_BYTES = {'float': 4, 'double': 8, 'int': 4, 'i64': 8, 'i16': 2, 'i8': 1, 'u8': 1, 'bool': 1, 'f16': 2, 'bf16': 2, 'f8e4m3': 1, 'f8e5m2': 1}


@dataclass(frozen=True)
class Param:
    """A parameter of the launcher: a tensor (`sizes`) or a scalar (`value`, what its case gives)."""
    name: str
    role: str  # input, output or scalar
    type: str
    sizes: tuple[int, ...] = ()
    value: float = 0.0

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    @property
    def nbytes(self) -> int:
        return self.count * BYTES[self.type]


@dataclass(frozen=True)
class Emitted:
    """One emitted case."""
    case: str
    source: str  # the .acu file
    code: str  # the .cu file
    symbol: str
    plan: str
    params: tuple[Param, ...]
    dims: dict[str, int] = field(hash=False)
    digest: str = ''

    @property
    def inputs(self) -> list[Param]:
        return [p for p in self.params if p.role == 'input']

    @property
    def outputs(self) -> list[Param]:
        return [p for p in self.params if p.role == 'output']

    @property
    def tensor_bytes(self) -> int:
        return sum(p.nbytes for p in self.params if p.role != 'scalar')


def suite_cases(folder: pathlib.Path) -> dict[str, str]:
    """{case: file} of the full-size cases of the .acu files in `folder`"""
    found: dict[str, str] = {}
    for path in sorted(folder.glob('*.acu')):
        for case in re.findall(r'^case ([A-Z]{2}\d{2}) for', path.read_text(encoding='utf-8'), re.M):
            found[case] = str(path)
    return found


def evaluate(text: str, dims: dict[str, int]) -> int:
    """a size such as `2*F` or `(H + 2 - R) / 2 + 1` (division rounds down)"""
    return int(eval(text.replace('..', '').replace('/', '//'), {'__builtins__': {}}, dict(dims)))


def constants(comment: str) -> dict[str, int]:
    """the integers of a header's first line, `softmax (case NM01): T = f16, B = 8192, …`"""
    return {k: int(v) for k, v in re.findall(r'(\w+) = (-?\d+)\b(?!\.)', comment)}


def read_header(text: str, dims: dict[str, int]) -> tuple[str, list[Param]]:
    """(symbol, parameters) of an emitted header"""
    symbol = re.search(r'^int (\w+)\(([^;]*)\);', text, re.M)
    assert symbol, 'the header declares no launcher'
    order = [a.split()[-1] for a in symbol.group(2).split(',')][:-5]
    params: dict[str, Param] = {}
    for name, role, dtype, shape in re.findall(r'^ \* (\w+): (input|output) (\w+)\[(.*?)\]', text, re.M):
        params[name] = Param(name, role, dtype, tuple(evaluate(d, dims) for d in shape.split(',') if d.strip()))
    for name, dtype, value in re.findall(r'^ \* (\w+): (\w+), usually (\S+)$', text, re.M):
        params[name] = Param(name, 'scalar', dtype, value=float(value))
    assert set(order) == set(params), f'{symbol.group(1)}: arguments {order}, described {sorted(params)}'
    return symbol.group(1), [params[n] for n in order]


def emit(acuc: str, case: str, source: str, folder: pathlib.Path, target: str) -> Emitted:
    """writes the code of one case to `folder`/CASE and reads what it declares"""
    to = folder / case
    r = subprocess.run([acuc, 'compile', source, '--case', case, '--target', target, '-o', str(to)], capture_output=True, text=True, timeout=120)
    if r.returncode:
        raise RuntimeError(f'acuc compile: {(r.stderr or r.stdout).strip()[:600]}')
    header = next(to.glob('*.h')).read_text(encoding='utf-8')
    plan = json.loads(next(to.glob('*.plan.json')).read_text(encoding='utf-8'))
    first = re.search(r'^/\* (\w+ \(case .*)$', header, re.M)
    dims = {**(constants(first.group(1)) if first else {}), **plan['dims']}
    symbol, params = read_header(header, dims)
    code = next(to.glob('*.cu'))
    digest = hashlib.sha256(code.read_bytes() + header.encode()).hexdigest()[:16]
    return Emitted(case, source, str(code), symbol, plan_name(plan), tuple(params), dims, digest)


def plan_name(plan: dict) -> str:
    count = len(plan.get('decisions', []))
    return f'{count} decisions' if count else 'fallback'


def workspace_estimate(e: Emitted) -> int:
    """bytes of intermediates, read from the text of the launcher; 0 where it cannot be read"""
    text, total = pathlib.Path(e.code).read_text(encoding='utf-8'), 0
    for count, ctype in re.findall(r'needed \+= padded\((.*), sizeof\((\w+)\)\);', text):
        try:
            total += (evaluate(count, e.dims) * C_BYTES[ctype] + 255) // 256 * 256
        except (KeyError, NameError, SyntaxError):
            continue
    return total


def build(nvcc: str, e: Emitted, folder: pathlib.Path, arch: str) -> str:
    """compiles to a shared library named by the text, so that equal texts are compiled once"""
    so = folder / f'{e.case}_{e.digest}.so'
    if not so.exists():
        part = so.with_suffix('.part')
        r = subprocess.run([nvcc, '-w', '-shared', '-Xcompiler', '-fPIC', f'-arch={arch}', '-O3', e.code, '-o', str(part)],
                           capture_output=True, text=True, timeout=300)
        if r.returncode:
            raise RuntimeError(f'nvcc: {" | ".join((r.stderr or r.stdout).strip().splitlines()[:4])[:600]}')
        part.rename(so)
    return str(so)
