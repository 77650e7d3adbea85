"""Offsets and sizes past 2^31: 64-bit arithmetic in the emitted text, on small buffers by computed subscripts, and with --large on whole tensors (CPU)."""
import re

import numpy as np

from bench import TARGETS, Bench, Failure, normal, real, reported
from coverage import attention

INDEX = re.compile(r"typedef (\w+) Index;")
# Integer variables of 32 bits that hold anything but what the hardware gives as 32 bits
NARROW = re.compile(r"\b(?:const )?(?:int|unsigned|unsigned int|int32_t|uint32_t) (\w+) = [^;]*\b(?:blockIdx|cells|u)\b[^;]*;")


def wide(c: Bench, op: str, sets: str = "") -> None:
    """Requires that the kernels of every target compute with 64 bits."""
    for target in TARGETS:
        label = f"{op} {sets} for {target}"
        try:
            text = c.text(op, target, sets)
        except Failure as why:
            c.verdict(str(why), label)
            continue
        kernels = text[text.index("__global__"):]
        widths = set(INDEX.findall(kernels))
        narrow = NARROW.search(kernels)
        c.verdict(f"indices are {', '.join(sorted(widths)) or 'of no type'}" if widths != {"i64"} else f"32 bits: {narrow.group(0)}" if narrow else "", label)


@reported("I1", "I3", "I5", "I7")
def open_sizes_are_computed_in_64_bits(c: Bench) -> None:
    for op in ("copy_u8", "copy_bf16", "transpose", "rows", "normalize", "attend", "add3"):
        wide(c, op)


@reported("I1")
def i1_sizes_past_2_31(c: Bench) -> None:
    wide(c, "copy_u8", "N=3300000000")
    wide(c, "transpose", "M=65384,N=65384")


@reported("I1")
def i1_offsets_past_2_31(c: Bench) -> None:
    for n in (1, 97, 1000):
        a, m = normal(c.draw, "f32", n), np.arange(257)
        c.run("far_above", {"a": a}, {"y": real(a)[(m * 3000000019 + 5000000029) % n]}, "M=257", exact=True)
        c.run("far_below", {"a": a}, {"y": real(a)[(7 - m * 3000000019) % n]}, "M=257", exact=True)
        c.run("far_quotient", {"a": a}, {"y": real(a)[(m * 6000000007 // 2**31) % n]}, "M=257", exact=True)


@reported("I1")
def i1_copy_of_3_300_000_000_bytes(c: Bench) -> None:
    if c.options.large:
        a = (np.arange(3_300_000_000, dtype=np.uint32) % 251).astype(np.uint8)
        got = c.outputs("copy_u8", {"a": a})["o"]
        c.verdict("" if np.array_equal(got, a) else "the copy is another", "copy_u8 of 3.3e9 bytes")


@reported("I3")
def i3_copies_around_2_30_bytes(c: Bench) -> None:
    for n in (2**29 - 1, 2**29, 2**29 + 1, 2**30):
        if c.options.large:
            a = np.arange(n, dtype=np.uint32).astype(np.uint16) & 0x3FFF
            c.verdict("" if np.array_equal(c.outputs("copy_bf16", {"a": a})["o"], a) else "the copy is another", f"copy_bf16 of {2 * n} bytes")
    wide(c, "copy_bf16", f"N={2**31}")
    wide(c, "copy_bf16", f"N={2**32 + 8}")


@reported("I5")
def i5_attention_past_2_31_elements(c: Bench) -> None:
    wide(c, "attend", "B=64,H=64,S=8192,L=8192,D=128")
    wide(c, "rows", "M=9728,N=225304")


@reported("I6")
def i6_66000_queries_or_keys(c: Bench) -> None:
    for s, length in ((66000, 2), (2, 66000)):
        q, k, v = (normal(c.draw, "f16", 1, 1, n, 2) for n in (s, length, length))
        wanted = attention(real(q), real(k), real(v), 0.5)
        c.run("attend", {"q": q, "k": k, "v": v}, {"o": wanted}, "scale=0.5", scale=1.0)


@reported("I7")
def i7_softmax_of_2_32_elements(c: Bench) -> None:
    wide(c, "normalize", f"M={2**20},N={2**12}")


@reported("I8", "I11")
def i8_i11_long_axes_of_a_grid(c: Bench) -> None:
    for shape in ((70000, 2, 1), (1, 72000, 2), (2, 1, 70000)):
        x, y = normal(c.draw, "f32", *shape), normal(c.draw, "f32", *shape)
        c.run("add3", {"x": x, "y": y}, {"z": real(x) + real(y)}, targets=("gfx90a", "sm_80"))


@reported("I8")
def i8_more_blocks_than_a_grid_holds(c: Bench) -> None:
    for target in TARGETS:
        text = c.text("copy_u8", target, f"N={2**40}")
        loops = re.search(r"\+= *\(?\w*\)? *\(?gridDim", text) or "gridDim.x *" in text
        c.verdict("" if loops else "one launch of more blocks than a grid holds, and no loop over the rest", f"copy_u8 of 2^40 bytes for {target}")
