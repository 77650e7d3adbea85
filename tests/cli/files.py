"""Bad files: sources, .npy inputs, folders that cannot be written."""
import numpy as np

from harness import COPY, ROOT, Cli, Done, bug, require, test


def body(expression: str) -> str:
    return f"op f(x: f32[N]) -> y: f32[N] {{\n  y[n] = {expression}\n}}\n"


# ---- sources


@test
def missing_file(c: Cli) -> None:
    for command in ("check", "compile", "run", "fmt"):
        c.run(command, "no/such.acu").expect(1, "file.missing", "no/such.acu")


@test
def folder_as_file(c: Cli) -> None:
    for command in ("check", "compile", "run", "fmt"):
        c.run(command, c.folder).expect(1, "file.unreadable")


@test
def empty_name(c: Cli) -> None:
    c.run("check", "").expect(1, "file.missing")


@test
def several_files_one_missing(c: Cli) -> None:
    c.run("check", c.file(COPY), "no/such.acu").expect(1, "file.missing")


@test
def device_file(c: Cli) -> None:
    c.run("check", "/dev/zero").expect(1, "file.unreadable")


@test
def binary_file(c: Cli) -> None:
    c.run("check", c.acuc).expect(1, "file.too-large")
    c.run("check", c.file(bytes(range(256)) * 16)).expect(1, "file.binary")


@test
def random_bytes(c: Cli) -> None:
    draw = np.random.default_rng(c.seed)
    for i in range(20):
        noise = draw.integers(1, 256, 400, np.uint8).tobytes()
        require(c.run("check", c.file(noise, f"{i}.acu")).exit == 1, "noise is accepted")


@test
def random_ascii(c: Cli) -> None:
    draw = np.random.default_rng(c.seed)
    words = "op fn case for in sum max ( ) [ ] { } < > = -> : , + - * / or if then else where x y N 1 2.5 f32 ..b \n".split(" ")
    for i in range(30):
        c.run("check", c.file(" ".join(draw.choice(words, 60)), f"{i}.acu"))


