"""Run ns-2 over the cases and keep the results in reference/GROUP.json.

    python3 reference.py [GROUP ...] [--seeds N]

Only what is missing is run; delete a file to run it again.
"""

import argparse
import json
import sys
from pathlib import Path

import ns2_side
from cases import CASES, GROUPS

FOLDER = Path(__file__).resolve().parent / "reference"


def load(group):
    path = FOLDER / f"{group}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="ascii"))
    return {"ns2": ns2_side.version(), "cases": {}}


def store(group, data):
    text = ['{', f' "ns2": {json.dumps(data["ns2"])},', ' "cases": {']
    blocks = []
    for name, runs in data["cases"].items():
        rows = ",\n".join("   " + json.dumps(run) for run in runs)
        blocks.append(f"  {json.dumps(name)}: [\n{rows}\n  ]")
    text += [",\n".join(blocks), " }", "}"]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{group}.json").write_text("\n".join(text) + "\n", encoding="ascii")


def fill(cases, seeds):
    for case in cases:
        if case.peer:
            continue
        data = load(case.group)
        runs = data["cases"].setdefault(case.name, [])
        for seed in range(len(runs) + 1, seeds * case.repeat + 1):
            flows, measured = ns2_side.run(case, seed)
            runs.append({"seed": seed, "flows": flows, "cpu_s": round(measured.cpu_s, 2),
                         "peak_mib": round(measured.peak_mib, 1)})
        store(case.group, data)
        if runs:
            total = [sum(flow["goodput_bps"] for flow in run["flows"]) / 1000 for run in runs]
            print(f"{case.group}: {case.name}: {sum(total) / len(total):.1f} kb/s, "
                  f"{sum(run['cpu_s'] for run in runs) / len(runs):.2f} CPU s",
                  file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", default=[], metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    ns2_side.ensure_installed()
    fill([case for case in CASES if not options.groups or case.group in options.groups],
         options.seeds)


if __name__ == "__main__":
    main()
