#!/usr/bin/env python3
"""Tests the references, tolerances and mutants by themselves, without the compiler.

For every reduced case of `benchmarks/suite`: a correct result passes, every mutant fails, shapes are those declared.
"""
import sys

from cases import Case, read_cases
from drawing import draw_inputs
from formats import rounded
from mutants import MUTANTS
from reference import REFERENCE
from tolerance import TOLERANCE, compare


def faults_of(case: Case) -> list[str]:
    """What is wrong with the reference, tolerance or mutants of a case."""
    inputs, other_inputs = draw_inputs(case, 1), draw_inputs(case, 2)
    refs, other = (REFERENCE[case.id](drawn, case.params) for drawn in (inputs, other_inputs))
    dtypes = [tensor.dtype for tensor in case.outputs]
    faults = [f"shape {ref.shape}, declared {tensor.shape}" for ref, tensor in zip(refs, case.outputs) if ref.shape != tensor.shape]
    good = [rounded(ref, dtype) if ref.dtype.kind == "f" else ref for ref, dtype in zip(refs, dtypes)]
    accepted, _, message = compare(case.id, good, refs, inputs, case.params, dtypes)
    if not accepted:
        faults.append(f"a correct result is rejected: {message}")
    for name, mutate in MUTANTS.items():
        bad = mutate(refs, inputs, other)
        if bad is not None and compare(case.id, bad, refs, inputs, case.params, dtypes)[0]:
            faults.append(f'mutant "{name}" is accepted')
    return faults


def main() -> int:
    cases = [case for name, case in read_cases().items() if name.endswith("_small")]
    ids = {case.id for case in cases}
    failed = int(not ids == REFERENCE.keys() == TOLERANCE.keys())
    if failed:
        print(f"cases, references and tolerances differ: {ids ^ REFERENCE.keys() | ids ^ TOLERANCE.keys()}")
    for case in cases:
        faults = faults_of(case)
        failed += bool(faults)
        print("".join(f"{case.id}: {fault}\n" for fault in faults), end="")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
