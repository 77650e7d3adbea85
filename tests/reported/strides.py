"""Odd pitches, slices that begin at odd elements, padded rows, repeated and reversed views."""
import numpy as np

from bench import HERE, Bench, normal, real, reported
from plans import staged, step, tiled

PLANS = [tiled(8, 16, 8), staged(8, 16, 8), staged(8, 16, 8, 2), [*tiled(8, 16, 8), step("vectorize", "y", width=1, threads=128)]]


@reported("S1")
def s1_odd_row_lengths(c: Bench) -> None:
    a = normal(c.draw, "f16", 5, 33)
    for n, pitch, off in ((1953, 1953, 0), (195, 792, 0), (195, 197, 1), (63, 65, 2)):
        b, n0 = normal(c.draw, "f16", 33, pitch), normal(c.draw, "f16", n)
        wanted = {"y": real(a) @ real(b)[:, off : off + n] + real(n0)}
        c.run("matmul_part", {"a": a, "b": b, "n0": n0}, wanted, f"off={off}")
        if n < 1000:
            c.under(PLANS, "matmul_part", {"a": a, "b": b, "n0": n0}, wanted, f"off={off}", count=1)


@reported("S1", "S9")
def strided_parameters(c: Bench) -> None:
    a, b = normal(c.draw, "f32", 7, 33), normal(c.draw, "f32", 33, 61)
    c.run("any_strides", {"a": a, "b": b}, {"y": real(a) @ real(b)}, every=True)
    c.under(PLANS, "any_strides", {"a": a, "b": b}, {"y": real(a) @ real(b)}, count=1)


@reported("S2")
def s2_slices_from_an_odd_element(c: Bench) -> None:
    for k in (15, 32):
        a, b = normal(c.draw, "f16", 9, k + 1), normal(c.draw, "f16", k, 24)
        wanted = {"y": real(a)[:, 1:] @ real(b)}
        c.run("after_first", {"a": a, "b": b}, wanted)
        c.under(PLANS, "after_first", {"a": a, "b": b}, wanted, count=1)


@reported("S4")
def s4_padded_pitches(c: Bench) -> None:
    a, b = normal(c.draw, "f16", 24, 256), normal(c.draw, "f16", 250, 20)
    wanted = {"y": np.pad(real(a)[:, :250] @ real(b), ((0, 0), (0, 8)))}
    c.run("padded_rows", {"a": a, "b": b}, wanted)
    plans = [[step("fuse", "acc", over={"m": 8, "n": 16}, kind="grid"), step("tile", "acc", axes={"k": t})] for t in (32, 50)]
    c.under(plans, "padded_rows", {"a": a, "b": b}, wanted, count=1)


@reported("S6")
def s6_a_slice_beyond_the_extent(c: Bench) -> None:
    path = c.folder / "beyond.acu"
    path.write_text((HERE / "strides.acu").read_text().replace("a[n + 8] or 0", "a[n + 8]"))
    c.refused("check", [path], 1, "bounds.outside", "a[n + 8]")
    for n in (5, 8, 20):
        a = normal(c.draw, "f32", n)
        c.run("shifted", {"a": a}, {"o": np.append(real(a), np.zeros(8))[8:]}, exact=True)


@reported("S7")
def s7_part_of_a_row(c: Bench) -> None:
    a = normal(c.draw, "f32", 100)
    c.run("copy_row", {"a": a}, {"y": real(a)}, exact=True)
    c.under([[step("fuse", "y", over={"n": 64}, kind="grid"), *more] for more in ([], [step("stage", "a", at="n.o")], [step("vectorize", "y", width=1, threads=64)])],
            "copy_row", {"a": a}, {"y": real(a)}, exact=True)


@reported("S9")
def s9_repeated_and_reversed_views(c: Bench) -> None:
    a, b, row = normal(c.draw, "f32", 7, 24), normal(c.draw, "f32", 24, 40), normal(c.draw, "f32", 24)
    c.run("repeated", {"a": row, "b": b}, {"y": np.tile(real(row) @ real(b), (7, 1))}, "M=7")
    c.under(PLANS, "repeated", {"a": row, "b": b}, {"y": np.tile(real(row) @ real(b), (7, 1))}, "M=7", count=1)
    c.run("backwards", {"a": a, "b": b}, {"y": (real(a)[:, ::-1] @ real(b))[::-1]})
    plan = [step("fuse", "acc", over={"m": 8, "n": 16}, kind="grid"), step("tile", "acc", axes={"k": 8})]
    c.under([plan], "backwards", {"a": a, "b": b}, {"y": (real(a)[:, ::-1] @ real(b))[::-1]})
