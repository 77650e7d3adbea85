"""Plans with variants: alternatives for sizes in bounds, of which the launcher takes the first that fits."""
import json

from conversion import there_and_back
from harness import ROOT, Cli, require, test
from material import FUSED, GOOD, LINEAR, TILED, changed, plan, validator, without

SMALL = {"when": "M <= 16", "doc": "few rows", "decisions": [{"id": 1, **TILED}]}
EVEN = {"when": "M % 32 == 0 && K % 8 == 0", "decisions": [{"id": 1, **FUSED}, {"id": 2, **TILED}]}
DISPATCH = plan(FUSED, variants=[SMALL, EVEN])


@test
def variants_to_words_and_back(c: Cli) -> None:
    there_and_back(c, DISPATCH)
    there_and_back(c, plan(variants=[{"when": "M == 0", "decisions": []}]))


@test
def variants_are_read_strictly(c: Cli) -> None:
    for value, code in ((changed(DISPATCH, "", "variants", 0, "when"), "plan.schema"), (without(DISPATCH, "variants", 0, "when"), "plan.schema"), (without(DISPATCH, "variants", 1, "decisions"), "plan.schema"),
                        (changed(DISPATCH, "sm_80", "variants", 0, "target"), "plan.schema"), (changed(DISPATCH, 3, "variants"), "plan.schema"), (changed(DISPATCH, [SMALL] * 65, "variants"), "plan.schema"),
                        (changed(DISPATCH, "M <=", "variants", 1, "when"), "plan.when"), (changed(DISPATCH, 0, "variants", 1, "decisions", 1, "params", "axes", "k"), "param.domain")):
        require(bool(list(validator(c).iter_errors(value))) or code == "plan.when", f"the schema admits {value}")
        c.run("explain", c.file(json.dumps(value), "p.json")).expect(1, code)
    validator(c).validate(DISPATCH)
    validator(c).validate(GOOD)


@test
def launcher_takes_the_first_that_fits(c: Cli) -> None:
    source, saved = c.file(LINEAR), c.file(json.dumps(DISPATCH), "p.json")
    c.run("compile", source, "--plan", saved, "--set", "T=f32", "-o", c.folder / "first").expect(0)
    text = (c.folder / "first" / "linear.cu").read_text()
    at = [text.index(words) for words in ("if (M <= 16) {", "if (M % 32 == 0 && K % 8 == 0) {")]
    require(at == sorted(at) and text.count("queue);\n        return status;\n    }") == 2, "the launcher asks in another order")
    c.run("compile", source, "--plan", c.folder / "first" / "linear.plan.json", "-o", c.folder / "again").expect(0)
    require(all((c.folder / "again" / p.name).read_bytes() == p.read_bytes() for p in (c.folder / "first").iterdir()), "the plan alone gives other files")


@test
def fixed_sizes_leave_one(c: Cli) -> None:
    saved = c.file(json.dumps(DISPATCH), "p.json")
    for sizes, passes, more in (("M=16,K=8", ["tile"], 0), ("M=64,K=8", ["fuse", "tile"], 0), ("M=64", ["fuse"], 1), ("M=65,K=8", ["fuse"], 0), ("K=8", ["fuse"], 2)):
        one = json.loads(c.run("compile", c.file(LINEAR), "--plan", saved, "--set", f"T=f32,{sizes}", "--emit", "plan").expect(0).out)
        require([d["pass"] for d in one["decisions"]] == passes and len(one.get("variants", [])) == more, f"{sizes}: {one}")


@test
def run_and_explain_speak_of_the_one_that_fits(c: Cli) -> None:
    source, saved = c.file(LINEAR), c.file(json.dumps(DISPATCH), "p.json")
    for m in (3, 32, 40):
        done = c.run("run", source, "--device", "emu:sm_80", "--plan", saved, "--set", f"T=f32,M={m},N=20,K=24", "--check").expect(0)
        require("correct: `y`" in done.out, f"M = {m}: {done.out}")
    words = c.run("explain", saved).expect(0).out
    require("when M <= 16: few rows" in words and "for every other size" in words, f"another text: {words}")
    traced = c.run("explain", saved, source, "--set", "T=f32,M=8").expect(0).out
    require("tile(acc, k = 8)" in traced and "fuse(acc" not in traced, f"another alternative: {traced}")
    found = json.loads(c.run("explain", saved, source, "--set", "T=f32", "--json").expect(0).out)
    require([v["when"] for v in found["variants"]] == [SMALL["when"], EVEN["when"]] and len(found["steps"]) == 1, f"other alternatives: {found}")


