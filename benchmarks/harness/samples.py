"""Statistics of timings, the order in which contenders run, and what no device can beat. Needs no torch and no GPU."""
from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from typing import Any, Iterable, Optional, Sequence

NOISY = 0.05  # IQR over median
EQUAL = 0.02  # ratios within 1 +- this are called equal
FAST_P = (0.5, 0.8, 1.0, 1.2)


def quantile(sorted_samples: Sequence[float], q: float) -> float:
    """linear between neighbours"""
    at = q * (len(sorted_samples) - 1)
    low = math.floor(at)
    high = min(low + 1, len(sorted_samples) - 1)
    return sorted_samples[low] + (at - low) * (sorted_samples[high] - sorted_samples[low])


def summary(samples: Iterable[float]) -> dict[str, Any]:
    s = sorted(samples)
    median, low, high = (quantile(s, q) for q in (0.5, 0.25, 0.75))
    return {'median': median, 'p10': quantile(s, 0.1), 'p90': quantile(s, 0.9), 'iqr': (high - low) / median if median else 0.0, 'n': len(s)}


def palindrome(names: Sequence[Any], rng: random.Random) -> list[Any]:
    """A B C C B A in a shuffled order: a drift of the clocks falls on all alike"""
    order = list(names)
    rng.shuffle(order)
    return [*order, *reversed(order)]


def ratio_of_rounds(ours: Sequence[Sequence[float]], peer: Sequence[Sequence[float]]) -> Optional[float]:
    """peer over ours, above 1: ours is faster. The median of the ratios of the rounds; without common rounds the ratio of all samples' medians"""
    pairs = [(a, b) for a, b in zip(ours, peer) if a and b]
    if pairs:
        return statistics.median(statistics.median(b) / statistics.median(a) for a, b in pairs)
    a, b = ([t for r in rounds for t in r] for rounds in (ours, peer))
    return statistics.median(b) / statistics.median(a) if a and b else None


def verdict(ratio: Optional[float]) -> str:
    if ratio is None:
        return ''
    return 'equal' if abs(ratio - 1) <= EQUAL + 1e-9 else 'faster' if ratio > 1 else 'slower'


def geomean(ratios: Iterable[float]) -> Optional[float]:
    logs = [math.log(r) for r in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


# ---------------------------------------------------------------- physics
@dataclass(frozen=True)
class Device:
    """Rates by the vendor's datasheet, which nothing exceeds: bytes/s, and dense FLOP/s by operand type."""
    bandwidth: float
    flops: dict[str, float]


HOPPER = {'f32': 67e12, 'tf32': 495e12, 'f16': 990e12, 'f8': 1979e12}
DEVICES = {'GH200': Device(4.9e12, HOPPER), 'H200': Device(4.8e12, HOPPER), 'H100': Device(3.9e12, HOPPER),
           'A100': Device(2.04e12, {'f32': 19.5e12, 'tf32': 156e12, 'f16': 312e12, 'f8': 624e12}), 'V100': Device(0.9e12, {'f32': 15.7e12, 'f16': 125e12})}
LEAST_MB = {'EW05': 805.6}  # cases.tsv counts inputs above the diagonal, which nobody has to read
CONTRACTIONS = ('GD', 'GT', 'GV', 'QN', 'CV', 'AT', 'FG', 'FC', 'FM07', 'FM08')


def device_of(name: str) -> Optional[Device]:
    return next((d for k, d in DEVICES.items() if k in name), None)


def arithmetic(case: str) -> str:
    """the kind of operand that the FLOPs of a case are rated by; at the highest rate where it is not clear"""
    if case in ('GD08', 'CV08'):
        return 'tf32'
    if case == 'GD07':
        return 'f32'
    return 'f8' if case.startswith('QN') else 'f16'


def compulsory_bytes(case: str, row: Optional[dict[str, str]], tensor_bytes: int) -> float:
    """every input read once and every output written once, by cases.tsv; without its row the bytes of all tensors"""
    return LEAST_MB.get(case, float(row['min_mb'])) * 1e6 if row else float(tensor_bytes)


def floor_us(device: Optional[Device], nbytes: float, written: float, cache: float, flop: float = 0.0, kind: str = 'f16') -> float:
    """microseconds below which a time is refused. What is written may stay in the cache and reach memory after the kernel; 0 on an unknown device"""
    if device is None:
        return 0.0
    moved = max(0.0, nbytes - min(written, cache)) / device.bandwidth
    return 1e6 * max(moved, flop / device.flops.get(kind, max(device.flops.values())))


def compute_bound(case: str, row: Optional[dict[str, str]]) -> bool:
    """Large contractions are limited by power: they are compared sustained, besides"""
    return row is not None and case.startswith(CONTRACTIONS) and float(row['gflop']) * 1e9 > 150 * float(row['min_mb']) * 1e6
