"""Convolutions with strides, dilation and odd channels; subscripts that are loaded, in range and out of it."""
import numpy as np

from bench import Bench, normal, real, reported
from plans import step


def convolution(x: np.ndarray, w: np.ndarray, stride: int = 1, pad: int = 0, dilation: int = 1) -> np.ndarray:
    """NCHW by OCRS, a loop over the filter's places."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((x.shape[2 + i] - dilation * (w.shape[2 + i] - 1) - 1) // stride + 1 for i in (0, 1))
    y = np.zeros((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for r, s in np.ndindex(w.shape[2:]):
        part = x[:, :, r * dilation :: stride, s * dilation :: stride][:, :, :rows, :columns]
        y += np.einsum("nchw,oc->nohw", part, w[:, :, r, s])
    return y


def conv(c: Bench, x_shape: tuple[int, ...], w_shape: tuple[int, ...], **how: int) -> None:
    x, w = normal(c.draw, "f16", *x_shape), normal(c.draw, "f16", *w_shape)
    wanted = convolution(real(x), real(w), **how)
    c.run("conv", {"x": x, "w": w}, {"y": wanted}, ",".join(["T=f16", *(f"{k}={v}" for k, v in how.items())]))


@reported("C3")
def c3_bytes_give_the_same_each_time(c: Bench) -> None:
    x, w = (c.draw.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 9, 10, 16), (24, 3, 3, 16)))
    y = convolution(x.transpose(0, 3, 1, 2).astype(np.int64), w.transpose(0, 3, 1, 2).astype(np.int64), pad=1).transpose(0, 2, 3, 1)
    times = 12 if c.options.everything else 2
    ways = [(device, ["--emu-seed", str(t)] if device != "cpu" else []) for device in c.devices(("sm_80", "gfx90a")) for t in range(times)]
    c.run("conv_i8", {"x": x, "w": w}, {"y": y})
    c.same_bits("conv_i8", {"x": x, "w": w}, ways)
    tile = [step("fuse", "acc y", over={"n": 1, "p": 4, "q": 8, "o": 16}, kind="grid"), step("tile", "acc", axes={"c": 8}), step("stage", "w", at="c.o")]
    c.under([tile, [*tile, step("pipeline", "c.o", stages=3)]], "conv_i8", {"x": x, "w": w}, {"y": y}, "R=3,S=3", count=1)


@reported("C4")
def c4_subscripts_in_range_and_out_of_it(c: Bench) -> None:
    a = normal(c.draw, "f32", 11, 33)
    for at in ([3, 0, 10, 10, 5], [11, -1, 4, 2**40, -(2**63), 7]):
        at = np.array(at, np.int64)
        inside = (at >= 0) & (at < 11)
        y = np.where(inside[:, None], real(a)[np.clip(at, 0, 10)], 0.0)
        inputs = {"a": a, "at": at}
        c.run("rows", inputs, {"y": y, "z": np.where(inside[:, None], y, 7.0)}, exact=True, every=True)
        fuse = step("fuse", "y", over={"b": 4, "l": 16}, kind="grid")
        c.under([[fuse], [fuse, step("vectorize", "y", width=1, threads=64)]], "rows_alone", inputs, {"y": y}, exact=True, count=1)


@reported("C4")
def c4_additions_out_of_range_are_dropped(c: Bench) -> None:
    src, at = c.draw.integers(-50, 50, (40, 5)).astype(np.float32), c.draw.integers(-2, 9, 40)
    out = np.zeros((7, 5))
    for row, where in zip(real(src), at):
        if 0 <= where < 7:
            out[where] += row
    c.run("add_rows", {"src": src, "at": at}, {"out": out}, "N=7", exact=True)


@reported("C5")
def c5_strides_and_dilation(c: Bench) -> None:
    conv(c, (1, 3, 11, 12), (4, 3, 3, 3), stride=2, dilation=2, pad=2)
    conv(c, (2, 5, 9, 7), (3, 5, 3, 3), stride=2, pad=1)
    conv(c, (1, 512, 7, 7), (2, 512, 3, 3), pad=1)
    conv(c, (1, 64, 7, 7), (4, 64, 1, 1), stride=2)


@reported("C6")
def c6_first_layer(c: Bench) -> None:
    conv(c, (1, 3, 23, 21), (5, 3, 7, 7), stride=2, pad=3)


@reported("C6")
def c6_each_channel_by_itself(c: Bench) -> None:
    for stride, pad in ((1, 1), (2, 1), (1, 0)):
        x, w = normal(c.draw, "f16", 2, 6, 9, 10), normal(c.draw, "f16", 6, 3, 3)
        wanted = np.concatenate([convolution(real(x)[:, i : i + 1], real(w)[None, i : i + 1], stride, pad) for i in range(6)], 1)
        c.run("each_channel", {"x": x, "w": w}, {"y": wanted}, f"T=f16,stride={stride},pad={pad}")
