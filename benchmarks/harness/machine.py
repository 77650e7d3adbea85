"""What stands beside the numbers: the device, the toolchain, and the tables of the suite. Needs no torch and no GPU."""
from __future__ import annotations

import csv
import datetime
import pathlib
import subprocess
import sys
from typing import Any, Optional

Table = dict[str, dict[str, str]]


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ''


def describe(acuc: str, nvcc: str, commit: str, target: str) -> dict[str, Any]:
    gpu = output_of('nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader').splitlines()
    name, driver, memory = ([v.strip() for v in gpu[0].split(',')] if gpu else ['no GPU', '', ''])[:3]
    release = [line for line in output_of(nvcc, '--version').splitlines() if 'release' in line]
    torch = output_of(sys.executable, '-c', 'import importlib.metadata as m; print(m.version("torch"))')
    return {'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'), 'device': name, 'driver': driver, 'memory': memory,
            'nvcc': release[0].split(',', 1)[-1].strip() if release else '', 'torch': torch, 'acuc': output_of(acuc, '--version'), 'commit': commit, 'target': target}


def read_table(suite: Optional[str], name: str) -> Table:
    """{id: row} of a .tsv file beside suite_torch.py; empty without it"""
    path = pathlib.Path(suite).with_name(name) if suite else None
    if not path or not path.exists():
        return {}
    with open(path, encoding='utf-8') as f:
        return {r['id']: r for r in csv.DictReader(f, delimiter='\t', quoting=csv.QUOTE_NONE)}


def chosen(names: list[str], prefixes: list[str]) -> list[str]:
    """all without prefixes"""
    return [n for n in names if not prefixes or n.startswith(tuple(prefixes))]
