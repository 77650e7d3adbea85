#!/usr/bin/env python3
"""The operators of the language's sample page: each is checked, printed, compiled, and run on the CPU against float64, at several sizes, empty ones included."""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emit"))
from compile_cuda import compile_cubin, compile_hip  # noqa: E402

SOURCE = Path(__file__).resolve().parent / "samples.acu"

# Operator: settings that it is run with. Sizes are ragged, tiny and empty.
RUNS: dict[str, list[str]] = {
    "linear_gelu": ["T=f16,M=3,N=5,K=7", "T=f32,M=0,N=5,K=7", "T=bf16,M=3,N=5,K=0"],
    "softmax": ["T=f32,B=3,N=17", "T=f16,B=1,N=1", "T=f64,B=0,N=4", "T=bf16,B=4,N=0"],
    "add_rmsnorm": ["T=bf16,M=3,N=33", "T=f64,M=2,N=8", "T=f16,M=0,N=3"],
    "attention": ["T=f16,causal=true,B=2,H=4,G=2,S=3,L=5,D=8,scale=0.3", "T=bf16,B=1,H=2,G=2,S=5,L=3,D=4,scale=1", "T=f16,causal=true,B=1,H=2,G=1,S=5,L=3,D=4,scale=1",
                  "T=f16,B=1,H=2,G=1,S=2,L=0,D=4,scale=1"],
    "conv2d_relu": ["T=f32,stride=2,pad=1,N=2,C=3,H=9,W=7,O=4,R=3,S=3", "T=f16,N=1,C=1,H=4,W=4,O=2,R=1,S=1", "T=f32,pad=1,N=1,C=0,H=4,W=4,O=2,R=3,S=3"],
    "embedding": ["T=f16,V=11,D=5,N=7", "T=f64,V=1,D=1,N=1", "T=f32,V=5,D=3,N=0"],
    "cross_entropy": ["T=f32,N=5,V=11", "T=bf16,N=1,V=1"],
    "w8a8_linear": ["M=3,N=4,K=65", "M=1,N=1,K=1"],
    "cumsum": ["T=f32,M=3,N=19", "T=f16,M=2,N=1", "T=f32,M=2,N=0"],
    "argmax": ["T=f32,M=5,N=23", "T=f16,M=1,N=1", "T=f64,M=0,N=3"],
    "strided_mix": ["T=f32,M=3,N=7", "T=f16,M=2,N=0", "T=f32,M=0,N=2"],
    "swiglu_mlp": ["T=bf16,M=3,K=8,F=5", "T=f16,M=1,K=1,F=0"],
}


def call(*command: str) -> str:
    """Empty, or what went wrong."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"


def compile_symbolic(acuc: str, folder: str) -> list[str]:
    """Every operator with free sizes, so with 64-bit arithmetic, through nvcc and hipcc."""
    errors = [call(acuc, "compile", str(SOURCE), "--target", target, "-o", f"{folder}/{target}") for target in ("sm_80", "gfx90a")]
    errors += compile_cubin(sorted(Path(folder, "sm_80").glob("*.cu")), "sm_80")
    return errors + compile_hip(sorted(Path(folder, "gfx90a").glob("*.hip")))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    acuc = str(Path(parser.parse_args().build) / "acuc")
    seed = os.environ.get("ACU_SEED", "1")
    source = str(SOURCE)
    errors = [call(acuc, "check", source)]
    for op, runs in RUNS.items():
        for emit in (["--emit", "tensor"], ["--emit", "loop"], ["--emit", "cuda", "--target", "sm_80"], ["--emit", "hip", "--target", "gfx90a"]):
            errors.append(call(acuc, "compile", source, "--op", op, *emit))
        for sizes in runs:
            for extra in ([], ["--interpret"]):
                errors.append(call(acuc, "run", source, "--op", op, "--set", sizes, "--seed", seed, "--check", *extra))
    with tempfile.TemporaryDirectory() as folder:
        errors += compile_symbolic(acuc, folder)
    failed = [str(e) for e in errors if e]
    print("\n".join(failed))
    print(f"{len(errors) - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
