"""Draws inputs as the cases of `benchmarks/suite` ask, without the compiler, for the self-test of the references."""
import re

import numpy as np
from cases import Case, Tensor
from formats import rounded


def draw_inputs(case: Case, seed: int) -> dict[str, np.ndarray]:
    """The case's inputs as float64 or int64 arrays."""
    generator = np.random.default_rng(seed)
    return {tensor.name: _draw(generator, case, tensor) for tensor in case.inputs}


def _draw(generator: np.random.Generator, case: Case, tensor: Tensor) -> np.ndarray:
    how = case.draws.get(tensor.name, f"integers(0, {case.params.get('V', 0) - 1})" if tensor.dtype == "i64" else "normal(0, 1)")
    if how.startswith("["):
        return np.array([int(item) for item in how.strip("[]").split(",")], np.int64)
    name, _, arguments = how.rstrip(")").partition("(")
    numbers = [float(item) for item in re.findall(r"[^,\s]+", arguments)]
    if name == "integers":
        x = generator.integers(int(numbers[0]), int(numbers[1]) + 1, tensor.shape)
        return x if tensor.dtype[0] in "iu" else x.astype(float)
    return rounded(_draw_floats(generator, name, numbers, tensor.shape), tensor.dtype)


def _draw_floats(generator: np.random.Generator, name: str, numbers: list[float], shape: tuple[int, ...]) -> np.ndarray:
    if name == "normal":
        return numbers[0] + numbers[1] * generator.standard_normal(shape)
    if name == "uniform":
        return generator.uniform(numbers[0], numbers[1], shape)
    if name == "angles":
        return generator.uniform(-1, 1, shape)
    if name == "pareto":
        return generator.uniform(2.0**-24, 1, shape) ** (-1 / numbers[0])
    if name == "spikes":
        u = generator.random(shape)
        return np.where(u < 0.001, 1e3 * np.sign(generator.random(shape) - 0.4), 2 * u - 0.9)
    if name == "rows":
        return _rows(generator, shape)
    raise ValueError(f"no distribution {name}")


def _rows(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal, a scale per row in 2^-6 … 2^6, one row of ±1e4."""
    x = generator.standard_normal(shape) * np.exp2(generator.uniform(-6, 6, shape[:-1] + (1,)))
    flat = x.reshape(-1, shape[-1])
    flat[len(flat) // 2] = np.where(flat[len(flat) // 2] < 0, -1e4, 1e4)
    return x
