"""Compiles emitted kernels without a GPU: CUDA with nvcc 13 or NVRTC 12.9, HIP with hipcc.

Every function takes many kernels and returns one message for each that does not compile or draws a warning, other than
that something is unused. `scripts/setup --toolchains` installs the compilers; a missing one raises MissingToolchain.
Compilers run through ccache where it exists.

NVRTC takes about 0.1 s a kernel and nvcc 1 s, so let NVRTC see every kernel and nvcc one of each kind.
"""
import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2
# Warnings are errors; 177 and 550: declared, or set, but never used.
NVCC_FLAGS = ["-std=c++17", "-Werror", "all-warnings", "-diag-suppress", "177,550", "-c"]
HIP_FLAGS = ["-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-c"]


class MissingToolchain(RuntimeError):
    """A compiler is not on this machine."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: run scripts/setup --toolchains")


def _wheel_folder(name: str) -> Path | None:
    """A folder of NVIDIA's Python wheels in .venv."""
    return next(iter(sorted(ROOT.glob(f".venv/lib/python3*/site-packages/nvidia/{name}"))), None)


def _first_file(candidates: Sequence[str | Path | None]) -> Path | None:
    return next((Path(path) for path in candidates if path and Path(path).is_file()), None)


def find_nvcc() -> Path | None:
    """nvcc: $ACU_NVCC, then .venv, then $CUDA_HOME, then PATH."""
    wheel, home = _wheel_folder("cu13"), os.environ.get("CUDA_HOME")
    return _first_file(
        [os.environ.get("ACU_NVCC"), wheel and wheel / "bin/nvcc", home and Path(home, "bin/nvcc"), shutil.which("nvcc")]
    )


def find_hipcc() -> Path | None:
    """hipcc: $ACU_HIPCC, then PATH."""
    return _first_file([os.environ.get("ACU_HIPCC"), shutil.which("hipcc")])


def find_nvrtc12() -> Path | None:
    """libnvrtc.so.12, the last that builds sm_70: $ACU_NVRTC, then .venv."""
    wheel = _wheel_folder("cuda_nvrtc")
    return _first_file([os.environ.get("ACU_NVRTC"), wheel and wheel / "lib/libnvrtc.so.12"])


def compile_cubin(paths: Sequence[Path], arch: str, include: Sequence[Path] = ()) -> list[str]:
    """Compiles each .cu to a cubin with nvcc: reads the host code, but generates device code only."""
    # -c says the same as -cubin; without it ccache takes the call for a link and does not cache it.
    return _compile_all(_require("nvcc", find_nvcc()), [f"-arch={arch}", *NVCC_FLAGS, "-cubin"], paths, include)


def compile_object(paths: Sequence[Path], arch: str, include: Sequence[Path] = ()) -> list[str]:
    """Compiles each .cu to an object file with nvcc, host and device code."""
    flags = [f"-arch={arch}", *NVCC_FLAGS, "-Xcompiler", "-Wall,-Wextra,-Werror,-Wno-unused-function"]
    return _compile_all(_require("nvcc", find_nvcc()), flags, paths, include)


def compile_hip(paths: Sequence[Path], arch: str = "gfx90a", include: Sequence[Path] = ()) -> list[str]:
    """Compiles each .hip to a code object with hipcc: reads the host code, but generates device code only."""
    flags = [f"--offload-arch={arch}", *HIP_FLAGS, "--cuda-device-only"]
    return _compile_all(_require("hipcc", find_hipcc()), flags, paths, include)


def compile_hip_object(paths: Sequence[Path], arch: str = "gfx90a", include: Sequence[Path] = ()) -> list[str]:
    """Compiles each .hip to an object file with hipcc, host and device code."""
    return _compile_all(_require("hipcc", find_hipcc()), [f"--offload-arch={arch}", *HIP_FLAGS], paths, include)


def nvrtc_compile_all(paths: Sequence[Path], arch: str, include: Sequence[Path] = ()) -> list[str]:
    """Compiles each .cu to a cubin with NVRTC 12.9: sm_70 to sm_90a."""
    return _errors(lambda path: _named(path, nvrtc_compile(path.read_text(), arch, include)), paths)


def nvrtc_compile(source: str, arch: str, include: Sequence[Path] = ()) -> str | None:
    """Compiles one kernel's text to a cubin with NVRTC 12.9; returns the compiler's log if that fails.

    NVRTC sees device code only and has no host headers such as <stdint.h>; __CUDACC_RTC__ is defined.
    """
    fine, log = _nvrtc_run(source, _nvrtc_options(arch, include))
    return None if fine else log


