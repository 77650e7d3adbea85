"""The command line: usage, help, selections, targets and devices."""
import json
import subprocess

import numpy as np

from harness import COPY, Cli, Skip, bug, require, test

TYPED = "op f<T: f16 | f32, flag: bool = false, step: int = 1>(x: T[ROWS, N], s: f32) -> y: T[ROWS, N] {\n  y[m, n] = x[m, n] * s\n}\ncase small for f { ROWS = 2, N = 3, s = 0.5 }\n"
TWO = COPY + COPY.replace("op f", "op g")

OPTIONS = {
    "check": ["--json"],
    "compile": ["--op", "--case", "--set", "--target", "-o", "--emit", "--plan", "--print-after", "--provenance"],
    "run": ["--op", "--case", "--set", "--device", "--in", "--out", "--inputs-out", "--seed", "--check", "--check-seconds", "--interpret", "--json", "--plan", "--emu-seed", "--emu-guard", "--emu-shift", "--cuda-path", "--rocm-path"],
    "fmt": ["--check"],
    "targets": ["--json", "--cuda-path", "--rocm-path"],
    "passes": ["--json"],
    "explain": ["--target", "--set", "--as", "--json"],
    "blame": ["--op", "--case", "--set", "--plan", "--device", "--seed", "--json"],
}


# ---- usage and help


@test
def no_subcommand(c: Cli) -> None:
    c.run().expect(2, text="subcommand")


@test
def unknown_subcommand(c: Cli) -> None:
    c.run("chek", "x.acu").expect(2)


@test
def unknown_option(c: Cli) -> None:
    for command in OPTIONS:
        c.run(command, "--no-such-option").expect(2)


@test
def missing_argument(c: Cli) -> None:
    for command in ("check", "compile", "run", "fmt"):
        c.run(command).expect(2, text="FILE")


@test
def two_files_for_run(c: Cli) -> None:
    c.run("run", c.file(COPY), c.file(COPY, "b.acu")).expect(2)


@test
def help_names_every_option(c: Cli) -> None:
    for command, options in OPTIONS.items():
        text = c.run(command, "--help").expect(0).out
        require(all(o in text for o in options), f"an option of {command} is missing in its help")


@test
def help_names_every_subcommand(c: Cli) -> None:
    text = c.run("--help").expect(0).out
    require(all(command in text for command in OPTIONS), "a subcommand is missing in the help")
    require("Exit codes" in text, "the help does not say the exit codes")


@test
def help_of_run_names_no_unknown_option(c: Cli) -> None:
    for command, options in OPTIONS.items():
        shown = {w.split("=")[0].split(":")[0].rstrip(",") for line in c.run(command, "--help").out.splitlines() for w in line.split()[:1] if w.startswith("-")}
        require(shown - {"-h,--help"} <= set(options), f"{command}: add {shown - set(options)} to this test")


@test
def version(c: Cli) -> None:
    c.run("--version").expect(0, text="acuc ")


@test
def passes_and_targets(c: Cli) -> None:
    for command in ("passes", "targets"):
        c.run(command).expect(0)
    require(len(json.loads(c.run("targets", "--json").expect(0).out)) > 3, "targets lists next to nothing")
    require(len(json.loads(c.run("passes", "--json").expect(0).out)["passes"]) > 3, "passes lists next to nothing")


# ---- diagnostics


@test
def check_is_silent(c: Cli) -> None:
    done = c.run("check", c.file(COPY)).expect(0)
    require(done.out + done.err == "", "it printed something")


@test
def check_as_json(c: Cli) -> None:
    done = c.run("check", "--json", c.file(COPY.replace("= x[n]", "= xx[n]"))).expect(1)
    (one,) = [json.loads(line) for line in done.err.splitlines()]
    require((one["code"], one["line"], one["column"], one["severity"]) == ("name.unknown", 2, 10, "error"), f"another finding: {one}")
    require(one["help"] == "did you mean `x`?", f"another help: {one}")


@test
def excerpt_has_caret(c: Cli) -> None:
    done = c.run("check", c.file(COPY.replace("= x[n]", "= xyz[n]"))).expect(1)
    require(" 2 |   y[n] = xyz[n]\n   |          ^^^\n" in done.err, f"another excerpt: {done.err}")


