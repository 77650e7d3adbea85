#!/usr/bin/env python3
"""Compiles a kernel that binds each microkernel, for each of its targets, and looks for the instruction that its descriptor promises.

sm_70 with NVRTC 12, sm_80 and sm_90a with nvcc, gfx90a with hipcc. With cuobjdump the machine code is read, else the PTX; of gfx90a the assembly.
A pattern that also matches a kernel which copies bytes proves nothing: that is a failure, too.
"""
import argparse
import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compile_cuda
from compile_cuda import MissingToolchain

PROCESSES = 2
SHOWN_LINES = 6
BYTES = """
extern "C" __global__ void bytes(const unsigned char* in, unsigned char* out) { out[threadIdx.x] = in[threadIdx.x]; }
"""
Text = tuple[str, str]  # "sass", "ptx" or "assembly"; the text


class CompileError(RuntimeError):
    """The compiler's words."""


def run(command: list[str | Path]) -> str:
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise CompileError((done.stdout + done.stderr).strip() or f"exit status {done.returncode}")
    return done.stdout


def find_cuobjdump() -> str | None:
    """Beside nvcc, or in PATH; it needs nvdisasm at its side."""
    nvcc = compile_cuda.find_nvcc()
    beside = nvcc and nvcc.parent / "cuobjdump"
    return str(beside) if beside and beside.is_file() else shutil.which("cuobjdump")


def with_nvcc(source: Path, target: str) -> Text:
    nvcc, dump = compile_cuda.find_nvcc(), find_cuobjdump()
    if nvcc is None:
        raise MissingToolchain("nvcc")
    output = source.with_suffix(".cubin" if dump else ".ptx")
    run([nvcc, f"-arch={target}", "-std=c++17", "-cubin" if dump else "-ptx", "-o", output, source])
    return ("sass", run([dump, "-sass", output])) if dump else ("ptx", output.read_text())


def with_nvrtc(source: Path, target: str) -> Text:
    """The PTX that NVRTC 12 makes on the way to machine code."""
    library = nvrtc()
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), b"kernel.cu", 0, None, None)
    try:
        options = [f"--gpu-architecture={target.replace('sm_', 'compute_')}".encode(), b"--std=c++17"]
        if library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
            raise CompileError(nvrtc_text(library, program, "ProgramLog"))
        return "ptx", nvrtc_text(library, program, "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def nvrtc() -> ctypes.CDLL:
    path = compile_cuda.find_nvrtc12()
    if path is None:
        raise MissingToolchain("NVRTC 12.9")
    return ctypes.CDLL(str(path))


def nvrtc_text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.value.decode(errors="replace")


def with_hipcc(source: Path, target: str) -> Text:
    hipcc = compile_cuda.find_hipcc()
    if hipcc is None:
        raise MissingToolchain("hipcc")
    output = source.with_suffix(".s")
    run([hipcc, f"--offload-arch={target}", "-std=c++17", "-O3", "--cuda-device-only", "-S", "-o", output, source])
    return "assembly", output.read_text()


def compiler_of(target: str) -> Callable[[Path, str], Text]:
    return with_hipcc if target.startswith("gfx") else with_nvrtc if target == "sm_70" else with_nvcc


def machine_code(source: str, target: str, folder: Path, name: str) -> Text:
    path = folder / f"{name}.{target}.{'hip' if target.startswith('gfx') else 'cu'}"
    path.write_text(source, encoding="utf-8")
    return compiler_of(target)(path, target)


def instructions(text: Text, pattern: dict[str, str]) -> list[str]:
    """The lines that show the promised instruction."""
    wanted = re.compile(pattern["ptx"] if text[0] == "ptx" else pattern["instruction"])
    return [line.strip() for line in text[1].splitlines() if wanted.search(line)]


class Report:
    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def add(self, label: str, fault: str) -> None:
        self.passed += not fault
        self.failed += bool(fault)
        if fault:
            print(f"{label}:\n  " + "\n  ".join(fault.splitlines()[:SHOWN_LINES]), flush=True)

    def skip(self, label: str, why: str) -> None:
        self.skipped += 1
        print(f"skipped {label}: {why}", flush=True)


def check(acuc: str, kernel: dict, pattern: dict[str, str], plain: dict[str, Text], folder: Path) -> str:
    """Returns what is wrong with one microkernel on one target."""
    target = pattern["name"]
    try:
        text = machine_code(run([acuc, "microkernels", "source", kernel["id"], "--target", target, "--last"]), target, folder, kernel["id"])
    except CompileError as error:
        return str(error)
    wanted = pattern["ptx"] if text[0] == "ptx" else pattern["instruction"]
    if not instructions(text, pattern):
        return f"no {wanted} in its {text[0]}"
    found = instructions(plain[target], pattern)
    return f"{wanted} also matches a copy of bytes: {found[0]}" if found else ""


def plain_texts(report: Report, targets: list[str], folder: Path) -> dict[str, Text]:
    """The kernel that copies bytes, for each target whose compiler is here."""
    texts = {}
    for target in targets:
        head = "#include <hip/hip_runtime.h>\n" if target.startswith("gfx") else ""
        try:
            texts[target] = machine_code(head + BYTES, target, folder, "bytes")
        except MissingToolchain as missing:
            report.skip(target, str(missing))
    return texts


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Looks for the instructions that the microkernels promise.")
    parser.add_argument("--build", default="build", help="the folder of the compiler (default: build)")
    parser.add_argument("--acuc", help="the compiler itself (default: acuc of --build)")
    parser.add_argument("--only", nargs="*", metavar="ID", help="some microkernels, such as common.block_reduce")
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    acuc = arguments.acuc or str(Path(arguments.build, "acuc").resolve())
    kernels = [k for k in json.loads(run([acuc, "microkernels", "list", "--json"])) if not arguments.only or k["id"] in arguments.only]
    report = Report()
    with tempfile.TemporaryDirectory(prefix="acu_microkernels_") as temporary:
        folder = Path(temporary)
        plain = plain_texts(report, sorted({t["name"] for k in kernels for t in k["targets"]}), folder)
        jobs = [(kernel, pattern) for kernel in kernels for pattern in kernel["targets"] if pattern["name"] in plain]
        with ThreadPoolExecutor(int(os.environ.get("ACU_JOBS", PROCESSES))) as pool:
            faults = list(pool.map(lambda job: check(acuc, *job, plain, folder), jobs))
    for (kernel, pattern), fault in zip(jobs, faults):
        report.add(f"{kernel['id']} {pattern['name']}", fault)
    skipped = f", {report.skipped} skipped" if report.skipped else ""
    print(f"{report.passed} passed, {report.failed} failed{skipped}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
