#!/usr/bin/env python3
"""Plans: the published schema, plan files and schedule blocks as two forms of one thing, replay, and refusals with their reason.

Every plan here goes through the JSON Schema of `acuc passes --json` (checked by the package jsonschema) and through acuc, and both must agree.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE)]

import chains  # noqa: E402, F401
import conversion  # noqa: E402, F401
import products  # noqa: E402, F401
import refusals  # noqa: E402, F401
import replay  # noqa: E402, F401
import roles  # noqa: E402, F401
import schema  # noqa: E402, F401
import variants  # noqa: E402, F401
from harness import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main("Tests plans."))
