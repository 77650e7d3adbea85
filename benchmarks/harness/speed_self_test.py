"""Tests speed.py on invented times: statistics, order, floor, the result of a case, merged runs, tables. Needs no torch and no GPU."""
from __future__ import annotations

import json
import pathlib
import random
import tempfile
from typing import Any, Callable

from . import compile_peers, report, samples, speed_report, sweep
from .emitted import Emitted, Param, decision_text
from .speed_worker import Case
from .timing import Contender

ROW = {'min_mb': '268.435', 'gflop': '0.34'}


def near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0)


def statistics_of_samples() -> bool:
    s = samples.summary([5.0, 1.0, 2.0, 4.0, 3.0])
    one = samples.summary([7.0])
    return near(s['median'], 3) and near(s['p10'], 1.4) and near(s['p90'], 4.6) and near(s['iqr'], 2 / 3) and s['n'] == 5 and near(one['p90'], 7) and near(one['iqr'], 0)


def order_is_a_palindrome() -> bool:
    orders = [samples.palindrome('ABCD', random.Random(k)) for k in range(20)]
    return all(o == o[::-1] and sorted(o[:4]) == list('ABCD') for o in orders) and len({tuple(o) for o in orders}) > 5


def drift_leaves_the_ratio() -> bool:
    """both get slower from round to round, one is always a quarter faster"""
    ours = [[80.0 * (1 + r / 5)] * 10 for r in range(5)]
    peer = [[100.0 * (1 + r / 5)] * 10 for r in range(5)]
    return near(samples.ratio_of_rounds(ours, peer) or 0, 1.25) and samples.ratio_of_rounds([[]], peer) is None and near(samples.ratio_of_rounds([[], [2.0]], [[4.0], []]) or 0, 2)


def verdicts() -> bool:
    return [samples.verdict(r) for r in (0.97, 0.98, 1.0, 1.02, 1.03, None)] == ['slower', 'equal', 'equal', 'equal', 'faster', ''] and near(samples.geomean([2.0, 0.5]) or 0, 1)


def floor_of_physics() -> bool:
    h200 = samples.device_of('NVIDIA H200')
    read_all = samples.floor_us(h200, 4.8e9, 0, 60e6)
    cached = samples.floor_us(h200, 4.8e9, 4.8e8, 4.8e8)  # a tenth is written and may stay in the cache
    flop = samples.floor_us(h200, 1.0, 0, 60e6, 990e9, 'f16')
    return near(read_all, 1000) and near(cached, 900) and near(flop, 1000) and samples.floor_us(None, 1e9, 0, 0) == 0.0 and samples.device_of('NVIDIA GH200 480GB') != h200


def bytes_of_a_case() -> bool:
    return near(samples.compulsory_bytes('NM01', ROW, 5), 268.435e6) and samples.compulsory_bytes('NM01', None, 5) == 5.0 and samples.compulsory_bytes('EW05', {'min_mb': '1073.7'}, 5) < 810e6


def contender(name: str, kind: str, us: float, rng: random.Random) -> Contender:
    return Contender(name, kind, 'graph', [], rounds=[[us * (1 + 0.01 * rng.random()) for _ in range(20)] for _ in range(5)])


def result_of(us: float, peers: list[tuple[str, str, float]]) -> dict[str, Any]:
    """what a case with these times comes to"""
    rng, case = random.Random(0), Case.__new__(Case)
    case.e = Emitted('NM01', '', '', '', '', (Param('y', 'output', 'f16', (4, 4)),), {})
    case.peers, case.notes, case.nbytes = [contender(n, k, t, rng) for n, k, t in peers], [], 268.435e6
    case.record = {'copy_tbps': 4.25, 'floor_us': 55.9, 'correct': True, 'status': 'correct', 'seconds': {}}
    case.take(contender('acuc', 'acuc', us, rng))
    case.record.update(peers=[p.record() for p in case.peers], note='; '.join([case.record.get('note', ''), *case.notes]).strip('; '))
    return case.record


def ratio_of_a_case() -> bool:
    r = result_of(70.0, [('eager', 'eager', 300.0), ('compile max', 'compile', 126.0)])
    return 1.78 < r['ratio'] < 1.82 and r['peer']['name'] == 'compile max' and 3.7 < r['tbps'] < 3.9 and 0.88 < r['of_copy'] < 0.92 and not r['noisy'] and r['correct']


def too_fast_is_refused() -> bool:
    ours = result_of(40.0, [('eager', 'eager', 300.0)])
    peer = result_of(70.0, [('eager', 'eager', 300.0), ('cheat', 'vendor', 20.0)])
    return not ours['correct'] and ours['status'] == 'below the floor' and ours['ratio'] is None and peer['peer']['name'] == 'eager' and 'cheat' in peer['note']


def line(name: str, phase: str, record: dict[str, Any]) -> str:
    return json.dumps({'id': name, 'phase': phase, 'operator': 'softmax', 'plan': '3 decisions', 'digest': 'd', 'record': record}) + '\n'


