"""hopline against figures that were measured with ns-3.37 (ns-3 itself is not run here)."""

import json
import statistics

import measure
import report
from hopline_side import PROGRAM, ROOT

SCENARIO = ROOT / "scenarios" / "chain-ns3" / "scenario.toml"
TARGET_PCT = 10.0

# One TCP NewReno flow over a chain, 200 m a hop, two-ray 250 m / 550 m, static routes, MSS 1460,
# delayed ACK 2, window 2 by send buffer, 120 s: goodput in kb/s by number of hops.
NS3_37 = {1: 1453, 2: 732, 3: 491, 4: 386, 6: 299, 8: 246}


def goodput(hops, seed):
    output = measure.run([
        PROGRAM, "run", SCENARIO, "--json", "--set", f"seed={seed}",
        "--set", f"nodes.count={hops + 1}", "--set", f"flow.0.dst=n{hops}",
    ]).output
    return json.loads(output)["aggregate_goodput_bps"] / 1e3


def table(seeds):
    head = ["chain-ns3", "ns-3.37 kb/s", "ours kb/s", "± sd", "difference", "target"]
    lines, missed = [], []
    for hops, theirs in NS3_37.items():
        runs = [goodput(hops, seed) for seed in range(1, seeds + 1)]
        ours = statistics.mean(runs)
        off = 100 * (ours / theirs - 1)
        deviation = statistics.stdev(runs) if len(runs) > 1 else 0.0
        lines.append([f"{hops} hops, window 2", f"{theirs}", f"{ours:.1f}", f"{deviation:.1f}",
                      f"{off:+.1f} %", f"{TARGET_PCT:g} %"])
        if abs(off) > TARGET_PCT:
            missed.append(f"\n- missed: {hops} hops: {off:+.1f} %, target {TARGET_PCT:g} %\n")
    return report.markdown(head, lines) + "".join(missed)