def nvrtc_spills(source: str, arch: str) -> dict[str, int]:
    """Bytes that each kernel of a text stores to memory for want of registers, by NVRTC 12.9."""
    fine, log = _nvrtc_run(source, [*_nvrtc_options(arch, ()), "--ptxas-options=-v"])
    if not fine:
        raise RuntimeError(log)
    return {name: int(stores) for name, stores in re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores", log, re.S)}


def hip_spills(path: Path, arch: str) -> dict[str, int]:
    """Vector registers that each kernel of a file stores to memory, by hipcc (the resource lines of the code that it made)."""
    command = [str(_require("hipcc", find_hipcc())), f"--offload-arch={arch}", "-std=c++17", "-O3", "-c", "--cuda-device-only", "-Rpass-analysis=kernel-resource-usage", path.name, "-o", os.devnull]
    done = subprocess.run(command, cwd=path.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout.strip())
    return {name: int(count) for name, count in re.findall(r"Function Name: (\w+).*?VGPRs Spill: (\d+)", done.stdout, re.S)}


def _nvrtc_run(source: str, options: Sequence[str]) -> tuple[bool, str]:
    """Whether a text compiles, and the compiler's log."""
    library = _nvrtc()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        words = [option.encode() for option in options]
        code = library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _nvrtc_log(library, program)
        return code == 0, log or ("" if code == 0 else library.nvrtcGetErrorString(code).decode())
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_require("NVRTC 12.9", find_nvrtc12())))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _nvrtc_options(arch: str, include: Sequence[Path]) -> list[str]:
    # CUDA 12's own headers first (CUDA 13's <cuda_fp8.h> needs NVRTC 13); CUDA 13's bring <crt/mma.h>.
    folders = [*include, _wheel_folder("cuda_runtime/include"), _wheel_folder("cu13/include")]
    return [f"--gpu-architecture={arch}", "--std=c++17", *(f"-I{folder}" for folder in folders if folder)]


def _nvrtc_log(library: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    _check(library.nvrtcGetProgramLog(program, log))
    return log.value.decode(errors="replace").strip()


def _check(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"NVRTC failed: {_nvrtc().nvrtcGetErrorString(code).decode()}")


def _require(name: str, path: Path | None) -> Path:
    if path is None:
        raise MissingToolchain(name)
    return path


def _named(path: Path, error: str | None) -> str | None:
    return None if error is None else f"{path}:\n{error}"


def _errors(compile_one: Callable[[Path], str | None], paths: Sequence[Path]) -> list[str]:
    """Compiles two at a time; the order of the messages is that of the paths."""
    with ThreadPoolExecutor(PROCESSES) as pool:
        return [error for error in pool.map(compile_one, paths) if error is not None]


def _compile_all(compiler: Path, flags: list[str], paths: Sequence[Path], include: Sequence[Path]) -> list[str]:
    cache = [found] if (found := shutil.which("ccache")) else []
    command = [*cache, str(compiler), *flags, *(f"-I{Path(folder).resolve()}" for folder in include)]
    with tempfile.TemporaryDirectory() as folder:
        return _errors(lambda path: _named(path, _compile_one(command, path, folder)), paths)


def _compile_one(command: list[str], path: Path, folder: str) -> str | None:
    """Returns what the compiler printed if it failed. Runs beside the file: a name without folders keeps ccache's key the same.

    ccache may preprocess without __CUDA_ARCH__ and so not see all device code: it is to hash the whole file, too.
    """
    handle, output = tempfile.mkstemp(suffix=".o", dir=folder)
    os.close(handle)
    result = subprocess.run(
        [*command, path.name, "-o", output],
        cwd=path.parent,
        env={**os.environ, "CCACHE_EXTRAFILES": path.name},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return None if result.returncode == 0 else result.stdout.strip() or f"exit status {result.returncode}"


def main() -> int:
    """`compile_cuda.py ARCH FILE…` compiles files by hand: sm_70 with NVRTC, gfx… with hipcc, the others with nvcc."""
    if len(sys.argv) < 3:
        print("usage: compile_cuda.py ARCH FILE…", file=sys.stderr)
        return 2
    arch, paths = sys.argv[1], [Path(name) for name in sys.argv[2:]]
    if arch.startswith("gfx"):
        errors = compile_hip(paths, arch)
    else:
        errors = nvrtc_compile_all(paths, arch) if arch == "sm_70" else compile_cubin(paths, arch)
    print("\n".join(errors), end="\n" if errors else "")
    print(f"{len(paths) - len(errors)} passed, {len(errors)} failed")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
