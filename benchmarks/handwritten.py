#!/usr/bin/env python3
"""Times what the built-in planner makes beside hand-written kernels of the same operators, in one run on one GPU.

`--kernels` is a folder with `bench.py`, which says the cases, their inputs, references and the configuration that its decision table picks without tuning, and `libmem.so`, or `build.sh`,
which makes it. See benchmarks/README.md.
"""
from __future__ import annotations

import argparse
import functools
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from harness import machine, samples  # noqa: E402
from harness.emitted import Emitted, build, declared, write  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from harness.operators import Operator  # noqa: E402
from harness.timing import Contender, Timer  # noqa: E402

NN, REDUCE, LOSS, OWN = 'stdlib/nn.acu', 'stdlib/reduce.acu', 'stdlib/loss.acu', 'benchmarks/handwritten.acu'
# operator of bench.py: source, operator, sizes
OPERATORS = {
    'copy': (OWN, 'copy', 'MN'), 'softmax': (NN, 'softmax', 'BN'), 'rmsnorm': (NN, 'rmsnorm', 'BN'), 'layernorm': (NN, 'layernorm', 'BN'), 'add_rmsnorm': (NN, 'add_rmsnorm', 'MN'),
    'rowsum': (REDUCE, 'row_sum', 'BN'), 'rowmax': (REDUCE, 'row_max', 'BN'), 'fullsum': (REDUCE, 'full_sum', 'N'), 'colsum': (REDUCE, 'column_sum', 'MN'), 'ce': (LOSS, 'cross_entropy', 'NV'),
    'gelu': ('benchmarks/suite/ew.acu', 'gelu_map', 'MN'), 'add': ('benchmarks/suite/ew.acu', 'add', 'MN'), 'swiglu': (OWN, 'swiglu', 'MN'), 'transpose': ('benchmarks/suite/pl.acu', 'transpose', 'MN'),
    'cumsum': (REDUCE, 'cumsum', 'BN')}
ROUNDS = 5


def sizes_of(case: Any) -> dict[str, int]:
    names, shape = OPERATORS[case.op][2], list(case.shape)
    return {names: shape[0] * shape[1]} if len(names) == 1 else dict(zip(names, shape))


def emitted(a: argparse.Namespace, case: Any, folder: pathlib.Path) -> tuple[Emitted, str]:
    """what acuc makes of one case, and its library"""
    source, symbol, _ = OPERATORS[case.op]
    sizes = sizes_of(case)
    settings = ','.join([f'T={case.dtype}', *(f'{k}={v}' for k, v in sizes.items()), *(['eps=1e-5'] if 'norm' in case.op else [])])
    name = case.key.replace(' ', '_')
    text = write(a.acuc, str(ROOT / source), ['--op', symbol, '--set', settings], folder / name, a.target)
    e = declared(text, name, str(ROOT / source), sizes)
    return e, build(a.nvcc, e, folder, a.target)


