"""The published schema: valid itself, agreeing with acuc on good and broken plans, and the source of the documentation."""
import json
import random
import subprocess
import sys

from jsonschema import Draft202012Validator

from harness import COPY, ROOT, Cli, require, test
from material import FUSED, GOOD, LINEAR, TILED, a_plan, catalogue, changed, plan, validator, without

STEP = ("decisions", 0)

# What is wrong, and the code that acuc gives it.
BROKEN = {
    "not an object": ([], "plan.schema"),
    "no schema": (without(GOOD, "schema"), "plan.schema"),
    "another schema": (changed(GOOD, 2, "schema"), "plan.schema"),
    "no operator": (without(GOOD, "operator"), "plan.schema"),
    "no target": (without(GOOD, "target"), "plan.schema"),
    "unknown target": (changed(GOOD, "sm_81", "target"), "plan.schema"),
    "no decisions": (without(GOOD, "decisions"), "plan.schema"),
    "decisions that are no list": (changed(GOOD, {}, "decisions"), "plan.schema"),
    "unknown member": (changed(GOOD, 1, "tagret"), "plan.schema"),
    "a command": (changed(GOOD, "rm -rf /", "command"), "plan.schema"),
    "a hash that is none": (changed(GOOD, "xyz", "definition"), "plan.schema"),
    "an unknown type": (changed(GOOD, {"T": "f12"}, "types"), "plan.schema"),
    "a negative size": (changed(GOOD, {"M": -1}, "dims"), "plan.schema"),
    "a size that is no number": (changed(GOOD, {"M": "4"}, "dims"), "plan.schema"),
    "a size too large": (changed(GOOD, {"M": 2**63}, "dims"), "plan.schema"),
    "a path as operator": (changed(GOOD, "../secret", "operator"), "plan.schema"),
    "two lines as reason": (changed(GOOD, "a\nb", *STEP, "why"), "plan.step"),
    "a long reason": (changed(GOOD, "a" * 2001, *STEP, "why"), "plan.step"),
    "an author that is none": (changed(GOOD, "me & you", *STEP, "by"), "plan.step"),
    "an unknown status": (changed(GOOD, "done", *STEP, "status"), "plan.step"),
    "an id of zero": (changed(GOOD, 0, *STEP, "id"), "plan.step"),
    "a step without a pass": (without(GOOD, *STEP, "pass"), "plan.step"),
    "an unknown member of a step": (changed(GOOD, {}, *STEP, "parameters"), "plan.step"),
    "a step that is a text": (plan("tile(acc, k = 64)"), "plan.step"),
    "an unknown pass": (changed(GOOD, "fues", *STEP, "pass"), "pass.unknown"),
    "a pass of later": (plan({"pass": "reuse", "scope": ["m.o"]}), "pass.later"),
    "no names": (changed(GOOD, [], *STEP, "scope"), "site.count"),
    "a missing scope": (without(GOOD, *STEP, "scope"), "site.count"),
    "a flag as name": (changed(GOOD, ["--help"], *STEP, "scope"), "plan.step"),
    "a path as name": (changed(GOOD, ["/etc/passwd"], *STEP, "scope"), "plan.step"),
    "a word of the language as name": (changed(GOOD, ["in"], *STEP, "scope"), "plan.step"),
    "a missing parameter": (changed(GOOD, {}, *STEP, "params"), "param.missing"),
    "an unknown parameter": (changed(GOOD, 8, *STEP, "params", "group"), "param.unknown"),
    "a number as sizes": (changed(GOOD, 8, *STEP, "params", "over"), "param.kind"),
    "a size below its range": (changed(GOOD, {"m": 0}, *STEP, "params", "over"), "param.domain"),
    "a size above its range": (changed(GOOD, {"m": 1 << 40}, *STEP, "params", "over"), "param.domain"),
    "a fraction": (changed(GOOD, {"m": 1.5}, *STEP, "params", "over"), "plan.step"),
    "a word that is none of the list": (changed(GOOD, "gird", *STEP, "params", "kind"), "param.domain"),
    "a list as word": (changed(GOOD, ["grid"], *STEP, "params", "kind"), "param.kind"),
    "nested parameters": (changed(GOOD, {"m": {"n": 1}}, *STEP, "params", "over"), "plan.step"),
    "a shell in a parameter": (changed(GOOD, "$(reboot)", *STEP, "params", "into"), "plan.step"),
    "measures that are lists": (changed(GOOD, {"time_us": [1, 2]}, *STEP, "measured"), "plan.step"),
    "a diagnostic without a code": (changed(GOOD, {"message": "no"}, *STEP, "diagnostic"), "plan.step"),
    "too many steps": (plan(*[TILED] * 1001), "plan.schema"),
}

