#!/usr/bin/env python3
"""Reads the gfx90a assembly that hipcc makes of emitted matrix products: registers, shared memory, scratch, occupancy, and what stands in the inner loop. Needs no GPU.

    assembly.py --acuc A --out DIR --commit C               all products of the suite
    assembly.py … --cases GD QN07                           cases by prefix

Facts of the machine are from "AMD Instinct MI200 Instruction Set Architecture" (CDNA2), the register and LDS limits of LLVM's AMDGPU backend, and the tuning guides of the MI200 series. A SIMD has 512
vector registers a lane for arch VGPRs and AGPRs together, given out by 8, and at most 8 waves; a CU has 4 SIMDs, 64 KiB of LDS (given out by 512 bytes) and 16 barriers.

The MFMA share of the inner loop is a model: cycles of its MFMA instructions over the issue cycles of all its instructions, as one wave alone would take them. An MFMA takes 64 cycles (32 rows), 32 (16) or
8 (4); any other vector instruction (arithmetic, LDS, memory) 4, a scalar one, a wait and a barrier 1. Stalls, and other waves that use the vector unit beside an MFMA, are left out. Every block of the
loop counts once.

The time is an estimate for an MI210, not a measurement: the larger of the matrix work at peak x share, and the compulsory bytes at full bandwidth. Rounds and margins of tiles are left out.
"""
from __future__ import annotations

import argparse
import collections
import datetime
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Iterable

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import machine, report  # noqa: E402
from harness.emitted import Text, constants, declared, hash_of, suite_cases  # noqa: E402

TARGET = 'gfx90a'
PREFIXES = ('GD', 'GT', 'GV04', 'GV05', 'GV06', 'GV07', 'GV08', 'QN', 'FG01', 'FG02', 'FG04', 'FG05', 'FG06', 'FM08')
CUS, CLOCK, BANDWIDTH = 104, 1.7e9, 1.6e12  # MI210
RATE = {'f16': 1024, 'bf16_1k': 1024, 'bf16': 512, 'i8': 1024, 'f32': 256, 'f64': 256}  # FLOP a CU and cycle, by the type of the operands; 1024 is 181 TFLOP/s
CYCLES = {32: 64, 16: 32, 4: 8}  # of an MFMA, by its rows
# The first prefix that fits says what an instruction is, and how many cycles its issue takes.
KINDS = {'v_mfma': 'mfma', 'v_': 'valu', 'ds_': 'lds', 'global_': 'global', 'flat_': 'global', 'buffer_': 'scratch', 'scratch_': 'scratch', 's_waitcnt': 'wait', 's_barrier': 'wait', 's_': 'scalar'}
ISSUE = {'valu': 4, 'lds': 4, 'global': 4, 'scratch': 4, 'scalar': 1, 'wait': 1}
Graph = dict[int, set[int]]


def kernels_of(text: str) -> dict[str, dict[str, int]]:
    """{kernel: numbers of its metadata}"""
    listed = text.partition('amdhsa.kernels:')[2].partition('amdhsa.target:')[0]
    found = {}
    for entry in re.split(r'^  - ', listed, flags=re.M)[1:]:
        values = dict(re.findall(r'^    \.(\w+): +(\S+)$', '    ' + entry, re.M))
        found[values['name']] = {k: int(v) for k, v in values.items() if v.isdigit()}
    return found


def blocks_of(body: str) -> tuple[list[list[str]], Graph]:
    """the basic blocks of a function, as mnemonics, and which follow which"""
    blocks: list[list[str]] = [[]]
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str]] = []
    after: Graph = collections.defaultdict(set)
    open_end = True  # control can pass from the last block to the next

    def start() -> None:
        if open_end:
            after[len(blocks) - 1].add(len(blocks))
        blocks.append([])
    for label, mnemonic, rest in re.findall(r'^(?:(\.LBB\w+):|\t([a-z]\w+)([^\n;]*))', body, re.M):
        if label:
            start()
            labels[label], open_end = len(blocks) - 1, True
            continue
        blocks[-1].append(mnemonic)
        if mnemonic.startswith(('s_branch', 's_cbranch')):
            jumps.append((len(blocks) - 1, rest.strip()))
            open_end = mnemonic != 's_branch'
            start()
            open_end = True
        elif mnemonic == 's_endpgm':
            open_end = False
    for block, label in jumps:
        after[block].add(labels[label])
    return blocks, after


def reached(graph: Graph, start: int, without: int) -> set[int]:
    found, left = set(), [start] if start != without else []
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += [n for n in graph[at] if n != without]
    return found


def loops_of(count: int, after: Graph) -> list[set[int]]:
    """the blocks of each natural loop: a branch back to a block that all ways to the branch pass"""
    before: Graph = collections.defaultdict(set)
    for a in range(count):
        for b in after[a]:
            before[b].add(a)
    whole = reached(after, 0, -1)
    loops: dict[int, set[int]] = {}
    for head in whole:
        ends = [a for a in before[head] if a in whole and a not in reached(after, 0, head)]
        for end in ends:
            loops.setdefault(head, {head}).update(reached(before, end, head))
    return list(loops.values())


