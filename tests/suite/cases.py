"""Reads the cases of `benchmarks/suite`: as much of the language as their signatures and settings use."""
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from formats import STORED

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "suite"
Value = bool | int | float | list[int]

COMMENT = re.compile(r"//[^\n]*")
OPERATOR = re.compile(
    r"op (?P<name>\w+)(?:<(?P<generics>.*?)>)?\((?P<parameters>.*?)\)"
    r"\s*->\s*(?P<outputs>\([^)]*\)|\w+: \w+\[[^\]]*\])\s*(?:where (?P<where>.*?))? \{\n",
    re.DOTALL,
)
CASE = re.compile(r"case (?P<name>\w+) for (?P<operator>\w+) \{(?P<settings>.*?)\}", re.DOTALL)
PARAMETER = re.compile(r"(?P<name>\w+): (?:strided )?(?P<dtype>\w+)(?:\[(?P<dims>.*?)\])?(?: = (?P<default>.*))?", re.DOTALL)
OUTSIDE_BRACKETS = re.compile(r",(?![^\[(]*[\])])")


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A case; `params` has its dimensions, compile-time values and scalars, `draws` the settings of its inputs."""

    name: str
    file: Path
    operator: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    params: Mapping[str, Value]
    draws: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.name.removesuffix("_small")


def read_cases(folder: Path = FOLDER) -> dict[str, Case]:
    """The cases of every file of the folder, by name, in the order of the files."""
    found = {}
    for file in sorted(folder.glob("*.acu")):
        text = COMMENT.sub("", file.read_text(encoding="utf-8"))
        operators = {match["name"]: match for match in OPERATOR.finditer(text)}
        for match in CASE.finditer(text):
            found[match["name"]] = _case(file, match, operators[match["operator"]])
    return found


def _case(file: Path, case: re.Match[str], operator: re.Match[str]) -> Case:
    parameters = [_parameter(text) for text in _split(operator["parameters"])]
    tensors = {match["name"] for match in parameters if match["dims"] is not None}
    settings = dict(_pair(text, "=") for text in _split(case["settings"]))
    types = {name: text for name, text in settings.items() if text in STORED}
    params = {name: _value(text) for name, text in settings.items() if name not in tensors | types.keys()}
    _add_defaults(params, parameters, _split(operator["generics"]))
    _add_derived(params, _split(operator["where"]))
    outputs = [_parameter(text) for text in _split(operator["outputs"].strip("()"))]
    return Case(
        name=case["name"],
        file=file,
        operator=case["operator"],
        inputs=tuple(_tensor(match, types, params) for match in parameters if match["name"] in tensors),
        outputs=tuple(_tensor(match, types, params) for match in outputs),
        params=params,
        draws={name: text for name, text in settings.items() if name in tensors},
    )


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in OUTSIDE_BRACKETS.split(text or "") if part.strip()]


def _pair(text: str, separator: str) -> tuple[str, str]:
    left, _, right = text.partition(separator)
    return left.strip(), right.strip()


def _parameter(text: str) -> re.Match[str]:
    match = PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a parameter: {text}")
    return match


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        return [int(item) for item in text.strip("[]").split(",")]
    return float(text) if re.search(r"[.e]", text) else int(text)


def _add_defaults(params: dict[str, Value], parameters: list[re.Match[str]], generics: list[str]) -> None:
    for match in parameters:
        if match["default"]:
            params.setdefault(match["name"], _value(match["default"]))
    for name, default in (_pair(text, "=") for text in generics):
        if default:
            params.setdefault(_pair(name, ":")[0], _value(default))


def _add_derived(params: dict[str, Value], conditions: list[str]) -> None:
    """`P == …` gives P its value; every condition must hold."""
    for condition in conditions:
        left, right = _pair(condition, "==")
        if right and left.isidentifier() and left not in params:
            params[left] = _evaluate(right, params)
        if not _evaluate(condition, params):
            raise ValueError(f"{condition} does not hold for {params}")


def _evaluate(expression: str, params: Mapping[str, Value]) -> int:
    return eval(expression.replace("/", "//"), {"__builtins__": {}}, dict(params))  # noqa: S307, the project's own text


def _tensor(match: re.Match[str], types: Mapping[str, str], params: Mapping[str, Value]) -> Tensor:
    shape: list[int] = []
    for dim in _split(match["dims"]):
        size = _evaluate(dim.removeprefix(".."), params)
        shape.extend(size if isinstance(size, list) else [size])
    return Tensor(match["name"], types.get(match["dtype"], match["dtype"]), tuple(shape))
