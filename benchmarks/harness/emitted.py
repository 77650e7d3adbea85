"""Emission by acuc, what the header of an emitted operator says, and the build of its shared library. Needs no torch and no GPU."""
from __future__ import annotations

import hashlib
import json
import math
import pathlib
import re
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

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


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True)
class Text:
    """What acuc wrote for one operator."""
    code: str  # the .cu file
    header: str
    plan: dict
    digest: str


def write(acuc: str, source: str, chosen: list[str], folder: pathlib.Path, target: str) -> Text:
    """`acuc compile` of what the options in `chosen` name, into `folder`"""
    r = subprocess.run([acuc, 'compile', source, *chosen, '--target', target, '-o', str(folder)], capture_output=True, text=True, timeout=120)
    if r.returncode:
        raise RuntimeError(f'acuc compile: {(r.stderr or r.stdout).strip()[:600]}')
    code, header = next(folder.glob('*.cu')), next(folder.glob('*.h')).read_text(encoding='utf-8')
    plan = json.loads(next(folder.glob('*.plan.json')).read_text(encoding='utf-8'))
    return Text(str(code), header, plan, hash_of(code.read_bytes() + header.encode()))


def declared(t: Text, case: str, source: str, dims: dict[str, int]) -> Emitted:
    """what the header says of sizes `dims`"""
    symbol, params = read_header(t.header, dims)
    return Emitted(case, source, t.code, symbol, plan_name(t.plan), tuple(params), dims, t.digest)


def emit(acuc: str, case: str, source: str, folder: pathlib.Path, target: str, plans: str | None = None) -> Emitted:
    """writes the code of one case to `folder`/CASE, by the plan `plans`/CASE.json if there is one, and reads what it declares"""
    plan = pathlib.Path(plans or '') / f'{case}.json'
    t = write(acuc, source, ['--case', case, *(['--plan', str(plan)] if plans and plan.exists() else [])], folder / case, target)
    first = re.search(r'^/\* (\w+ \(case .*)$', t.header, re.M)
    return declared(t, case, source, {**(constants(first.group(1)) if first else {}), **t.plan['dims']})


def emit_all(threads: int, tasks: Mapping[str, Callable[[], Any]], failed: Callable[[str, Exception], None]) -> dict[str, Any]:
    """the results of those tasks that succeed, in order"""
    with ThreadPoolExecutor(threads) as pool:
        jobs = {name: pool.submit(task) for name, task in tasks.items()}
    found = {}
    for name, job in jobs.items():
        try:
            found[name] = job.result()
        except Exception as error:
            failed(name, error)
    return found


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
        part, virtual = so.with_suffix('.part'), arch.replace('sm_', 'compute_')
        code = arch if arch.endswith('a') else f'[{virtual},{arch}]'  # newer devices can run what is for older ones
        r = subprocess.run([nvcc, '-w', '-shared', '-Xcompiler', '-fPIC', f'-gencode=arch={virtual},code={code}', '-O3', e.code, '-o', str(part)],
                           capture_output=True, text=True, timeout=300)
        if r.returncode:
            raise RuntimeError(f'nvcc: {" | ".join((r.stderr or r.stdout).strip().splitlines()[:4])[:600]}')
        part.rename(so)
    return str(so)


def build_all(nvcc: str, emitted: Iterable[Emitted], folder: pathlib.Path, arch: str, threads: ThreadPoolExecutor) -> dict[str, 'Future[str]']:
    """{digest: library}: equal texts are compiled once"""
    folder.mkdir(parents=True, exist_ok=True)
    return {e.digest: threads.submit(build, nvcc, e, folder, arch) for e in {e.digest: e for e in emitted}.values()}


def decision_text(d: dict[str, Any]) -> str:
    parameters = [f'{k} = {json.dumps(v) if isinstance(v, (dict, list)) else v}' for k, v in d.get('params', {}).items()]
    return f"{d['pass']}({', '.join([*d.get('scope', []), *parameters])})"


def provenance(code: str, source: str) -> dict[str, Any]:
    """what stands beside a number: the source, and the plan that the code was emitted by"""
    plan = next(pathlib.Path(code).parent.glob('*.plan.json')).read_bytes()
    return {'source': pathlib.Path(source).name, 'source_hash': hash_of(pathlib.Path(source).read_bytes()), 'plan_hash': hash_of(plan),
            'plan_text': [decision_text(d) for d in json.loads(plan).get('decisions', [])]}
