#!/usr/bin/env python3
"""Writes a linker's dynamic list: `export_list.py NM LIBRARY OUT` exports what LIBRARY defines for emitted text to call, which is all but the namespace acu."""
import subprocess
import sys
from pathlib import Path


def main() -> None:
    nm, library, out = sys.argv[1:]
    listing = subprocess.run([nm, "-g", "--defined-only", "-P", library], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    names = sorted({row[0] for row in rows if len(row) > 2 and row[1] in "TBD" and not row[0].startswith(("_ZN3acu", "_ZNK3acu", "acu_"))})
    Path(out).write_text("{\n" + "".join(f"  {name};\n" for name in names) + "};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
