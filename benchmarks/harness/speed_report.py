"""Tables of speed.py: joined records as JSON and markdown."""
from __future__ import annotations

import json
import pathlib
from typing import Any, Callable, Iterable, Optional

from . import samples
from .machine import Table
from .report import Cases, finite, number, slug

Records = list[dict[str, Any]]
SLOWEST = 40  # points of the sweep that are listed
GOOD = {'speed': ('correct', 'host only'), 'sweep': ('correct', 'refused', 'not reached', 'host only')}


def times(r: Optional[dict[str, Any]]) -> str:
    return number(r['median'], '.1f') if r else '–'


def of_kind(record: dict[str, Any], kind: str) -> Optional[dict[str, Any]]:
    return min((p for p in record.get('peers', []) if p['kind'] == kind), key=lambda p: p['median'], default=None)


def percent(x: Any) -> str:
    return f'{100 * x:.0f} %' if isinstance(x, (int, float)) else '–'


def factor(x: Any) -> str:
    return f'{x:.2f}x' if isinstance(x, (int, float)) else '–'


def status(r: dict[str, Any]) -> str:
    return r['status'] if r['status'] == 'correct' else f"**{r['status']}**"


def judged(records: Iterable[dict[str, Any]]) -> Records:
    """correct ones with a peer of the same run"""
    return [r for r in records if r.get('status') == 'correct' and r.get('ratio') is not None]


def clean(note: Any) -> str:
    return str(note or '').replace('|', '/').replace('\n', ' ')[:200]


# ---------------------------------------------------------------- the cases
def summary(records: Records) -> dict[str, Any]:
    good = judged(records)
    ratios = sorted(r['ratio'] for r in good)
    return {'cases': len(records), 'correct': sum(r.get('status') == 'correct' for r in records), 'compared': len(good), 'geomean': samples.geomean(ratios),
            'median': samples.quantile(ratios, 0.5) if ratios else None, **{v: sum(samples.verdict(x) == v for x in ratios) for v in ('faster', 'equal', 'slower')},
            'fast_p': {str(p): sum(x >= p for x in ratios) / len(records) for p in samples.FAST_P} if records else {},
            'without_compile': sum(of_kind(r, 'compile') is None for r in good), 'noisy': sum(bool(r.get('noisy')) for r in good)}


def sentence(s: dict[str, Any]) -> str:
    text = (f"{s['correct']} of {s['cases']} correct; against the best peer of the same run: geometric mean {factor(s['geomean'])}, median {factor(s['median'])} over {s['compared']}, "
            f"{s['faster']} faster, {s['equal']} equal, {s['slower']} slower")
    return text + (f"; {s['without_compile']} without a compiled peer" if s['without_compile'] else '')


def row(case: dict[str, Any], other: Table) -> str:
    r = case['speed']
    peer = r.get('peer') or {}
    marks = ('*' if r.get('ratio') is not None and of_kind(r, 'compile') is None else '') + ('~' if r.get('noisy') else '')
    cells = [case['id'], case.get('operator') or '', case.get('plan') or '', status(r), number(r.get('us'), '.1f'), f"{r['p10']:.1f}–{r['p90']:.1f}" if 'p10' in r else '–',
             times(peer or None), clean(peer.get('name', '–')), factor(r.get('ratio')) + marks, samples.verdict(r.get('ratio')), number(r.get('tbps'), '.2f'), percent(r.get('of_copy')),
             times(of_kind(r, 'eager')), times(of_kind(r, 'vendor')), times(of_kind(r, 'compile'))]
    if other:
        cells.append(number(float(other[case['id']]['best_us']) if other.get(case['id'], {}).get('best_us', '-') != '-' else None, '.1f'))
    sustained = f"sustained {factor(r['sustained']['ratio'])}" if r.get('sustained') else ''
    return '| ' + ' | '.join([*cells, ' · '.join(t for t in (sustained, clean(r.get('note'))) if t)]) + ' |'


def head(other: Table) -> str:
    names = ['case', 'operator', 'plan', 'status', 'µs', 'p10–p90', 'peer µs', 'best peer', 'ratio', '', 'TB/s', 'of copy', 'eager', 'vendor', 'compile', *(['other run'] if other else []), 'note']
    return '| ' + ' | '.join(names) + ' |\n' + '|---' * len(names) + '|\n'


def families(cases: Cases) -> list[str]:
    """one line a family"""
    found = []
    for name in sorted({k[:2] for k in cases}):
        s = summary([c['speed'] for k, c in cases.items() if k[:2] == name])
        found.append(f"- {name}: {sentence(s)}")
    return found


def about(m: dict[str, Any], records: Records) -> str:
    rates = sorted({f"{r['copy_tbps']:.2f}" for r in records if r.get('date') == m.get('date') and 'copy_tbps' in r})
    return (f"- {m.get('date')}: commit `{m.get('commit')}`, driver {m.get('driver')}, {m.get('nvcc')}, torch {m.get('torch')}, {m.get('acuc')}, target {m.get('target')}, "
            f"copy {' and '.join(rates) or '–'} TB/s")