@test
def invalid_utf8(c: Cli) -> None:
    for bad in (b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        c.run("check", c.file(b"// " + bad + b"\n" + COPY.encode())).expect(1, "file.encoding")


@test
def valid_utf8_in_comments(c: Cli) -> None:
    c.run("check", c.file("// π ≤ 4, 😀\n" + COPY)).expect(0)


@test
def byte_order_mark(c: Cli) -> None:
    c.run("check", c.file(b"\xef\xbb\xbf" + COPY.encode()))


@test
def windows_line_ends(c: Cli) -> None:
    c.run("check", c.file(COPY.replace("\n", "\r\n"))).expect(0)


@test
def old_mac_line_ends(c: Cli) -> None:
    c.run("check", c.file(COPY.replace("\n", "\r")))


@test
def ten_megabytes(c: Cli) -> None:
    c.run("check", c.file("// " + "x" * 10_000_000)).expect(1, "file.too-large")


@test
def two_megabytes_of_comment(c: Cli) -> None:
    c.run("check", c.file("// a comment line\n" * 110_000 + COPY)).expect(0)


@test
def empty_file(c: Cli) -> None:
    c.run("check", c.file("")).expect(0)
    c.run("compile", c.file(""), "--target", "sm_80").expect(1, "name.op")
    c.run("run", c.file("")).expect(1, "name.op")
    c.run("fmt", "--check", c.file("")).expect(0)


@test
def file_of_one_comment(c: Cli) -> None:
    c.run("check", c.file("// nothing yet")).expect(0)


@test
def file_without_final_line_end(c: Cli) -> None:
    c.run("check", c.file(COPY.rstrip("\n"))).expect(0)


# ---- deep and long


@test
def deep_parentheses(c: Cli) -> None:
    c.run("check", c.file(body("(" * 10_000 + "x[n]" + ")" * 10_000))).expect(1, "syntax.nesting")


@test
def deep_unclosed_parentheses(c: Cli) -> None:
    c.run("check", c.file(body("(" * 10_000))).expect(1, "syntax.nesting")


@test
def deep_brackets(c: Cli) -> None:
    c.run("check", c.file(body("x[" * 10_000 + "n" + "]" * 10_000))).expect(1, "syntax.nesting")


@test
def deep_braces(c: Cli) -> None:
    c.run("check", c.file("{" * 10_000)).expect(1)


@test
def deep_signs(c: Cli) -> None:
    for sign in "-!~":
        c.run("check", c.file(body(sign * 10_000 + "x[n]"))).expect(1, "syntax.nesting")


@test
def deep_if(c: Cli) -> None:
    c.run("check", c.file(body("if x[n] > 0 then 1.0 else " * 10_000 + "0.0"))).expect(1, "syntax.nesting")
    c.run("check", c.file(body("if " * 10_000 + "x[n]"))).expect(1, "syntax.nesting")


@test
def deep_reductions(c: Cli) -> None:
    c.run("check", c.file(body("".join(f"sum(k{i} in 2) " for i in range(2_000)) + "x[n]"))).expect(1)


@test
def nesting_within_the_limit(c: Cli) -> None:
    c.run("check", c.file(body("(" * 150 + "x[n]" + ")" * 150))).expect(0)
    c.run("check", c.file(body("-" * 150 + "x[n]"))).expect(0)


@test
def sum_of_many_terms(c: Cli) -> None:
    c.run("check", c.file(body(" + ".join(["x[n]"] * 100_000)))).expect(1, "syntax.nesting")


@test
def sum_of_some_terms(c: Cli) -> None:
    source = c.file(body(" + ".join(["x[n]"] * 700)))
    c.run("check", source).expect(0)
    c.run("compile", source, "--target", "sm_80", "-o", c.folder).expect(0)
    c.run("run", source, "--set", "N=3").expect(0)


@test
def check_of_some_terms(c: Cli) -> None:
    c.run("run", c.file(body(" + ".join(["x[n]"] * 700))), "--set", "N=3", "--check").expect(0)


@test
def thousand_statements(c: Cli) -> None:
    lines = [f"  t{i}[n] = {'x' if i == 0 else f't{i - 1}'}[n] + 1" for i in range(1000)]
    c.run("check", c.file("op f(x: f32[N]) -> y: f32[N] {\n" + "\n".join(lines) + "\n  y[n] = t999[n]\n}\n")).expect(0)


@test
def thousand_operators(c: Cli) -> None:
    c.run("check", c.file("".join(COPY.replace("op f", f"op operator_{i}") for i in range(1000)))).expect(0)


def doubling(levels: int, body: str) -> str:
    """An operator through a chain of functions that doubles with each: `body` calls the one before by `%s`."""
    fns = ["fn g0(a) = a + 1", *(f"fn g{i}(a) = {body.replace('%s', f'g{i - 1}')}" for i in range(1, levels + 1))]
    return "\n".join(fns) + f"\nop f(x: f32[N]) -> y: f32[N] {{\n  y[n] = g{levels}(x[n])\n}}\n"


@test
def functions_that_double(c: Cli) -> None:
    source = c.file(doubling(30, "%s(a + a)"))
    require(c.run("check", source).exit in (0, 1), "neither accepted nor refused")
    require(c.run("compile", source, "--target", "sm_80", "-o", c.folder).exit in (0, 1), "neither accepted nor refused")


@test
def functions_that_call_twice(c: Cli) -> None:
    require(c.run("check", c.file(doubling(30, "%s(a) + %s(a)"))).exit in (0, 1), "neither accepted nor refused")


@test
def operators_that_call_twice(c: Cli) -> None:
    sign = "(x: f32[N]) -> y: f32[N] {\n  "
    ops = [f"op o0{sign}y[n] = x[n]\n}}", *(f"op o{i}{sign}a = o{i - 1}(x)\n  b = o{i - 1}(a)\n  y[n] = b[n]\n}}" for i in range(1, 25))]
    require(c.run("check", c.file("\n".join(ops) + "\n")).exit in (0, 1), "neither accepted nor refused")


@test
def long_name(c: Cli) -> None:
    name = "v" * 100_000
    c.run("check", c.file(COPY.replace("x", name))).expect(0)


@test
def many_dimensions(c: Cli) -> None:
    dims = ", ".join(f"D{i}" for i in range(64))
    at = ", ".join(f"d{i}" for i in range(64))
    c.run("check", c.file(f"op f(x: f32[{dims}]) -> y: f32[{dims}] {{\n  y[{at}] = x[{at}]\n}}\n")).expect(0)


@test
def import_chain_and_cycle(c: Cli) -> None:
    for i in range(60):
        c.file(f"import m{i + 1} {{ g }}\n", f"m{i}.acu")
    c.file("fn g(x) = x\n", "m60.acu")
    c.run("check", c.folder / "m0.acu").expect(0)
    c.file("import m0 { g }\n", "m60.acu")
    c.run("check", c.folder / "m0.acu").expect(1, "import.cycle")


@test
def deep_imports(c: Cli) -> None:
    for i in range(3000):
        c.file(f"import m{i + 1} {{ g }}\n", f"m{i}.acu")
    c.file("fn g(x) = x\n", "m3000.acu")
    require(c.run("check", c.folder / "m0.acu").exit in (0, 1), "neither accepted nor refused")


# ---- .npy


def run_with(c: Cli, x: object) -> Done:
    return c.run("run", c.file(COPY), "--in", f"x={x}")


@test
def npy_missing(c: Cli) -> None:
    run_with(c, "no/such.npy").expect(1, "file.missing")
    run_with(c, c.folder).expect(1, "file.missing")


@test
def npy_of_another_kind(c: Cli) -> None:
    for data in (b"", b"hello", b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\xff\xff{", b"\x93NUMPY\x09\x00\x10\x00" + b" " * 64):
        run_with(c, c.file(data, "x.npy")).expect(1, "npy.format")


def npy_header(c: Cli, header: str) -> Done:
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 64
    return run_with(c, c.file(data, "x.npy"))


@test
def npy_bad_headers(c: Cli) -> None:
    for header in ("", "{}", "{'descr': }", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "{'descr': '<f4', 'fortran_order': False, 'shape': (a,), }"):  # fmt: skip
        npy_header(c, header).expect(1, "npy.format")


@test
def npy_huge_shape(c: Cli) -> None:
    huge = 1 << 40
    source = c.file("op f(x: f32[M, N]) -> y: f32[] {\n  y = sum(m, n) x[m, n]\n}\n")
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({huge}, {huge}), }}"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    c.run("run", source, "--in", f"x={c.file(data, 'x.npy')}").expect(1, "npy.truncated")


@test
def npy_truncated(c: Cli) -> None:
    path = c.folder / "x.npy"
    np.save(path, np.arange(100, dtype=np.float32))
    path.write_bytes(path.read_bytes()[:-1])
    run_with(c, path).expect(1, "npy.truncated")


@test
def npy_wrong_type(c: Cli) -> None:
    for dtype in (np.float64, np.float16, np.int32, np.complex64, ">f4", "U4", bool):
        run_with(c, c.array("x", np.zeros(3, dtype)).removeprefix("x=")).expect(1, "npy.type", "f32")


@test
def npy_record_type(c: Cli) -> None:
    c.array("x", np.zeros(3, [("a", "f4")]))
    require(run_with(c, c.folder / "x.npy").exit == 1, "a record is taken as f32")


@test
def npy_object_array(c: Cli) -> None:
    np.save(c.folder / "x.npy", np.array([1, "a"], object), allow_pickle=True)
    run_with(c, c.folder / "x.npy").expect(1, "npy.type")


@test
def npy_wrong_rank(c: Cli) -> None:
    c.array("x", np.zeros((2, 3), np.float32))
    run_with(c, c.folder / "x.npy").expect(1, "input.rank", "2 dimensions, but 1")


@test
def npy_wrong_shape(c: Cli) -> None:
    source = c.file("op f(x: f32[M, K], w: f32[K, N]) -> y: f32[M, N] {\n  y[m, n] = sum(k) x[m, k] * w[k, n]\n}\n")
    x, w = c.array("x", np.zeros((2, 3), np.float32)), c.array("w", np.zeros((4, 5), np.float32))
    c.run("run", source, "--in", x, "--in", w).expect(1, "shape.mismatch")
    c.run("run", source, "--in", x, "--set", "K=4,N=2").expect(1, "shape.mismatch")


@test
def npy_compound_shape(c: Cli) -> None:
    source = c.file("op f(x: f32[2*H]) -> y: f32[H] {\n  y[h] = x[2*h]\n}\n")
    c.run("run", source, "--in", c.array("x", np.zeros(5, np.float32))).expect(1, "shape.mismatch")


@test
def npy_fortran_order(c: Cli) -> None:
    source = c.file("op f(x: f32[M, N]) -> y: f32[M, N] {\n  y[m, n] = x[m, n]\n}\n")
    x = c.array("x", np.asfortranarray(np.zeros((2, 3), np.float32)))
    c.run("run", source, "--in", x).expect(1, "npy.order", "ascontiguousarray")


@test
def npy_version_two(c: Cli) -> None:
    with open(c.folder / "x.npy", "wb") as f:
        np.lib.format.write_array(f, np.arange(3, dtype=np.float32), version=(2, 0))
    run_with(c, c.folder / "x.npy").expect(0)


@test
def npy_random_damage(c: Cli) -> None:
    draw = np.random.default_rng(c.seed)
    np.save(c.folder / "good.npy", np.arange(8, dtype=np.float32))
    good = (c.folder / "good.npy").read_bytes()
    for _ in range(25):
        bad = bytearray(good)
        for at in draw.integers(0, 128, 3):
            bad[at] = int(draw.integers(0, 256))
        require(run_with(c, c.file(bytes(bad), "x.npy")).exit in (0, 1, 2, 3), "an unknown exit code")


@test
def npy_unknown_input(c: Cli) -> None:
    c.run("run", c.file(COPY.replace("x", "image")), "--in", c.array("imag", np.zeros(3, np.float32))).expect(1, "input.name", "did you mean `image`?")


@test
def npy_given_for_output(c: Cli) -> None:
    c.run("run", c.file(COPY), "--set", "N=3", "--in", c.array("y", np.zeros(3, np.float32))).expect(1, "input.name")


# ---- writing


@test
def unwritable_folder(c: Cli) -> None:
    below = c.file("a regular file", "plain") / "out"
    c.run("compile", c.file(COPY), "--target", "sm_80", "-o", below).expect(1, "file.unwritable", str(below))
    c.run("run", c.file(COPY), "--set", "N=3", "--out", below).expect(1, "file.unwritable", str(below))
    c.run("run", c.file(COPY), "--set", "N=3", "--inputs-out", below).expect(1, "file.unwritable", str(below))


@test
def folder_in_place_of_output(c: Cli) -> None:
    (c.folder / "f.cu").mkdir()
    c.run("compile", c.file(COPY), "--target", "sm_80", "-o", c.folder).expect(1, "file.unwritable", "f.cu")
    require(not list(c.folder.glob("*.tmp")), "a temporary file is left")


@test
def full_device(c: Cli) -> None:
    (c.folder / "f.cu").symlink_to("/dev/full")
    c.run("compile", c.file(COPY), "--target", "sm_80", "-o", c.folder)


@test
def compile_writes_three_files(c: Cli) -> None:
    out = c.folder / "new" / "deep"
    c.run("compile", c.file(COPY), "--target", "sm_80", "-o", out).expect(0, text="f.plan.json")
    require({p.name for p in out.iterdir()} == {"f.cu", "f.h", "f.plan.json"}, "other files than expected")
    c.run("compile", c.file(COPY), "--target", "gfx90a", "-o", out).expect(0)
    require({p.name for p in out.iterdir()} == {"f.cu", "f.hip", "f.h", "f.plan.json"}, "other files than expected")


@test
def failing_compile_leaves_files(c: Cli) -> None:
    for name in ("f.cu", "f.h", "f.plan.json"):
        c.file("before", name)
    c.run("compile", c.file(COPY.replace("x[n]", "x[n + 1]")), "--target", "sm_80", "-o", c.folder).expect(1, "bounds.outside")
    require(all((c.folder / n).read_text() == "before" for n in ("f.cu", "f.h", "f.plan.json")), "a file was changed")


@test
def failing_second_operator_leaves_files(c: Cli) -> None:
    source = c.file(COPY + "op g(x: f32[M * N]) -> y: f32[M * N] {\n  y[i] = x[i]\n}\n")
    c.run("compile", source, "--target", "sm_80", "-o", c.folder / "out").expect(1, "emit.unsolved")
    require(not list((c.folder / "out").glob("*")), "files of the other operator are written")


# ---- fmt


@test
def fmt_of_all_sources(c: Cli) -> None:
    sources = [p for folder in ("stdlib", "examples", "benchmarks") for p in sorted((ROOT / folder).rglob("*.acu"))]
    require(len(sources) > 15, "no sources")
    c.run("fmt", "--check", *sources).expect(0)


@test
def check_of_all_sources(c: Cli) -> None:
    for folder in ("stdlib", "examples"):
        c.run("check", *sorted((ROOT / folder).rglob("*.acu"))).expect(0)


@test
def fmt_keeps_unparsable_file(c: Cli) -> None:
    text = "op   f(x: f32[N]  ->\n"
    c.run("fmt", c.file(text)).expect(1, "syntax.unexpected")
    require((c.folder / "test.acu").read_text() == text, "the file was changed")


@test
def fmt_check_writes_nothing(c: Cli) -> None:
    text = COPY.replace("y[n] = x[n]", "y[n]=x[n]")
    c.run("fmt", "--check", c.file(text)).expect(1, text="is not formatted")
    require((c.folder / "test.acu").read_text() == text, "the file was changed")


@test
def fmt_twice_changes_nothing(c: Cli) -> None:
    source = c.file("fn   g( x )=x*2 // why\nop f<T:f16|f32 >( x:T [N] )->y:T[N]{\n y[n]=g(x[n])+( sum(k in 3)1)\n}\n\n\n\ncase c for f{N=3,T=f16}")
    c.run("fmt", source).expect(0, text="formatted")
    once = source.read_text()
    c.run("fmt", source).expect(0)
    c.run("fmt", "--check", source).expect(0)
    require(source.read_text() == once, "a second time changes the file")


@test
def fmt_unwritable(c: Cli) -> None:
    c.run("fmt", c.file("x", "plain") / "a.acu").expect(1, "file.missing")
