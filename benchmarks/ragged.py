#!/usr/bin/env python3
"""Checks matrix products of open sizes at ragged and empty shapes on one GPU: every order of the operands, f16 and bf16, addresses off by an element, against float64.

    ragged.py --acuc A --out DIR --commit C                 150 shapes a target, drawn by --seed, spread over the orders and types
    ragged.py … --targets sm_90a sm_80                      kernels of an older target run through their PTX

A result is poisoned before the launch, and so is memory on both sides of it. The same bits must come out of `--repeats` launches of some of the shapes. See benchmarks/README.md.
"""
from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import judge, machine, report  # noqa: E402
from harness.emitted import Text, build, declared, write  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from harness.operators import Failure, Operator  # noqa: E402

ORDERS = {'nn': ('M, K', 'K, N', 'a[m, k] * b[k, n]'), 'nt': ('M, K', 'N, K', 'a[m, k] * b[n, k]'), 'tn': ('K, M', 'K, N', 'a[k, m] * b[k, n]'), 'tt': ('K, M', 'N, K', 'a[k, m] * b[n, k]')}
SIZES = (0, 1, 3, 8, 16, 17, 63, 64, 65, 127, 129, 1000, 4097)
GUARD = 4096  # elements on both sides of a result
REPEATED = 5  # one shape of so many is launched again and again


def source(order: str) -> str:
    a, b, term = ORDERS[order]
    return f'op matmul<T: f16 | bf16>(a: T[{a}], b: T[{b}]) -> y: T[M, N] {{\n  y[m, n] = sum(k) {term}\n}}\n'


def libraries(a: argparse.Namespace, folder: pathlib.Path) -> dict[tuple[str, str, str], tuple[Text, str]]:
    """{(target, order, type): text and library}: one for all sizes"""
    def one(key: tuple[str, str, str]) -> tuple[Text, str]:
        target, order, dtype = key
        here = folder / '_'.join(key)
        here.mkdir()
        (here / 'matmul.acu').write_text(source(order), encoding='utf-8')
        text = write(a.acuc, str(here / 'matmul.acu'), ['--set', f'T={dtype}'], here, target)
        return text, build(a.nvcc, declared(text, 'matmul', '', {'M': 1, 'N': 1, 'K': 1}), here, target)
    keys = list(itertools.product(a.targets, ORDERS, ('f16', 'bf16')))
    with ThreadPoolExecutor(a.workers) as pool:
        return dict(zip(keys, pool.map(one, keys)))


def shape_of(dims: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[d] for d in dims.split(', '))


def check(torch: Any, key: tuple[str, str, str], text: Text, library: str, sizes: dict[str, int], offset: int, repeats: int, seed: int) -> dict[str, Any]:
    """one shape: launch, compare, guards, launch again"""
    _, order, dtype = key
    kind = {'f16': torch.float16, 'bf16': torch.bfloat16}[dtype]
    made = torch.Generator('cuda').manual_seed(seed)

    def placed(shape: tuple[int, ...]) -> Any:
        n = math.prod(shape)
        return torch.randn(n + offset, generator=made, device='cuda').to(kind)[offset:].view(shape)
    a, b = placed(shape_of(ORDERS[order][0], sizes)), placed(shape_of(ORDERS[order][1], sizes))
    m, n, k = sizes['M'], sizes['N'], sizes['K']
    around = torch.full((2 * GUARD + m * n + offset,), 7.0, dtype=kind, device='cuda')
    y = around[GUARD + offset:GUARD + offset + m * n].view(m, n)
    record: dict[str, Any] = {'target': key[0], 'order': order, 'type': dtype, **sizes, 'offset': offset, 'correct': False, 'note': ''}
    operator = Operator(torch, Launcher(library, declared(text, 'matmul', '', sizes)), [[a, b]], [y])
    try:
        operator.poisoned(0, 0xff)
    except Failure as error:
        return {**record, 'note': str(error)}
    r = (a.t() if order[0] == 't' else a).double() @ (b.t() if order[1] == 't' else b).double()
    tau = max(2.0 ** -13, k * 2.0 ** -28)
    worst, where = judge.worst_ratio(torch, y.double(), r, tau, math.sqrt(k), dtype) if m * n else (0.0, '')
    guards = bool((around[:GUARD + offset] == 7).all() and (around[GUARD + offset + m * n:] == 7).all())
    kept, same = y.clone(), True
    for _ in range(repeats):
        operator.launch(0)
        same = same and torch.equal(kept, y)
    note = where if not worst <= 1 else '' if guards else 'wrote outside its result'
    return {**record, 'worst': worst, 'correct': worst <= 1 and guards and same, 'note': note if same else 'other bits in another launch'}