def mfma_of(mnemonics: Iterable[str]) -> list[tuple[int, str]]:
    """(cycles, type of the operands) of each MFMA"""
    shapes = [re.match(r'v_mfma_\w+?_(\d+)x\d+x\d+_?([a-z]+\d+(?:_1k)?)', m) for m in mnemonics]
    return [(16 if (s[1], s[2]) == ('4', 'f64') else CYCLES[int(s[1])], s[2]) for s in shapes if s]


def inner_loop(body: str) -> dict[str, Any]:
    """what stands in the innermost loop with the most MFMA; in the whole kernel where there is no such loop"""
    blocks, after = blocks_of(body)
    some = [x for x in loops_of(len(blocks), after) if any(mfma_of(blocks[b]) for b in x)]
    inner = [x for x in some if not any(y < x for y in some)]
    chosen = max(inner, key=lambda x: sum(len(mfma_of(blocks[b])) for b in x), default=set(range(len(blocks))))
    mnemonics = [m for b in sorted(chosen) for m in blocks[b]]
    kinds = collections.Counter(next((k for p, k in KINDS.items() if m.startswith(p)), 'scalar') for m in mnemonics)
    matrix = mfma_of(mnemonics)
    cycles, other = sum(c for c, _ in matrix), sum(n * ISSUE[k] for k, n in kinds.items() if k != 'mfma')
    return {'loop': bool(inner), **{k: kinds[k] for k in ('mfma', *ISSUE)}, 'mfma_cycles': cycles, 'other_cycles': other, 'share': cycles / (cycles + other), 'type': matrix[0][1],
            'accumulator_moves': sum(m.startswith('v_accvgpr') for m in mnemonics)}


def launches(code: str) -> dict[str, tuple[int, int]]:
    """{kernel: (threads, bytes of dynamic shared memory)} of the launcher's text"""
    found, names = {}, ['']
    for pair, name, threads, shared in re.findall(r'const auto kernel = .*\? (\w+ : \w+);|(\w+)<<<.*, (\d+), (\d+), queue>>>', code):
        names = pair.split(' : ') if pair else names
        found.update({n: (int(threads), int(shared)) for n in (names if name == 'kernel' else [name]) if not pair})
    return found