def measure(a: argparse.Namespace, bench: Any, lib: Any, timer: Timer, case: Any, e: Emitted, library: str) -> dict[str, Any]:
    torch = bench.torch
    ins, outs, scratch, arguments = bench.setup(case)
    wanted = bench.default_cfg(case)
    number = {config: v for v, config in lib.by.get((case.op, case.dtype), [])}.get(wanted)
    record: dict[str, Any] = {'config': wanted}
    reference = bench.reference(case, ins[0])
    shaped = [[t.reshape(-1) if case.op == 'fullsum' else t for t in tensors] for tensors in ins]
    kinds = {'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'i64': torch.int64}
    mine = [torch.empty(p.sizes, dtype=kinds[p.type], device='cuda') for p in e.outputs]
    operator = Operator(torch, Launcher(library, e), shaped, mine)
    operator.poisoned(0, 0xff)
    record['error'] = bench.err(case, mine, reference)
    record['correct'] = bool(record['error'] <= bench.TOL[case.dtype])
    ours = timer.both_ways(Contender('acuc', 'acuc', 'stream', operator.calls), lambda error: False)
    theirs: list[Contender] = []
    if number is not None and lib.fits(number, arguments[0]):
        record['their_error'] = bench.check(lib, number, case, arguments, outs, reference)
        theirs = timer.both_ways(Contender('hand-written', 'hand-written', 'stream', [functools.partial(lib.launch, number, x) for x in arguments]), lambda error: False)
    timer.interleave([*ours, *theirs], a.repeats, 0, ROUNDS)
    best = min(ours, key=lambda c: c.median)
    record['us'], record['tbps'] = best.median, bench.nbytes(case) / best.median / 1e6
    if theirs:
        peer = min(theirs, key=lambda c: c.median)
        record['their_us'], record['ratio'] = peer.median, samples.ratio_of_rounds(best.rounds, peer.rounds)
    return record


def table(meta: dict[str, Any], records: dict[str, dict[str, Any]]) -> str:
    compared = [r['ratio'] for r in records.values() if r.get('ratio')]
    near = sum(x >= 0.96 for x in compared)
    lines = [f"# Hand-written kernels on {meta['device']}", '', f"{sum(r.get('correct', False) for r in records.values())} of {len(records)} correct; against the untuned hand-written kernels of the same run: geometric mean "
             f"{samples.geomean(compared) or 0:.2f}x, {near} of {len(compared)} within 4 % or faster.", '',
             f"- {meta['date']}: commit `{meta['commit']}`, driver {meta['driver']}, {meta['nvcc']}, torch {meta['torch']}, {meta['acuc']}, target {meta['target']}, copy {meta['copy_tbps']:.2f} TB/s", '',
             '| case | correct | µs | TB/s | of copy | hand-written µs | ratio | configuration |', '|---|---|---|---|---|---|---|---|']
    for key, r in records.items():
        if 'us' not in r:
            lines.append(f"| {key} | **{r.get('note', 'failed')}** | | | | | | |")
            continue
        their = f"{r['their_us']:.1f} | {r['ratio']:.2f}x" if r.get('ratio') else '– | –'
        lines.append(f"| {key} | {'yes' if r['correct'] else '**no**'} | {r['us']:.1f} | {r['tbps']:.2f} | {100 * r['tbps'] / meta['copy_tbps']:.0f} % | {their} | {r['config'] or ''} |")
    return '\n'.join(lines) + '\n'


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--kernels', required=True, help='the folder of the hand-written kernels')
    p.add_argument('--acuc', default='build/acuc')
    p.add_argument('--nvcc', default='nvcc')
    p.add_argument('--target', default='sm_90a')
    p.add_argument('--commit', default='')
    p.add_argument('--repeats', type=int, default=30, help='launches of each contender and case')
    p.add_argument('--jobs', type=int, default=8)
    p.add_argument('--out', default='.')
    p.add_argument('--cases', nargs='*', default=[], help='prefixes of `softmax 8192x8192 bf16`; all without it')
    return p.parse_args()


def main() -> int:
    a = parse_options()
    kernels = pathlib.Path(a.kernels).resolve()
    if not (kernels / 'libmem.so').exists():
        subprocess.run(['bash', str(kernels / 'build.sh'), str(a.jobs)], check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(kernels))
    bench = importlib.import_module('bench')
    lib, timer = bench.Lib(), Timer(bench.torch)
    meta = {**machine.describe(a.acuc, a.nvcc, a.commit, a.target), **timer.copy_rate()}
    cases = [c for c in bench.CASES if c.op in OPERATORS and (not a.cases or c.key.startswith(tuple(a.cases)))]
    records: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix='handwritten_') as folder, ThreadPoolExecutor(a.jobs) as threads:
        jobs = {c.key: threads.submit(emitted, a, c, pathlib.Path(folder)) for c in cases}
        for c in cases:
            try:
                records[c.key] = measure(a, bench, lib, timer, c, *jobs[c.key].result())
            except Exception as error:
                records[c.key] = {'correct': False, 'note': str(error)[:200].replace('\n', ' ')}
            bench.torch.cuda.empty_cache()
    out, text = pathlib.Path(a.out), table(meta, records)
    out.mkdir(parents=True, exist_ok=True)
    (out / 'handwritten_h200.json').write_text(json.dumps({'meta': meta, 'cases': records}, indent=1) + '\n', encoding='utf-8')
    (out / 'handwritten_h200.md').write_text(text, encoding='utf-8')
    print(text, end='')
    return 0 if all(r.get('correct') for r in records.values()) else 4


if __name__ == '__main__':
    sys.exit(main())
