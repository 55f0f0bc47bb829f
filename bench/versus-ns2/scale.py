"""What a network ten times as large costs: CPU per node and simulated second, and memory."""

import json
import math

import measure
import report
from hopline_side import PROGRAM, ROOT

SCENARIO = ROOT / "scenarios" / "random-400" / "scenario.toml"
RANGE_M = 250.0
NEIGHBOURS = 10
SMALL, LARGE = 500, 5000
FLOWS = 50
WALKING = {"mobility.model": "random-waypoint", "mobility.max_speed_mps": 10}
# Name, flows of so many nodes, further settings. The first is the one that counts; the second shows what is due to the
# flows alone, the last what is due to routing.
CASES = (
    ("aodv", lambda nodes: nodes // 10, {}),
    (f"aodv, {FLOWS} flows", lambda nodes: FLOWS, {}),
    ("aodv, walking", lambda nodes: nodes // 10, WALKING),
    ("static", lambda nodes: nodes // 10, {"routing.protocol": "static"}),
)


def side_m(nodes):
    """The side of a square in which nodes have ten neighbours each on average."""
    return round(math.sqrt(nodes * math.pi * RANGE_M**2 / NEIGHBOURS))


def run(nodes, flows, further):
    side = side_m(nodes)
    settings = {"nodes.count": nodes, "nodes.width_m": side, "nodes.height_m": side,
                "flows.random": flows, "routing.protocol": "aodv"} | further
    words = [PROGRAM, "run", SCENARIO, "--json"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    return measure.run(words)


def table():
    head = ["nodes, a flow for every ten, 30 s", "CPU s", "MiB", "events", "ns per event",
            "events per node and second", "µs per node and second", "against 500 nodes"]
    lines = []
    for name, flows, further in CASES:
        base = None
        for nodes in (SMALL, LARGE):
            measured = run(nodes, flows(nodes), further)
            result = json.loads(measured.output)
            node_seconds = nodes * result["sim_s"]
            cost = 1e6 * measured.cpu_s / node_seconds
            base = base or cost
            lines.append([f"{nodes}, {name}", f"{measured.cpu_s:.1f}", f"{measured.peak_mib:.0f}",
                          f"{result['events'] / 1e6:.0f} M",
                          f"{1e9 * measured.cpu_s / result['events']:.0f}",
                          f"{result['events'] / node_seconds:.0f}", f"{cost:.0f}", f"{cost / base:.1f}"])
    return report.markdown(head, lines)


if __name__ == "__main__":
    print(table())