def cases_page(runs: Records, cases: Cases, other: Table) -> str:
    records = [c['speed'] for c in cases.values()]
    lines = [f"# Speed on {runs[-1].get('device', '?') if runs else '?'}", '', sentence(summary(records)) + '.', '', *(families(cases) if len({k[:2] for k in cases}) > 1 else []), '',
             *(about(m, records) for m in runs), '', 'What the columns mean: benchmarks/README.md.']
    if other:
        lines += ['`other run` is what the best peer took in another run: for orientation, in no ratio.']
    return '\n'.join(lines) + '\n\n' + head(other) + '\n'.join(row(cases[k], other) for k in sorted(cases)) + '\n'


# ---------------------------------------------------------------- the sweep
def sweep_summary(records: Records) -> dict[str, Any]:
    good = judged(records)
    worst = min(good, key=lambda r: r['ratio'], default=None)
    count = lambda s: sum(r['status'] == s for r in records)
    return {'points': len(records), 'correct': count('correct'), 'refused': count('refused'), 'not_reached': count('not reached'), 'geomean': samples.geomean(r['ratio'] for r in good),
            'least': worst['ratio'] if worst else None, 'least_at': worst['name'] if worst else '', 'slower': sum(samples.verdict(r['ratio']) == 'slower' for r in good)}


def sweep_sentence(s: dict[str, Any]) -> str:
    reached = s['points'] - s['not_reached']
    return (f"{s['correct']} of {reached} points correct, {s['refused']} refused; over eager: geometric mean {factor(s['geomean'])}, least {factor(s['least'])}"
            f"{' at ' + s['least_at'] if s['least_at'] else ''}, slower at {s['slower']}")


def table(names: list[str], rows: Iterable[list[str]]) -> str:
    return '| ' + ' | '.join(names) + ' |\n' + '|---' * len(names) + '|\n' + ''.join('| ' + ' | '.join(r) + ' |\n' for r in rows)


def sweep_page(runs: Records, points: Cases) -> str:
    records = [{**c['sweep'], 'name': c['id']} for c in points.values()]
    lines = [f"# Sweep of row operators on {runs[-1].get('device', '?') if runs else '?'}", '', sweep_sentence(sweep_summary(records)) + '.', '', *(about(m, records) for m in runs), '']
    groups = sorted({r['name'].rsplit(' ', 1)[0] for r in records})
    each = [(g, sweep_summary([r for r in records if r['name'].rsplit(' ', 1)[0] == g])) for g in groups]
    lines.append(table(['operator', 'points', 'correct', 'refused', 'geomean', 'least', 'at', 'slower'],
                       ([g, str(s['points'] - s['not_reached']), str(s['correct']), str(s['refused']), factor(s['geomean']), factor(s['least']), s['least_at'].rsplit(' ', 1)[-1], str(s['slower'])]
                        for g, s in each)))
    bad = [r for r in records if r['status'] not in ('correct', 'refused', 'not reached', 'host only')]
    if bad:
        lines += ['## Not correct', '', table(['point', 'status', 'note'], ([r['name'], r['status'], clean(r.get('note'))] for r in bad))]
    slow = sorted((r for r in judged(records) if samples.verdict(r['ratio']) == 'slower'), key=lambda r: r['ratio'])[:SLOWEST]
    if slow:
        lines += ['## Slowest against eager', '', table(['point', 'µs', 'eager µs', 'ratio'], ([r['name'], number(r['us'], '.1f'), number(r['eager_us'], '.1f'), factor(r['ratio'])] for r in slow))]
    return '\n'.join(lines)


# ---------------------------------------------------------------- files
def write(folder: pathlib.Path, name: str, runs: Records, joined: dict[str, Any], page: str) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"{name}_{slug(runs[-1]['device'] if runs else 'unknown')}"
    base.with_suffix('.json').write_text(json.dumps(finite({'runs': runs, **joined}), indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    base.with_suffix('.md').write_text(page, encoding='utf-8')
    return base


def with_phase(cases: Cases, phase: str) -> Cases:
    return {k: c for k, c in cases.items() if phase in c}


def write_all(folder: pathlib.Path, runs: Records, cases: Cases, other: Table, show: Callable[[str], None]) -> tuple[int, int]:
    """writes what there is, then shows it; (right, all)"""
    right, total, texts = 0, 0, []
    for phase, page, digest in (('speed', lambda c: cases_page(runs, c, other), summary), ('sweep', lambda c: sweep_page(runs, c), sweep_summary)):
        found = with_phase(cases, phase)
        if found:
            records = [{**c[phase], 'name': k} for k, c in found.items()]
            text = page(found)
            base = write(folder, phase, runs, {'summary': digest(records), phase: [found[k] for k in sorted(found)]}, text)
            texts.append(f'{text}\nwritten to {base}.json and .md')
            right += sum(r['status'] in GOOD[phase] for r in records)
            total += len(records)
    for text in texts:
        show(text)
    return right, total
