"""What the tests of plans share: operators, plans for them, the schema, and random plans."""
import copy
import functools
import json
import random
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from harness import ROOT, Cli

Plan = dict[str, Any]

LINEAR = """op linear<T: f16 | f32>(x: T[M, K], w: T[N, K]) -> y: T[M, N] {
  acc[m, n] = sum(k) x[m, k] * w[n, k]
  y[m, n] = max(acc[m, n], 0)
}
case small for linear { T = f32, M = 32, N = 32, K = 64 }
"""

FUSED = {"pass": "fuse", "scope": ["acc", "y"], "params": {"over": {"m": 16, "n": 16}, "kind": "grid"}, "by": "user", "why": "the product stays near"}
TILED = {"pass": "tile", "scope": ["acc"], "params": {"axes": {"k": 8}}, "by": "search"}


def plan(*decisions: Plan, **head: Any) -> Plan:
    """A plan for `linear` on sm_80."""
    return {"schema": 1, "operator": "linear", "target": "sm_80", **head, "decisions": list(decisions)}


GOOD = plan(FUSED, TILED, when="M >= 16 && K % 8 == 0")


@functools.cache
def catalogue(acuc: Path) -> dict[str, Any]:
    """What `acuc passes --json` prints."""
    return json.loads(Cli(acuc, ROOT, 1).run("passes", "--json").expect(0).out)


def validator(c: Cli) -> Draft202012Validator:
    return Draft202012Validator(catalogue(c.acuc)["schema"])


def without(value: Plan, *path: Any) -> Plan:
    """A copy without one member."""
    out = copy.deepcopy(value)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return out


def changed(value: Plan, new: Any, *path: Any) -> Plan:
    """A copy with another member."""
    out = copy.deepcopy(value)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return out


# ---- random plans


def a_name(draw: random.Random) -> str:
    return draw.choice(["acc", "y", "m.o", "k.o", "x.t", "consumer/k.o", "acc.init", "y.0", "s_1", "a.b.c2"])


def an_argument(draw: random.Random, param: Plan) -> Any:
    """A value that the domain of a parameter allows."""
    match param["kind"]:
        case "integer": return draw.randint(param["low"], param["high"])
        case "word": return draw.choice(param["words"])
        case "name": return a_name(draw)
        case "names": return [a_name(draw) for _ in range(draw.randint(1, 4))]
        case "sizes": return {draw.choice("mnkpq") + draw.choice(["", ".i", "2"]): draw.randint(param["low"], param["high"]) for _ in range(draw.randint(1, 3))}
        case _: return draw.choice(["N % 8 == 0", "(M + 1) * K >= 128 and N < 7", "!(M == 0) or K != 3", "24", "fast"])


def a_decision(draw: random.Random, one: Plan) -> Plan:
    sites = one["sites"]
    out = {"pass": one["name"], "scope": [a_name(draw) for _ in range(draw.randint(sites["least"], min(sites["most"], sites["least"] + 3)))]}
    out["params"] = {p["name"]: an_argument(draw, p) for p in one["params"] if p["required"] or draw.random() < 0.5}
    out["by"] = draw.choice(["user", "search", "llm:strategy"])
    if draw.random() < 0.5:
        out["why"] = draw.choice(["why not", "@ odd, but allowed", "it's 3 % faster: \"µs\" // here", "a * b /* c */"])
    if draw.random() < 0.5:
        out["status"] = draw.choice(["applied", "kept"])
    if draw.random() < 0.3:
        out["predicted"] = {"time_us": draw.choice([3, 2.5, 1e-9, 12345678901]), "limiter": "memory"}
        out["measured"] = {"time_us": draw.random()}
    if draw.random() < 0.2:
        out["status"], out["diagnostic"] = "rejected", {"code": "tile.axis", "message": "`acc` has no axis `q`", "help": "it has m, n"}
    return out


def a_plan(draw: random.Random, passes: list[Plan]) -> Plan:
    head: Plan = {"dims": {"M": 64}} if draw.random() < 0.5 else {}
    if draw.random() < 0.5:
        head |= {"definition": f"{draw.getrandbits(64):016x}", "types": {"T": "bf16"}, "values": {"causal": 1}, "scalars": {"eps": 1e-6}, "toolchain": "nvcc 13.0", "case": "small", "compiler": "0.1.0"}
    if draw.random() < 0.5:
        head["doc"] = draw.choice(["A plan.", "@note: odd", "two words"])
    if draw.random() < 0.7:
        head["when"] = draw.choice(["M >= 512", "M >= 512 && K % 64 == 0", "(M - 1) / 8 < N || !(K == 3)", "causal && M > -1"])
    return plan(*(a_decision(draw, draw.choice(passes)) for _ in range(draw.randint(0, 6))), **head)
