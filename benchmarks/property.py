#!/usr/bin/env python3
"""The full property test: random legal plans of every reduced case, several processes side by side; adds up their summaries."""
import argparse
import concurrent.futures
import datetime
import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cases() -> list[str]:
    found = set()
    for file in (ROOT / "benchmarks/suite").glob("*.acu"):
        found |= {m.group(1) for m in re.finditer(r"^case (\w{4})_small", file.read_text(), re.M)}
    return sorted(found)


def run(binary: str, case: str, a: argparse.Namespace, deadline: float) -> dict:
    out = Path(a.out) / f"property_{case}.json"
    left = deadline - time.time()
    if left < 5:
        return {"case": case, "skipped": True}
    command = [binary, "--cases", case, "--plans", str(a.plans), "--emulate", str(a.emulate), "--seed", str(a.seed), "--json", str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, env={**os.environ, "ACU_SOURCE_ROOT": str(ROOT)})
    except subprocess.TimeoutExpired:
        return {"case": case, "skipped": True}
    if not out.exists():
        return {"case": case, "failures": 1, "text": (done.stdout + done.stderr)[-1500:]}
    j = json.loads(out.read_text())
    out.unlink()
    return {"case": case, **j, "text": "\n".join(x for x in done.stdout.splitlines() if x.startswith(("FAILED", "    ---")))[:3000]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--out", default="benchmarks/results")
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--emulate", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=3600, help="seconds; cases not finished by then are left out")
    parser.add_argument("--cases", default="")
    a = parser.parse_args()
    Path(a.out).mkdir(parents=True, exist_ok=True)
    deadline = time.time() + a.budget
    wanted = a.cases.split(",") if a.cases else cases()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        results = list(pool.map(lambda c: run(a.binary, c, a, deadline), wanted))
    done = [r for r in results if not r.get("skipped")]
    total = lambda key: sum(r.get(key, 0) for r in done)
    accepted: dict[str, int] = {}
    for r in done:
        for name, n in r.get("accepted", {}).items():
            accepted[name] = accepted.get(name, 0) + n
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    summary = {"date": datetime.date.today().isoformat(), "machine": f"{platform.machine()}, {os.cpu_count()} cores", "toolchain": compiler, "commit": a.commit, "seed": a.seed, "cases": len(done), "left_out": [r["case"] for r in results if r.get("skipped")],
               "plans": total("plans"), "plans_a_case": a.plans, "accepted_steps": total("accepted_steps"), "emulated_runs": total("emulated_runs"), "plans_too_large_for_a_target": total("not_fitting"),
               "failures": total("failures"), "accepted_by_pass": dict(sorted(accepted.items())), "by_case": [{k: r[k] for k in ("case", "plans", "accepted_steps", "emulated_runs", "failures", "seconds") if k in r} for r in done]}
    (Path(a.out) / "property.json").write_text(json.dumps(summary, indent=1) + "\n")
    for r in done:
        if r.get("text"):
            print(f"{r['case']}: {r['text'][:1800]}")
    print({k: summary[k] for k in ("cases", "plans", "accepted_steps", "emulated_runs", "failures")}, "left out:", len(summary["left_out"]))
    return bool(summary["failures"])


if __name__ == "__main__":
    raise SystemExit(main())
