"""A plan alone rebuilds the same bytes; what it says shows in the program, in `explain` and in dumps."""
import json
import re
from pathlib import Path

from harness import COPY, ROOT, Cli, require, test
from material import FUSED, GOOD, LINEAR, TILED, plan, validator

BLOCK = "schedule linear for sm_80 when M >= 16 && K % 8 == 0 {\n  /// the product stays near\n  fuse(acc, y, over = [m: 16, n: 16], kind = grid)\n  tile(acc, k = 8)\n}\n"


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def compiled(c: Cli, name: str, *arguments: object) -> dict[str, bytes]:
    c.run("compile", *arguments, "-o", c.folder / name).expect(0)
    return files(c.folder / name)


@test
def plan_alone_rebuilds_the_files(c: Cli) -> None:
    source = c.file(LINEAR + BLOCK)
    for target, selection in (("sm_80", ["--case", "small"]), ("sm_80", ["--set", "T=f16,M=64,N=48,K=16"]), ("gfx90a", ["--set", "T=f32"]), ("sm_80", ["--set", "T=f32,M=7"])):
        first = compiled(c, "first", source, "--target", target, *selection)
        saved = c.file(first["linear.plan.json"], "saved.json")
        require(compiled(c, "alone", source, "--plan", saved) == first, f"{target} {selection}: the plan alone gives other files")
        require(compiled(c, "again", source, "--plan", saved, "--target", target, *selection) == first, f"{target} {selection}: the plan and the words of the command give other files")
        validator(c).validate(json.loads(saved.read_text()))
        for name in ("first", "alone", "again"):
            for path in (c.folder / name).iterdir():
                path.unlink()


@test
def plan_of_an_operator_with_values_and_scalars(c: Cli) -> None:
    source = c.file("op f<T: f16 | f32, flag: bool = false, step: int = 1>(x: T[M, N], eps: f32 = 1e-6) -> y: T[M, N] {\n  y[m, n] = if flag then x[m, n] * eps else x[m, n] + step\n}\n")
    first = compiled(c, "first", source, "--target", "sm_80", "--set", "T=f16,flag=true,step=3,eps=0.1,N=5")
    require(compiled(c, "again", source, "--plan", c.file(first["f.plan.json"], "p.json")) == first, "other files")


@test
def emitted_plan_holds_the_steps(c: Cli) -> None:
    one = json.loads(compiled(c, "out", c.file(LINEAR + BLOCK), "--target", "sm_80", "--case", "small")["linear.plan.json"])
    require([d["pass"] for d in one["decisions"]] == ["fuse", "tile"], f"other steps: {one}")
    require(all(d["status"] == "applied" for d in one["decisions"]) and one["decisions"][0]["why"] == "the product stays near", f"another record: {one}")
    require(one["when"] == "M >= 16 && K % 8 == 0" and one["dims"] == {"M": 32, "N": 32, "K": 64} and one["case"] == "small" and len(one["definition"]) == 16, f"another head: {one}")


@test
def block_and_plan_give_the_same(c: Cli) -> None:
    block = compiled(c, "block", c.file(LINEAR + BLOCK), "--target", "sm_80", "--case", "small")
    given = compiled(c, "plan", c.file(LINEAR), "--target", "sm_80", "--case", "small", "--plan", c.file(json.dumps(GOOD), "p.json"))
    require(block["linear.cu"] == given["linear.cu"], "a block and a plan of the same steps give other sources")


@test
def steps_change_the_program(c: Cli) -> None:
    shown = c.run("compile", c.file(LINEAR), "--case", "small", "--plan", c.file(json.dumps(GOOD), "p.json"), "--emit", "loop").expect(0).out
    require("for m.o in" in shown and "for k.o! in" in shown, f"the loops are missing: {shown}")


@test
def a_decision_that_was_rejected_is_not_replayed(c: Cli) -> None:
    value = plan({**TILED, "status": "rejected", "diagnostic": {"code": "tile.axis", "message": "no"}}, {**FUSED, "status": "kept"})
    shown = c.run("compile", c.file(LINEAR), "--case", "small", "--plan", c.file(json.dumps(value), "p.json"), "--emit", "loop").expect(0).out
    require("k.o" not in shown and "m.o" in shown, f"another program: {shown}")
    kept = json.loads(c.run("compile", c.file(LINEAR), "--case", "small", "--plan", c.folder / "p.json", "--emit", "plan").expect(0).out)
    require([d["status"] for d in kept["decisions"]] == ["rejected", "kept"], f"the record is lost: {kept}")


