"""Every network that both simulators run, as data.

A case says what is simulated, in words that belong to neither program; `ns2_side.py` and
`hopline_side.py` translate it.
"""

from dataclasses import dataclass, replace

MSS = 1460
TRANSFER_BYTES = 6850 * MSS  # 10 MB in whole segments, as ns-2 counts
HOPS = (1, 2, 3, 4, 6, 8)
WINDOWS = (2, 3, 8, 32)
BIT_ERROR_RATES = (0.0, 0.75e-6, 1.5e-6, 3e-6, 7.5e-6, 1.5e-5)
RARE_BIT_ERROR_RATES = (0.0, 1e-8, 3e-8, 1e-7)
PACKET_LOSSES = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Case:
    group: str  # the table that it belongs to, and the name for --only
    name: str
    topology: str
    hops: int = 1
    window: int = 32
    sink: str = "delack"  # or "plain": an ACK for every segment
    transport: str = "Newreno"  # or "Reno", "Sack1", "Cubic"
    preset: str = "ns2-2.35"  # of our TCP
    peer: str = ""  # the case whose runs in ns-2 serve this one as well
    beta: int = 819  # of Cubic: 1024ths of the window that a loss leaves
    routing: str = "frozen"  # or "aodv", "dsr"
    mss: int = MSS
    duration: float = 120.0
    spacing: float = 200.0  # metres between neighbours in a line
    lanes: float = 400.0  # metres between parallel lanes
    ranges: tuple | None = None  # metres of reception and of carrier sense; ns-2's 250 and 550
    basic_rate_mbps: int = 1  # of RTS, CTS and ACK
    queue: int = 49  # packets that an interface holds
    links: tuple = ((10, 5), (2, 1))  # of a wired path: Mb/s and ms
    transfer_bytes: int = TRANSFER_BYTES  # over a wired path
    bit_error_rate: float = 0.0
    packet_loss: float = 0.0  # towards a mobile host
    snoop: bool = False  # at the station before it
    network: int = 0  # nodes of a random network
    target_pct: float | None = None
    flow_target_pct: float | None = None  # of each flow, in per cent of the aggregate
    by_rank: bool = False  # chance picks the winner: compare the flow that has most with that which has most
    settings: str = "ns-2"  # ours: ns-2's, or those of the "paper" whose network it is
    repeat: int = 1  # times as many runs: where they vary much and cost little


def chains():
    for routing, windows, sinks in (
        ("frozen", WINDOWS, ("delack", "plain")),
        ("aodv", (2, 32), ("delack",)),
    ):
        group = "chain" if routing == "frozen" else "chain-aodv"
        for sink in sinks:
            for window in windows:
                for hops in HOPS:
                    target = 15.0 if routing == "aodv" else 5.0 if window == 2 else 10.0
                    yield Case(group, f"{hops} hops, window {window}, {sink}", "chain", hops=hops,
                               window=window, sink=sink, routing=routing, target_pct=target,
                               repeat=4 if routing == "aodv" and window == 32 else 1)


def meetings():
    for topology in ("cross", "parallel", "grid"):
        for window in (2, 8, 32):
            yield Case(topology, f"window {window}", topology, hops=4, window=window,
                       target_pct=10.0)
    yield Case("three-parallel", "lanes 400 m", "three-parallel", lanes=400.0)
    yield Case("three-parallel", "lanes 300 m", "three-parallel", lanes=300.0)
    for topology in ("hidden", "exposed", "exposed-outward"):
        yield Case("pairs", topology, topology, target_pct=10.0)


def neighbours():
    """G1, G3 and G4 of the Neighborhood RED paper with drop tail. What papers/nred also has, carrier sense at 550 m and
    for pairs at 367 m, senses the same nodes as 653 m and is the same run."""
    for topology in ("three-parallel", "hidden", "exposed"):
        for sense in (653, 807):
            yield Case("neighbours", f"{topology}, sense {sense} m", topology, mss=512, spacing=350.0,
                       lanes=350.0, ranges=(367, sense), basic_rate_mbps=2, queue=66,
                       by_rank=topology == "hidden", target_pct=10.0, flow_target_pct=5.0, repeat=2)


def as_in_the_paper(cases):
    """The same once more with our settings of the paper, for information; the same runs in ns-2."""
    for case in cases:
        yield replace(case, name=f"{case.name}, papers/nred", settings="paper", peer=case.name,
                      target_pct=None, flow_target_pct=None, repeat=1)


def wired():
    for sink in ("delack", "plain"):
        for transport in ("Reno", "Newreno", "Sack1", "Cubic"):
            for rate in BIT_ERROR_RATES:
                yield Case("wired", f"{transport}, bit errors {rate:g}, {sink}", "wired",
                           transport=transport, sink=sink, bit_error_rate=rate, duration=3600.0,
                           target_pct=10.0, repeat=4)


def wired_long():
    """167 segments fit into the path: what is under test is the cubic function, and RFC 9438's beta."""
    for sink in ("delack", "plain"):
        for rate in RARE_BIT_ERROR_RATES:
            yield Case("wired-long", f"Cubic, bit errors {rate:g}, {sink}", "wired",
                       transport="Cubic", beta=717, sink=sink, links=((100, 5), (10, 95)),
                       window=1000, transfer_bytes=60_000 * MSS, bit_error_rate=rate,
                       duration=3600.0, target_pct=10.0, repeat=4)


def last_hop():
    """ns-2's own Snoop, beside ours of that reading."""
    for sink in ("plain", "delack"):
        for snoop in (False, True):
            for loss in PACKET_LOSSES:
                name = f"{100 * loss:g} % lost, {'Snoop' if snoop else 'nothing'}, {sink}"
                yield Case("last-hop", name, "last-hop", sink=sink, window=20, packet_loss=loss,
                           snoop=snoop, duration=60.0, target_pct=10.0, repeat=4)


def with_todays_recovery(cases):
    """CUBIC once more, with what hosts of today know of losses; the same runs in ns-2."""
    for case in cases:
        if case.transport == "Cubic":
            yield replace(case, name=f"{case.name}, linux", preset="linux", peer=case.name)


def large():
    yield Case("walk", "20 nodes", "walk", transport="Sack1", routing="aodv", duration=200.0)
    yield Case("door", "20 nodes", "door", transport="Sack1", sink="plain", routing="dsr", mss=512,
               duration=200.0, target_pct=15.0)
    for count in (400, 800):
        yield Case("random", f"{count} nodes", "random", network=count, routing="aodv",
                   duration=30.0)


CASES = (*chains(), *meetings(), *neighbours(), *as_in_the_paper(neighbours()), *wired(), *with_todays_recovery(wired()), *wired_long(),
         *with_todays_recovery(wired_long()), *last_hop(), *large())
GROUPS = tuple(dict.fromkeys(case.group for case in CASES))

# Cases with a comparison of CPU time and memory.
SPEED = tuple(
    case for case in CASES
    if case.group in ("walk", "door", "random")
    or (case.group in ("cross", "grid") and case.window == 32)
    or (case.group == "chain" and case.hops in (4, 8) and case.window == 32
        and case.sink == "delack")
)
