"""Records as they come (JSON lines), joined into one JSON file and one markdown table."""
from __future__ import annotations

import json
import math
import pathlib
import re
import threading
from typing import Any, Iterable

Cases = dict[str, dict[str, Any]]


def slug(device: str) -> str:
    return re.sub(r'[^a-z0-9]+', '_', device.lower().replace('nvidia', '')).strip('_') or 'unknown'


def finite(x: Any) -> Any:
    """JSON has no infinity"""
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, dict):
        return {k: finite(v) for k, v in x.items()}
    return [finite(v) for v in x] if isinstance(x, list) else x


class Lines:
    """Appends records; safe between threads, and nothing is lost when the process is killed."""

    def __init__(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.lock = path, threading.Lock()

    def add(self, record: dict[str, Any]) -> None:
        with self.lock, open(self.path, 'a', encoding='utf-8') as f:
            f.write(json.dumps(finite(record)) + '\n')


def read_lines(paths: Iterable[pathlib.Path]) -> tuple[list[dict[str, Any]], Cases]:
    """(one meta record a run, {case: {launcher, acuc}}); later records win, but `not reached` replaces nothing"""
    runs: list[dict[str, Any]] = []
    cases: Cases = {}
    for path in paths:
        for line in path.read_text(encoding='utf-8').splitlines():
            r = json.loads(line) if line.endswith('}') else {}
            if 'meta' in r:
                runs.append(r['meta'])
            elif 'id' in r:
                c = cases.setdefault(r['id'], {'id': r['id']})
                if r['record'].get('status') != 'not reached' or r['phase'] not in c:
                    c[r['phase']] = r['record']
                c.update({k: r[k] for k in ('operator', 'plan', 'digest') if r.get(k)})
    return runs, cases


def number(x: Any, form: str = '.3g') -> str:
    if x is None or x == '':
        return '–'
    return format(x, form) if isinstance(x, (int, float)) else str(x)


def microseconds(x: Any) -> str:
    return number(x, '.1f') if isinstance(x, (int, float)) and x < 1e4 else number(x, ',.0f')


def yes(x: Any) -> str:
    return {True: 'yes', False: '**no**'}.get(x, '–') if isinstance(x, bool) or x is None else str(x)


def refusals(record: dict[str, Any]) -> str:
    r = record.get('refusals')
    return '–' if not r else f"{r['calls']} ok" if not r['faults'] else f"**{len(r['faults'])} of {r['calls']} wrong**"


def acuc_cells(record: dict[str, Any]) -> str:
    if not record:
        return '–'
    checks = record.get('checks', [])
    detail = '; '.join(f"{c['output']} {number(c['worst'])} ({c['elements']})" for c in checks)
    status = record['status'] if record['status'] == 'correct' else f"**{record['status']}**"
    return f'{status} {detail}'.strip()


def note_of(case: dict[str, Any]) -> str:
    launcher, acuc = case.get('launcher', {}), case.get('acuc', {})
    faults = launcher.get('refusals', {}).get('faults', [])
    parts = [launcher.get('note', ''), *faults[:2], f"acuc: {acuc['note']}" if acuc.get('note') else '']
    return ' · '.join(p.replace('|', '/').replace('\n', ' ')[:160] for p in parts if p)


def row(case: dict[str, Any]) -> str:
    r = case.get('launcher', {})
    status = r.get('status', '–')
    cells = [case['id'], case.get('operator', ''), case.get('plan', ''), status if status in ('correct', '–') else f'**{status}**', number(r.get('worst')), number(r.get('viol')),
             number(r.get('rms_ratio')), microseconds(r.get('microseconds')), yes(r.get('deterministic')), refusals(r), acuc_cells(case.get('acuc', {})), note_of(case)]
    return '| ' + ' | '.join(cells) + ' |'


def summary(cases: Cases) -> dict[str, int]:
    launchers = [c['launcher'] for c in cases.values() if 'launcher' in c]
    acuc = [c['acuc'] for c in cases.values() if 'acuc' in c]
    refused = [r['refusals'] for r in launchers if 'refusals' in r]
    return {'cases': len(cases), 'launched': len(launchers), 'correct': sum(r.get('status') == 'correct' for r in launchers),
            'deterministic': sum(r.get('deterministic') is True for r in launchers), 'determinism_exempt': sum('deterministic' in r and r['deterministic'] is None for r in launchers),
            'refusal_calls': sum(r['calls'] for r in refused), 'refusals_wrong': sum(len(r['faults']) for r in refused),
            'acuc_run': len(acuc), 'acuc_correct': sum(r.get('status') == 'correct' for r in acuc)}


def sentence(s: dict[str, int]) -> str:
    text = (f"{s['correct']} of {s['launched']} launchers correct, {s['deterministic']} deterministic ({s['determinism_exempt']} exempt), "
            f"{s['refusals_wrong']} of {s['refusal_calls']} refusals wrong")
    return text + (f"; acuc run: {s['acuc_correct']} of {s['acuc_run']} correct" if s['acuc_run'] else '')


HEAD = ('| case | operator | plan | launcher | worst | plain | rms | µs | deterministic | refusals | acuc run --check | note |\n'
        '|---|---|---|---|---|---|---|---|---|---|---|---|\n')


def markdown(runs: list[dict[str, Any]], cases: Cases) -> str:
    m = runs[-1] if runs else {}
    lines = [f"# Correctness on {m.get('device', '?')}", '', sentence(summary(cases)) + '.', '']
    for r in runs:
        lines.append(f"- {r.get('date')}: commit `{r.get('commit')}`, driver {r.get('driver')}, {r.get('nvcc')}, torch {r.get('torch')}, {r.get('acuc')}, target {r.get('target')}")
    lines += ['', 'What the columns mean: benchmarks/README.md.', '']
    return '\n'.join(lines) + '\n' + HEAD + '\n'.join(row(cases[k]) for k in sorted(cases)) + '\n'


def write(folder: pathlib.Path, device: str, runs: list[dict[str, Any]], cases: Cases) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f'correctness_{slug(device)}'
    joined = {'runs': runs, 'summary': summary(cases), 'cases': [cases[k] for k in sorted(cases)]}
    base.with_suffix('.json').write_text(json.dumps(joined, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    base.with_suffix('.md').write_text(markdown(runs, cases), encoding='utf-8')
    return base