@test
def open_guard_becomes_a_condition_of_the_launcher(c: Cli) -> None:
    source = c.file(LINEAR)
    shown = c.run("compile", source, "--set", "T=f32", "--plan", c.file(json.dumps(GOOD), "p.json"), "--emit", "loop").expect(0).out
    require("M >= 16" in shown.splitlines()[0] and "== 0" in shown.splitlines()[0], f"the guard is no fact: {shown}")
    c.run("compile", source, "--op", "linear", "--set", "T=f32,M=15", "--plan", c.folder / "p.json", "--emit", "loop").expect(1, "plan.shape")


@test
def print_after_shows_programs(c: Cli) -> None:
    arguments = ["compile", c.file(LINEAR), "--case", "small", "--plan", c.file(json.dumps(GOOD), "p.json"), "--emit", "loop", "--print-after"]
    require(c.run(*arguments, "tile").expect(0).out.count("// after step") == 1, "not one dump for tile")
    shown = c.run(*arguments, "all").expect(0, text="// after step 1, fuse(acc, y, over = [m: 16, n: 16], kind = grid)").out
    require(shown.count("// after step") == 2, "not one dump a step")
    c.run(*arguments, "tiel").expect(2, "pass.unknown", "did you mean `tile`?")


@test
def emitted_source_names_its_decisions(c: Cli) -> None:
    arguments = ["compile", c.file(LINEAR), "--case", "small", "--plan", c.file(json.dumps(GOOD), "p.json"), "--emit", "cuda"]
    plain = c.run(*arguments).expect(0).out
    require("//   d1 fuse(acc, y" in plain and "// @" not in plain, f"the banner does not name the plan: {plain[:400]}")
    shown = c.run(*arguments, "--provenance").expect(0).out
    require("test.acu:2" in shown and " d1 d2\n" in shown, f"no provenance behind the statements: {shown}")
    require(re.sub(r"  // @\S+( d\d+)*\n", "\n", shown) == plain, "provenance changes more than comments")


@test
def explain_in_words(c: Cli) -> None:
    path = c.file(json.dumps(GOOD), "p.json")
    alone = c.run("explain", path).expect(0).out
    for text in ("linear for sm_80 when M >= 16 && K % 8 == 0", "fuse(acc, y, over = [m: 16, n: 16], kind = grid)", "the product stays near", "search", "reassociates"):
        require(text in alone, f"no `{text}`: {alone}")
    traced = c.run("explain", path, c.file(LINEAR), "--set", "T=f32").expect(0).out
    for text in ("+  for m.o in", "test.acu:2, steps 1 2", "test.acu:3, steps 1"):
        require(text in traced, f"no `{text}`: {traced}")


@test
def explain_as_json(c: Cli) -> None:
    path = c.file(json.dumps(GOOD), "p.json")
    said = json.loads(c.run("explain", path, c.file(LINEAR), "--set", "T=f32", "--json").expect(0).out)
    require([s["effect"] for s in said["steps"]] == [True, True] and said["statements"], f"another answer: {said}")
    require(any(s["decisions"] == [1, 2] and s["source"].endswith("test.acu:2") for s in said["statements"]), f"another provenance: {said['statements']}")
    require(said["plan"]["decisions"][0]["why"] == "the product stays near" and said["schedule"].startswith("schedule linear"), "another plan")


@test
def library_example_compiles_with_its_block(c: Cli) -> None:
    done = c.run("compile", ROOT / "examples/linear_gelu.acu", "--target", "sm_90a", "--case", "llama3_8b_up", "-o", c.folder).expect(0)
    require("warning[" in done.err or "// plan" in (c.folder / "linear_gelu.cu").read_text(), "its schedule block is silently left out")
    c.run("compile", c.file(COPY), "--target", "sm_80", "-o", c.folder).expect(0)
