"""Plan file and schedule block are one thing in two forms: each becomes the other and back, byte for byte."""
import json
import random

from harness import Cli, require, test
from material import GOOD, LINEAR, a_plan, catalogue, plan

HEAD = "schedule linear for sm_80 "


def there_and_back(c: Cli, value: dict) -> None:
    text = c.run("explain", c.file(json.dumps(value), "p.json"), "--as", "json").expect(0).out
    words = c.run("explain", c.file(text, "p.json"), "--as", "schedule").expect(0).out
    back = c.run("explain", c.file(words, "s.acu"), "--as", "json").expect(0).out
    require(back == text, f"a plan comes back changed:\n{text}\n{words}\n{back}")
    require(json.loads(text)["decisions"] == [{"id": i + 1, **{k: d[k] for k in d}} for i, d in enumerate(value["decisions"])], f"reading changes a plan: {text}")
    require(c.run("explain", c.file(back, "q.json"), "--as", "schedule").out == words, "the words change")


@test
def plan_to_words_and_back(c: Cli) -> None:
    there_and_back(c, GOOD)
    there_and_back(c, plan())


@test
def random_plans_to_words_and_back(c: Cli) -> None:
    draw = random.Random(c.seed)
    for _ in range(40):
        there_and_back(c, a_plan(draw, catalogue(c.acuc)["passes"]))


def steps(c: Cli, body: str, when: str = "") -> list[dict]:
    """The decisions of a schedule block."""
    done = c.run("explain", c.file(f"{HEAD}{when}{{\n{body}\n}}\n", "s.acu"), "--as", "json").expect(0)
    return json.loads(done.out)["decisions"]


@test
def words_mean_what_they_say(c: Cli) -> None:
    for words, pass_name, scope, params in (
        ("tile(acc, k = 64)", "tile", ["acc"], {"axes": {"k": 64}}),
        ("tile(acc, axes = [k: 64, n.i: 1])", "tile", ["acc"], {"axes": {"k": 64, "n.i": 1}}),
        ("fuse(acc, y, over = m)", "fuse", ["acc", "y"], {"over": {"m": 1}}),
        ("fuse(acc, y, over = [m, n: 16], kind = grid)", "fuse", ["acc", "y"], {"over": {"m": 1, "n": 16}, "kind": "grid"}),
        ("keep(acc, in = register)", "keep", ["acc"], {"in": "register"}),
        ("rasterize(u, 8)", "rasterize", ["u"], {"group": 8}),
        ("swizzle(x.t, pattern = 128)", "swizzle", ["x.t"], {"pattern": "128"}),
        ("specialize(when = (K % 64 == 0 && M >= 1))", "specialize", [], {"when": "K % 64 == 0 and M >= 1"}),
        ("reorder(consumer/k.o, n.o)", "reorder", ["consumer/k.o", "n.o"], {}),
        ("tile(y.0, k = 8)", "tile", ["y.0"], {"axes": {"k": 8}}),
    ):
        (one,) = steps(c, words)
        require((one["pass"], one["scope"], one["params"]) == (pass_name, scope, params), f"`{words}` is {one}")


@test
def comments_hold_reasons(c: Cli) -> None:
    one, two = steps(c, "  /// because\n  /// of this\n  tile(acc, k = 64)   /// not of the next\n  /// @by search\n  /// @status kept\n  /// @measured {\"time_us\": 2.5}\n  tile(y, n = 8)   // a remark")
    require((one["why"], one["by"]) == ("because of this", "user"), f"another reason: {one}")
    require("why" not in two and (two["by"], two["status"], two["measured"]) == ("search", "kept", {"time_us": 2.5}), f"another record: {two}")


@test
def wrong_tags_are_reported(c: Cli) -> None:
    for tag in ("@bye search", "@status good", "@measured 3", "@id 0"):
        c.run("check", c.file(f"{LINEAR}{HEAD}{{\n  /// {tag}\n  tile(acc, k = 8)\n}}\n")).expect(1, "schedule.tag")
    c.run("check", c.file(f"{LINEAR}/// @definition 12\n{HEAD}{{\n  tile(acc, k = 8)\n}}\n")).expect(1, "schedule.tag")


@test
def which_block_is_meant(c: Cli) -> None:
    two = f"{HEAD}{{\n  tile(acc, k = 8)\n}}\nschedule linear for sm_70 {{\n  tile(acc, k = 4)\n}}\n"
    c.run("explain", c.file(two, "s.acu")).expect(1, "plan.block", "2 schedule blocks")
    c.run("explain", c.file(two, "s.acu"), "--target", "sm_70").expect(0, text="k = 4")
    c.run("explain", c.file(LINEAR, "s.acu")).expect(1, "plan.block", "no schedule block")


@test
def formatting_keeps_a_block(c: Cli) -> None:
    words = c.run("explain", c.file(json.dumps(GOOD), "p.json"), "--as", "schedule").expect(0).out
    c.run("fmt", c.file(words, "s.acu")).expect(0)
    again = c.run("explain", c.folder / "s.acu", "--as", "schedule").expect(0).out
    require(again == words, "formatting changes what a block says")