def waves(registers: int, shared: int, threads: int) -> float:
    """waves a SIMD"""
    each = math.ceil(threads / 64)
    groups = [4 * min(8, 512 // max(8, -(-registers // 8) * 8)) // each]
    groups += [65536 // (-(-shared // 512) * 512)] if shared else []
    groups += [16] if each > 1 else []
    return min(groups) * each / 4


def estimate(dims: dict[str, int], products: int, nbytes: int, loop: dict[str, Any]) -> float | None:
    """µs on an MI210; nothing where M, N, K and B do not say all of the work"""
    if not {'M', 'N', 'K'} <= set(dims) <= {'M', 'N', 'K', 'B'}:
        return None
    flops = 2 * products * math.prod(dims.values())
    return 1e6 * max(flops / (RATE[loop['type']] * CUS * CLOCK * loop['share']), nbytes / BANDWIDTH)


def examine(a: argparse.Namespace, case: str, source: str, folder: pathlib.Path) -> list[dict[str, Any]]:
    """a record for each kernel of a case that multiplies by MFMA"""
    for command in ([a.acuc, 'compile', source, '--case', case, '--target', TARGET, '-o', '.'], [a.hipcc, f'--offload-arch={TARGET}', '-std=c++17', '-O3', '--cuda-device-only', '-S', '-o', 'device.s', '*.hip']):
        command[-1] = next(folder.glob('*.hip')).name if command[-1] == '*.hip' else command[-1]
        r = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        if r.returncode:
            raise RuntimeError(f'{case}: {pathlib.Path(command[0]).name}: {(r.stderr or r.stdout).strip()[:600]}')
    code, header = next(folder.glob('*.hip')).read_text(encoding='utf-8'), next(folder.glob('*.h')).read_text(encoding='utf-8')
    plan, text = json.loads(next(folder.glob('*.plan.json')).read_text(encoding='utf-8')), (folder / 'device.s').read_text(encoding='utf-8')
    first = re.search(r'^/\* (\w+ \(case .*)$', header, re.M)
    e = declared(Text('', header, plan, hash_of(code.encode())), case, source, {**(constants(first[1]) if first else {}), **plan['dims']})
    products = sum(d['pass'] == 'bind_mma' for d in plan['decisions'])
    launched, records = launches(code), []
    for name, d in kernels_of(text).items():
        body = re.search(rf'^{name}:.*?^\.Lfunc_end', text, re.M | re.S)
        if not body or 'v_mfma' not in body[0]:
            continue
        threads, dynamic = launched.get(name, (d['max_flat_workgroup_size'], 0))
        shared, loop = d['group_segment_fixed_size'] + dynamic, inner_loop(body[0])
        records.append({'case': case, 'kernel': name, 'digest': e.digest, 'vgprs': d['vgpr_count'] - d['agpr_count'], 'agprs': d['agpr_count'], 'sgprs': d['sgpr_count'], 'lds_bytes': shared,
                        'scratch_bytes': d['private_segment_fixed_size'], 'vgpr_spills': d['vgpr_spill_count'], 'sgpr_spills': d['sgpr_spill_count'], 'threads': threads,
                        'waves': waves(d['vgpr_count'], shared, threads), 'inner_loop': loop, 'products': products, 'bytes': e.tensor_bytes,
                        'estimate_us': estimate(plan['dims'], products, e.tensor_bytes, loop)})
    return records


def spilled(r: dict[str, Any]) -> bool:
    return r['scratch_bytes'] + r['vgpr_spills'] + r['sgpr_spills'] > 0


def markdown(meta: dict[str, Any], records: list[dict[str, Any]]) -> str:
    lines = [f'# Assembly of matrix products for {TARGET}', '', f'{len(records)} kernels with MFMA, {sum(map(spilled, records))} with scratch or spills. Read from assembly; nothing ran. Shares and times follow the model in benchmarks/assembly.py.', '',
             f"- {meta['date']}: commit `{meta['commit']}`, {meta['acuc']}, {meta['hipcc']}", '- estimate µs: for an MI210 (104 CUs, 1.7 GHz, 181 TFLOP/s f16, 1.6 TB/s), not a measurement',
             *(f'- no kernel with MFMA: {", ".join(some)}' for some in [meta['without']] if some), *(f'- failed: {f}' for f in meta['failed']), '',
             '| case | kernel | VGPR | AGPR | LDS KiB | scratch | waves/SIMD | MFMA in the loop | MFMA share | estimate µs |', '|---|---|---|---|---|---|---|---|---|---|']
    for r in records:
        loop, spills = r['inner_loop'], r['vgpr_spills'] + r['sgpr_spills']
        lines.append(f"| {r['case']} | {r['kernel']} | {r['vgprs']} | {r['agprs']} | {r['lds_bytes'] / 1024:g} | {r['scratch_bytes']}{f' ({spills} spills)' if spills else ''} | {r['waves']:g} | {loop['mfma']}{'' if loop['loop'] else ' (no loop)'} | "
                     f"{loop['share']:.2f} | {report.number(r['estimate_us'], '.0f')} |")
    lines += ['', '## Other instructions of the inner loops', '', '| case | kernel | SGPR | threads | vector | of these accumulator moves | LDS | global | scratch | scalar | waits, barriers |', '|---|---|---|---|---|---|---|---|---|---|---|']
    for r in records:
        counts = ' | '.join(str(r['inner_loop'][k]) for k in ('valu', 'accumulator_moves', 'lds', 'global', 'scratch', 'scalar', 'wait'))
        lines.append(f"| {r['case']} | {r['kernel']} | {r['sgprs']} | {r['threads']} | {counts} |")
    return '\n'.join(lines) + '\n'


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--acuc', default='build/acuc')
    ap.add_argument('--hipcc', default='hipcc')
    ap.add_argument('--cases', nargs='+', default=PREFIXES, help='prefixes')
    ap.add_argument('--out', type=pathlib.Path, default=HERE / 'results')
    ap.add_argument('--commit', default='')
    a = ap.parse_args()
    if not shutil.which(a.hipcc):
        ap.exit(2, f'{a.hipcc} is not there: install the package `hipcc` (Debian, Ubuntu, ROCm), or name it with --hipcc\n')
    a.acuc, a.hipcc = str(pathlib.Path(a.acuc).resolve()), shutil.which(a.hipcc)
    records, failed, without = [], [], []
    cases = suite_cases(HERE / 'suite')
    for case in machine.chosen(list(cases), a.cases):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = examine(a, case, cases[case], pathlib.Path(folder))
                records += found
                without += [] if found else [case]
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed.append(str(error))
    versions = machine.output_of(a.hipcc, '--version').splitlines()[:2]
    meta = {'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'), 'commit': a.commit, 'acuc': machine.output_of(a.acuc, '--version'), 'hipcc': ', '.join(versions), 'target': TARGET,
            'device_of_estimates': {'name': 'MI210', 'cus': CUS, 'hertz': CLOCK, 'bytes_per_second': BANDWIDTH}, 'without': without, 'failed': failed}
    a.out.mkdir(parents=True, exist_ok=True)
    base = a.out / f'assembly_{TARGET}'
    base.with_suffix('.json').write_text(json.dumps({'run': meta, 'kernels': records}, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    base.with_suffix('.md').write_text(markdown(meta, records), encoding='utf-8')
    print(markdown(meta, records))
    return 4 if failed or any(map(spilled, records)) else 0


if __name__ == '__main__':
    sys.exit(main())
