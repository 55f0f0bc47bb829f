#!/usr/bin/env python3
"""The preset `linux` beside this kernel's own TCP, over one emulated link.

    python3 versus_linux.py                       # the table; runs of the kernel come from reference.json
    python3 versus_linux.py --measure             # all of the kernel's runs anew: three quarters of an hour of real time, as root
    python3 versus_linux.py --measure --law bbr   # those of one law; the others stay
    python3 versus_linux.py --write docs/validation.md

The kernel sends by iperf3 between the two hosts of `hopline link`, in real time; hopline simulates a link of the same rate, delay,
queue and losses. Data are lost and acknowledgments are not. Three seconds are left out at the start, fifteen count. A run
over a link that was late by its own account is made again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page import put_into  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("HOPLINE", ROOT / "target" / "dist" / "hopline"))
REFERENCE = HERE / "reference.json"
MARK = "<!-- versus-linux -->"

LAWS = ("cubic", "reno", "bbr")
# The kernel recovers alike whatever the law of the window.
TRANSPORTS = {"cubic": "tcp-cubic", "reno": "tcp-sack", "bbr": "tcp-bbr"}
RATES_MBPS = (20, 2)
DELAYS_MS = (2, 25)
LOSSES_PCT = (0, 0.5, 1, 2, 5, 10)
SEEDS = range(1, 9)
QUEUE_PACKETS = 100
WARM_UP_S, MEASURED_S = 3, 15
AT_ONCE = 6  # of the kernel's runs: none needs much of a processor
TARGET_PCT = 10
ATTEMPTS = 10

CASES = tuple(product(LAWS, RATES_MBPS, DELAYS_MS, LOSSES_PCT))


def kernel(case, seed):
    """Goodput in b/s of one run of the kernel's TCP."""
    law, rate, delay, loss = case
    for attempt in range(ATTEMPTS):
        words = [PROGRAM, "link", "--strict", "--rate", f"{rate}mbit", "--delay", f"{delay}ms", "--loss", f"{loss}%",
                 "--loss-back", "0%", "--queue", QUEUE_PACKETS, "--seed", seed + 1000 * attempt,
                 "--far", "iperf3 -s -1", "--", "iperf3", "-c", "10.80.0.2", "-C", law,
                 "-O", WARM_UP_S, "-t", MEASURED_S, "-J"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    raise RuntimeError(f"{case}, seed {seed}: {done.stderr.strip()[-300:]}")


SCENARIO = """\
name = "versus-linux"
duration_s = {duration}
warmup_s = {warm_up}
transport = "{transport}"
tcp.preset = "linux"

[[node]]
name = "near"

[[node]]
name = "far"

[[link]]
a = "near"
b = "far"
rate_mbps = {rate}
delay_ms = {delay}
queue.capacity_packets = {queue}
errors.model = "packet"
errors.packet_loss = {loss}
errors.direction = "a-to-b"

[[flow]]
src = "near"
dst = "far"
"""


def ours(case, seed):
    """The same of one simulated run."""
    law, rate, delay, loss = case
    text = SCENARIO.format(duration=WARM_UP_S + MEASURED_S, warm_up=WARM_UP_S, transport=TRANSPORTS[law], rate=rate,
                           delay=delay, queue=QUEUE_PACKETS, loss=loss / 100)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(text, encoding="ascii")
        done = subprocess.run([PROGRAM, "run", path, "--json", "--seed", str(seed)], capture_output=True,
                              text=True, check=True)
    return json.loads(done.stdout)["flows"][0]["goodput_bps"]


def measured(run, at_once, cases=CASES):
    jobs = [(case, seed) for case in cases for seed in SEEDS]
    with ThreadPoolExecutor(at_once) as pool:
        values = list(pool.map(lambda job: run(*job), jobs))
    found = {case: [] for case in cases}
    for (case, _), value in zip(jobs, values):
        found[case].append(value)
    return found


def key(case):
    return ",".join(str(part) for part in case)


def measure(laws):
    """The kernel's runs under these laws, made anew."""
    stored = json.loads(REFERENCE.read_text(encoding="ascii"))
    cases = [case for case in CASES if case[0] in laws]
    stored["goodput_bps"] |= {key(case): values for case, values in measured(kernel, AT_ONCE, cases).items()}
    stored["kernel"] |= dict.fromkeys(laws, os.uname().release)
    REFERENCE.write_text(json.dumps(stored, indent=1) + "\n", encoding="ascii")


def kernels_runs():
    """The kernels that were measured, and what their runs yielded."""
    stored = json.loads(REFERENCE.read_text(encoding="ascii"))
    versions = {release.partition("-")[0] for release in stored["kernel"].values()}
    return ", ".join(sorted(versions)), {case: stored["goodput_bps"][key(case)] for case in CASES}


def half_width(values):
    """Of a 95 % interval of the mean of eight values (Student)."""
    return 2.365 * statistics.stdev(values) / len(values) ** 0.5


def row(case, theirs, own):
    law, rate, delay, loss = case
    mean, reference = statistics.mean(own), statistics.mean(theirs)
    off = 100 * (mean / reference - 1)
    noise = 100 * (half_width(own) ** 2 + half_width(theirs) ** 2) ** 0.5 / reference
    verdict = "yes" if abs(off) <= TARGET_PCT else "within noise" if abs(off) - noise <= TARGET_PCT else "**no**"
    kilobits = lambda values: f"{statistics.mean(values) / 1e3:.0f} ± {half_width(values) / 1e3:.0f}"
    return (f"| {law} | {rate} Mb/s, {delay} ms | {loss:g} % | {kilobits(theirs)} | {kilobits(own)} "
            f"| {off:+.1f} ± {noise:.1f} % | {verdict} |".replace("-", "−")), verdict


def table(version, theirs, own):
    rows = [row(case, theirs[case], own[case]) for case in CASES]
    hits = sum(verdict == "yes" for _, verdict in rows)
    unsure = sum(verdict == "within noise" for _, verdict in rows)
    lines = [f"Linux {version}, {len(SEEDS)} seeds, {MEASURED_S} s each; ± is a 95 % half-width. Within {TARGET_PCT} %: "
             f"{hits} of {len(rows)}, and {unsure} within noise.", "",
             "| law | link, one way | data lost | kernel, kb/s | `linux`, kb/s | ours beside it | within 10 % |",
             "|---|---|--:|--:|--:|--:|---|"]
    return "\n".join(lines + [text for text, _ in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="run the kernel anew")
    parser.add_argument("--law", action="append", choices=LAWS, help="with --measure: this law alone; may be repeated")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.law or LAWS)
    version, theirs = kernels_runs()
    text = table(version, theirs, measured(ours, os.cpu_count() or 1))
    if arguments.write:
        put_into(arguments.write, MARK, text)
    print(text)


if __name__ == "__main__":
    main()
