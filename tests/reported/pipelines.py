"""Copies ahead of their use, persistent blocks, barriers: short loops and odd counts of iterations."""
import numpy as np

from bench import TARGETS, Bench, normal, real, reported
from coverage import attend, product
from plans import fused, over_rows, persistent, staged, step, tiled


@reported("P1")
def p1_loops_of_one_iteration(c: Bench) -> None:
    for k in (16, 64):
        product(c, "f16", 24, k, 40, [staged(16, 16, k, stages) for stages in (2, 3, 4)])
    a, b = normal(c.draw, "f32", 512), normal(c.draw, "f32", 512, 24)
    plans = [[step("split_reduction", "y", axis="k", count=8, align=64, kind=kind)] for kind in ("serial", "grid")]
    c.run("products.gemv", {"a": a, "b": b}, {"y": real(a) @ real(b)})
    c.under(plans, "products.gemv", {"a": a, "b": b}, {"y": real(a) @ real(b)}, count=1)


@reported("P2")
def p2_persistent_trips_and_stages(c: Bench) -> None:
    for trips in (1, 2, 3, 5, 7):
        for stages in c.some((2, 3, 4), 1):
            product(c, "f32", 24, 8 * trips, 40, [persistent(staged(8, 8, 8, stages), ctas) for ctas in (2, 4)], count=1)


@reported("P4")
def p4_reads_wait_for_additions(c: Bench) -> None:
    at = c.draw.integers(0, 7, 300)
    counts = np.bincount(at, minlength=7)
    c.run("histogram", {"at": at}, {"counts": counts, "mine": counts[at]}, "B=7", every=True)
    c.run("histogram_alone", {"at": at}, {"counts": counts}, "B=7")
    if c.options.emulated:
        c.run("histogram_alone", {"at": at}, {"counts": counts}, "B=7", more=["--emu-seed", "3"], only=[f"emu:{t}" for t in c.some(TARGETS, 1)])


@reported("P4")
def p4_shared_memory_used_twice(c: Bench) -> None:
    x = normal(c.draw, "f32", 13, 48)
    scaled = real(x) / np.abs(real(x)).sum(1, keepdims=True)
    wanted = {"y": scaled / np.sqrt((scaled * scaled).sum(1, keepdims=True))}
    rows = [over_rows("total scaled squares y", m, threads) for m in (1, 4) for threads in (0, 64)]
    c.under([[*steps, step("keep", "scaled", in_="shared")] for steps in rows], "normalized", {"x": x}, wanted, "M=13,N=48")


@reported("P5")
def p5_pipelines_side_by_side(c: Bench) -> None:
    a, b, d = normal(c.draw, "f32", 20, 24), normal(c.draw, "f32", 24, 16), normal(c.draw, "f32", 16, 12)
    wanted = {"e": real(a) @ real(b) @ real(d)}
    c.run("products.chain", {"a": a, "b": b, "d": d}, wanted)
    rows = [step("fuse", "c e", over={"m": 8}, kind="grid"), step("keep", "c", in_="shared")]
    first = [step("tile", "c", axes={"k": 8}), step("stage", "a b", at="k.o"), step("pipeline", "k.o", stages=2)]
    second = [step("tile", "e", axes={"n": 4}), step("stage", "d", at="n.o"), step("pipeline", "n.o", stages=3)]
    c.under([[*rows, *first], [*rows, *first, *second], [*rows, *second]], "products.chain", {"a": a, "b": b, "d": d}, wanted, "M=20,K=24,N=16,P=12")


@reported("P5")
def p5_what_was_staged_is_read_after_the_loop(c: Bench) -> None:
    a, b = normal(c.draw, "f32", 20, 24), normal(c.draw, "f32", 24, 24)
    wanted = {"y": real(a) @ real(b) + real(a)[:, -1:]}
    c.under([staged(8, 8, 8, stages) for stages in (1, 2, 3)], "products.with_last_column", {"a": a, "b": b}, wanted)


@reported("P6")
def p6_part_of_a_block_reduces(c: Bench) -> None:
    for m, n in ((17, 48), (5, 1), (3, 65)):
        x = normal(c.draw, "f32", m, n)
        wanted = {"y": real(x).sum(1)}
        row = over_rows("s y/s n", 1, 128)
        rows = [over_rows("s y/s n", 5, 64), row, [*row, step("keep", "s"), step("bind_reduce", "s", via="common.block_reduce")]]
        c.under(rows, "row_sum", {"x": x}, wanted, scale=float(np.abs(x).sum(1).max()), count=1)


@reported("P7")
def p7_three_iterations_with_slices(c: Bench) -> None:
    for count in (1, 2, 4):
        split = [step("split_reduction", "acc", axis="k", count=count, align=16, kind="grid")] if count > 1 else []
        product(c, "f16", 16, 48, 24, [split or tiled(8, 8, 16)], targets=("gfx90a",))
    product(c, "f16", 16, 48, 24, [[*fused(8, 8), step("split_reduction", "acc", axis="k", count=2, align=16)]], targets=("gfx90a",))
    product(c, "f16", 16, 48, 24, [staged(8, 8, 16, stages) for stages in (2, 3)], targets=("gfx90a",), count=1)


@reported("P10")
def p10_several_products_of_32(c: Bench) -> None:
    attend(c, "f16", 2, 33, 40, 32, targets=("sm_90a",))


@reported("P11")
def p11_products_give_the_same_bits_each_time(c: Bench) -> None:
    a, b = normal(c.draw, "f32", 36, 40), normal(c.draw, "f32", 40, 36)
    ways = [("emu:gfx90a", ["--emu-seed", str(s)]) for s in range(8 if c.options.everything else 2)]
    if c.options.emulated:
        c.same_bits("products.matmul", {"a": a, "b": b}, ways, "T=f32")
        for steps in c.some([[*staged(16, 16, 16, stages), step("vectorize", "y", width=1, threads=512)] for stages in (1, 2)], 1):
            c.same_bits("products.matmul", {"a": a, "b": b}, ways, "T=f32", steps)


@reported("P12")
def p12_attention_gives_the_same_bits_each_time(c: Bench) -> None:
    q, k, v = (normal(c.draw, "f16", 1, 2, n, 16) for n in (19, 23, 23))
    ways = [("emu:gfx90a", ["--emu-seed", str(s)]) for s in range(8 if c.options.everything else 2)]
    c.same_bits("products.attend", {"q": q, "k": k, "v": v}, ways if c.options.emulated else [("cpu", [])] * 2, "T=f16,scale=0.25")


@reported("P13")
def p13_zeros_come_before_additions(c: Bench) -> None:
    shared = [step("fuse", "acc y", over={"m": 8, "n": 8}, kind="grid"), step("keep", "acc", in_="shared"), step("tile", "acc", axes={"k": 8})]
    product(c, "f32", 17, 20, 15, [shared, [*shared, step("vectorize", "y", width=1, threads=256)]])