@test
def excerpt_of_tabs_and_wide_text(c: Cli) -> None:
    done = c.run("check", c.file("op f(x: f32[N]) -> y: f32[N] {\n\t/* π */ y[n] = xyz[n]\n}\n")).expect(1)
    require("   | \t               ^^^\n" in done.err, f"the caret is elsewhere: {done.err!r}")


@test
def excerpt_of_long_line(c: Cli) -> None:
    done = c.run("check", c.file("op f(x: f32[N]) -> y: f32[N] {\n  y[n] = " + "x[n] + " * 300 + "xyz[n]\n}\n")).expect(1)
    require(max(map(len, done.err.splitlines())) < 250, "the whole line is printed")


# ---- selections


@test
def unknown_operator(c: Cli) -> None:
    c.run("run", c.file(TWO), "--op", "h").expect(1, "name.op")
    c.run("compile", c.file(TWO), "--op", "ff", "--target", "sm_80").expect(1, "name.op", "did you mean `f`?")


@test
def unknown_case(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--case", "smal").expect(1, "name.case", "did you mean `small`?")
    c.run("run", c.file(COPY), "--case", "small").expect(1, "name.case", "declares no cases")


@test
def case_of_another_operator(c: Cli) -> None:
    c.run("run", c.file(TYPED + COPY.replace("op f", "op g")), "--case", "small", "--op", "g").expect(2, "name.case")


@test
def several_operators_for_run(c: Cli) -> None:
    c.run("run", c.file(TWO), "--set", "N=3").expect(2, "run.which", "f, g")


@test
def bad_sets(c: Cli) -> None:
    source = c.file(TYPED)
    wrong = {
        "ROW=3": "did you mean `ROWS`?", "zzzzzz=3": "it has", "ROWS=many": "dimension", "ROWS=-1": "dimension", "ROWS=1.5": "dimension", "ROWS=": "dimension",
        "ROWS=99999999999999999999": "dimension", "ROWS": "NAME=VALUE", "=3": "NAME=VALUE", "": "NAME=VALUE", "T=half": "no type", "T=": "no type",
        "flag=maybe": "truth value", "s=fast": "scalar", "x=3": "--in x=FILE.npy", "ROWS=3,,N=4": "NAME=VALUE", "ROWS=3;N=4": "dimension", "ROWS=0x10": "dimension",
    }  # fmt: skip
    for text, message in wrong.items():
        c.run("run", source, "--set", text).expect(2, "set.value", message)


@test
def type_outside_its_set(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--set", "T=i8,ROWS=2,N=3,s=1").expect(1, "generic.type", "it is one of f16, f32")
    c.run("run", c.file(TYPED), "--case", "small", "--set", "T=bf16").expect(1, "generic.type")


@test
def bool_outside_its_set(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--case", "small", "--set", "flag=7").expect(2, "set.value")


@test
def set_overrides_case(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--case", "small", "--set", "ROWS=5").expect(0, text="ROWS = 5")


@test
def missing_size(c: Cli) -> None:
    c.run("run", c.file(COPY)).expect(2, "input.size", "--set N=…")


@test
def missing_scalar(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--set", "ROWS=2,N=3").expect(2, "input.scalar", "--set s=…")


@test
def malformed_in(c: Cli) -> None:
    c.run("run", c.file(COPY), "--in", "x.npy").expect(2, "input.usage")
    c.run("run", c.file(COPY), "--in", "=x.npy").expect(2, "input.usage")


@test
def list_of_another_length(c: Cli) -> None:
    source = c.file("op f(x: i32[N]) -> y: i32[N] {\n  y[n] = x[n]\n}\ncase c for f { N = 3, x = [1, 2] }\n")
    c.run("run", source, "--case", "c").expect(1, "input.count")


@test
def reversed_integers(c: Cli) -> None:
    source = c.file("op f(x: i32[N]) -> y: i32[N] {\n  y[n] = x[n]\n}\ncase c for f { N = 3, x = integers(5, 1) }\n")
    require(c.run("run", source, "--case", "c").exit != 0, "a reversed range is accepted")


@test
def empty_integers(c: Cli) -> None:
    source = c.file("op f(x: i32[N]) -> y: i32[N] {\n  y[n] = x[n]\n}\ncase c for f { N = 3, x = integers(5, 4) }\n")
    require(c.run("run", source, "--case", "c").exit != 0, "an empty range is accepted")


@test
def sizes_break_condition(c: Cli) -> None:
    source = c.file("op f(x: f32[M, K], w: u8[N, K/2]) -> y: f32[M, N] {\n  y[m, n] = sum(k) x[m, k] * w[n, k / 2]\n}\n")
    c.run("run", source, "--set", "M=2,N=2,K=4").expect(0)
    c.run("run", source, "--set", "M=2,N=2,K=3").expect(1, "bounds.outside")
    c.run("run", source, "--set", "N=2", "--in", c.array("x", np.zeros((2, 3), np.float32))).expect(1, "shape.fact", "K = 3")


DIVIDED = "op f(x: f32[A / B]) -> y: f32[A / B] {\n  y[i] = x[i]\n}\n"


@test
def broken_condition_is_readable(c: Cli) -> None:
    done = c.run("run", c.file(DIVIDED), "--set", "A=4,B=0").expect(1, "shape.fact", "B = 0")
    require("1l" not in done.err, done.err)


@test
def compile_with_broken_condition(c: Cli) -> None:
    c.run("compile", c.file(DIVIDED), "--set", "A=4,B=0", "--target", "sm_80", "-o", c.folder).expect(1)


@test
def negative_size(c: Cli) -> None:
    source = c.file("op f(x: f32[N]) -> y: f32[N - 4] {\n  y[n] = x[n]\n}\n")
    c.run("run", source, "--set", "N=3").expect(1, "shape.negative")


@test
def convolution_smaller_than_its_window(c: Cli) -> None:
    source = c.file("import std.conv { conv2d }\nop f(x: f32[1, 1, H, H], w: f32[1, 1, 5, 5]) -> y: f32[1, 1, P, P]\nwhere P == H - 4 {\n  y = conv2d(x, w)\n}\n")
    require(c.run("run", source, "--set", "H=3").exit == 1, "a negative size is accepted")


@test
def too_large_for_memory(c: Cli) -> None:
    c.run("run", c.file(COPY), "--set", "N=1000000000000").expect(3, "memory.exhausted")


@test
def size_product_wraps(c: Cli) -> None:
    source = c.file("op f(x: f32[M, N]) -> y: f32[M, N] {\n  y[m, n] = x[m, n]\n}\n")
    require(c.run("run", source, "--set", "M=1099511627776,N=1099511627776").exit in (1, 3), "accepted")


# ---- targets and devices


@test
def missing_target(c: Cli) -> None:
    c.run("compile", c.file(COPY)).expect(2, "target.missing", "sm_90a")


@test
def unknown_target(c: Cli) -> None:
    c.run("compile", c.file(COPY), "--target", "sm_81").expect(2, "target.unknown", "sm_80")


@test
def cpu_target(c: Cli) -> None:
    c.run("compile", c.file(COPY), "--target", "cpu").expect(2, "target.cpu")


@test
def emit_of_another_platform(c: Cli) -> None:
    c.run("compile", c.file(COPY), "--target", "sm_80", "--emit", "hip").expect(2, "target.emit")
    c.run("compile", c.file(COPY), "--target", "gfx90a", "--emit", "cuda").expect(2, "target.emit")
    c.run("compile", c.file(COPY), "--emit", "asm").expect(2)


@test
def every_emit(c: Cli) -> None:
    for what in ("ast", "tensor", "loop", "llvm"):
        require(c.run("compile", c.file(COPY), "--emit", what).expect(0).out, f"--emit {what} prints nothing")
    for target, what in (("sm_80", "cuda"), ("gfx90a", "hip"), ("sm_80", "plan")):
        require(c.run("compile", c.file(COPY), "--target", target, "--emit", what).expect(0).out, f"--emit {what} prints nothing")


@test
def compile_twice_gives_the_same(c: Cli) -> None:
    first, second = (c.run("compile", c.file(TYPED), "--target", "sm_80", "--emit", "cuda").expect(0).out for _ in range(2))
    require(first == second, "two runs emit different text")


@test
def unknown_device(c: Cli) -> None:
    for device in ("gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "hip:9999999999", "", "cpu:0", "CUDA:0"):
        done = c.run("run", c.file(COPY), "--set", "N=3", "--device", device)
        require(done.exit in (2, 3), f"exit code {done.exit} for --device {device!r}")


def has_gpu() -> bool:
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@test
def cuda_without_gpu(c: Cli) -> None:
    if has_gpu():
        raise Skip("this machine has an NVIDIA GPU")
    done = c.run("run", c.file(COPY), "--set", "N=3", "--device", "cuda:0").expect(3)
    require("help:" in done.err, f"no advice: {done.err}")


@test
def hip_without_gpu(c: Cli) -> None:
    done = c.run("run", c.file(COPY), "--set", "N=3", "--device", "hip:0")
    if done.exit == 0:
        raise Skip("this machine has an AMD GPU")
    require(done.expect(3).err.count("help:") > 0, f"no advice: {done.err}")


# ---- run


@test
def run_checks_itself(c: Cli) -> None:
    c.run("run", c.file(TYPED), "--case", "small", "--check").expect(0, text="correct: `y`")


@test
def run_as_json(c: Cli) -> None:
    done = c.run("run", c.file(TYPED), "--case", "small", "--check", "--json").expect(0)
    require(json.loads(done.out)["checks"][0]["correct"] is True, done.out)


@test
def run_as_json_with_data_of_nan(c: Cli) -> None:
    done = c.run("run", c.file(COPY), "--in", c.array("x", np.array([np.nan, np.inf], np.float32)), "--check", "--json").expect(0)
    json.loads(done.out)


@test
def same_seed_same_inputs(c: Cli) -> None:
    drawn = []
    for seed in ("1", "1", "2"):
        c.run("run", c.file(COPY), "--set", "N=9", "--seed", seed, "--inputs-out", c.folder / "in").expect(0)
        drawn.append(np.load(c.folder / "in" / "x.npy"))
    require((drawn[0] == drawn[1]).all(), "one seed draws two inputs")
    require((drawn[0] != drawn[2]).any(), "two seeds draw one input")


@test
def bad_seed(c: Cli) -> None:
    for seed in ("x", "1.5"):
        c.run("run", c.file(COPY), "--set", "N=3", "--seed", seed).expect(2)


@test
def seed_outside_its_range(c: Cli) -> None:
    for seed in ("-1", "99999999999999999999999"):
        c.run("run", c.file(COPY), "--set", "N=3", "--seed", seed).expect(2)


@test
def check_without_time(c: Cli) -> None:
    source = c.file("op f(x: f32[N]) -> y: f32[] {\n  y = sum(n) x[n]\n}\n")
    c.run("run", source, "--set", "N=1000000", "--check", "--check-seconds", "0").expect(4, text="not checked")


@test
def input_is_read_by_name_with_equals(c: Cli) -> None:
    path = c.folder / "a=b.npy"
    np.save(path, np.ones(2, np.float32))
    c.run("run", c.file(COPY), "--in", f"x={path}").expect(0)


@test
def blame_of_a_right_plan(c: Cli) -> None:
    source = c.file(COPY)
    c.run("compile", source, "--op", "f", "--set", "N=64", "--target", "sm_80", "-o", str(c.folder / "out")).expect(0)
    plan = next((c.folder / "out").glob("*.plan.json"))
    shown = c.run("blame", source, "--plan", str(plan)).expect(0, text="nothing is blamed").out
    require("as written" in shown and "text, emulated for sm_80" in shown, "a stage is missing")
    answer = json.loads(c.run("blame", source, "--plan", str(plan), "--json").expect(0).out)
    require(isinstance(answer, dict) and answer, "the answer is no object")


@test
def blame_without_a_plan(c: Cli) -> None:
    c.run("blame", c.file(COPY)).expect(2, text="--plan")
