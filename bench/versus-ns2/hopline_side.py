"""Run a case in hopline.

`scenario_text` is the only place that knows our scenario format: it writes a case as TOML. The
walk is a scenario of its own, kept in scenarios/walk.
"""

import json
import shutil
import tempfile
from pathlib import Path

import geometry
import measure
import networks

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "dist" / "hopline"
WALK = ROOT / "scenarios" / "walk" / "scenario.toml"
NRED = ROOT / "papers" / "nred" / "scenarios"

TRANSPORTS = {"Reno": "tcp-reno", "Newreno": "tcp-newreno", "Sack1": "tcp-sack",
              "Cubic": "tcp-cubic"}
TIMESTAMPS_BYTES = 12
# A frame of ns-2's LAN takes 4 % more time than one of a link of the same rate.
LAN_MBPS = 1.918


def scenario_text(case):
    """The case as a scenario file; the files that it names lie beside it."""
    lines = [f'name = "{case.group}"', f"duration_s = {case.duration}",
             f'transport = "{TRANSPORTS[case.transport]}"']
    if case.topology == "last-hop":
        lines += ["warmup_s = 5"]
    lines += ["[tcp]", f'preset = "{case.preset}"', f"window = {case.window}",
              "delayed_ack_ms = " + ("100" if case.sink == "delack" else '"off"')]
    lines += cubic_lines(case) if case.transport == "Cubic" else [f"mss_bytes = {case.mss}"]
    if case.topology == "wired":
        return "\n".join(lines + wired_lines(case)) + "\n"
    if case.topology == "last-hop":
        return "\n".join(lines + last_hop_lines(case)) + "\n"
    lines += ["[radio]", 'preset = "ns2-wavelan"']
    if case.ranges:
        lines += [f"range_m = {case.ranges[0]}", f"carrier_sense_range_m = {case.ranges[1]}"]
    lines += ["[mac]", f"basic_rate_mbps = {case.basic_rate_mbps}",
              "[queue]", f"capacity_packets = {case.queue}", "[routing]",
              'protocol = "' + ("static" if case.routing == "frozen" else "aodv") + '"']
    if case.routing == "aodv":
        lines += ["[routing.aodv]", 'preset = "ns2-2.35"']
    if case.topology == "random":
        lines += ["[nodes]", 'layout = "file"', 'file = "nodes.csv"',
                  "[flows]", 'file = "flows.csv"']
    else:
        places, flows = geometry.of(case)
        for x, y in places:
            lines += ["[[node]]", f"x_m = {x}", f"y_m = {y}"]
        for src, dst in flows:
            lines += ["[[flow]]", f'src = "n{src}"', f'dst = "n{dst}"']
    return "\n".join(lines) + "\n"


def cubic_lines(case):
    """Where Agent/TCP/Linux differs from the other agents of ns-2, and from hosts of today."""
    return [f"mss_bytes = {case.mss + TIMESTAMPS_BYTES}", "timestamps = true",
            f"cubic_beta = {case.beta / 1024}", "initial_window = 2", "initial_rto_s = 3",
            "max_rto_s = 120", "clock_granularity_s = 0.001"]


def wired_lines(case):
    lines = ["[[node]]"] * 3
    first, second = case.links
    for a, (rate, delay), errors in ((0, first, 0.0), (1, second, case.bit_error_rate)):
        lines += ["[[link]]", f'a = "n{a}"', f'b = "n{a + 1}"', f"rate_mbps = {rate}",
                  f"delay_ms = {delay}", "[link.queue]", "capacity_packets = 49"]
        if errors > 0:
            lines += ["[link.errors]", 'model = "bit"', f"bit_error_rate = {errors}"]
    return [*lines, "[[flow]]", 'src = "n0"', 'dst = "n2"', f"bytes = {case.transfer_bytes}"]


def last_hop_lines(case):
    lines = ["[[node]]"] * 3
    for a, rate, delay in ((0, 10, 10), (1, LAN_MBPS, 2)):
        lines += ["[[link]]", f'a = "n{a}"', f'b = "n{a + 1}"', f"rate_mbps = {rate}",
                  f"delay_ms = {delay}", "[link.queue]", "capacity_packets = 49"]
    if case.packet_loss > 0:
        lines += ["[link.errors]", 'model = "packet"', f"packet_loss = {case.packet_loss}",
                  'direction = "a-to-b"']
    kind = "snoop" if case.snoop else "none"
    lines += ["[[proxy]]", 'node = "n1"', 'mobile = ["n2"]', f'kind = "{kind}"',
              'preset = "ns2-2.35"']
    return [*lines, "[[flow]]", 'src = "n0"', 'dst = "n2"']


def why_not(case):
    """Why this case cannot be run, or None."""
    if not PROGRAM.exists():
        return f"{PROGRAM.relative_to(ROOT)} is not built"
    if case.topology == "walk" and not WALK.exists():
        return f"{WALK.relative_to(ROOT)} does not exist"
    return None


def run(case, seed):
    with tempfile.TemporaryDirectory() as folder:
        if case.topology == "door":
            return door(seed)
        if case.settings == "paper":
            return paper(case, seed)
        path = WALK
        if case.topology != "walk":
            path = Path(folder) / "scenario.toml"
            path.write_text(scenario_text(case), encoding="ascii")
        if case.topology == "random":
            for what, source in networks.stored(case.network).items():
                shutil.copy(source, Path(folder) / f"{what}.csv")
        measured = measure.run([PROGRAM, "run", path, "--json", "--set", f"seed={seed}"])
    return flows_of(measured), measured


def door(run):
    """The network of the TCP-DOOR paper: a seed is a run, for every run moves otherwise."""
    settings = ("routing.protocol=dsr", "routing.dsr.preset=ns2-2.35", "tcp.preset=ns2-2.35")
    words = [word for setting in settings for word in ("--set", setting)]
    measured = measure.run([PROGRAM, "run", networks.DOOR, "--json", "--run", run, *words])
    return flows_of(measured), measured


def paper(case, run):
    """A scenario of the Neighborhood RED paper: a seed is a run, as in papers/nred."""
    name = {"three-parallel": "three"}.get(case.topology, case.topology)
    measured = measure.run([PROGRAM, "run", NRED / f"{name}.toml", "--json", "--run", run,
                            "--set", f"radio.carrier_sense_range_m={case.ranges[1]}"])
    return flows_of(measured), measured


def flows_of(measured):
    return [flow for flow in json.loads(measured.output)["flows"]
            if flow["transport"].startswith("tcp")]
