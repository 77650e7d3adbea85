#!/usr/bin/env python3
"""Runs every plan of benchmarks/plans on a CUDA device, plainly and under compute-sanitizer, and writes what came out.

Each file there holds an operator, a case and a schedule for sm_90a; `acuc run --check` compares the emitted kernel with float64.
"""
import argparse
import concurrent.futures
import datetime
import json
import re
import subprocess
import time
from pathlib import Path

TOOLS = ("plain", "memcheck", "racecheck", "initcheck")


def run(acuc: str, file: Path, tool: str) -> dict:
    command = [acuc, "run", str(file), "--case", file.stem, "--device", "cuda:0", "--check", "--json"]
    if tool != "plain":
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "77", *command]
    start = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        out, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        out, code = "no answer within 200 s", 124
    summary = re.search(r"(ERROR SUMMARY|RACECHECK SUMMARY): ([^\n]*)", out)
    clean = code == 0 and (tool == "plain" or (summary is not None and summary.group(2).startswith("0 ")))
    report = next((json.loads(line) for line in out.splitlines() if line.startswith("{")), {})
    return {"plan": file.stem, "tool": tool, "clean": clean, "summary": summary.group(2) if summary else out.strip()[-300:] if not clean else "", "seconds": round(time.time() - start, 1),
            "device": report.get("device", ""), "toolchain": report.get("by", ""), "operator": report.get("operator", "")}


def table(results: list[dict], head: dict) -> str:
    plans = sorted({r["plan"] for r in results})
    lines = [f"# Plans under compute-sanitizer\n\n{head['date']}, {head['device']}, {head['toolchain']}, commit {head['commit']}; written by benchmarks/sanitizer.py\n",
             "| plan | " + " | ".join(TOOLS) + " |", "|---" * (len(TOOLS) + 1) + "|"]
    found = {(r["plan"], r["tool"]): r for r in results}
    for p in plans:
        lines.append(f"| {p} | " + " | ".join("clean" if found[p, t]["clean"] else f"**{found[p, t]['summary'][:80]}**" for t in TOOLS) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acuc", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--out", default="benchmarks/results")
    parser.add_argument("--jobs", type=int, default=6)
    a = parser.parse_args()
    files = sorted((Path(__file__).parent / "plans").glob("*.acu"))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        results = list(pool.map(lambda job: run(a.acuc, *job), [(f, t) for f in files for t in TOOLS]))
    seen = next((r for r in results if r["device"]), {"device": "none", "toolchain": "none"})
    head = {"date": datetime.date.today().isoformat(), "device": seen["device"], "toolchain": seen["toolchain"], "commit": a.commit}
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "sanitizer_h200.json").write_text(json.dumps({**head, "results": results}, indent=1) + "\n")
    (out / "sanitizer_h200.md").write_text(table(results, head))
    bad = [r for r in results if not r["clean"]]
    for r in bad:
        print(f"{r['plan']} {r['tool']}: {r['summary'][:200]}")
    print(f"{len(files)} plans, {len(results) - len(bad)} clean runs, {len(bad)} not; {head['device']}, {head['toolchain']}")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