META = {'date': 'today', 'device': 'NVIDIA H200', 'commit': 'c', 'no_compile_peers': False}


def merged(folder: pathlib.Path) -> tuple[list[dict[str, Any]], report.Cases]:
    """a first run, a second that repeats one case and is cut off in its last line"""
    good = result_of(70.0, [('eager', 'eager', 300.0), ('compile max', 'compile', 126.0)])
    slow = result_of(150.0, [('eager', 'eager', 300.0), ('compile max', 'compile', 126.0)])
    bare = result_of(100.0, [('eager', 'eager', 150.0)])
    point = {'status': 'correct', 'ratio': 0.5, 'us': 2.0, 'eager_us': 1.0}
    first, second = folder / 'a.jsonl', folder / 'b.jsonl'
    first.write_text(json.dumps({'meta': META}) + '\n' + line('NM01', 'speed', slow) + line('RD01', 'speed', bare) + line('softmax f16 3x7+1', 'sweep', point), encoding='utf-8')
    second.write_text(json.dumps({'meta': META}) + '\n' + line('NM01', 'speed', good) + line('RD01', 'speed', {'status': 'not reached'}) +
                      line('EW01', 'speed', {'status': 'crashed', 'note': 'died | here'}) + line('EW02', 'speed', good)[:80], encoding='utf-8')
    return report.read_lines([first, second])


def merge_keeps_the_later(folder: pathlib.Path) -> bool:
    runs, cases = merged(folder)
    s = speed_report.summary([c['speed'] for c in speed_report.with_phase(cases, 'speed').values()])
    return len(runs) == 2 and 1.7 < cases['NM01']['speed']['ratio'] and cases['RD01']['speed']['status'] == 'correct' and 'EW02' not in cases and \
        (s['cases'], s['correct'], s['compared'], s['faster'], s['without_compile']) == (3, 2, 2, 2, 1) and near(s['fast_p']['1.2'], 2 / 3)


def tables(folder: pathlib.Path) -> bool:
    runs, cases = merged(folder)
    shown: list[str] = []
    other = {'NM01': {'best_us': '126.98'}, 'RD01': {'best_us': '-'}}
    right, total = speed_report.write_all(folder, runs, cases, other, shown.append)
    text = (folder / 'speed_h200.md').read_text(encoding='utf-8')
    joined = json.loads((folder / 'speed_h200.json').read_text(encoding='utf-8'))
    rows = [r for r in text.splitlines() if r.startswith('| ')]
    return (right, total) == (3, 4) and len({r.count('|') for r in rows}) == 1 and '| 127.0 |' in text and '*' in rows[-1] and 'died / here' in text and len(shown) == 2 and \
        len(joined['speed']) == 3 and '0.50x' in (folder / 'sweep_h200.md').read_text(encoding='utf-8')


def points_of_the_sweep() -> bool:
    every = sweep.points(list(sweep.OPERATORS), 1)
    return len(every) == len(set(every)) == 8 * 3 * 5 * 10 * 2 and every == sweep.points(list(sweep.OPERATORS), 1) and every != sweep.points(list(sweep.OPERATORS), 2) and \
        sweep.points(['sum'], 1, 7) == sweep.points(['sum'], 1)[:7] and len({p.library for p in every}) == 24


def best_compiled() -> bool:
    found = compile_peers.best([({'case': 'A', 'mode': 'default'}, {'us': {'x': 3.0, 'y': 2.0}}), ({'case': 'A', 'mode': 'max'}, {'us': {'x': 1.0}}), ({'case': 'B', 'mode': 'max'}, {'status': 'timeout'})])
    return found == {'A': {'variant': 'x', 'mode': 'max'}} and [j['mode'] for j in compile_peers.jobs_of(['A', 'B'])] == [m for m in compile_peers.MODES for _ in 'AB']


def decisions() -> bool:
    return decision_text({'pass': 'fuse', 'scope': ['a', 'b'], 'params': {'kind': 'grid', 'over': {'r': 1}}}) == 'fuse(a, b, kind = grid, over = {"r": 1})'


def main() -> int:
    tests: list[Callable[..., bool]] = [statistics_of_samples, order_is_a_palindrome, drift_leaves_the_ratio, verdicts, floor_of_physics, bytes_of_a_case, ratio_of_a_case, too_fast_is_refused,
                                        points_of_the_sweep, best_compiled, decisions]
    with tempfile.TemporaryDirectory() as folder:
        results = {t.__name__: t() for t in tests}
        results.update({t.__name__: t(pathlib.Path(folder)) for t in (merge_keeps_the_later, tables)})
    for name, good in results.items():
        if not good:
            print(f'{name} failed')
    failed = sum(not good for good in results.values())
    print(f'{len(results) - failed} passed, {failed} failed')
    return 1 if failed else 0
