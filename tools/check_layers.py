#!/usr/bin/env python3
"""Fails when a source file includes a folder that its own folder may not see.

layers.txt has one line a folder, `folder: allowed folders`, and a folder may name only folders above its own line.
"""
import re
import sys
from pathlib import Path

from source_files import ROOT, source_files

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)/[^/"]+"')
Layers = dict[str, set[str]]


def read_layers(path: Path) -> Layers:
    """Reads layers.txt; exits when a folder names one that is not yet declared, since that could make a cycle."""
    layers: Layers = {}
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        folder, _, allowed = line.partition(":")
        if late := set(allowed.split()) - set(layers):
            sys.exit(f"layers.txt: {folder} names {', '.join(sorted(late))} before it is declared")
        layers[folder.strip()] = set(allowed.split())
    return layers


def layer_of(folder: str, layers: Layers) -> str | None:
    """The longest declared folder that holds this one."""
    return max((name for name in layers if folder == name or folder.startswith(name + "/")), key=len, default=None)


def violations(file: Path, name: str, layers: Layers) -> list[str]:
    """One message for each include of `file` that its layer does not allow."""
    here = layer_of(str(Path(name).parent), layers)
    if here is None:
        return [f"{name}:1: no folder of layers.txt holds this file"]
    found = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        there = layer_of(match[1], layers) if match else None
        if there and there != here and there not in layers[here]:
            found.append(f"{name}:{number}: {here} may not include {there}")
    return found


def main() -> int:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    layers = read_layers(root / "layers.txt")
    found = []
    for file in source_files(root, {".h", ".cpp", ".cuh"}):
        found += violations(file, str(file.relative_to(root)), layers)
    print("\n".join(found), end="\n" if found else "")
    print(f"{0 if found else 1} passed, {len(found)} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
