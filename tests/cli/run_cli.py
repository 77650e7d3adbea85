#!/usr/bin/env python3
"""Runs `acuc` on bad input, bad command lines, edge sizes and special values.

Every test is a function of one `Cli`, in `files.py`, `commands.py`, `semantics.py` or `faults.py`. Whatever it asks for,
no command may crash, speak of an inner error, or take ten seconds.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import commands  # noqa: E402, F401
import faults  # noqa: E402, F401
import files  # noqa: E402, F401
import semantics  # noqa: E402, F401
from harness import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main("Runs acuc on bad input and edge cases."))