# What a schema of JSON values cannot see.
TEXTS = {
    "not JSON": ("{", "plan.syntax"),
    "text behind it": (json.dumps(GOOD) + "x", "plan.syntax"),
    "a member twice": ('{"schema": 1, "schema": 1}', "plan.syntax"),
    "a number too large": (json.dumps(GOOD).replace('"k": 8', '"k": 1e999'), "plan.syntax"),
    "deep nesting": ("[" * 5000 + "]" * 5000, "plan.syntax"),
    "bad UTF-8": (b'{"schema": "\xff"}', "plan.syntax"),
    "ids that fall": (json.dumps(plan({**FUSED, "id": 2}, {**TILED, "id": 1})), "plan.step"),
    "a condition that is none": (json.dumps({**GOOD, "when": "M >="}), "plan.when"),
    "a condition with a call": (json.dumps({**GOOD, "when": "exp(M) > 1"}), "plan.when"),
    "a condition that goes on": (json.dumps({**GOOD, "when": "M > 1 { } op f"}), "plan.when"),
    "too large": (json.dumps(GOOD) + " " * (1 << 20), "file.too-large"),
}


@test
def schema_is_valid(c: Cli) -> None:
    Draft202012Validator.check_schema(catalogue(c.acuc)["schema"])


@test
def schema_and_acuc_take_good_plans(c: Cli) -> None:
    check = validator(c)
    for good in (GOOD, plan(), plan({**FUSED, "id": 7, "status": "kept"}, dims={"M": 16}), without(GOOD, "decisions", 1, "by")):
        check.validate(good)
        c.run("explain", c.file(json.dumps(good), "p.json")).expect(0)


@test
def schema_and_acuc_refuse_broken_plans(c: Cli) -> None:
    check = validator(c)
    for what, (value, code) in BROKEN.items():
        require(not check.is_valid(value), f"the schema takes {what}")
        c.run("explain", c.file(json.dumps(value), "p.json")).expect(1, code)


@test
def texts_that_are_no_plan(c: Cli) -> None:
    for text, code in TEXTS.values():
        c.run("explain", c.file(text, "p.json")).expect(1, code)
    c.run("explain", c.folder / "none.json").expect(1, "file.missing")


@test
def random_plans_are_valid(c: Cli) -> None:
    draw, check = random.Random(c.seed), validator(c)
    for _ in range(300):
        check.validate(a_plan(draw, catalogue(c.acuc)["passes"]))


@test
def example_plans_are_valid(c: Cli) -> None:
    examples = sorted((ROOT / "examples").glob("*.plan.json"))
    require(examples, "there are no example plans")
    for path in examples:
        validator(c).validate(json.loads(path.read_text()))
        c.run("explain", path, path.with_name(path.name.split(".")[0] + ".acu")).expect(0, text="the program after all steps")


@test
def emitted_plans_are_valid(c: Cli) -> None:
    for source in [*sorted((ROOT / "examples").glob("*.acu")), c.file(COPY), c.file(LINEAR, "linear.acu")]:
        for target in ("sm_70", "sm_80", "sm_90a", "gfx90a"):
            out = c.folder / f"{source.stem}.{target}"
            sets = ["--case", next(line.split()[1] for line in source.read_text().splitlines() if line.startswith("case "))] if "case " in source.read_text() else []
            c.run("compile", source, "--target", target, "-o", out, *sets).expect(0)
            for path in out.glob("*.plan.json"):
                validator(c).validate(json.loads(path.read_text()))


@test
def every_pass_is_described(c: Cli) -> None:
    for one in catalogue(c.acuc)["passes"]:
        require(one["doc"] and "->" in one["picture"], f"{one['name']} has no doc or no picture")
        require(all(p["doc"] for p in one["params"]), f"a parameter of {one['name']} has no doc")
        require(one["rounding"] in ("exact", "reassociates", "approximates"), f"{one['name']}: another rounding")
        require(one["schema"]["additionalProperties"] is False, f"{one['name']} takes any parameter")


@test
def documentation_is_up_to_date(c: Cli) -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/passes_doc.py", "--check", "--acuc", c.acuc], capture_output=True, text=True)
    require(done.returncode == 0, done.stderr)