@test
def blocks_with_open_conditions_are_variants(c: Cli) -> None:
    block = "schedule linear for sm_80 when M <= 16 {\n  tile(acc, k = 8)\n}\n"
    one = json.loads(c.run("compile", c.file(LINEAR + block), "--target", "sm_80", "--set", "T=f32", "--emit", "plan").expect(0).out)
    require([v["when"] for v in one["variants"]][0] == "M <= 16" and all(d["by"] == "default" for d in one["decisions"]), f"another plan: {one}")
    rest = "schedule linear for sm_80 {\n  tile(acc, k = 4)\n}\n"
    one = json.loads(c.run("compile", c.file(LINEAR + block + rest), "--target", "sm_80", "--set", "T=f32", "--emit", "plan").expect(0).out)
    require(len(one["variants"]) == 1 and one["decisions"][0]["params"] == {"axes": {"k": 4}}, f"another plan: {one}")


@test
def default_plan_of_open_sizes(c: Cli) -> None:
    """Sizes of every class, of which the smallest rows have a part of a warp, and the longest a cluster."""
    source = ROOT / "stdlib" / "nn.acu"
    for target in ("sm_90a", "gfx90a"):
        saved = c.file(c.run("compile", source, "--op", "layernorm", "--target", target, "--set", "T=f16", "--emit", "plan").expect(0).out, f"{target}.json")
        conditions = [v["when"] for v in json.loads(saved.read_text())["variants"]]
        require(len(conditions) > 6 and conditions[0] == "N <= 64", f"other classes: {conditions}")
        for b, n in ((5, 7), (3, 500), (2, 1023), (2, 3000), (1, 12289), (1, 70001)):
            done = c.run("run", source, "--device", f"emu:{target}", "--plan", saved, "--set", f"B={b},N={n}", "--check").expect(0)
            require("correct: `y`" in done.out, f"{target} {b}x{n}: {done.out}")


@test
def few_long_rows_of_a_scan(c: Cli) -> None:
    source = ROOT / "stdlib" / "reduce.acu"
    saved = c.file(c.run("compile", source, "--op", "cumsum", "--target", "sm_80", "--set", "T=f32", "--emit", "plan").expect(0).out, "p.json")
    require("split_scan" in saved.read_text(), "no row is shared by blocks")
    for b, n in ((1, 20001), (2, 40), (140, 3)):
        done = c.run("run", source, "--device", "emu:sm_80", "--plan", saved, "--set", f"B={b},N={n}", "--check").expect(0)
        require("correct: `y`" in done.out, f"{b}x{n}: {done.out}")


@test
def plan_of_open_sizes_runs_at_those_that_it_could_not_be_made_for(c: Cli) -> None:
    """Vectors of 4 are refused for rows of 5 that are known, not for rows of any length."""
    source = c.file("op twice<T: f32>(x: T[M, N]) -> y: T[M, N] {\n  y[m, n] = 2 * x[m, n]\n}\n")
    steps = [{"id": 1, "pass": "fuse", "scope": ["y"], "params": {"over": {"m": 1}, "kind": "grid"}}, {"id": 2, "pass": "vectorize", "scope": ["y", "n"], "params": {"width": 4, "threads": 32}}]
    saved = c.file(json.dumps({"schema": 1, "operator": "twice", "target": "sm_80", "types": {"T": "f32"}, "decisions": steps}), "p.json")
    c.run("compile", source, "--plan", saved, "--set", "M=3,N=5", "--emit", "cuda").expect(1, "vectorize.size")
    done = c.run("run", source, "--device", "emu:sm_80", "--plan", saved, "--set", "M=3,N=5", "--check").expect(0)
    require("correct: `y`" in done.out, done.out)
