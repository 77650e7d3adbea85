"""Plans with roles, in emulation: in order, apart in memory, and in random orders of threads. On other targets they are refused."""
from harness import ROOT, Cli, test

FOLDER = ROOT / "benchmarks" / "plans"
PLANS = (("linear_roles", "sm_90a"), ("linear_ping_pong", "sm_90a"), ("linear_cooperate", "sm_90a"), ("scale_roles", "sm_80"))


@test
def roles_compute_what_the_definition_says(c: Cli) -> None:
    for name, target in PLANS:
        for way in ([], ["--emu-guard"], ["--emu-seed", c.seed % 1000 + 1]):
            c.run("run", FOLDER / f"{name}.acu", "--case", name, "--device", f"emu:{target}", "--check", *way).expect(0)


@test
def roles_need_barriers_in_shared_memory(c: Cli) -> None:
    text = (FOLDER / "scale_roles.acu").read_text().replace("for sm_80", "for gfx90a").replace("  bind_copy(x.t, via = common.copy_async)\n", "")
    c.run("compile", c.file(text), "--case", "scale_roles", "--target", "gfx90a", "-o", c.folder).expect(1, "warp_specialize.target", "see pipeline")
