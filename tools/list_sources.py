#!/usr/bin/env python3
"""Prints the C++ sources of folders, one a line, so that a new file (a pass, an analysis) needs no list to be edited. After adding one: `meson setup --reconfigure build`."""
import sys
from pathlib import Path

for folder in sys.argv[2:]:
    for path in sorted((Path(sys.argv[1]) / folder).glob("*.cpp")):
        print(f"{folder}/{path.name}")
