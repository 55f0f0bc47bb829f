"""What a network ten times as large costs: CPU per node and simulated second, and memory."""

import json
import math

import measure
import report
from hopline_side import PROGRAM, ROOT

SCENARIO = ROOT / "scenarios" / "random-400" / "scenario.toml"
RANGE_M = 250.0
NEIGHBOURS = 10
NODES_PER_FLOW = 10
SMALL, LARGE = 500, 5000


def side_m(nodes):
    """The side of a square in which nodes have ten neighbours each on average."""
    return round(math.sqrt(nodes * math.pi * RANGE_M**2 / NEIGHBOURS))


def run(nodes, routing):
    side = side_m(nodes)
    settings = {"nodes.count": nodes, "nodes.width_m": side, "nodes.height_m": side,
                "flows.random": nodes // NODES_PER_FLOW, "routing.protocol": routing}
    words = [PROGRAM, "run", SCENARIO, "--json"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    return measure.run(words)


def table():
    head = ["nodes, a flow for every ten, 30 s", "CPU s", "MiB", "events", "ns per event",
            "µs per node and second", "against 500 nodes"]
    lines = []
    for routing in ("aodv", "static"):
        base = None
        for nodes in (SMALL, LARGE):
            measured = run(nodes, routing)
            result = json.loads(measured.output)
            cost = 1e6 * measured.cpu_s / nodes / result["sim_s"]
            base = base or cost
            lines.append([f"{nodes}, {routing}", f"{measured.cpu_s:.1f}", f"{measured.peak_mib:.0f}",
                          f"{result['events'] / 1e6:.0f} M",
                          f"{1e9 * measured.cpu_s / result['events']:.0f}", f"{cost:.0f}",
                          f"{cost / base:.1f}"])
    return report.markdown(head, lines)
