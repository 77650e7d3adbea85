"""The element types of tensors: how `.npy` files hold them, and rounding to them."""
import numpy as np

# Twice the unit roundoff of each floating-point type.
ROUNDOFF = {
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f32": 2.0**-23,
    "f64": 2.0**-52,
    "f8e4m3": 2.0**-3,
    "f8e5m2": 2.0**-2,
}
# NumPy has no bf16 and no 8-bit floats: files hold their bits.
STORED = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f8e4m3": np.uint8,
    "f8e5m2": np.uint8,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}


def widen(stored: np.ndarray, dtype: str) -> np.ndarray:
    """The values of a stored array, as float64 or int64."""
    if stored.dtype != STORED[dtype]:
        raise TypeError(f"{dtype} is stored as {np.dtype(STORED[dtype])}, not {stored.dtype}")
    if dtype == "bf16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    elif dtype == "f8e5m2":
        stored = (stored.astype(np.uint16) << 8).view(np.float16)
    elif dtype == "f8e4m3":
        stored = _e4m3_values()[stored]
    return stored.astype(np.float64 if stored.dtype.kind == "f" else np.int64)


def _e4m3_values() -> np.ndarray:
    """The values of the 256 patterns (OCP 8-bit floating point specification 1.0): no infinities, NaN where all seven bits are set."""
    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    magnitude = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * np.exp2(exponent - 10.0))
    magnitude[(bits & 0x7F) == 0x7F] = np.nan
    return np.where(bits < 128, magnitude, -magnitude)


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """x as a tensor of the type would hold it, in float64; integers are left as they are."""
    with np.errstate(over="ignore"):
        if dtype in ("f16", "f32"):
            return x.astype(STORED[dtype]).astype(float)
        return _to_bf16(x) if dtype == "bf16" else _to_e4m3(x) if dtype == "f8e4m3" else x


def _to_bf16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, np.float32).reshape(np.shape(x)).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(float)


def _to_e4m3(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, -448, 448)
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-9))), -6) - 3)
    return np.round(x / step) * step
