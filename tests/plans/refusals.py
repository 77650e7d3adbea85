"""A plan that is not for this operator, target or shape, and steps that are refused: the reason is said and nothing is written."""
import json

from harness import Cli, require, test
from material import FUSED, GOOD, LINEAR, TILED, plan, without

SMALL = ["--case", "small"]


def refused(c: Cli, value: dict, code: str, text: str, *arguments: object, source: str = LINEAR) -> str:
    """Compiles under a plan; requires the code, the text, and that no file was written. Answers what was printed."""
    out = c.folder / "out"
    done = c.run("compile", c.file(source), "--plan", c.file(json.dumps(value), "p.json"), "-o", out, *arguments).expect(1, code, text)
    require(not out.exists() or not any(out.iterdir()), f"{code}, but files were written")
    return done.err


def emitted(c: Cli, *arguments: object) -> dict:
    return json.loads(c.run("compile", c.file(LINEAR), "--target", "sm_80", "--emit", "plan", *arguments).expect(0).out)


@test
def other_target(c: Cli) -> None:
    refused(c, GOOD, "plan.target", "the plan is for sm_80, not for sm_90a", "--target", "sm_90a", *SMALL)


@test
def other_operator(c: Cli) -> None:
    both = LINEAR + LINEAR.replace("op linear", "op other").split("case")[0]
    refused(c, GOOD, "plan.operator", "for the operator `linear`, not for `other`", "--op", "other", source=both)


@test
def changed_operator(c: Cli) -> None:
    old = emitted(c, *SMALL)
    text = refused(c, old, "plan.stale", "has changed since the plan was made", source=LINEAR.replace("max(acc[m, n], 0)", "max(acc[m, n], 1)"))
    require(old["definition"] in text, f"the old definition is not named: {text}")
    refused(c, old, "plan.stale", "it has no `T`", source=LINEAR.replace("<T: f16 | f32>", "").replace("T[", "f32[").replace("T = f32, ", ""))
    refused(c, old, "plan.stale", "it has no `K`", source=LINEAR.replace("K", "L"))


@test
def changes_that_mean_nothing_keep_a_plan(c: Cli) -> None:
    saved = c.file(json.dumps(emitted(c, *SMALL)), "p.json")
    source = c.file("// a remark\n" + LINEAR.replace("  y[m, n] =", "\n  y[m, n]   ="), "b.acu")
    c.run("compile", source, "--plan", saved, "--emit", "plan").expect(0)


@test
def one_definition_for_all_sizes(c: Cli) -> None:
    plans = [emitted(c, "--set", f"T=f32{sizes}") for sizes in ("", ",M=4", ",M=8,N=3,K=2")]
    require(len({p["definition"] for p in plans}) == 1, f"the definition depends on sizes: {plans}")
    require(emitted(c, "--set", "T=f16")["definition"] != plans[0]["definition"], "the definition does not depend on types")


@test
def other_sizes_and_types(c: Cli) -> None:
    fixed = {**GOOD, "dims": {"M": 64}, "types": {"T": "f32"}}
    refused(c, fixed, "plan.shape", "the plan is for M = 64, but M is 32", *SMALL)
    refused(c, fixed, "plan.shape", "the plan is for T = f32, not for f16", "--set", "T=f16")
    refused(c, {**GOOD, "when": "M >= 512"}, "plan.shape", "the plan is for `M >= 512`", *SMALL)
    refused(c, {**GOOD, "when": "M / N >= 2"}, "plan.shape", "", *SMALL)
    refused(c, {**GOOD, "when": "Q >= 512"}, "plan.when", "Q", *SMALL)


@test
def refused_steps(c: Cli) -> None:
    text = refused(c, plan(FUSED, {**TILED, "params": {"axes": {"q": 8}}}), "tile.axis", "step 2, `tile(acc, q = 8)`", *SMALL)
    require("stage `precondition`" in text, f"the stage is not said: {text}")
    text = refused(c, plan({**TILED, "scope": ["ac"]}), "site.unknown", "did you mean `acc`?", *SMALL)
    require("stage `resolve`" in text, f"the stage is not said: {text}")


@test
def refused_step_of_a_block_has_a_caret(c: Cli) -> None:
    source = c.file(LINEAR + "schedule linear for sm_80 {\n  tile(acc, k = 8)\n  tile(acc, axes = [k.o: 8])\n}\n")
    done = c.run("compile", source, "--target", "sm_80", *SMALL, "-o", c.folder / "out").expect(1, "tile.axis", "step 2, `tile(acc, axes = [k.o: 8])`")
    require(" 8 |   tile(acc, axes = [k.o: 8])\n   |   ^^^^" in done.err, f"no caret: {done.err}")
    require(not (c.folder / "out").exists(), "files were written")


@test
def steps_without_effect_are_reported(c: Cli) -> None:
    value = plan(FUSED, {"pass": "unroll", "scope": ["m.o"], "params": {"factor": 1}})
    done = c.run("compile", c.file(LINEAR), "--plan", c.file(json.dumps(value), "p.json"), *SMALL, "--emit", "loop")
    if done.exit == 0:
        require("warning[plan.no-effect]: step 2, `unroll(m.o, factor = 1)`" in done.err, f"no warning: {done.err}")
    value = plan({"pass": "specialize", "params": {"when": "M >= 16"}})
    done = c.run("compile", c.file(LINEAR), "--plan", c.file(json.dumps(value), "p.json"), *SMALL, "--emit", "loop").expect(0)
    require("warning[plan.no-effect]: step 1, `specialize(when = (M >= 16))`, changes nothing" in done.err, f"no warning: {done.err}")


def by_default(text: str) -> bool:
    return all(d["by"] == "default" for d in json.loads(text)["decisions"])


@test
def blocks_that_cannot_be_used(c: Cli) -> None:
    later = c.file(LINEAR + "schedule linear for sm_80 {\n  tile(acc, k = 8)\n  reuse(acc)\n}\n")
    c.run("check", later).expect(0)
    done = c.run("compile", later, "--target", "sm_80", *SMALL, "--emit", "plan").expect(0)
    require("warning[schedule.later]: `reuse`" in done.err and by_default(done.out), f"another answer: {done.err}{done.out}")
    guarded = c.file(LINEAR + "schedule linear for sm_80 when M >= 16 {\n  tile(acc, k = 8)\n}\n")
    for sizes, target, count in (("M=16", "sm_80", 1), ("M=15", "sm_80", 0), ("M=16", "sm_70", 0)):
        done = c.run("compile", guarded, "--target", target, "--set", f"T=f32,{sizes}", "--emit", "plan").expect(0)
        require(by_default(done.out) == (count == 0) and not done.err, f"{sizes} {target}: another plan: {done.out}{done.err}")


@test
def wrong_block_stops_compile(c: Cli) -> None:
    source = c.file(LINEAR + "schedule linear for sm_80 {\n  tile(accu, k = 8)\n}\n")
    c.run("compile", source, "--target", "sm_80", *SMALL, "--emit", "plan").expect(1, "schedule.name")


@test
def explain_of_a_plan_that_does_not_fit(c: Cli) -> None:
    wrong = c.file(json.dumps(plan(FUSED, {**TILED, "params": {"axes": {"q": 8}}})), "p.json")
    done = c.run("explain", wrong, c.file(LINEAR), "--set", "T=f32").expect(1, "tile.axis", "not applied")
    require("+  for m.o" in done.out, f"the step before is not explained: {done.out}")
    c.run("explain", c.file(json.dumps({**without(GOOD, "when"), "definition": "0" * 16}), "p.json"), c.file(LINEAR), "--set", "T=f32").expect(1, "plan.stale")