def run(a: argparse.Namespace, folder: pathlib.Path) -> list[dict[str, Any]]:
    import torch
    built = libraries(a, folder)
    records = []
    for target in a.targets:
        draw = random.Random(a.seed)
        keys = [k for k in built if k[0] == target]
        for at in range(a.shapes):
            key, sizes = keys[at % len(keys)], {d: draw.choice(SIZES) for d in 'MNK'}
            records.append(check(torch, key, *built[key], sizes, draw.choice((0, 0, 1)), a.repeats if at % REPEATED == 0 else 1, at))
    return records


def markdown(meta: dict[str, Any], records: list[dict[str, Any]]) -> str:
    lines = [f"# Products at ragged shapes on {meta['device']}", '',
             f"- {meta['date']}: commit `{meta['commit']}`, driver {meta['driver']}, {meta['nvcc']}, torch {meta['torch']}, {meta['acuc']}, seed {meta['seed']}", '',
             '| kernels for | order | shapes | correct | of which empty | addresses off by an element | largest error of the bound |', '|---|---|---|---|---|---|---|']
    for target, order in dict.fromkeys((r['target'], r['order']) for r in records):
        some = [r for r in records if (r['target'], r['order']) == (target, order)]
        empty = sum(0 in (r['M'], r['N'], r['K']) for r in some)
        lines.append(f"| {target} | {order} | {len(some)} | {sum(r['correct'] for r in some)} | {empty} | {sum(r['offset'] for r in some)} | {max(r.get('worst', math.inf) for r in some):.3f} |")
    wrong = [r for r in records if not r['correct']]
    lines += ['', *(f"- wrong: {r['target']} {r['order']} {r['type']} {r['M']}x{r['N']}x{r['K']}+{r['offset']}: {r['note']}" for r in wrong[:20])]
    return '\n'.join(lines).rstrip() + '\n'


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--acuc', default='build/acuc')
    ap.add_argument('--nvcc', default='nvcc')
    ap.add_argument('--targets', nargs='+', default=['sm_90a'], choices=['sm_90a', 'sm_80'])
    ap.add_argument('--shapes', type=int, default=160, help='for each target')
    ap.add_argument('--repeats', type=int, default=100, help='launches of every fifth shape that must give the same bits')
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--workers', type=int, default=8)
    ap.add_argument('--out', type=pathlib.Path, required=True)
    ap.add_argument('--commit', default='')
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = run(a, pathlib.Path(folder))
    meta = {**machine.describe(a.acuc, a.nvcc, a.commit, ' '.join(a.targets)), 'seed': a.seed, 'shapes': a.shapes, 'repeats': a.repeats}
    a.out.mkdir(parents=True, exist_ok=True)
    base = a.out / f"ragged_{report.slug(meta['device'])}"
    base.with_suffix('.json').write_text(json.dumps({'run': meta, 'shapes': [report.finite(r) for r in records]}, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    base.with_suffix('.md').write_text(markdown(meta, records), encoding='utf-8')
    print(markdown(meta, records))
    return 0 if all(r['correct'] for r in records) else 4


if __name__ == '__main__':
    sys.exit(main())
